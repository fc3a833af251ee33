package postgres

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/store/postgres/pgtest"
)

// With a synchronous replica, a commit that does not wait for the replica is not
// acknowledged: not when an operator cancels the wait, and not when the store finds the
// commit on the primary afterwards. What is acknowledged is on the replica.
func TestSynchronousReplica(t *testing.T) {
	suite.NotShort(t, "starts servers of its own")
	primary := pgtest.Own(t)
	s := mustOpen(t, primary.URL)
	epoch, err := s.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	replica := primary.Replica(t)
	primary.Exec(t, primary.URL, "ALTER SYSTEM SET synchronous_standby_names = 'replica'", "SELECT pg_reload_conf()")
	for n := uint64(1); n <= 3; n++ {
		if err := s.Append(t.Context(), row(epoch, n)); err != nil {
			t.Fatal(err)
		}
	}
	awaitSetting(t, s, "synchronous_standby_names", "replica")
	replica.Down(t)
	done := make(chan error, 1)
	go func() { done <- s.Append(t.Context(), row(epoch, 4)) }()
	first := waitsForReplica(t, primary, 0, done)
	primary.Exec(t, primary.URL, "SELECT pg_cancel_backend("+first+")")
	second := waitsForReplica(t, primary, number(t, first), done) // the store asks again, and waits
	if !s.Stalled() {
		t.Error("the store does not say that it waits")
	}
	primary.Exec(t, primary.URL, "SELECT pg_terminate_backend("+second+")")
	_ = waitsForReplica(t, primary, number(t, second), done)
	replica.Again(t)
	if err := <-done; err != nil {
		t.Fatalf("Append = %v", err)
	}
	wantRows(t, s, 4)

	copied, err := Open(t.Context(), replica.URL, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := copied.Close(); err != nil {
			t.Error(err)
		}
	}()
	// What is flushed on the replica becomes visible there a moment later.
	for at := 0; at < 4; {
		err := copied.pool.QueryRow(t.Context(), "SELECT last FROM sessions").Scan(&at)
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			t.Fatal(err)
		}
	}
	wantRows(t, copied, 4)
	if _, err := Open(t.Context(), replica.URL, Options{}); err == nil {
		t.Error("a server starts on a replica")
	}
}

