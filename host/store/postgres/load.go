package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weftrun/weft/host/store/record"
)

// copyTable is the table that marks a schema as an unfinished copy. It has one row: where
// the copy stands.
const copyTable = `CREATE TABLE copying (one boolean PRIMARY KEY DEFAULT true CHECK (one), state bytea NOT NULL)`

// noteAll notes all ended runs for the index of words.
const noteAll = `INSERT INTO unread (runs) SELECT array_agg(id ORDER BY id) FROM
	(SELECT id, row_number() OVER (ORDER BY id) / 256 AS page FROM runs WHERE status <> 'running') AS r GROUP BY page ORDER BY page`

// Identity returns the identity of the store and of its content. The identity of the
// content changes with each claim.
func (s *Store) Identity(ctx context.Context) (store, content string, err error) {
	var table uint32
	var epoch, mark int64
	err = s.one(ctx, "the store", `SELECT 'store'::regclass::oid, coalesce((SELECT max(epoch) FROM pulse), 0),
		coalesce((SELECT mark FROM pulse ORDER BY epoch DESC LIMIT 1), 0)`, nil, &table, &epoch, &mark)
	store = fmt.Sprintf("postgres %s %s %d", s.config.Database, s.schema, table)
	return store, fmt.Sprintf("%s %d %x", store, epoch, uint64(mark)), err
}

// unfinished returns an error for a schema that is an unfinished copy.
func unfinished(ctx context.Context, conn *pgx.Conn, schema string) error {
	var copying bool
	if err := conn.QueryRow(ctx, `SELECT to_regclass('copying') IS NOT NULL`).Scan(&copying); err != nil || !copying {
		return err
	}
	return fmt.Errorf("the schema %q holds a copy that is not finished: finish it by the same command, or drop the schema", schema)
}

// Loader writes a copy of a store into a schema. Only one goroutine may use it.
type Loader struct {
	*Store
	conn *pgx.Conn
}

// Load begins a copy into the schema of a URL, or continues one. No server and no other
// copy can use the schema until Close.
//
// # Errors
//
// Those of [Open].
func Load(ctx context.Context, url string) (*Loader, error) {
	s, err := Open(ctx, url, Options{Exclusive: true, loading: true})
	if err != nil {
		return nil, err
	}
	conn, err := s.connect(ctx, "copy", unlimited)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &Loader{s, conn}, nil
}

// Close ends the copy. A copy that was not published can be continued.
func (l *Loader) Close() error {
	return errors.Join(l.conn.Close(context.Background()), l.Store.Close())
}

// State returns the stored state, or nil for a schema without content.
func (l *Loader) State(ctx context.Context) (state []byte, err error) {
	var copying bool
	if err := l.conn.QueryRow(ctx, `SELECT to_regclass('copying') IS NOT NULL`).Scan(&copying); err != nil {
		return nil, err
	}
	if copying {
		err = l.conn.QueryRow(ctx, "SELECT state FROM copying").Scan(&state)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil, nil
		}
		return state, err
	}
	for _, t := range record.Tables {
		var some bool
		if err := l.conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+t.Name+")").Scan(&some); err != nil {
			return nil, err
		}
		if some {
			return nil, fmt.Errorf("the schema %q of the database %q is not empty: name another by the parameter schema, or drop it",
				l.schema, l.config.Database)
		}
	}
	_, err = l.conn.Exec(ctx, copyTable)
	return nil, err
}

// Clear deletes all rows and stores the state.
func (l *Loader) Clear(ctx context.Context, state []byte) error {
	return l.transact(ctx, state, func(tx pgx.Tx) error {
		statement := "TRUNCATE unread, run_words, run_counts"
		for _, t := range record.Tables {
			statement += ", " + t.Name
		}
		_, err := tx.Exec(ctx, statement)
		return err
	})
}

// transact runs fn in a transaction that also stores the state (nil: no state).
func (l *Loader) transact(ctx context.Context, state []byte, fn func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, l.conn, func(tx pgx.Tx) error {
		if err := fn(tx); err != nil || state == nil {
			return err
		}
		_, err := tx.Exec(ctx, "INSERT INTO copying (state) VALUES ($1) ON CONFLICT (one) DO UPDATE SET state = excluded.state", state)
		return err
	})
}

// following returns the columns of a table that other stores do not have, and their
// values in a row.
func following(t *record.Table) (columns []string, values func(row []any) []any) {
	switch t.Name {
	case "sessions":
		return []string{"part"}, func(row []any) []any { return []any{partition(row[1].(string), row[2].(string))} }
	case "handlers":
		return []string{"made"}, func([]any) []any { return []any{int64(0)} }
	case "spent":
		return []string{"epoch"}, func([]any) []any { return []any{int64(0)} }
	}
	return nil, func([]any) []any { return nil }
}

