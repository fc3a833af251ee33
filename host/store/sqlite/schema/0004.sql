-- Requests that clients may repeat, by idempotency key.

CREATE TABLE repeats (
	tenant TEXT NOT NULL,
	route  TEXT NOT NULL,
	key    TEXT NOT NULL,
	hash   TEXT NOT NULL,
	run    TEXT NOT NULL,
	made   INTEGER NOT NULL,
	PRIMARY KEY (tenant, route, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX repeats_made ON repeats (made);
