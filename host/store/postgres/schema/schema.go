// Package schema brings a schema of PostgreSQL to the newest version, step by step, and
// refuses one that this release cannot use.
//
// It must not depend on what the tables are for.
package schema

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/weftrun/weft/host"
)

// The steps of the schema, in the order of their names. The schema number of a database
// is the number of steps it has taken. A released step never changes, and a step only
// adds: a release before it must be able to use the database until no such release runs.
//
//go:embed *.sql
var schemaFiles embed.FS

// storeTable holds one row that describes the database. schema is the number of its
// schema, needs the least number that a program must know, and partitions the number of
// partitions, which never changes.
const storeTable = `CREATE TABLE store (
	one        boolean PRIMARY KEY DEFAULT true CHECK (one),
	schema     int NOT NULL,
	needs      int NOT NULL,
	writes     int NOT NULL,
	partitions smallint NOT NULL,
	change     bigint NOT NULL DEFAULT 0,
	map        bigint NOT NULL DEFAULT 0
);
INSERT INTO store (schema, needs, writes, partitions) VALUES (0, 0, 1, 128)`

// format is the newest form of journal entries that this release writes.
const format = 1

// steps reads the statements of all steps.
func steps() ([]string, error) {
	names, err := fs.Glob(schemaFiles, "*.sql")
	if err != nil {
		return nil, err
	}
	var list []string
	for _, name := range names {
		text, err := schemaFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		list = append(list, string(text))
	}
	return list, nil
}

// Newest returns the number of the newest schema that this release knows.
func Newest() (int, error) {
	list, err := steps()
	return len(list), err
}

// Migrate brings the schema to the newest version. An advisory lock keeps two programs
// from doing so at once. Each step is one transaction.
func Migrate(ctx context.Context, conn *pgx.Conn, schema string) (err error) {
	list, err := steps()
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock(hashtextextended('weft migrate ' || $1, 0))", schema); err != nil {
		return err
	}
	defer func() {
		_, unlockErr := conn.Exec(ctx, "SELECT pg_advisory_unlock(hashtextextended('weft migrate ' || $1, 0))", schema)
		err = errors.Join(err, unlockErr)
	}()
	version, err := schemaVersion(ctx, conn, schema, len(list))
	if err != nil {
		return err
	}
	for i := version; i < len(list); i++ {
		if err := step(ctx, conn, i+1, list[i]); err != nil {
			return fmt.Errorf("schema %d: %w", i+1, err)
		}
	}
	return nil
}

// schemaVersion reads the schema's number. In an empty schema it creates the row that
// holds the number.
func schemaVersion(ctx context.Context, conn *pgx.Conn, schema string, known int) (int, error) {
	var there, ours bool
	var tables int
	err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1),
		EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'store'),
		(SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1)`, schema).Scan(&there, &ours, &tables)
	switch {
	case err != nil:
		return 0, err
	case !there:
		if _, err := conn.Exec(ctx, "CREATE SCHEMA "+pgx.Identifier{schema}.Sanitize()); err != nil {
			return 0, err
		}
	case !ours && tables > 0:
		return 0, fmt.Errorf("the schema %q has tables, but none of weft; name another by the parameter schema", schema)
	}
	if !ours {
		_, err := conn.Exec(ctx, storeTable)
		return 0, err
	}
	return knownVersion(ctx, conn, known)
}

// knownVersion reads the schema's number, and refuses a schema that needs a newer release.
func knownVersion(ctx context.Context, conn *pgx.Conn, known int) (version int, err error) {
	var needs, writes int
	err = conn.QueryRow(ctx, "SELECT schema, needs, writes FROM store").Scan(&version, &needs, &writes)
	if err == nil && (needs > known || writes > format) {
		err = fmt.Errorf("%w: its schema is %d and needs a release that knows %d, this release knows up to %d",
			host.ErrNewer, version, needs, known)
	}
	return version, err
}

// Check refuses a schema that this release cannot read.
func Check(ctx context.Context, conn *pgx.Conn, schema string) error {
	list, err := steps()
	if err != nil {
		return err
	}
	var ours bool
	if err := conn.QueryRow(ctx, `SELECT to_regclass('store') IS NOT NULL`).Scan(&ours); err != nil {
		return err
	}
	if !ours {
		return fmt.Errorf("the schema %q has no tables of weft", schema)
	}
	version, err := knownVersion(ctx, conn, len(list))
	if err == nil && version < len(list) {
		err = fmt.Errorf("the schema %q has number %d, and this release reads %d: start a server of this release on it first", schema, version, len(list))
	}
	return err
}

// step takes one step. The statements of a file go to the server as one text.
func step(ctx context.Context, conn *pgx.Conn, number int, statements string) error {
	return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		var all strings.Builder
		all.WriteString("SET LOCAL lock_timeout = '2s'; SET LOCAL statement_timeout = 0;\n")
		all.WriteString(statements)
		fmt.Fprintf(&all, "\nUPDATE store SET schema = %d", number)
		if number == 1 {
			all.WriteString(", needs = 1")
		}
		_, err := tx.Exec(ctx, all.String(), pgx.QueryExecModeSimpleProtocol)
		return err
	})
}