// A store that acknowledges only what a replica has loses nothing in a failover: the primary
// is killed while batches are written, and the replica takes its place. Without a replica
// such a store does not open, and acknowledges nothing, whatever the list of replicas
// becomes. A store without that option says that commits are lost.
func TestFailover(t *testing.T) {
	suite.NotShort(t, "starts servers of its own")
	primary := pgtest.Own(t)
	wantUnconfirmed(t, primary, "synchronous_standby_names of PostgreSQL is empty")
	setReplicas(t, primary, "replica")
	wantUnconfirmed(t, primary, "means is connected")
	replica := primary.Replica(t)
	awaitReplica(t, primary)
	s, err := Open(t.Context(), both(t, primary, replica), Options{Replica: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	epoch, err := s.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := write(t, s, epoch)
	w.await(t, 30)
	primary.Crash(t)
	replica.Promote(t)
	for !s.Stalled() { // the new primary has no replica yet
		w.check(t)
	}
	known := w.acknowledged.Load()
	if stored := number(t, replica.Query(t, replica.URL, "SELECT last FROM weft.sessions")); uint64(stored) < known {
		t.Fatalf("%d batches are stored, and %d were acknowledged", stored, known)
	}
	second := replica.Replica(t)
	w.await(t, known+30)
	last := w.end(t)
	wantRows(t, s, last)

	// The end of the list ends the wait of a commit. The commit is not acknowledged.
	second.Down(t)
	done := make(chan error, 1)
	go func() { done <- s.Append(t.Context(), row(epoch, last+1)) }()
	_ = waitsForReplica(t, replica, 0, done)
	setReplicas(t, replica, "")
	for stored := 0; uint64(stored) < last+1; {
		stored = number(t, replica.Query(t, replica.URL, "SELECT last FROM weft.sessions"))
	}
	for !s.stalled.Load() {
		select {
		case err := <-done:
			t.Fatalf("a commit that is not on a replica is acknowledged: %v", err)
		default:
		}
	}
	setReplicas(t, replica, "replica")
	second.Again(t)
	if err := <-done; err != nil {
		t.Fatalf("Append = %v", err)
	}
	awaitReplica(t, replica)
	setReplicas(t, replica, "")
	awaitSetting(t, s, "synchronous_standby_names", "")
	if err := s.Append(t.Context(), row(epoch, last+2)); !errors.Is(err, host.ErrNotCommitted) || !errors.Is(err, errNoReplica) {
		t.Errorf("without replicas, Append = %v", err)
	}
	if err := s.SetMeta(t.Context(), "key", []byte("value")); !errors.Is(err, errNoReplica) {
		t.Errorf("without replicas, SetMeta = %v", err)
	}
	wantRows(t, s, last+1)

	local := mustOpen(t, both(t, replica, second))
	if epoch, err = local.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	second.Down(t)
	if err := local.Append(t.Context(), row(epoch, last+2)); err != nil {
		t.Fatal(err)
	}
	replica.Crash(t)
	second.Again(t)
	second.Promote(t)
	err = local.Append(t.Context(), row(epoch, last+3))
	for errors.Is(err, host.ErrNotCommitted) { // no connection yet
		err = local.Append(t.Context(), row(epoch, last+3))
	}
	if err == nil || !strings.Contains(err.Error(), "PostgreSQL has lost commits") {
		t.Errorf("after a failover that lost a commit, Append = %v", err)
	}
}

// wantUnconfirmed expects that a store that needs a replica does not open, for the given
// reason.
func wantUnconfirmed(t *testing.T, pg *pgtest.Server, reason string) {
	t.Helper()
	s, err := Open(t.Context(), pg.URL, Options{Replica: true})
	if err == nil {
		t.Fatalf("the store opens: %v", s.Close())
	}
	if !strings.Contains(err.Error(), reason) {
		t.Errorf("Open = %v, want %q in it", err, reason)
	}
}

// setReplicas changes the list of synchronous replicas, and waits until new connections see
// the change.
func setReplicas(t *testing.T, pg *pgtest.Server, names string) {
	t.Helper()
	pg.Exec(t, pg.URL, "ALTER SYSTEM SET synchronous_standby_names = '"+names+"'", "SELECT pg_reload_conf()")
	for pg.Query(t, pg.URL, "SELECT current_setting('synchronous_standby_names')") != names {
		continue
	}
}

// awaitReplica waits until a synchronous replica is connected.
func awaitReplica(t *testing.T, pg *pgtest.Server) {
	t.Helper()
	for pg.Query(t, pg.URL, "SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync'") != "1" {
		continue
	}
}

// both returns a URL that names two servers.
func both(t *testing.T, a, b *pgtest.Server) string {
	t.Helper()
	first, err := url.Parse(a.URL)
	if err != nil {
		t.Fatal(err)
	}
	second, err := url.Parse(b.URL)
	if err != nil {
		t.Fatal(err)
	}
	first.Host += "," + second.Host
	return first.String()
}

// writer appends one batch after the other.
type writer struct {
	acknowledged atomic.Uint64
	stop         context.CancelFunc
	done         chan error
}

func write(t *testing.T, s *Store, epoch uint64) *writer {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	w := &writer{stop: stop, done: make(chan error, 1)}
	go func() {
		for ctx.Err() == nil {
			err := s.Append(context.WithoutCancel(ctx), row(epoch, w.acknowledged.Load()+1))
			switch {
			case err == nil:
				w.acknowledged.Add(1)
			case errors.Is(err, host.ErrNotCommitted):
				_ = pause(ctx, retryLeast) // as the journal does
			default:
				w.done <- err
				return
			}
		}
		w.done <- nil
	}()
	return w
}

// check fails the test if the writer has failed.
func (w *writer) check(t *testing.T) {
	t.Helper()
	select {
	case err := <-w.done:
		t.Fatalf("Append = %v", err)
	case <-time.After(time.Millisecond):
	}
}

// await waits for a number of acknowledged batches.
func (w *writer) await(t *testing.T, n uint64) {
	t.Helper()
	for w.acknowledged.Load() < n {
		w.check(t)
	}
}

// end ends the writer, and returns how many batches were acknowledged.
func (w *writer) end(t *testing.T) uint64 {
	t.Helper()
	w.stop()
	if err := <-w.done; err != nil {
		t.Fatal(err)
	}
	return w.acknowledged.Load()
}

// awaitSetting waits until the appender's backend has read a setting.
func awaitSetting(t *testing.T, s *Store, setting, want string) {
	t.Helper()
	for found := ""; found != want; {
		if err := s.appender.conn.QueryRow(t.Context(), "SELECT current_setting($1)", setting).Scan(&found); err != nil {
			t.Fatal(err)
		}
	}
}

// waitsForReplica waits until an append waits for the replica, in another backend than the
// given one, and returns the backend's process. done receives what the append returns.
func waitsForReplica(t *testing.T, primary *pgtest.Server, other int, done <-chan error) string {
	t.Helper()
	for {
		select {
		case err := <-done:
			t.Fatalf("a commit that is not on the replica is acknowledged: %v", err)
		default:
		}
		pid := primary.Query(t, primary.URL, `SELECT coalesce(max(pid), 0) FROM pg_stat_activity
			WHERE wait_event = 'SyncRep' AND application_name = 'weft weft append'`)
		if n := number(t, pid); n != 0 && n != other {
			return pid
		}
	}
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
