package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrInUse is the error of an exclusive opening while another process has the store open
// exclusively or as a node of a cluster, and of a shared opening while a process has it open
// exclusively.
var ErrInUse = errors.New("another server uses the store")

// guard is a connection that holds the lock of an exclusive store, or a shared lock. While PostgreSQL is
// away, it tries to connect again. That another process has taken the lock meanwhile is
// no harm, as the fence decides who writes.
type guard struct {
	store *Store
	conn  *pgx.Conn
	lock  string      // the function that takes the lock
	away  atomic.Bool // there is no connection
}

// Times of the guard.
const (
	guardRetry = 100 * time.Millisecond
	guardPoll  = 100 * time.Millisecond
	// guardWait is the least time that an exclusive opening waits for another process:
	// PostgreSQL releases the lock a moment after the end of its connection.
	guardWait = 2 * time.Second
)

// newGuard takes the lock. It waits for another process.
func (s *Store) newGuard(ctx context.Context, o Options) (*guard, error) {
	g := &guard{store: s, lock: "pg_try_advisory_lock"}
	if o.Shared {
		g.lock = "pg_try_advisory_lock_shared"
	}
	end := time.Now().Add(max(o.Wait, guardWait))
	for {
		err := g.take(ctx)
		if err == nil || !errors.Is(err, ErrInUse) || !time.Now().Before(end) {
			return g, errors.Join(err, g.closeAfter(err))
		}
		if err := pause(ctx, guardPoll); err != nil {
			return nil, errors.Join(err, g.closeAfter(err))
		}
	}
}

// take connects, unless there is a connection, and tries to lock.
func (g *guard) take(ctx context.Context) (err error) {
	if g.conn == nil {
		if g.conn, err = g.store.connect(ctx, "serve"); err != nil {
			return err
		}
	}
	var locked bool
	err = g.conn.QueryRow(ctx, "SELECT "+g.lock+"(hashtextextended('weft serve ' || $1, 0))", g.store.schema).Scan(&locked)
	if err == nil && !locked {
		err = fmt.Errorf("%w: the schema %q of the database %q", ErrInUse, g.store.schema, g.store.config.Database)
	}
	return err
}

// closeAfter closes the connection if there was an error.
func (g *guard) closeAfter(err error) error {
	if err == nil || g.conn == nil {
		return nil
	}
	conn := g.conn
	g.conn = nil
	return conn.Close(context.Background())
}

// keep watches the connection until the store is closed.
func (g *guard) keep() {
	ctx := g.store.keeping
	defer func() {
		if g.conn != nil {
			_ = g.conn.Close(context.Background())
		}
	}()
	for ctx.Err() == nil {
		if g.conn != nil {
			_, err := g.conn.WaitForNotification(ctx)
			if err == nil {
				continue
			}
			_ = g.closeAfter(err)
		}
		g.away.Store(true)
		if err := pause(ctx, guardRetry); err != nil {
			return
		}
		err := g.take(ctx)
		if err != nil && !errors.Is(err, ErrInUse) {
			_ = g.closeAfter(err)
			continue
		}
		g.away.Store(false)
		if back := g.store.back.Load(); back != nil {
			(*back)()
		}
	}
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
