package scheduler_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
)

// retaining is a bench whose settings delete old runs.
func retaining(t *testing.T, settings string) *bench {
	t.Helper()
	limits, err := limit.Parse([]byte(settings))
	if err != nil {
		t.Fatal(err)
	}
	return (&bench{guest: quiet(0), limits: limits}).open(t)
}

// pass lets time pass, in steps in which a sweep gets on.
func (b *bench) pass(d time.Duration) {
	b.t.Helper()
	for ; d > 0; d -= 30 * time.Second {
		b.advance(30 * time.Second)
		b.rest()
		for range 20 {
			b.advance(20 * time.Millisecond)
			b.rest()
		}
	}
}

// there reports whether the store has a run, and whether it has a session.
func (b *bench) there(r host.Run) (run, session bool) {
	b.t.Helper()
	_, errRun := b.store.Run(b.t.Context(), "t", r.RunID)
	_, errSession := b.store.LoadSession(b.t.Context(), host.SessionKey{Tenant: "t", Session: r.SessionID})
	for _, err := range []error{errRun, errSession} {
		if err != nil && !errors.Is(err, host.ErrNotFound) {
			b.t.Fatal(err)
		}
	}
	return errRun == nil, errSession == nil
}

// Runs of twoStep end at their deadline, after a minute.
func TestRetentionByAge(t *testing.T) {
	b := retaining(t, `{"defaults": {"retention_age": "1h"}, "tenants": {"other": {"retention_age": 0}}}`)
	var private, named []host.Run
	for i := range 150 { // more than two batches
		private = append(private, b.start(fmt.Sprint("h", i), ""))
	}
	for i := range 3 {
		named = append(named, b.start(fmt.Sprint("n", i), "chat"))
	}
	b.pass(55 * time.Minute)
	for _, r := range append(private, named...) {
		if run, _ := b.there(r); !run {
			t.Fatalf("run %s is gone before its time", r.RunID)
		}
	}
	again := b.start("h0", "") // a run of a handler that has an old one
	b.pass(10 * time.Minute)
	late := b.start("late", "")
	for i, r := range private {
		run, session := b.there(r)
		if run || session != (i == 0) {
			t.Fatalf("run %d: there %t, its session %t", i, run, session)
		}
	}
	for _, r := range named {
		if run, session := b.there(r); run || !session {
			t.Errorf("named session: run there %t, session %t; want the session alone", run, session)
		}
	}
	if run, _ := b.there(again); !run {
		t.Error("a newer run of the handler is gone")
	}
	if got := b.status(late.RunID); got != host.StatusRunning {
		t.Errorf("a running run is %s", got)
	}
	next := b.start("n0", "chat") // the state and the names are there for further runs
	b.start("h1", "")
	b.pass(90 * time.Minute)
	if run, _ := b.there(next); run {
		t.Error("a run of the named session is kept for longer than an hour")
	}
}

func TestRetentionByNumber(t *testing.T) {
	b := retaining(t, `{"tenants": {"t": {"retention_runs": 3}}}`)
	var runs []host.Run
	for i := range 6 {
		runs = append(runs, b.start(fmt.Sprint("h", i), ""))
		b.advance(time.Second)
	}
	for range 70 { // each ends in a second of its own
		b.advance(time.Second)
		b.rest()
	}
	b.pass(3 * time.Minute)
	for i, r := range runs {
		if run, session := b.there(r); run != (i >= 3) || session != run {
			t.Errorf("run %d of 6: there %t, its session %t", i, run, session)
		}
	}
	waiting := b.start("w", "")
	b.advance(time.Second)
	b.rest()
	if run, _ := b.there(runs[3]); !run {
		t.Error("a running run counts as one that has ended")
	}
	if run, _ := b.there(waiting); !run {
		t.Error("a running run is gone")
	}
}

// Sweeps meet sessions that are in memory, are just being loaded, or are started
// in again: old runs go, sooner or later, and new ones go on.
func TestRetentionWhileSessionsAreUsed(t *testing.T) {
	b := retaining(t, `{"defaults": {"retention_age": "1h"}}`)
	const n = 20
	var old, fresh []host.Run
	for i := range n {
		old = append(old, b.start(fmt.Sprint("n", i), fmt.Sprint("chat", i)), b.start(fmt.Sprint("h", i), ""))
	}
	b.advance(61 * time.Second)
	b.rest() // they have ended
	for i := range n {
		b.advance(time.Hour + time.Minute) // a sweep is due, and so is what was old
		fresh = append(fresh, b.start(fmt.Sprint("n", i), fmt.Sprint("chat", i)), b.start(fmt.Sprint("h", i), ""))
		for _, r := range fresh[2*i:] {
			if got := b.status(r.RunID); got != host.StatusRunning {
				t.Fatalf("a new run is %s", got)
			}
		}
	}
	b.pass(5 * time.Minute)
	for _, r := range old {
		if run, _ := b.there(r); run {
			t.Errorf("old run %s of %s is there", r.RunID, r.SessionID)
		}
	}
	for _, r := range fresh[2*n-2:] {
		if got := b.status(r.RunID); got != host.StatusFailed {
			t.Errorf("a new run is %s after its deadline", got)
		}
	}
	if leak := b.sched.Leak(); leak != "" {
		t.Error(leak)
	}
}

// Without a setting nothing is deleted, and nobody asks the store.
func TestNoRetention(t *testing.T) {
	b := (&bench{guest: quiet(0)}).open(t)
	r := b.start("h", "")
	b.pass(24 * time.Hour / 10)
	if run, session := b.there(r); !run || !session {
		t.Error("a run was deleted that nobody wanted to be")
	}
}
