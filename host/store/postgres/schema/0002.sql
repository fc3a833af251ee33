-- What the nodes of a cluster say about themselves. url: where other nodes reach the node;
-- '' is a server that has the store to itself. key: SHA-256 of the public key of its
-- certificate. lease: nanoseconds of silence after which others close its epoch.
ALTER TABLE nodes
	ADD COLUMN url text NOT NULL DEFAULT '',
	ADD COLUMN key bytea NOT NULL DEFAULT '',
	ADD COLUMN lease bigint NOT NULL DEFAULT 0;
