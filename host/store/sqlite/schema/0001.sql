-- Texts identify rows only at the border. Inside, sessions and handlers have small integers in
-- the order of their creation, so that rows written together are stored together.

CREATE TABLE meta (
	key   TEXT PRIMARY KEY,
	value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

-- One row per session. wake_at: 0 is now, NULL is never.
-- private: a handler with the session's own name has run in it.
CREATE TABLE sessions (
	id      INTEGER PRIMARY KEY,
	tenant  TEXT NOT NULL,
	session TEXT NOT NULL,
	last    INTEGER NOT NULL,
	wake_at INTEGER,
	private INTEGER NOT NULL,
	UNIQUE (tenant, session)
) STRICT;
CREATE INDEX sessions_wake ON sessions (wake_at) WHERE wake_at IS NOT NULL;

-- One row per batch and session: the entries from position first on.
CREATE TABLE journal (
	sid   INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
	first INTEGER NOT NULL,
	data  BLOB NOT NULL,
	PRIMARY KEY (sid, first)
) STRICT, WITHOUT ROWID;

-- first_seq: of the latest run's first stream event, had or to come.
CREATE TABLE handlers (
	id        INTEGER PRIMARY KEY,
	tenant    TEXT NOT NULL,
	handler   TEXT NOT NULL,
	sid       INTEGER NOT NULL,
	first_seq INTEGER NOT NULL,
	UNIQUE (tenant, handler)
) STRICT;

-- The latest run of a handler is the one with its highest id, and has
-- latest = 1; listings go over these only. The result comes last because a
-- large one continues on other pages, which a filter then need not read.
CREATE TABLE runs (
	id              INTEGER PRIMARY KEY,
	hid             INTEGER NOT NULL REFERENCES handlers (id) ON DELETE CASCADE,
	sid             INTEGER NOT NULL,
	latest          INTEGER NOT NULL,
	tenant          TEXT NOT NULL,
	handler         TEXT NOT NULL,
	run             TEXT NOT NULL,
	session         TEXT NOT NULL,
	workflow        TEXT NOT NULL,
	status          TEXT NOT NULL,
	started         INTEGER NOT NULL,
	updated         INTEGER NOT NULL,
	completed       INTEGER NOT NULL,
	paused          INTEGER NOT NULL,
	blocked_code    TEXT,
	blocked_message TEXT,
	steps           INTEGER NOT NULL,
	fuel            INTEGER NOT NULL,
	error           TEXT NOT NULL,
	error_code      TEXT NOT NULL,
	result          BLOB,
	UNIQUE (tenant, run)
) STRICT;
CREATE INDEX runs_handler ON runs (hid);
CREATE INDEX runs_started ON runs (tenant, started DESC, handler DESC) WHERE latest = 1;
CREATE INDEX runs_status ON runs (tenant, status, started DESC, handler DESC) WHERE latest = 1;
CREATE INDEX runs_workflow ON runs (tenant, workflow, started DESC, handler DESC) WHERE latest = 1;
CREATE INDEX runs_session ON runs (sid, started DESC, handler DESC) WHERE latest = 1;
CREATE INDEX runs_blocked ON runs (tenant, started DESC, handler DESC) WHERE latest = 1 AND blocked_code IS NOT NULL;
CREATE INDEX runs_running ON runs (tenant, workflow) WHERE status = 'running';

-- Stream events in rows of consecutive ones. Keyed by the last one, so that
-- what follows a given number is found at once.
CREATE TABLE stream (
	hid       INTEGER NOT NULL REFERENCES handlers (id) ON DELETE CASCADE,
	last_seq  INTEGER NOT NULL,
	first_seq INTEGER NOT NULL,
	run       TEXT NOT NULL,
	events    BLOB NOT NULL,
	PRIMARY KEY (hid, last_seq)
) STRICT, WITHOUT ROWID;

-- Modules by the SHA-256 of their original bytes, which lie apart: what is
-- known of a module is read far more often.
CREATE TABLE modules (
	digest     TEXT PRIMARY KEY,
	rewritten  TEXT NOT NULL,
	image_hash TEXT NOT NULL,
	manifest   BLOB,
	imports    BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE module_bytes (
	digest TEXT PRIMARY KEY REFERENCES modules (digest) ON DELETE CASCADE,
	bytes  BLOB NOT NULL
) STRICT;

CREATE TABLE plugins (
	tenant   TEXT NOT NULL,
	name     TEXT NOT NULL,
	version  INTEGER NOT NULL,
	workflow TEXT NOT NULL,
	digest   TEXT NOT NULL REFERENCES modules (digest),
	size     INTEGER NOT NULL,
	created  INTEGER NOT NULL,
	PRIMARY KEY (tenant, name, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX plugins_digest ON plugins (digest);
