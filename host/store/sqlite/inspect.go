package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	code "modernc.org/sqlite/lib"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/inspect"
	"github.com/weftrun/weft/host/store/record"
	"github.com/weftrun/weft/host/store/sqlite/datadir"
	"github.com/weftrun/weft/host/store/sqlite/schema"
)

// errReadOnly is the error of the writing methods of a store that was opened for reading.
var errReadOnly = errors.New("the store is open for reading only")

// OpenOffline opens the store in dir for reading, and locks the directory against servers
// until Close. The writing methods fail.
//
// # Errors
//
// Those of [Open]; an error for a directory without a database.
func OpenOffline(dir string) (_ *Store, err error) {
	path := filepath.Join(dir, fileName)
	if err := exists(path); err != nil {
		if there, lookErr := look(dir, nil); lookErr == nil && there.missing != nil {
			err = there.missing
		}
		return nil, err
	}
	lock, err := datadir.Lock(dir)
	if err != nil {
		return nil, err
	}
	there, err := look(dir, nil) // before SQLite touches the log
	if err == nil && there.missing != nil {
		err = there.missing
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	mode := asItIs
	if !there.log.There { // nobody writes: the directory is locked
		mode = sealed
	}
	s, err := openReader(path, mode)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s.found = there
	s.lock = lock
	return s, nil
}

// OpenShared opens the store in dir for reading, while a server may be running on it. The
// writing methods fail.
//
// # Errors
//
// Those of [OpenOffline], except that the directory may be in use.
func OpenShared(dir string) (*Store, error) {
	path := filepath.Join(dir, fileName)
	if err := exists(path); err != nil {
		return nil, err
	}
	return openReader(path, asItIs)
}

// OpenToCopy is OpenShared for [Store.Backup] only. The database may have an older
// schema, and no other method works.
func OpenToCopy(dir string) (*Store, error) {
	path := filepath.Join(dir, fileName)
	if err := exists(path); err != nil {
		return nil, err
	}
	return openReader(path, toCopy)
}

// OpenFile opens a backup for reading: a database file that nobody writes. It creates no
// file beside it. The writing methods fail.
//
// # Errors
//
// Those of [OpenOffline].
func OpenFile(path string) (*Store, error) {
	if err := exists(path); err != nil {
		return nil, err
	}
	return openReader(path, sealed)
}

// exists returns an error for a missing file, which SQLite would create.
func exists(path string) error {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no database %s", path)
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", path)
	}
	return nil
}

// readerMode is a set of bits: what may be assumed about a database that is only read.
type readerMode uint8

const (
	asItIs readerMode = 0
	sealed readerMode = 1 // nobody writes the database, and no file may be created beside it
	toCopy readerMode = 2 // the schema may be older, and only copying works
)

// openReader opens the reading part of a store.
func openReader(path string, mode readerMode) (_ *Store, err error) {
	ctx := context.Background()
	s := &Store{dir: filepath.Dir(path), broken: errReadOnly}
	defer func() {
		if err != nil {
			err = errors.Join(fileError(path, err), s.Close())
		}
	}()
	name, err := readerDSN(path)
	if err != nil {
		return nil, err
	}
	name += "&mode=ro" // nor does the last connection move the log into the database
	if mode&sealed != 0 {
		name += "&immutable=1"
	}
	if s.read, err = sql.Open("sqlite", name); err != nil {
		return nil, err
	}
	s.read.SetMaxOpenConns(readers)
	s.read.SetMaxIdleConns(readers)
	if s.schema, err = schema.Check(ctx, s.read); err != nil || mode&toCopy != 0 {
		return s, err
	}
	s.query, err = prepareQueries(ctx, s.read, s.schema)
	return s, err
}

// Schemas returns the number of the database's schema, and the number of the schema that
// this version of weft writes. A starting server migrates an older schema.
func (s *Store) Schemas() (has, newest int) { return s.schema, schema.Newest }

// Log returns what the log held when [OpenOffline] opened the store: complete frames and
// commits, and frames behind a torn frame, which do not count.
func (s *Store) Log() (frames, commits, torn uint64) {
	return s.found.log.Frames, s.found.log.Commits, s.found.log.Behind
}

