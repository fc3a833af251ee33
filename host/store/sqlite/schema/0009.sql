-- Tenants, their keys, and the audit log. Only hashes of keys are stored. An id of the audit
-- log is never used twice.

CREATE TABLE tenants (
	name     TEXT PRIMARY KEY,
	created  INTEGER NOT NULL,
	deleting INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE keys (
	id              TEXT PRIMARY KEY,
	tenant          TEXT NOT NULL,
	role            TEXT NOT NULL,
	name            TEXT NOT NULL,
	prefix          TEXT NOT NULL,
	hash            BLOB NOT NULL,
	previous        BLOB NOT NULL,
	previous_prefix TEXT NOT NULL,
	previous_until  INTEGER NOT NULL,
	created         INTEGER NOT NULL,
	expires         INTEGER NOT NULL,
	last_used       INTEGER NOT NULL,
	revoked         INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX keys_tenant ON keys (tenant);
CREATE TABLE access_audit (
	id      INTEGER PRIMARY KEY AUTOINCREMENT,
	time    INTEGER NOT NULL,
	who     TEXT NOT NULL,
	tenant  TEXT NOT NULL,
	act     TEXT NOT NULL,
	target  TEXT NOT NULL,
	detail  TEXT NOT NULL,
	outcome TEXT NOT NULL
) STRICT;
CREATE INDEX access_audit_tenant ON access_audit (tenant, id);
