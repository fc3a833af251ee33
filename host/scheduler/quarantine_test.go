package scheduler_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/usage"
)

// damagedRows is a store that gives the rows of one session with a changed byte,
// while damage says which, and counts how often the session is read.
type damagedRows struct {
	host.Store
	session string
	damage  func(host.StoredSession) host.StoredSession
	reads   int
}

func (d *damagedRows) LoadSession(ctx context.Context, key host.SessionKey) (host.StoredSession, error) {
	stored, err := d.Store.LoadSession(ctx, key)
	if key.Session != d.session || err != nil {
		return stored, err
	}
	d.reads++
	if d.damage != nil {
		stored = d.damage(stored)
	}
	return stored, nil
}

// Reread implements host.Store: what is damaged is so twice.
func (d *damagedRows) Reread(ctx context.Context, key host.SessionKey) (host.StoredSession, error) {
	stored, err := d.Store.Reread(ctx, key)
	if err == nil && key.Session == d.session && d.damage != nil {
		stored = d.damage(stored)
	}
	return stored, err
}

// damages are what may be wrong with a session's rows, and what is said of it.
var damages = map[string]struct {
	damage func(host.StoredSession) host.StoredSession
	want   string
}{
	"a changed byte": {func(s host.StoredSession) host.StoredSession {
		s.Rows[0][len(s.Rows[0])/2] ^= 1
		return s
	}, "its journal cannot be read"},
	"a row of version 2": {func(s host.StoredSession) host.StoredSession {
		s.Rows[0][0] = 2
		return s
	}, "newer version of weft"},
	"the last row is gone": {func(s host.StoredSession) host.StoredSession {
		s.Rows = s.Rows[:len(s.Rows)-1]
		return s
	}, "its journal cannot be read"},
	"all rows are gone": {func(s host.StoredSession) host.StoredSession {
		s.Rows = nil
		return s
	}, "its journal cannot be read"},
}

// A session whose journal does not fold is refused by name, read once a minute
// whatever its timers want, and told of once. The others go on, and so does it
// when what was wrong is not any more.
func TestQuarantine(t *testing.T) {
	for name, tt := range damages {
		t.Run(name, func(t *testing.T) {
			b := (&bench{guest: quiet(0)}).open(t)
			run := b.start("h", "") // waits for a Close or its deadline
			b.advance(time.Second)
			b.rest()
			var log strings.Builder
			store := &damagedRows{Store: b.store, session: run.SessionID, damage: tt.damage}
			b.store, b.log = store, &log
			b = b.open(t)
			for range 30 {
				b.advance(10 * time.Second)
				b.rest()
			}
			if store.reads < 2 || store.reads > 7 {
				t.Errorf("the session was read %d times in five minutes", store.reads)
			}
			if n := strings.Count(log.String(), "a session is quarantined"); n != 1 || b.sched.Quarantined() != 1 {
				t.Errorf("%d sessions in quarantine, told %d times:\n%s", b.sched.Quarantined(), n, log.String())
			}
			reads := store.reads
			for range 10 {
				_, err := b.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "two", HandlerID: "other", SessionID: run.SessionID})
				if err == nil || !strings.Contains(err.Error(), "quarantined") || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("a start in it: %v, want that it is quarantined: %s", err, tt.want)
				}
			}
			if store.reads > reads+1 {
				t.Errorf("ten requests read it %d times", store.reads-reads)
			}
			other := b.start("k", "")
			b.advance(2 * time.Minute)
			b.rest()
			if got := b.status(other.RunID); got != host.StatusFailed {
				t.Errorf("another session's run is %s after its deadline", got)
			}
			store.damage = nil
			b.advance(2 * time.Minute)
			b.rest()
			if got := b.status(run.RunID); got != host.StatusFailed || b.sched.Quarantined() != 0 {
				t.Errorf("after the repair the run is %s, %d in quarantine", got, b.sched.Quarantined())
			}
		})
	}
}

// What is deleted of a session in quarantine gives the places of its runs back, of those
// that wait for their turn too, and once.
func TestDeletionsInQuarantineGivePlacesBack(t *testing.T) {
	for name, remove := range map[string]func(b *bench) error{
		"the session": func(b *bench) error { return b.sched.DeleteSession(b.t.Context(), "t", "s") },
		"its handlers": func(b *bench) error {
			for _, handler := range []string{"h", "h", "second", "third"} {
				if _, err := b.sched.Cancel(b.t.Context(), "t", handler, true); err != nil && host.CodeOf(err) != host.CodeNotFound {
					return err
				}
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := &bench{guest: quiet(0)}
			b.open(t)
			for _, handler := range []string{"h", "second", "third"} {
				_, err := await(b, func() (host.Run, error) {
					return b.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "two", HandlerID: handler, SessionID: "s", OnBusy: host.OnBusyQueue})
				})
				if err != nil {
					t.Fatal(err)
				}
			}
			b.advance(time.Second)
			b.rest()
			var log strings.Builder
			quotas := newTally(b.store)
			if h := quotas.held["t"]; h.Active != 1 || h.Waiting != 2 {
				t.Fatalf("%+v", h)
			}
			b.store, b.log, b.quotas = &damagedRows{Store: b.store, session: "s", damage: damages["a changed byte"].damage}, &log, quotas
			b.open(t)
			b.rest()
			if _, err := await(b, func() (struct{}, error) { return struct{}{}, remove(b) }); err != nil {
				t.Fatal(err)
			}
			if text := quotas.differs(b.store); text != "" || quotas.held["t"] != (usage.RunsHeld{Tenant: "t"}) {
				t.Errorf("%s; %+v", text, quotas.held["t"])
			}
		})
	}
}

// A session in quarantine can be purged without being read.
func TestPurgeOfAQuarantinedSession(t *testing.T) {
	b := (&bench{guest: quiet(0)}).open(t)
	run := b.start("h", "")
	b.advance(time.Second)
	b.rest()
	var log strings.Builder
	b.store, b.log = &damagedRows{Store: b.store, session: run.SessionID, damage: damages["a changed byte"].damage}, &log
	b = b.open(t)
	b.rest()
	purged := make(chan error, 1)
	go func() {
		_, err := b.sched.Cancel(t.Context(), "t", "h", true)
		purged <- err
	}()
	var err error
	for waiting := true; waiting; {
		select {
		case err = <-purged:
			waiting = false
		default:
			b.commit()
		}
	}
	if err != nil {
		t.Fatalf("purge: %v", err)
	}
	if b.sched.Quarantined() != 0 {
		t.Error("what is gone is still in quarantine")
	}
	again := b.start("h", "")
	if again.RunID == run.RunID {
		t.Error("the purged handler is still there")
	}
	b.rest()
}
