package sqlite

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/record"
	"github.com/weftrun/weft/host/store/sqlite/datadir"
	"github.com/weftrun/weft/host/store/sqlite/schema"
)

// Identity returns the identity of the store and of its content. Both change if another
// process uses the store: the content's with each claim, and for a backup with each
// commit that the backup has.
func (s *Store) Identity(ctx context.Context) (store, content string, err error) {
	var id []byte
	var epoch, commits int64
	if err := s.read.QueryRowContext(ctx, "SELECT id, epoch, commits FROM store").Scan(&id, &epoch, &commits); err != nil {
		return "", "", damaged(err, "the store")
	}
	store = "sqlite " + hex.EncodeToString(id)
	content = fmt.Sprintf("%s %d", store, epoch)
	if errors.Is(s.broken, errReadOnly) {
		content += fmt.Sprintf(" %d", commits)
	}
	return store, content, nil
}

// Count returns the number of rows of a table.
func (i *Inspection) Count(ctx context.Context, t *record.Table) (n int64, err error) {
	err = i.conn.QueryRowContext(ctx, "SELECT count(*) FROM "+t.Name).Scan(&n)
	return n, damaged(err, "the table "+t.Name)
}

// Rows passes the rows of a table whose keys are greater than after (nil: all rows), in
// the order of the keys. The database has the newest schema.
func (i *Inspection) Rows(ctx context.Context, t *record.Table, after []any, each func(row []any) error) error {
	if i.schema < schema.Newest {
		return fmt.Errorf("its schema is %d, and only a database with schema %d can be copied: start a server on it once", i.schema, schema.Newest)
	}
	key := record.Names(t.Columns[:t.Key])
	query := "SELECT " + record.Names(t.Columns) + " FROM " + t.Name
	if after != nil {
		query += " WHERE (" + key + ") > (" + marks(t.Key) + ")"
	}
	return i.rows(ctx, "the table "+t.Name, func(rows *sql.Rows) error {
		row := make([]any, len(t.Columns))
		to := make([]any, len(row))
		for k := range row {
			to[k] = &row[k]
		}
		if err := rows.Scan(to...); err != nil {
			return err
		}
		for k := range row {
			value, err := fromColumn(&t.Columns[k], row[k])
			if err != nil {
				return fmt.Errorf("table %s: %w: %w", t.Name, host.ErrUnreadable, err)
			}
			row[k] = value
		}
		return each(row)
	}, query+" ORDER BY "+key, after...)
}

func marks(n int) string { return strings.TrimSuffix(strings.Repeat("?, ", n), ", ") }

// fromColumn returns the value of a column as [record.Kind] describes it.
func fromColumn(c *record.Column, stored any) (any, error) {
	if b, some := stored.([]byte); some && c.Kind == record.Bytes {
		if len(b) == 0 && c.Null {
			return nil, nil
		}
		return blob(b), nil
	}
	switch v := stored.(type) {
	case nil:
		if c.Null {
			return nil, nil
		}
		if c.Kind == record.Bytes {
			return []byte{}, nil
		}
	case int64:
		switch c.Kind {
		case record.Int:
			return v, nil
		case record.Bool:
			return v != 0, nil
		}
	case string:
		if c.Kind == record.Name || c.Kind == record.Text {
			return v, nil
		}
	}
	return nil, fmt.Errorf("column %s has a value of type %T", c.Name, stored)
}

// copyName is the database that a copy is written to, in a data directory.
const copyName = "weft.db.copying"

// loaderPragmas are for a database that a copy is written to. A page that was written
// survives the death of the process, and the pages that survive a power loss are whole.
var loaderPragmas = []string{"journal_mode(WAL)", "synchronous(NORMAL)", "cache_size(-65536)", "foreign_keys(0)"}

// Loader writes a copy of a store into a new database. Only one goroutine may use it.
type Loader struct {
	dir  string   // data directory; "": the copy is a file
	path string   // of the database
	lock *os.File // of the data directory
	db   *sql.DB
	conn *sql.Conn
	// insert has the statements used so far.
	insert map[string]*sql.Stmt
}