// Load adds rows to a table and stores the state, in one transaction.
func (l *Loader) Load(ctx context.Context, t *record.Table, rows [][]any, state []byte) error {
	columns, more := following(t)
	for i := range t.Columns {
		columns = append(columns, t.Columns[i].Name)
	}
	source := pgx.CopyFromSlice(len(rows), func(i int) ([]any, error) {
		values := more(rows[i])
		for k := range t.Columns {
			values = append(values, toColumn(&t.Columns[k], rows[i][k]))
		}
		return values, nil
	})
	return l.transact(ctx, state, func(tx pgx.Tx) error {
		_, err := tx.CopyFrom(ctx, pgx.Identifier{t.Name}, columns, source)
		return err
	})
}

// Seal moves the counters of ids behind the ids of the rows, and notes all ended runs for
// the index of words.
func (l *Loader) Seal(ctx context.Context) error {
	return l.transact(ctx, nil, func(tx pgx.Tx) error {
		for _, table := range []string{"versions", "access_audit"} {
			if _, err := tx.Exec(ctx, `SELECT setval(pg_get_serial_sequence($1, 'id'), (SELECT coalesce(max(id), 0) + 1 FROM `+table+`), false)`, table); err != nil {
				return err
			}
		}
		return reindex(ctx, tx)
	})
}

// reindex empties the index of words and notes all ended runs.
func reindex(ctx context.Context, tx pgx.Tx) error {
	for _, statement := range []string{"DELETE FROM unread", "TRUNCATE run_words", noteAll} {
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// Read calls fn with what has been written.
func (l *Loader) Read(ctx context.Context, fn func(record.Source) error) (err error) {
	i, err := l.Inspect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.Close()) }()
	return fn(i)
}

// Publish ends the copy: a server can use the schema from now on.
func (l *Loader) Publish(ctx context.Context) error {
	for _, statement := range []string{"ANALYZE", "DROP TABLE copying"} {
		if _, err := l.conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// Reindex empties the index of words and notes all runs. The words are read by the next
// server.
func (s *Store) Reindex(ctx context.Context) error {
	return s.update(ctx, "rebuilding the index of words", func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL statement_timeout = 0"); err != nil {
			return err
		}
		return reindex(ctx, tx)
	})
}

// Compact rewrites all tables without the space of deleted rows, and returns the size of
// the schema in bytes before and after. No server may use the store. progress is called
// with the megabytes so far of all. An interrupted call leaves each table as it was, or
// rewritten.
func (s *Store) Compact(ctx context.Context, progress func(what string, done, total int)) (before, after int64, err error) {
	conn, err := s.connect(ctx, "compact", unlimited)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	const sizes = `SELECT relname::text, pg_total_relation_size(oid) FROM pg_class
		WHERE relkind = 'r' AND relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'store'::regclass) ORDER BY 1`
	type table struct {
		name string
		size int64
	}
	read := func() (list []table, all int64, err error) {
		list, err = collectRows(ctx, conn, sizes, nil, fields(func(t *table) []any { return []any{&t.name, &t.size} }))
		for _, t := range list {
			all += t.size
		}
		return list, all, err
	}
	tables, before, err := read()
	if err != nil {
		return 0, 0, err
	}
	done := int64(0)
	for _, t := range tables {
		show := func(share float64) {
			progress("megabytes", int((float64(done)+share*float64(t.size))/1e6), int(before/1e6))
		}
		if err := s.rewrite(ctx, conn, t.name, show); err != nil {
			return before, 0, fmt.Errorf("compacting the table %s: %w", t.name, err)
		}
		done += t.size
	}
	_, after, err = read()
	return before, after, err
}

// rewriteLook is how often the progress of a table's rewriting is read.
const rewriteLook = 200 * time.Millisecond

// rewrite rewrites a table, and calls show with the share of its rows that was read.
func (s *Store) rewrite(ctx context.Context, conn *pgx.Conn, table string, show func(share float64)) error {
	done := make(chan error, 1)
	go func() {
		_, err := conn.Exec(ctx, "VACUUM (FULL, ANALYZE) "+pgx.Identifier{table}.Sanitize())
		done <- err
	}()
	look := time.NewTicker(rewriteLook)
	defer look.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-look.C:
		}
		// Without an answer nothing is shown: whether the work fails, its own connection says.
		var share float64
		if s.pool.QueryRow(ctx, `SELECT heap_blks_scanned / greatest(heap_blks_total, 1)::float8 FROM pg_stat_progress_cluster WHERE pid = $1`,
			int64(conn.PgConn().PID())).Scan(&share) == nil {
			show(share)
		}
	}
}
