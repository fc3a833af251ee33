package postgres

import (
	"errors"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"

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
