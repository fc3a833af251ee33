-- Versions of composed workflows. Each has its record, and lists its modules separately, so
-- that a named module is not deleted.

CREATE TABLE compositions (
	tenant  TEXT NOT NULL,
	name    TEXT NOT NULL,
	version INTEGER NOT NULL,
	digest  TEXT NOT NULL,
	created INTEGER NOT NULL,
	record  BLOB NOT NULL,
	PRIMARY KEY (tenant, name, version)
) STRICT;
CREATE INDEX compositions_digest ON compositions (digest);
CREATE TABLE composition_modules (
	tenant  TEXT NOT NULL,
	name    TEXT NOT NULL,
	version INTEGER NOT NULL,
	place   INTEGER NOT NULL,
	module  TEXT NOT NULL REFERENCES modules (digest),
	PRIMARY KEY (tenant, name, version, place),
	FOREIGN KEY (tenant, name, version) REFERENCES compositions (tenant, name, version) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX composition_modules_module ON composition_modules (module);
