// Package schema brings the schema of a SQLite database to the newest version, step by step,
// and says which version a database has.
//
// It must not depend on what the tables are for.
package schema

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/weftrun/weft/host"
)

// The steps of the schema, in the order of their names. The schema number of a database is
// the number of steps it has taken. A released step never changes.
//
//go:embed *.sql
var files embed.FS

// steps has the statements of each step.
var steps = read()

// Newest is the number of the newest schema that this release knows.
var Newest = len(steps)

func read() []string {
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		panic(err) // the pattern is valid
	}
	list := make([]string, 0, len(names))
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			panic(err) // the files are in the program
		}
		list = append(list, string(text))
	}
	return list
}

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

// Older returns the statements that make an empty database of an earlier schema, for tests.
func Older(number int) []string { return append([]string{storeTable}, steps[:number]...) }

// Migrate brings the schema to the newest version, in one transaction.
func Migrate(ctx context.Context, conn *sql.Conn) (err error) {
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, _ = conn.ExecContext(ctx, "ROLLBACK")
		}
	}()
	has, err := version(ctx, conn)
	if err != nil {
		return err
	}
	if has > Newest {
		return newer(has)
	}
	for i := has; i < Newest; i++ {
		if _, err := conn.ExecContext(ctx, steps[i]); err != nil {
			return fmt.Errorf("schema %d: %w", i+1, err)
		}
	}
	if has < Newest { // a writing transaction like any other
		if _, err := conn.ExecContext(ctx, "UPDATE store SET schema = ?, commits = commits + 1", Newest); err != nil {
			return err
		}
	}
	_, err = conn.ExecContext(ctx, "COMMIT")
	return err
}

// newer is the error for a database that a newer version has written.
func newer(version int) error {
	return fmt.Errorf("%w: its schema is %d, this version knows up to %d", host.ErrNewer, version, Newest)
}

// errForeign is the error for a database that is not weft's.
var errForeign = errors.New("a SQLite database, but not one of weft")

// querier is a connection or a pool of connections.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Tables returns the number of tables and indexes, and whether the table that marks
// a database as weft's is among them.
func Tables(ctx context.Context, db querier) (tables, ours int, err error) {
	err = db.QueryRowContext(ctx,
		"SELECT count(*), count(*) FILTER (WHERE name = 'store') FROM sqlite_schema").Scan(&tables, &ours)
	return tables, ours, err
}

// version reads the schema's number. In an empty database it creates the row that
// holds the number.
func version(ctx context.Context, conn *sql.Conn) (int, error) {
	tables, ours, err := Tables(ctx, conn)
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

// Check reads the number of a database's schema, and refuses a newer schema than
// ours.
func Check(ctx context.Context, db *sql.DB) (version int, err error) {
	tables, ours, err := Tables(ctx, db)
	switch {
	case err != nil:
		return 0, err
	case tables > 0 && ours == 0:
		return 0, errForeign
	case tables == 0:
		return 0, errors.New("it is empty: no server has used it yet")
	}
	if err := db.QueryRowContext(ctx, "SELECT schema FROM store").Scan(&version); err != nil {
		return 0, err
	}
	if version > Newest {
		return 0, newer(version)
	}
	return version, nil
}