// LoadDirectory begins a copy into a data directory, or continues one. The directory is
// created if it is missing. It is locked until Close.
//
// # Errors
//
// An error in one sentence if the directory is in use, or has other files than those of an
// interrupted copy.
func LoadDirectory(ctx context.Context, dir string) (_ *Loader, err error) {
	if err := datadir.Prepare(dir); err != nil {
		return nil, err
	}
	lock, err := datadir.Lock(dir)
	if err != nil {
		return nil, err
	}
	l := &Loader{dir: dir, path: filepath.Join(dir, copyName), lock: lock}
	if err := errors.Join(wantEmpty(dir, copyName, copyName+"-wal", copyName+"-shm"), datadir.Create(dir, l.path)); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	if err := l.open(ctx); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// LoadFile makes a copy in a new file: fill writes the copy, and verify (nil: no
// verification) reads the file. The file replaces an existing one at the end. After an
// error nothing is left behind.
func LoadFile(ctx context.Context, file string, fill func(*Loader) error, verify func(file string) error) error {
	return datadir.Replace(file, func(temp string) (err error) {
		l := &Loader{path: temp}
		defer func() { err = errors.Join(err, l.Close(), removeLog(temp)) }()
		if err := l.open(ctx); err != nil {
			return err
		}
		if err := fill(l); err != nil {
			return err
		}
		return l.finish(ctx)
	}, verify)
}

// removeLog removes the log that a failed copy leaves.
func removeLog(path string) error {
	var errs []error
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Remove(path + suffix); !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (l *Loader) open(ctx context.Context) error {
	name, err := dsn(l.path, loaderPragmas)
	if err != nil {
		return err
	}
	if l.db, err = sql.Open("sqlite", name); err != nil {
		return err
	}
	if l.conn, err = l.db.Conn(ctx); err != nil {
		return err
	}
	l.insert = map[string]*sql.Stmt{}
	if err := schema.Migrate(ctx, l.conn); err != nil {
		return fileError(l.path, err)
	}
	_, err = l.conn.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS copying (one INTEGER PRIMARY KEY CHECK (one = 1), state BLOB NOT NULL) STRICT")
	return err
}

// Close ends the copy. A copy in a data directory can be continued.
func (l *Loader) Close() error {
	err := l.closeDatabase()
	if l.lock != nil {
		err = errors.Join(err, l.lock.Close())
		l.lock = nil
	}
	return err
}

func (l *Loader) closeDatabase() error {
	var errs []error
	for _, stmt := range l.insert {
		errs = append(errs, stmt.Close())
	}
	l.insert = nil
	if l.conn != nil {
		errs = append(errs, l.conn.Close())
		l.conn = nil
	}
	if l.db != nil {
		errs = append(errs, l.db.Close())
		l.db = nil
	}
	return errors.Join(errs...)
}

// State returns the stored state, or nil.
func (l *Loader) State(ctx context.Context) (state []byte, err error) {
	err = l.conn.QueryRowContext(ctx, "SELECT state FROM copying").Scan(&state)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return state, err
}

// Clear deletes all rows and stores the state.
func (l *Loader) Clear(ctx context.Context, state []byte) error {
	return l.transact(ctx, state, func() error {
		statements := []string{"DELETE FROM unread", "DELETE FROM run_words"}
		for _, t := range record.Tables {
			statements = append(statements, "DELETE FROM "+t.Name)
		}
		for _, statement := range statements {
			if _, err := l.conn.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// transact runs fn in a transaction that also stores the state (nil: no state).
func (l *Loader) transact(ctx context.Context, state []byte, fn func() error) (err error) {
	if _, err := l.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, _ = l.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		}
	}()
	if err := fn(); err != nil {
		return err
	}
	if state != nil {
		if _, err := l.conn.ExecContext(ctx, "INSERT INTO copying (one, state) VALUES (1, ?1) ON CONFLICT DO UPDATE SET state = ?1", state); err != nil {
			return err
		}
	}
	_, err = l.conn.ExecContext(ctx, "COMMIT")
	return err
}

// Load adds rows to a table and stores the state, in one transaction. The rows of a
// numbered table get new ids in their order: the index of words needs dense ids.
func (l *Loader) Load(ctx context.Context, t *record.Table, rows [][]any, state []byte) error {
	columns := t.Columns
	if t.Numbered {
		columns = columns[t.Key:]
	}
	stmt := l.insert[t.Name]
	if stmt == nil {
		var err error
		stmt, err = l.conn.PrepareContext(ctx, "INSERT INTO "+t.Name+" ("+record.Names(columns)+") VALUES ("+marks(len(columns))+")") //nolint:gosec // names of our own; closeDatabase closes it
		if err != nil {
			return err
		}
		l.insert[t.Name] = stmt
	}
	return l.transact(ctx, state, func() error {
		for _, row := range rows {
			if _, err := stmt.ExecContext(context.WithoutCancel(ctx), row[len(row)-len(columns):]...); err != nil {
				return err
			}
		}
		return ctx.Err()
	})
}

// Seal notes all ended runs for the index of words.
func (l *Loader) Seal(ctx context.Context) error {
	return l.transact(ctx, nil, func() error {
		_, err := l.conn.ExecContext(ctx, "DELETE FROM unread; "+noteAll)
		return err
	})
}

// Read calls fn with what has been written.
func (l *Loader) Read(ctx context.Context, fn func(record.Source) error) (err error) {
	conn, err := l.db.Conn(ctx)
	if err != nil {
		return err
	}
	i := &Inspection{conn: conn, schema: schema.Newest, prepared: map[string]*sql.Stmt{}}
	if err := i.pin(ctx); err != nil {
		return errors.Join(err, conn.Close())
	}
	defer func() { err = errors.Join(err, i.Close()) }()
	return fn(i)
}

// finish makes the database one of a server: one file, without the state of the copy.
func (l *Loader) finish(ctx context.Context) error {
	for _, statement := range []string{"DROP TABLE copying", "PRAGMA wal_checkpoint(TRUNCATE)"} {
		if _, err := l.conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return l.closeDatabase()
}

// Publish ends the copy into a data directory. verify (nil: no verification) reads the
// database; after its error the copy is kept, and is not the directory's database.
func (l *Loader) Publish(ctx context.Context, verify func(file string) error) error {
	if verify != nil {
		if _, err := l.conn.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
			return err
		}
		if err := verify(l.path); err != nil {
			return err
		}
	}
	if err := l.finish(ctx); err != nil {
		return err
	}
	return datadir.Rename(l.path, filepath.Join(l.dir, fileName))
}

// OpenExisting is [Open] for a directory that has a database.
func OpenExisting(dir string) (*Store, error) {
	if err := exists(filepath.Join(dir, fileName)); err != nil {
		if there, lookErr := look(dir, nil); lookErr == nil && there.missing != nil {
			err = there.missing
		}
		return nil, err
	}
	return Open(dir)
}
