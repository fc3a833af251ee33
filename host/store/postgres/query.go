package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// patience is how long a read, or a change of names, tries to get a connection that works.
const patience = 2 * time.Second

// querier is a connection, a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// read runs fn, and repeats it for a short time while PostgreSQL is away. Each call of fn
// must start from the beginning.
func (s *Store) read(ctx context.Context, fn func(q querier) error) error {
	return s.patiently(ctx, func() error { return fn(s.pool) })
}

// patiently calls try, and repeats it for a short time while there is no connection that
// works. If try fails so, it must have changed nothing.
func (s *Store) patiently(ctx context.Context, try func() error) error {
	if s.closed.Load() {
		return errClosed
	}
	end := time.Now().Add(patience)
	for wait := retryLeast; ; wait = min(2*wait, retryMost) {
		err := try()
		if err == nil || !lost(err) || ctx.Err() != nil || time.Now().Add(wait).After(end) {
			if s.closed.Load() && err != nil {
				return errClosed
			}
			return err
		}
		if pauseErr := pause(ctx, wait); pauseErr != nil {
			return errors.Join(pauseErr, err)
		}
	}
}

// one reads one row.
func (s *Store) one(ctx context.Context, what, sql string, args []any, to ...any) error {
	return notFound(s.read(ctx, func(q querier) error { return q.QueryRow(ctx, sql, args...).Scan(to...) }), what)
}

// list reads all rows. scan returns the row that it is called on.
func list[T any](ctx context.Context, s *Store, what, sql string, args []any, scan func(row pgx.Rows) (T, error)) (all []T, err error) {
	err = s.read(ctx, func(q querier) (err error) {
		all, err = collectRows(ctx, q, sql, args, scan)
		return err
	})
	return all, notFound(err, what)
}

func collectRows[T any](ctx context.Context, q querier, sql string, args []any, scan func(row pgx.Rows) (T, error)) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// fields returns a scan into the fields that to names.
func fields[T any](to func(*T) []any) func(row pgx.Rows) (T, error) {
	return func(row pgx.Rows) (v T, err error) {
		err = row.Scan(to(&v)...)
		return v, err
	}
}
