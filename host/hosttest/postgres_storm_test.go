package hosttest_test

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/store/postgres/pgtest"
)

// Kills of a storm on PostgreSQL. For WEFT_KILLS kills of the server there are a tenth as
// many of PostgreSQL, and 3 % of both.
const (
	pgStormServer   = 6
	pgStormDatabase = 3
	pgStormBoth     = 2
)

// TestStormOnPostgres is [TestStorm] on PostgreSQL, where the server, PostgreSQL, or both
// are killed at random moments, in a random order.
func TestStormOnPostgres(t *testing.T) {
	t.Parallel() // its time is waiting
	rnd := seed(t)
	server, database, both := pgStormServer, pgStormDatabase, pgStormBoth
	if n, err := strconv.Atoi(os.Getenv("WEFT_KILLS")); err == nil {
		server, database, both = n, (n+9)/10, (n*3+99)/100
	}
	pg := pgtest.Own(t)
	s := beginStorm(t, rnd, "--store", pg.URL)
	var victims []string
	for victim, n := range map[string]int{"server": server, "database": database, "both": both} {
		victims = append(victims, strings.Fields(strings.Repeat(victim+" ", n))...)
	}
	rnd.Shuffle(len(victims), func(i, j int) { victims[i], victims[j] = victims[j], victims[i] })
	for i, victim := range victims {
		if rnd.IntN(4) == 0 {
			s.awaitSuspects()
		}
		pause(t, rnd, 600*time.Millisecond)
		switch victim {
		case "server":
			s.restart()
		case "database":
			pg.Crash(t)
			pause(t, rnd, 100*time.Millisecond)
			pg.Again(t)
			s.awaitReady()
		case "both":
			if rnd.IntN(2) == 0 { // which of them is first
				s.p.Kill(t)
				pg.Crash(t)
			} else {
				pg.Crash(t)
				pause(t, rnd, 50*time.Millisecond)
				s.p.Kill(t)
			}
			pg.Again(t)
			s.serve()
		}
		if t.Failed() {
			t.Fatalf("after %d kills", i+1)
		}
		s.unblocked()
	}
	s.end(s.unblocked)
	s.unblocked()
	s.verify()
	wantWeft(t, "no faults", "check", "--online", "--store", pg.URL)
	t.Logf("%d kills of the server, %d of PostgreSQL, %d of both; %d runs, %d requests sent again, %d events seen",
		server, database, both, s.runs.Load(), s.again.Load(), s.seen.Load())
}

// awaitReady waits until the server can commit.
func (s *storm) awaitReady() {
	eventually(s.t, "the server continues", func() bool {
		status, _ := s.p.Do(s.t, http.MethodGet, "/ready", nil)
		return status == http.StatusOK
	})
}

// A restart of PostgreSQL under load is a stall. The server reads no session again, and
// every client gets its answer, once, without sending a request again unless the server
// has refused it.
func TestPostgresRestartsUnderLoad(t *testing.T) {
	pg := pgtest.Own(t)
	// Idle sessions stay in memory: only the stall could drop sessions.
	p := hosttest.New(t, hosttest.Config{Data: t.TempDir(), StoreURL: pg.URL, IdleAfter: suite.Hang})
	p.Load(t, "tinygo", "counter")
	const clients, restarts = 8, 4
	session := func(c int) any { return in(fmt.Sprint("client ", c), nil) }
	for c := range clients {
		expect(t, p.Result(t, "counter", session(c)), "1")
	}
	loaded := p.Runs.Counters().Loaded
	counts := make([]int, clients)
	stop, done := make(chan struct{}), make(chan error, clients)
	answered := make(chan struct{}, 1)
	for c := range clients {
		go func() {
			for n := 2; ; {
				select {
				case <-stop:
					counts[c] = n - 1
					done <- nil
					return
				default:
				}
				status, out := p.Do(t, http.MethodPost, "/workflows/counter/run", session(c))
				switch {
				case status == http.StatusServiceUnavailable: // refused, so nothing has happened
				case status != http.StatusOK || string(record(t, out).Result.Value.Result) != fmt.Sprint(n):
					done <- fmt.Errorf("client %d, run %d: %d %s", c, n, status, out)
					return
				default:
					n++
				}
				select {
				case answered <- struct{}{}:
				default:
				}
			}
		}()
	}
	for i := range restarts {
		for range 20 {
			<-answered
		}
		if i%2 == 0 {
			pg.Crash(t)
		} else {
			pg.Down(t)
		}
		pg.Again(t)
		eventually(t, "the server continues", func() bool {
			status, _ := p.Do(t, http.MethodGet, "/ready", nil)
			return status == http.StatusOK
		})
	}
	close(stop)
	for range clients {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if now := p.Runs.Counters().Loaded; now != loaded {
		t.Errorf("%v sessions were loaded again", now-loaded)
	}
	if t.Failed() {
		return
	}
	p.Stop(t)
	again := hosttest.New(t, hosttest.Config{Data: t.TempDir(), StoreURL: pg.URL})
	for c := range clients {
		expect(t, again.Result(t, "counter", session(c)), fmt.Sprint(counts[c]+1))
	}
	wantWeft(t, "no faults", "check", "--online", "--store", pg.URL)
}
