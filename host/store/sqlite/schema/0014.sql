-- The data of resources of kind kv, by tenant and definition. last is the newest version ever
-- given in a space. keys and bytes count what the space holds.

CREATE TABLE kv_spaces (
	id       INTEGER PRIMARY KEY,
	tenant   TEXT NOT NULL,
	resource TEXT NOT NULL,
	made     INTEGER NOT NULL,
	last     INTEGER NOT NULL,
	keys     INTEGER NOT NULL,
	bytes    INTEGER NOT NULL,
	UNIQUE (tenant, resource, made)
) STRICT;
CREATE TABLE kv (
	space   INTEGER NOT NULL REFERENCES kv_spaces (id) ON DELETE CASCADE,
	key     TEXT NOT NULL,
	version INTEGER NOT NULL,
	value   BLOB NOT NULL,
	PRIMARY KEY (space, key)
) STRICT, WITHOUT ROWID;
