package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weftrun/weft/host"
)

// PostgreSQL makes a commit wait for the replicas that synchronous_standby_names lists, and
// for none if the list is empty. An operator, or a program that manages the servers, can
// empty the list at any time. That also ends the waits that are under way, as if the
// replicas had the commits. So a store with [Options.Replica] looks at the list in each
// transaction, and again after the commit. A session reads the change before its wait ends.

// errNoReplica is why a store with [Options.Replica] does not commit.
var errNoReplica = errors.New("no replica confirms commits: synchronous_standby_names of PostgreSQL is empty; " +
	"set it, for example to 'ANY 1 (replica1, replica2)', and reload the configuration, or start weft without --durability replica")

// confirming fails a pipeline unless commits wait for a replica.
const confirming = `SELECT expect(current_setting('synchronous_standby_names') <> '', '` + codeReplica + `')`

// replicaWait is how long a commit may wait for its replica before the store counts as
// stalled.
const replicaWait = time.Second

// replicas is what a server says about its replicas.
type replicas struct {
	names      string // synchronous_standby_names
	senders    int    // max_wal_senders
	confirming int    // synchronous replicas that are connected
	mayLook    bool   // the role may see which replicas are synchronous
}

// checkReplica refuses a server that has no replica to confirm commits.
func checkReplica(ctx context.Context, conn *pgx.Conn) error {
	var found replicas
	err := conn.QueryRow(ctx, `SELECT current_setting('synchronous_standby_names'), current_setting('max_wal_senders')::int,
			(SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state IN ('sync', 'quorum')),
			pg_has_role('pg_read_all_stats', 'USAGE')`).
		Scan(&found.names, &found.senders, &found.confirming, &found.mayLook)
	if err != nil {
		return err
	}
	return found.refuse()
}

// refuse says why commits do not wait for a replica, or would wait for ever. nil: neither.
func (f *replicas) refuse() error {
	switch {
	case f.names == "":
		return errNoReplica
	case f.senders == 0:
		return errors.New("no replica confirms commits: max_wal_senders of PostgreSQL is 0; set it to 10 and restart PostgreSQL")
	case !f.mayLook:
		return errors.New("with --durability replica the role must see whether a replica is connected: " +
			"as an administrator, GRANT pg_read_all_stats TO the role")
	case f.confirming == 0:
		return fmt.Errorf("no replica confirms commits: none that synchronous_standby_names (%s) means is connected; "+
			"start one whose application_name is in the list", f.names)
	}
	return nil
}

// confirmed returns nil if the commits that the connection has made did not wait for
// nothing.
func (s *Store) confirmed(ctx context.Context, conn *pgx.Conn) error {
	if canceled(conn) {
		return errors.New("the commit did not wait for its replica")
	}
	if !s.replica {
		return nil
	}
	var waits bool
	err := conn.QueryRow(ctx, `SELECT current_setting('synchronous_standby_names') <> ''`).Scan(&waits)
	if err == nil && !waits {
		err = errNoReplica
	}
	return err
}

// canceledKey is the key of a connection's note that a commit did not wait.
const canceledKey = "weft canceled"

// noteCanceled makes a connection remember the server's warning that a commit did not wait
// for its replica.
func noteCanceled(config *pgx.ConnConfig) {
	config.OnNotice = func(conn *pgconn.PgConn, n *pgconn.Notice) {
		if n.Code == "01000" && strings.Contains(n.Message, "synchronous replication") {
			conn.CustomData()[canceledKey] = true
		}
	}
}

// canceled reports whether the server has warned since the newest call.
func canceled(conn *pgx.Conn) bool {
	data := conn.PgConn().CustomData()
	_, warned := data[canceledKey]
	delete(data, canceledKey)
	return warned
}

// unconfirmed is what a change of names is answered with, and why it is not made.
func unconfirmed(cause error) error {
	return &host.Error{Code: host.CodeUnavailable, Message: "The store takes no changes at the moment, because no replica confirms them",
		Cause: cause, RetryAfter: time.Second}
}

// settle waits until what was committed so far is on a replica, if the server has
// synchronous ones: a commit waits for all before it.
func (s *Store) settle(ctx context.Context, cause error) error {
	for wait := retryLeast; ; wait = min(2*wait, retryMost) {
		err := s.settled(ctx)
		if err == nil {
			return nil
		}
		if pauseErr := pause(s.keeping, wait); pauseErr != nil || ctx.Err() != nil {
			return fmt.Errorf("a change is stored, but perhaps not on a replica: %w", errors.Join(cause, err))
		}
	}
}

// settled tries once.
func (s *Store) settled(ctx context.Context) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, `UPDATE store SET map = map`); err != nil {
		return err
	}
	return s.confirmed(ctx, conn.Conn())
}

// complain logs why commits wait, once until one succeeds. [Store.lock] is held.
func (s *Store) complain(err error) {
	if !s.complained {
		s.complained = true
		s.log.Error("commits wait for PostgreSQL", "error", err)
	}
}

// content logs that commits no longer wait.
func (s *Store) content() {
	if s.complained {
		s.complained = false
		s.log.Info("commits go on")
	}
}
