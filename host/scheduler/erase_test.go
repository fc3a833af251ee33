package scheduler_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/memory"
)

// A session is deleted with all that it has; whoever comes later under its name, or
// one of its handlers', begins anew.
func TestDeleteSession(t *testing.T) {
	b := &bench{tokens: 1, erase: 2, snapshots: 5}
	b.guest = func(_ context.Context, g *call) (abi.StepOutput, error) { return stopEvent(), increment(g, 1) }
	live(t, b, func(t *testing.T) {
		start := func(handler, session string) host.Run {
			t.Helper()
			run, err := b.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "solo", HandlerID: handler, SessionID: session, Wait: true})
			if err != nil || run.Status != host.StatusCompleted {
				t.Fatalf("%+v, %v", run, err)
			}
			return run
		}
		var runs []host.Run
		for range 4 {
			runs = append(runs, start("h", "s"), start("k", "s"))
		}
		other := start("o", "")
		if err := b.sched.DeleteSession(t.Context(), "t", "s"); err != nil {
			t.Fatal(err)
		}
		for _, run := range runs {
			if _, err := b.sched.History().Get(t.Context(), "t", run.RunID); host.CodeOf(err) != host.CodeNotFound {
				t.Errorf("run %s: %v", run.RunID, err)
			}
			if _, err := b.sched.History().Events(t.Context(), "t", run.HandlerID, -1); host.CodeOf(err) != host.CodeNotFound {
				t.Errorf("its events: %v", err)
			}
		}
		if got := b.stateAt(""); got != "not_found" {
			t.Errorf("its state is %s", got)
		}
		if err := b.sched.DeleteSession(t.Context(), "t", "s"); host.CodeOf(err) != host.CodeNotFound {
			t.Errorf("again: %v", err)
		}
		if _, err := b.sched.History().Get(t.Context(), "t", other.RunID); err != nil {
			t.Errorf("a run of another session: %v", err)
		}
		start("h", "s2") // the name is free for any session
		start("k", "s")
		if got := b.stateAt(""); got != `{"n":1}` {
			t.Errorf("the next one of the name: %s", got)
		}
	})
}

// A session with a run under way stays.
func TestDeleteActiveSession(t *testing.T) {
	b := &bench{tokens: 1}
	b.guest = func(context.Context, *call) (abi.StepOutput, error) {
		if err := b.sched.DeleteSession(b.t.Context(), "t", "s"); host.CodeOf(err) != host.CodeConflict {
			b.t.Errorf("while it runs: %v", err)
		}
		return stopEvent(), nil
	}
	live(t, b, func(t *testing.T) {
		if _, err := b.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "solo", SessionID: "s", Wait: true}); err != nil {
			t.Fatal(err)
		}
		if err := b.sched.DeleteSession(t.Context(), "t", "s"); err != nil {
			t.Error(err)
		}
	})
}

// A server ends at every commit of a deletion, in every way: either all is there, or
// the next one deletes the rest before anybody has the name, asked or not.
func TestDeletionOverCrashes(t *testing.T) {
	for _, ending := range endings {
		points := 0
		for ended := true; ended; points++ {
			st := memory.New()
			store := &endingStore{Store: st, left: 1 << 30, written: ending.written, refused: ending.refused}
			b := &bench{t: t, tokens: 1, batch: 1, fails: true, store: store, erase: 2, now: time.Unix(1_700_000_000, 0), modules: newSimModules(t, map[string]string{"solo": soloManifest})}
			b.guest = func(_ context.Context, g *call) (abi.StepOutput, error) { return stopEvent(), increment(g, 1) }
			b.open(t)
			run := func(handler string) {
				if _, err := await(b, func() (host.Run, error) {
					return b.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "solo", HandlerID: handler, SessionID: "s", Wait: true})
				}); err != nil {
					t.Fatalf("%s at commit %d: %s: %v", ending.name, points, handler, err)
				}
			}
			for _, h := range []string{"h", "h", "k", "l"} {
				run(h)
			}
			store.left = points
			remove := func() (struct{}, error) {
				return await(b, func() (struct{}, error) { return struct{}{}, b.sched.DeleteSession(t.Context(), "t", "s") })
			}
			_, err := remove()
			store.left = 1 << 30
			want := `{"n":1}`
			if ended = store.ended; ended && !store.refused {
				old := b.sched
				b.store, b.fails = st, false
				if ending.again {
					b.after = old
				}
				b.advance(time.Second)
				b.beside = true
				b.open(t)
				if err == nil {
					t.Fatalf("%s at commit %d: it was answered", ending.name, points)
				}
				if err = nil; points == 0 && !ending.written {
					want = `{"n":5}` // nothing of it was written
				}
				if points%2 == 0 {
					b.unaskedEnd(want != `{"n":1}`)
				}
			}
			if err != nil {
				t.Fatalf("%s at commit %d: %v", ending.name, points, err)
			}
			run("h")
			if got, _ := await(b, func() (string, error) { return b.stateAt(""), nil }); got != want {
				t.Fatalf("%s at commit %d: the next run's state is %s, want %s", ending.name, points, got, want)
			}
			b.settle()
			if leak := b.sched.Leak(); leak != "" {
				t.Error(leak)
			}
		}
		if points < 5 {
			t.Errorf("%s: there were %d points only", ending.name, points-1)
		}
	}
}

// unaskedEnd wants a session that was to be deleted to go without anybody asking, or
// to stay.
func (b *bench) unaskedEnd(stays bool) {
	b.t.Helper()
	key := host.SessionKey{Tenant: "t", Session: "s"}
	for range 10_000 {
		b.rest()
		_, err := b.store.LoadSession(b.t.Context(), key)
		switch {
		case stays && err == nil, !stays && errors.Is(err, host.ErrNotFound):
			return
		case !errors.Is(err, host.ErrErasing):
			b.t.Fatalf("the session is left as it was: %v", err)
		}
		runtime.Gosched()
	}
	b.t.Fatal("the session is not deleted to the end")
}

// A session whose journal cannot be read can be deleted nevertheless, runs under way and
// all.
func TestDeleteQuarantinedSession(t *testing.T) {
	b := (&bench{guest: quiet(0), erase: 1}).open(t)
	run := b.start("h", "s")
	b.advance(time.Second)
	b.rest()
	var log strings.Builder
	b.store, b.log = &damagedRows{Store: b.store, session: run.SessionID, damage: damages["a changed byte"].damage}, &log
	b.beside = true
	b = b.open(t)
	remove := func() (struct{}, error) {
		return await(b, func() (struct{}, error) { return struct{}{}, b.sched.DeleteSession(t.Context(), "t", "s") })
	}
	_, err := remove()
	for host.CodeOf(err) == host.CodeUnavailable { // it is just being loaded, as it is due
		_, err = remove()
	}
	if err != nil || b.sched.Quarantined() != 0 {
		t.Fatalf("%v, %d in quarantine", err, b.sched.Quarantined())
	}
	if _, err := b.sched.History().Get(t.Context(), "t", run.RunID); host.CodeOf(err) != host.CodeNotFound {
		t.Errorf("its run: %v", err)
	}
}