// fileError says why a database file cannot be opened.
func fileError(path string, err error) error {
	switch primaryCode(err) {
	case code.SQLITE_NOTADB:
		return fmt.Errorf("%s is not a SQLite database: %w", path, err)
	case code.SQLITE_CORRUPT:
		return fmt.Errorf("%s is damaged: %w: %w", path, host.ErrUnreadable, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Inspection reads a store row by row, as it was at one moment. It keeps a read
// transaction open. A checkpoint cannot pass it, so the log of a writing server grows
// until Close. Only one goroutine at a time may use an Inspection. Its methods pass rows
// in order to a callback, which owns them and whose error ends the call.
//
// # Errors
//
// [host.ErrUnreadable] where the file is damaged; otherwise the errors of the file
// system, the context or the callback.
type Inspection struct {
	conn   *sql.Conn
	schema int // of the database; it may be older than ours
	// prepared has the statements used so far. The statements for a session are used for
	// each session, and preparing them takes longer than reading their few rows.
	prepared map[string]*sql.Stmt
}

// Inspect begins an inspection. Close ends it.
func (s *Store) Inspect(ctx context.Context) (*Inspection, error) {
	conn, err := s.read.Conn(ctx)
	if err != nil {
		return nil, err
	}
	i := &Inspection{conn: conn, schema: s.schema, prepared: map[string]*sql.Stmt{}}
	if err := i.pin(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return i, nil
}

// pin begins the transaction. Its first read fixes the moment.
func (i *Inspection) pin(ctx context.Context) error {
	if _, err := i.conn.ExecContext(ctx, "BEGIN"); err != nil {
		return err
	}
	var epoch int64
	if err := i.conn.QueryRowContext(ctx, "SELECT epoch FROM store").Scan(&epoch); err != nil {
		_, rollback := i.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		return errors.Join(damaged(err, "the store"), rollback)
	}
	return nil
}

// Close ends the inspection.
func (i *Inspection) Close() error {
	var errs []error
	for _, stmt := range i.prepared {
		errs = append(errs, stmt.Close())
	}
	_, err := i.conn.ExecContext(context.Background(), "ROLLBACK")
	return errors.Join(append(errs, err, i.conn.Close())...)
}

// ofSession is rows for the few rows of one session. The query cannot be interrupted,
// because preparing for that takes longer than reading the rows.
func (i *Inspection) ofSession(ctx context.Context, what string, each func(*sql.Rows) error, query string, args ...any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return i.rows(context.WithoutCancel(ctx), what, each, query, args...)
}

// rows passes each row of a query to a function that scans it.
func (i *Inspection) rows(ctx context.Context, what string, each func(*sql.Rows) error, query string, args ...any) error {
	stmt := i.prepared[query]
	if stmt == nil {
		var err error
		if stmt, err = i.conn.PrepareContext(ctx, query); err != nil { // Close closes it
			return damaged(err, what)
		}
		i.prepared[query] = stmt
	}
	rows, err := stmt.QueryContext(ctx, args...)
	if err != nil {
		return damaged(err, what)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := each(rows); err != nil {
			return err
		}
	}
	return damaged(rows.Err(), what)
}

// column returns a column that a schema has added or, for older schemas, its substitute.
func (i *Inspection) column(since int, name, otherwise string) string {
	if i.schema < since {
		return otherwise
	}
	return name
}

// runColumns returns runColumns for the database's schema.
func (i *Inspection) runColumns() string {
	columns := strings.Replace(runColumns, "waiting", i.column(2, "waiting", "NULL"), 1)
	columns = strings.Replace(columns, "version", i.column(7, "version", "''"), 1)
	const origin = "parent, parent_step, forked_from, forked_at, retried_from"
	return strings.Replace(columns, origin, i.column(17, origin, "'', '', '', 0, ''"), 1)
}

// maxIntegrity is how many problems SQLite lists before it gives up.
const maxIntegrity = 100

// Integrity makes SQLite check its own structures: pages, trees, indexes against tables.
// It reads the whole file.
func (i *Inspection) Integrity(ctx context.Context, found func(problem string) error) error {
	return i.rows(ctx, "the database", func(rows *sql.Rows) error {
		var problem string
		if err := rows.Scan(&problem); err != nil {
			return err
		}
		if problem == "ok" {
			return nil
		}
		return found(problem)
	}, fmt.Sprintf("PRAGMA integrity_check(%d)", maxIntegrity))
}

// CountSessions returns the number of sessions.
func (i *Inspection) CountSessions(ctx context.Context) (n int, err error) {
	err = i.conn.QueryRowContext(ctx, "SELECT count(*) FROM sessions WHERE last > 0").Scan(&n)
	return n, damaged(err, "the sessions")
}

// Sessions lists sessions in the order of their creation, after the one with the given id
// (0: from the first). Sessions that are being deleted are left out.
func (i *Inspection) Sessions(ctx context.Context, after int64, limit int) (list []inspect.Session, err error) {
	err = i.rows(ctx, "the sessions", func(rows *sql.Rows) error {
		var r inspect.Session
		var last, unlisted int64
		var wake sql.NullInt64
		if err := rows.Scan(&r.ID, &r.Key.Tenant, &r.Key.Session, &last, &wake, &r.Private, &unlisted); err != nil {
			return err
		}
		r.Last, r.WakeAt, r.Unlisted = uint64(last), wakeAt(wake), uint64(unlisted)
		list = append(list, r)
		return nil
	}, `SELECT id, tenant, session, last, wake_at, private, `+i.column(8, "unlisted", "last")+` FROM sessions WHERE id > ? AND last > 0 ORDER BY id LIMIT ?`, after, limit)
	return list, err
}

// Journal passes the rows of a session's journal.
func (i *Inspection) Journal(ctx context.Context, session int64, each func(host.JournalRow) error) error {
	return i.ofSession(ctx, "the journal", func(rows *sql.Rows) error {
		var first int64
		var r host.JournalRow
		if err := rows.Scan(&first, &r.Data); err != nil {
			return err
		}
		r.First = uint64(first)
		return each(r)
	}, `SELECT first, data FROM journal WHERE sid = ? ORDER BY first`, session)
}

// Versions passes the versions that a session's journal needs.
func (i *Inspection) Versions(ctx context.Context, session int64, each func(host.VersionUse) error) error {
	if i.schema < 8 {
		return nil
	}
	return i.ofSession(ctx, "the versions", func(rows *sql.Rows) error {
		var last int64
		var v host.VersionUse
		if err := rows.Scan(&v.Digest, &last); err != nil {
			return err
		}
		v.Seq = uint64(last)
		return each(v)
	}, `SELECT v.digest, n.last FROM session_versions n JOIN versions v ON v.id = n.version WHERE n.sid = ? ORDER BY v.digest`, session)
}

// Handlers passes the handlers of a session. Like Runs and Stream it finds them by their
// latest runs, which have an index.
func (i *Inspection) Handlers(ctx context.Context, session int64, each func(inspect.Handler) error) error {
	return i.ofSession(ctx, "the handlers", func(rows *sql.Rows) error {
		var r inspect.Handler
		if err := rows.Scan(&r.HandlerID, &r.FirstSeq); err != nil {
			return err
		}
		return each(r)
	}, `SELECT handler, first_seq FROM handlers WHERE id IN (SELECT hid FROM runs WHERE sid = ?1 AND latest = 1) AND sid = ?1`, session)
}

// Runs passes the runs of a session.
func (i *Inspection) Runs(ctx context.Context, session int64, each func(inspect.Run) error) error {
	return i.ofSession(ctx, "the runs", func(rows *sql.Rows) error {
		var r inspect.Run
		run, err := scanRun(latestScanner{rows, &r.Latest})
		if err != nil {
			return err
		}
		r.Run = run
		return each(r)
	}, `SELECT latest, `+i.runColumns()+` FROM runs
		WHERE hid IN (SELECT hid FROM runs WHERE sid = ? AND latest = 1) ORDER BY id`, session)
}

// latestScanner scans one column before those of a run.
type latestScanner struct {
	row    scanner
	latest *bool
}

// Scan implements scanner.
func (l latestScanner) Scan(dest ...any) error {
	return l.row.Scan(append([]any{l.latest}, dest...)...)
}

// Stream passes the stream rows of a session's handlers, grouped by handler and in order.
func (i *Inspection) Stream(ctx context.Context, session int64, each func(inspect.Events) error) error {
	return i.ofSession(ctx, "the streams", func(rows *sql.Rows) error {
		var r inspect.Events
		var data []byte
		if err := rows.Scan(&r.HandlerID, &r.RunID, &r.First, &r.Last, &data); err != nil {
			return err
		}
		r.Err = abi.Unmarshal(data, &r.Events)
		return each(r)
	}, `SELECT h.handler, s.run, s.first_seq, s.last_seq, s.events FROM stream s JOIN handlers h ON h.id = s.hid
		WHERE h.id IN (SELECT hid FROM runs WHERE sid = ? AND latest = 1) ORDER BY h.id, s.last_seq`, session)
}

// Modules passes the stored modules with their bytes. Bytes are nil if they are missing.
func (i *Inspection) Modules(ctx context.Context, each func(host.ModuleRecord) error) error {
	return i.rows(ctx, "the modules", func(rows *sql.Rows) error {
		var m host.ModuleRecord
		var manifest []byte
		if err := rows.Scan(&m.Digest, &m.Rewritten, &m.ImageHash, &manifest, &m.Bytes); err != nil {
			return err
		}
		m.Manifest = manifest
		m.Bytes = record.ShownModule(m.Bytes)
		return each(m)
	}, `SELECT m.digest, m.rewritten, m.image_hash, m.manifest, b.bytes
		FROM modules m LEFT JOIN module_bytes b ON b.digest = m.digest ORDER BY m.digest`)
}

// loose are queries for rows that belong to nothing. They return the tenant, the session,
// and what is wrong.
var loose = []string{
	`SELECT r.tenant, r.session, 'run ' || r.run || ' belongs to no session' FROM runs r
		WHERE NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = r.sid AND s.tenant = r.tenant AND s.session = r.session)`,
	`SELECT r.tenant, r.session, 'run ' || r.run || ' belongs to no handler of its session' FROM runs r
		WHERE NOT EXISTS (SELECT 1 FROM handlers h
			WHERE h.id = r.hid AND h.tenant = r.tenant AND h.handler = r.handler AND h.sid = r.sid)`,
	`SELECT h.tenant, coalesce((SELECT session FROM sessions WHERE id = h.sid), ''), 'handler ' || h.handler || ' has no run' FROM handlers h
		WHERE NOT EXISTS (SELECT 1 FROM runs r WHERE r.hid = h.id)`,
	`SELECT r.tenant, r.session, 'handler ' || r.handler || ' has another latest run than its newest' FROM runs r
		WHERE r.latest <> (r.id = (SELECT max(id) FROM runs WHERE hid = r.hid))`,
	`SELECT p.tenant, '', 'plugin ' || p.name || ', version ' || p.version || ', is of module ' || p.digest || ', which is not stored'
		FROM plugins p WHERE NOT EXISTS (SELECT 1 FROM modules m WHERE m.digest = p.digest)`,
}

// looseSince are such queries for tables that a later schema has added.
var looseSince = map[int][]string{12: {looseWords, missingWords}, 14: {loosePlaces, wrongTotals}, 18: {wrongCounts}}

// Loose passes the rows that belong to nothing.
func (i *Inspection) Loose(ctx context.Context, found func(inspect.Loose) error) error {
	queries := slices.Clone(loose)
	for since, more := range looseSince {
		if i.schema >= since {
			queries = append(queries, more...)
		}
	}
	for _, query := range queries {
		err := i.rows(ctx, "the references", func(rows *sql.Rows) error {
			var r inspect.Loose
			if err := rows.Scan(&r.Tenant, &r.Session, &r.What); err != nil {
				return err
			}
			return found(r)
		}, query)
		if err != nil {
			return err
		}
	}
	return i.rows(ctx, "the references", func(rows *sql.Rows) error {
		var table, parent string
		var row, key sql.NullInt64
		if err := rows.Scan(&table, &row, &parent, &key); err != nil {
			return err
		}
		return found(inspect.Loose{What: fmt.Sprintf("a row of table %s refers to a row of %s that is not there", table, parent)})
	}, "PRAGMA foreign_key_check")
}
