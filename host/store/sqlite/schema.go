package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/weftrun/weft/host"
)

// migrations create the schema, step by step. The schema number of a database is the
// number of steps it has taken. A released step never changes.
var migrations = []string{schema1, schema2, schema3, schema4, schema5, schema6, schema7, schema8, schema9, schema10, schema11, schema12, schema13, schema14, schema15, schema16, schema17, schema18}

// schema16: the bytes of modules may be compressed ([record.PackModule]). An older release
// would read such a module as damaged, so the step keeps older releases out.
const schema16 = `SELECT 1`

// schema8: the versions that journals need. For sessions from before this schema, no
// version is listed for entries up to position unlisted (0: all are listed). While such a
// session exists, nothing is swept. A version that no run can begin any more, but that
// journals may need, is released: a module stays in place, a composition moves to a table
// without names.
const schema8 = `
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
`

// schema7: the version of a run; "" in older rows.
const schema7 = `ALTER TABLE runs ADD COLUMN version TEXT NOT NULL DEFAULT ''`

// schema6: snapshots in the journal. A row has the position of its newest snapshot, or
// NULL. A session has the row (by first) of its newest snapshot, or 0.
const schema6 = `
ALTER TABLE journal ADD COLUMN snapshot INTEGER;
CREATE INDEX journal_snapshot ON journal (sid, snapshot) WHERE snapshot IS NOT NULL;
ALTER TABLE sessions ADD COLUMN snapshot INTEGER NOT NULL DEFAULT 0;
`

// schema5: an index of the runs that have ended, for deleting old ones.
const schema5 = `CREATE INDEX runs_ended ON runs (tenant, completed, run) WHERE completed > 0`

// schema2: what a run waits for, a CBOR list; NULL: nothing.
const schema2 = `ALTER TABLE runs ADD COLUMN waiting BLOB`

// schema3: versions of composed workflows. Each has its record, and lists its modules
// separately, so that a named module is not deleted.
const schema3 = `
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
`

// schema1: texts identify rows only at the border. Inside, sessions and handlers have
// small integers in the order of their creation, so that rows written together are stored
// together.
const schema1 = `
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
`

// storeTable holds one row that describes the file: the number of its schema and the
// newest owner's epoch.
const storeTable = `
CREATE TABLE store (
	one    INTEGER PRIMARY KEY CHECK (one = 1),
	schema INTEGER NOT NULL,
	epoch  INTEGER NOT NULL
) STRICT;
INSERT INTO store (one, schema, epoch) VALUES (1, 0, 0);
`

// migrate brings the schema to the newest version, in one transaction.
func migrate(ctx context.Context, conn *sql.Conn) (err error) {
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, _ = conn.ExecContext(ctx, "ROLLBACK")
		}
	}()
	version, err := schemaVersion(ctx, conn)
	if err != nil {
		return err
	}
	if version > len(migrations) {
		return newerSchema(version)
	}
	for i := version; i < len(migrations); i++ {
		if _, err := conn.ExecContext(ctx, migrations[i]); err != nil {
			return fmt.Errorf("schema %d: %w", i+1, err)
		}
	}
	if version < len(migrations) { // a writing transaction like any other
		if _, err := conn.ExecContext(ctx, "UPDATE store SET schema = ?, commits = commits + 1", len(migrations)); err != nil {
			return err
		}
	}
	_, err = conn.ExecContext(ctx, "COMMIT")
	return err
}

// newerSchema is the error for a database that a newer version has written.
func newerSchema(version int) error {
	return fmt.Errorf("%w: its schema is %d, this version knows up to %d", host.ErrNewer, version, len(migrations))
}

// errForeign is the error for a database that is not weft's.
var errForeign = errors.New("a SQLite database, but not one of weft")

// querier is a connection or a pool of connections.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// countTables returns the number of tables and indexes, and whether the table that marks
// a database as weft's is among them.
func countTables(ctx context.Context, db querier) (tables, ours int, err error) {
	err = db.QueryRowContext(ctx,
		"SELECT count(*), count(*) FILTER (WHERE name = 'store') FROM sqlite_schema").Scan(&tables, &ours)
	return tables, ours, err
}

// schemaVersion reads the schema's number. In an empty database it creates the row that
// holds the number.
func schemaVersion(ctx context.Context, conn *sql.Conn) (int, error) {
	tables, ours, err := countTables(ctx, conn)
	if err != nil {
		return 0, err
	}
	if tables == 0 {
		_, err := conn.ExecContext(ctx, storeTable)
		return 0, err
	}
	if ours == 0 {
		return 0, errForeign
	}
	var version int
	err = conn.QueryRowContext(ctx, "SELECT schema FROM store").Scan(&version)
	return version, err
}
