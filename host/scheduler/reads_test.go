package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/kv"
)

var errRead = errors.New("input/output error")

// failingReads is a store of which some reads fail: from the one with the number at on,
// counted from 1, so many.
type failingReads struct {
	host.Store
	mu       sync.Mutex // guards what follows; requests and the runner read side by side
	n        int
	at, many int
	failed   int
}

func (f *failingReads) try() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	if f.at > 0 && f.n >= f.at && f.n < f.at+f.many {
		f.failed++
		return errRead
	}
	return nil
}

func read[T any](f *failingReads, ask func() (T, error)) (v T, err error) {
	if err := f.try(); err != nil {
		return v, err
	}
	return ask()
}

func (f *failingReads) LoadSession(ctx context.Context, key host.SessionKey) (host.StoredSession, error) {
	return read(f, func() (host.StoredSession, error) { return f.Store.LoadSession(ctx, key) })
}

func (f *failingReads) Handler(ctx context.Context, tenant, id string) (host.Handler, error) {
	return read(f, func() (host.Handler, error) { return f.Store.Handler(ctx, tenant, id) })
}

func (f *failingReads) Run(ctx context.Context, tenant, id string) (host.Run, error) {
	return read(f, func() (host.Run, error) { return f.Store.Run(ctx, tenant, id) })
}

func (f *failingReads) KVItem(ctx context.Context, space kv.Space, key string) (kv.Item, error) {
	return read(f, func() (kv.Item, error) { return f.Store.KVItem(ctx, space, key) })
}

func (f *failingReads) KVTotals(ctx context.Context, space kv.Space) (kv.Totals, error) {
	return read(f, func() (kv.Totals, error) { return f.Store.KVTotals(ctx, space) })
}

func (f *failingReads) Due(ctx context.Context, until int64, limit int) ([]host.SessionKey, int64, error) {
	if err := f.try(); err != nil {
		return nil, 0, err
	}
	return f.Store.Due(ctx, until, limit)
}

// sleeping is a workflow whose pieces of work call a resource inside, leave memory for a
// while, and call another outside.
const sleeping = `{"abi": 1, "workflow": "two", "timeout": 0, "events": {"Work": {}, "Done": {}},
  "resources": [{"name": "crm", "kind": "kv"}, {"name": "http", "kind": "http"}],
  "steps": [
    {"name": "begin", "accepts": ["StartEvent"], "emits": [["list", ["Work"]]]},
    {"name": "work", "accepts": ["Work"], "emits": ["Done"], "workers": 2},
    {"name": "end", "accepts": [["list", ["Done"]]], "emits": ["StopEvent"]}]}`

// both is a resource kept inside and one outside.
type both struct {
	kept
	outside int
	reads   *failingReads // of what says how a call may be made; nil: nothing is read
}

func (b *both) Grant(user host.ResourceUser, decl abi.ResourceDecl) (host.ResourceGrant, error) {
	if b.reads != nil {
		if err := b.reads.try(); err != nil {
			return host.ResourceGrant{}, host.Errorf(host.CodeUnavailable, "the module cannot be read: %w", err)
		}
	}
	g, err := b.kept.Grant(user, decl)
	if decl.Name == "http" {
		g.Space = kv.Space{}
	}
	return g, err
}

func (b *both) Call(context.Context, host.ResourceCall) (abi.Raw, *abi.Error) {
	b.outside++
	return must(abi.EncodeValue(int64(b.outside))), nil
}

// Whatever read of the store fails, once or for some time: a start is answered with 503
// and nothing happens, or it is answered well; a load, a timer, a step, a call of a
// resource waits. Nothing is quarantined, no run fails, and each piece of work is done
// once.
func TestReadsThatFail(t *testing.T) {
	play := func(t *testing.T, at, many int) (reads int) {
		r := &both{}
		store := &failingReads{at: at, many: many}
		b := &bench{tokens: 2, outside: r, log: io.Discard, modules: newSimModules(t, map[string]string{"two": sleeping})}
		b.guest = working(func(g *call) error {
			for _, name := range []string{"crm", "http"} {
				if raw, err := g.do(abi.ImportResource, []any{name, "add", nil}); err != nil {
					return err
				} else if raw == nil {
					return &abi.Error{Code: "answered", Message: "the resource " + name + " has failed"}
				}
				if _, err := g.do(abi.ImportSleep, int64(time.Minute)); err != nil {
					return err
				}
			}
			return increment(g, 1)
		})
		b.open(t)
		store.Store, b.store, r.reads = b.store, store, store
		b.open(t)
		var run host.Run
		for tries := 0; ; tries++ {
			var err error
			run, err = await(b, func() (host.Run, error) {
				return b.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "two", HandlerID: "h", SessionID: "s"})
			})
			if err == nil {
				break
			}
			var he *host.Error
			if !errors.As(err, &he) || he.Code != host.CodeUnavailable || tries > many {
				t.Fatalf("read %d: the start: %v (%d tries)", at, err, tries)
			}
			b.advance(max(he.RetryAfter, time.Second))
		}
		for rounds := 0; ; rounds++ {
			b.rest()
			now, err := store.Store.Run(t.Context(), "t", run.RunID)
			if err != nil {
				t.Fatal(err)
			}
			if now.Status == host.StatusCompleted {
				break
			}
			if now.Status.Final() || now.Blocked != nil || rounds > 1000 {
				t.Fatalf("reads %d to %d: the run is %s: %s %v", at, at+many-1, now.Status, now.Error, now.Blocked)
			}
			b.advance(time.Second)
		}
		if n := b.sched.Quarantined(); n != 0 {
			t.Errorf("reads %d to %d: %d sessions in quarantine", at, at+many-1, n)
		}
		if n := number(t, store.Store, kv.Space{Tenant: "t", Resource: "crm"}); n != 3 || r.outside != 3 {
			t.Errorf("reads %d to %d: the resources were called %d and %d times, want 3", at, at+many-1, n, r.outside)
		}
		if at > 0 && at <= store.n && store.failed == 0 {
			t.Errorf("read %d did not fail", at)
		}
		b.advance(time.Minute)
		b.rest()
		if err := b.sched.Reading(); err != nil {
			t.Errorf("reads %d to %d: a minute later: %v", at, at+many-1, err)
		}
		return store.n
	}
	reads := play(t, 0, 0)
	if reads < 6 {
		t.Fatalf("the history has %d reads only", reads)
	}
	for at := 1; at <= reads; at++ {
		for _, many := range []int{1, 2, 7} {
			play(t, at, many)
		}
	}
	t.Logf("%d reads", reads)
}

