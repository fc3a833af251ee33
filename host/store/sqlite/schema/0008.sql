-- The versions that journals need. For sessions from before this schema, no version is listed
-- for entries up to position unlisted (0: all are listed). While such a session exists, nothing
-- is swept. A version that no run can begin any more, but that journals may need, is released:
-- a module stays in place, a composition moves to a table without names.

CREATE TABLE versions (
	id     INTEGER PRIMARY KEY,
	digest TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE session_versions (
	sid     INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	version INTEGER NOT NULL REFERENCES versions (id),
	last    INTEGER NOT NULL,
	PRIMARY KEY (sid, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_versions_version ON session_versions (version);
ALTER TABLE sessions ADD COLUMN unlisted INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET unlisted = last;
CREATE INDEX sessions_unlisted ON sessions (unlisted) WHERE unlisted > 0;
CREATE TABLE released (
	digest TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
CREATE TABLE released_compositions (
	digest  TEXT PRIMARY KEY,
	tenant  TEXT NOT NULL,
	name    TEXT NOT NULL,
	version INTEGER NOT NULL,
	created INTEGER NOT NULL,
	record  BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE released_modules (
	digest TEXT NOT NULL REFERENCES released_compositions (digest) ON DELETE CASCADE,
	place  INTEGER NOT NULL,
	module TEXT NOT NULL REFERENCES modules (digest),
	PRIMARY KEY (digest, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX released_modules_module ON released_modules (module);
DROP INDEX runs_running;
CREATE INDEX runs_running ON runs (tenant, workflow, version) WHERE status = 'running';