// A session that cannot be read is left alone for twice as long each time; whoever wants
// it is told when to come again, and the server says that it is not ready.
func TestUnreadSessionsAreLeftAlone(t *testing.T) {
	b := (&bench{guest: quiet(0), log: io.Discard}).open(t)
	run := b.start("h", "s")
	b.advance(time.Second)
	b.rest()
	store := &failingReads{Store: b.store}
	b.store = store
	b.open(t)
	b.rest()
	b.advance(time.Second) // it leaves memory
	b.rest()
	var waits []string
	for range 8 {
		store.at, store.many = store.n+1, 1_000_000
		_, err := b.sched.State(t.Context(), "t", "s", "")
		var he *host.Error
		if !errors.As(err, &he) || he.Code != host.CodeUnavailable || he.RetryAfter <= 0 {
			t.Fatalf("a session that cannot be read: %v", err)
		}
		n := store.n
		if _, err := b.sched.State(t.Context(), "t", "s", ""); store.n != n || host.CodeOf(err) != host.CodeUnavailable {
			t.Errorf("it was read again at once: %v", err)
		}
		if b.sched.Reading() == nil {
			t.Error("the server says that it can read")
		}
		waits = append(waits, he.RetryAfter.String())
		b.advance(he.RetryAfter)
	}
	if got := strings.Join(waits, " "); got != "1s 2s 4s 8s 16s 32s 1m0s 1m0s" {
		t.Errorf("it is left alone for %s", got)
	}
	store.at = 0
	b.rest()
	if got := b.status(run.RunID); got.Final() && got != host.StatusFailed || b.sched.Quarantined() != 0 {
		t.Errorf("the run is %s", got)
	}
	if _, err := b.sched.State(t.Context(), "t", "s", ""); err != nil {
		t.Errorf("a session that can be read again: %v", err)
	}
}

// A session in quarantine is released before its minute is over, whatever the reason, and
// the answer says whether it loads.
func TestRelease(t *testing.T) {
	b := (&bench{guest: quiet(0), log: io.Discard}).open(t)
	run := b.start("h", "")
	b.advance(time.Second)
	b.rest()
	store := &damagedRows{Store: b.store, session: run.SessionID, damage: damages["a changed byte"].damage}
	b.store = store
	b = b.open(t)
	b.rest()
	if _, err := b.sched.State(t.Context(), "t", run.SessionID, ""); b.sched.Quarantined() != 1 {
		t.Fatalf("the session is not in quarantine: %v", err)
	}
	_, err := b.sched.ReleaseSession(t.Context(), "t", run.SessionID)
	if host.CodeOf(err) != host.CodeInternal || !strings.Contains(fmt.Sprint(err), "quarantined") || b.sched.Quarantined() != 1 {
		t.Errorf("the release of a damaged session: %v, %d in quarantine", err, b.sched.Quarantined())
	}
	store.damage = nil
	if _, err := b.sched.State(t.Context(), "t", run.SessionID, ""); host.CodeOf(err) != host.CodeInternal {
		t.Errorf("before the release: %v", err)
	}
	info, err := b.sched.ReleaseSession(t.Context(), "t", run.SessionID)
	if err != nil || info.SessionID != run.SessionID || b.sched.Quarantined() != 0 {
		t.Errorf("the release: %+v, %v, %d in quarantine", info, err, b.sched.Quarantined())
	}
	if _, err := b.sched.ReleaseSession(t.Context(), "t", "nobody"); host.CodeOf(err) != host.CodeNotFound {
		t.Errorf("the release of no session: %v", err)
	}
	b.rest()
}
