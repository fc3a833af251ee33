package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/memory"
)

// The named points at which a server may end, and the tests that end it there. Those
// below end it at every commit of a small story, each entry being a commit of its own,
// in each of the ways of endings; those of host/hosttest kill a real process.
//
//	between an edit's begin and commit      TestCrashPoints/edit; TestKilledInsideAnEditRegion
//	parent and child in different sessions  TestCrashPoints/child; TestKilledWhileChildrenWait, TestKilledBetweenChildren
//	an outside call answered, not recorded  TestCrashPoints/outside; TestKilledWhileARequestIsUnderWay
//	a snapshot written, the journal cut     TestCrashPoints/snapshot; TestStorm, which has them often
//	a fork with another state and an answer TestCrashPointsOfAFork
//	a commit that surely failed             TestCrashPoints (refused); TestFullDisk; TestFaults of host/store/sqlite
//	a commit of unknown outcome             TestCrashPoints (unknown, reopened); TestDiskThatFails, TestStormOfDiskFailures
//	a guest that takes the server with it   TestGuiltyIsBlocked; TestGuestThatEndsItsServer
//	the disk full in a batch                TestFullFileSystem; TestFull, TestFaults of host/store/sqlite
//	the power goes                          TestPowerLoss; TestFaults of host/store/sqlite

// endings are the ways in which a life ends at a commit.
var endings = []struct {
	name    string
	written bool // the store has the batch nevertheless
	refused bool // it was surely not written, and the server goes on
	again   bool // the store is opened again in the same process
}{
	{name: "crash"},
	{name: "crash after the commit", written: true},
	{name: "refused", refused: true},
	{name: "reopened", again: true},
	{name: "unknown, reopened", written: true, again: true},
}

// endingStore takes so many batches, and then ends as it is told to.
type endingStore struct {
	host.Store
	left    int // batches until the end
	written bool
	refused bool
	ended   bool
}

var errEnded = errors.New("the disk failed")

func (s *endingStore) Append(ctx context.Context, b host.Batch) error {
	if s.ended && !s.refused {
		return errEnded
	}
	if s.left--; s.left >= 0 || s.ended {
		return s.Store.Append(ctx, b)
	}
	s.ended = true
	switch {
	case s.refused:
		return host.ErrNotCommitted
	case s.written:
		if err := s.Store.Append(ctx, b); err != nil {
			return err
		}
	}
	return errEnded
}

// story is what happens over the lives.
type story struct {
	modules   map[string]string
	guest     func(b *bench) func(context.Context, *call) (abi.StepOutput, error)
	resource  host.Resources
	snapshots int
	// want are the counts of the sessions at the end.
	want map[string]int64
	// check looks at the rest; it may be nil.
	check func(t *testing.T, lives int)
	// checkStore looks at what is stored; likewise.
	checkStore func(t *testing.T, s host.Store)
}

// one is a workflow of three pieces of work in a row of two, which look reads.
const one = `{"abi": 1, "workflow": "one", "timeout": 0, "events": {"Work": {}, "Done": {}},%s
  "steps": [
    {"name": "begin", "accepts": ["StartEvent"], "emits": [["list", ["Work"]]]},
    {"name": "work", "accepts": ["Work"], "emits": ["Done"], "workers": 2},
    {"name": "end", "accepts": [["list", ["Done"]]], "emits": ["StopEvent"]}]}`

const look = `{"abi": 1, "workflow": "look", "timeout": 0, "events": {}, "steps": [{"name": "look", "accepts": ["StartEvent"], "emits": ["StopEvent"]}]}`

// working is a guest whose pieces of work do this.
func working(work func(g *call) error) func(context.Context, *call) (abi.StepOutput, error) {
	return func(_ context.Context, g *call) (abi.StepOutput, error) {
		switch g.in.Step {
		case "begin":
			return list(3), nil
		case "work":
			return abi.StepOutput{Events: []abi.Event{{Type: "Done", Body: abi.EmptyMap}}}, work(g)
		case "kid":
			return stopEvent(), increment(g, 1)
		case "look":
			raw, err := g.do(abi.ImportStateGet, []any{"n", 0})
			if err != nil {
				return abi.StepOutput{}, err
			}
			n, err := abi.DecodeValue(raw)
			if err != nil {
				return abi.StepOutput{}, err
			}
			body, err := abi.EncodeValue(map[string]any{"result": n})
			return abi.StepOutput{Events: []abi.Event{{Type: abi.TypeStop, Body: body}}}, err
		}
		return stopEvent(), nil
	}
}

func increment(g *call, by int) error {
	_, err := g.do(abi.ImportStateEdit, []any{[]any{"increment", "n", by}})
	return err
}

// stories are small, so that every commit of them can be an end.
func stories() map[string]func() *story {
	return map[string]func() *story{
		"edit": func() *story {
			return &story{
				modules: map[string]string{"one": fmt.Sprintf(one, "")}, want: map[string]int64{"s": 3},
				guest: func(b *bench) func(context.Context, *call) (abi.StepOutput, error) {
					return working(func(g *call) error {
						if err := increment(g, 0); err != nil { // an edit begins at what is there
							return err
						}
						raw, err := g.do(abi.ImportStateBegin, []any{"n"})
						if err != nil {
							return err
						}
						n, err := abi.DecodeValue(raw)
						if err != nil {
							return err
						}
						b.commit() // so that ends fall between begin and commit
						count, _ := n.(int64)
						_, err = g.do(abi.ImportStateCommit, []any{count + 1})
						b.commit()
						return err
					})
				},
			}
		},
		"child": func() *story {
			return &story{
				modules: map[string]string{"one": fmt.Sprintf(one, ""), "kid": kidOne}, want: map[string]int64{"s": 3, "kids": 3},
				guest: func(b *bench) func(context.Context, *call) (abi.StepOutput, error) {
					return working(func(g *call) error {
						req := map[string]any{"workflow": "kid", "event": []any{"StartEvent", map[string]any{}}, "session": map[string]any{"id": "kids"}}
						if _, err := g.do(abi.ImportRunWorkflow, req); err != nil {
							return err
						}
						b.commit()
						return increment(g, 1)
					})
				},
			}
		},
		"outside": func() *story {
			out := &counted{}
			return &story{
				modules: map[string]string{"one": fmt.Sprintf(one, ` "resources": [{"name": "crm", "kind": "held"}],`)}, want: map[string]int64{"s": 3},
				resource: out, check: out.check,
				guest: func(b *bench) func(context.Context, *call) (abi.StepOutput, error) {
					return working(func(g *call) error {
						if _, err := g.do(abi.ImportResource, []any{"crm", "put", g.in.Run.Invocation}); err != nil {
							return err
						}
						return increment(g, 1)
					})
				},
			}
		},
		"kv": keptStory,
		"snapshot": func() *story {
			return &story{
				modules: map[string]string{"one": fmt.Sprintf(one, "")}, want: map[string]int64{"s": 9}, snapshots: 3,
				guest: func(b *bench) func(context.Context, *call) (abi.StepOutput, error) {
					return working(func(g *call) error {
						for range 3 {
							if err := increment(g, 1); err != nil {
								return err
							}
							b.commit()
						}
						return nil
					})
				},
			}
		},
	}
}

const kidOne = `{"abi": 1, "workflow": "kid", "timeout": 0, "events": {}, "steps": [{"name": "kid", "accepts": ["StartEvent"], "emits": ["StopEvent"]}]}`

// counted is a resource that answers at once and knows who asked.
type counted struct {
	noKV
	keys []string
}

func (c *counted) Grant(host.ResourceUser, abi.ResourceDecl) (host.ResourceGrant, error) {
	return host.ResourceGrant{Mode: host.ResourceRepeat, Pool: "crm", InFlight: 2}, nil
}

func (c *counted) Call(_ context.Context, call host.ResourceCall) (abi.Raw, *abi.Error) {
	c.keys = append(c.keys, call.Key)
	return must(abi.EncodeValue("done")), nil
}

// check wants three calls, each under a key of its own, that may have been repeated
// when a life ended between the answer and its entry.
func (c *counted) check(t *testing.T, lives int) {
	t.Helper()
	keys := slices.Compact(slices.Sorted(slices.Values(c.keys)))
	if len(keys) != 3 || len(c.keys) > 3+2*(lives-1) {
		t.Errorf("over %d lives there were %d calls under %d keys", lives, len(c.keys), len(keys))
	}
}

// A server ends at every commit of a story, in every way, and another one goes on:
// what the story does is done once.
func TestCrashPoints(t *testing.T) {
	for name, make := range stories() {
		t.Run(name, func(t *testing.T) {
			for _, ending := range endings {
				points := 0
				for ended := true; ended; points++ {
					store := &endingStore{Store: memory.New(), left: points, written: ending.written, refused: ending.refused}
					if ended = twoLives(t, make(), store, ending.again); t.Failed() {
						t.Fatalf("%s at commit %d", ending.name, points)
					}
				}
				if t.Logf("%s: %d points", ending.name, points-1); points < 10 {
					t.Errorf("%s: there were %d points only", ending.name, points-1)
				}
			}
		})
	}
}

// A server ends at every commit of a fork that has another state and an answer. Afterwards the
// fork is there with both of them, or it is not there at all; one that was acknowledged is.
func TestCrashPointsOfAFork(t *testing.T) {
	for _, ending := range endings[:2] {
		points := 0
		for ended := true; ended; points++ {
			store := &endingStore{Store: memory.New(), left: 1 << 30, written: ending.written}
			runs := 0
			b := &bench{t: t, tokens: 2, batch: 1, fails: true, store: store, now: time.Unix(1_700_000_000, 0), modules: newSimModules(t, map[string]string{"two": asking})}
			b.guest = asker(&runs)
			b.open(t)
			b.start("h", "s")
			b.rest()
			at := uint64(0)
			for _, e := range b.timeline(t, "h", 0, 1000).Entries {
				at = e.Seq
			}
			store.left = points
			fork, err := b.forkWith(t, host.ForkRequest{ID: "h", At: at, Patch: must(abi.FromJSON([]byte(`{"n":1000,"note":"edited"}`))), Answer: &abi.Event{Type: "Answer", Body: abi.EmptyMap}})
			b.rest()
			if ended = store.ended; ended {
				b.store, b.fails = store.Store, false
				b.advance(time.Second)
				b.open(t)
			}
			store.left = 1 << 30
			b.rest()
			list, _, bad := b.sched.History().ListSessions(t.Context(), host.SessionQuery{Tenant: "t", Limit: 1000})
			if bad != nil {
				t.Fatal(bad)
			}
			found := 0
			for _, s := range list {
				if s.SessionID == "s" {
					continue
				}
				found++
				if err == nil && s.SessionID != fork.Run.SessionID {
					t.Errorf("%s at commit %d: the fork is %s, and there is %s", ending.name, points, fork.Run.SessionID, s.SessionID)
				}
				if got := b.stateAfter(t, s.SessionID, 1, ""); got != `{"n":1000,"note":"edited"}` {
					t.Errorf("%s at commit %d: the fork begins with %s", ending.name, points, got)
				}
				if got := tell(t, b.timeline(t, s.SessionID, 0, 1).Entries); !strings.HasPrefix(got, "1 fork") || !strings.Contains(got, "begins ask") {
					t.Errorf("%s at commit %d: the first entry is %s", ending.name, points, got)
				}
				if run := b.through(t, s.SessionID); run.Status != host.StatusCompleted || !strings.Contains(string(run.Result.Body), "\x19\x04\x56") {
					t.Errorf("%s at commit %d: the fork ends as %s: %x", ending.name, points, run.Status, run.Result.Body)
				}
			}
			if found > 1 || found == 0 && err == nil {
				t.Errorf("%s at commit %d: there are %d forks; the answer was %v", ending.name, points, found, err)
			}
			if run := b.record(t, "h"); run.Status != host.StatusRunning {
				t.Errorf("%s at commit %d: the run is %s", ending.name, points, run.Status)
			}
		}
		if t.Logf("%s: %d points", ending.name, points-1); points < 3 {
			t.Errorf("%s: there were %d points only", ending.name, points-1)
		}
	}
}

// twoLives tells a story over two lives, the first of which ends with the store, and says
// whether it did.
func twoLives(t *testing.T, st *story, store *endingStore, again bool) (ended bool) {
	t.Helper()
	b := &bench{t: t, tokens: 2, batch: 1, fails: true, store: store, now: time.Unix(1_700_000_000, 0), outside: st.resource, modules: newSimModules(t, map[string]string{"look": look})}
	maps.Copy(b.modules, newSimModules(t, st.modules))
	if st.snapshots > 0 {
		b.snapshots, b.keep = st.snapshots, 1
	}
	b.guest = st.guest(b)
	b.open(t)
	lives := 1
	_, err := b.tell()
	b.rest()
	if ended = store.ended; ended && !store.refused {
		lives++
		old := b.sched
		b.store, b.fails = store.Store, false
		if b.after = nil; again {
			b.after = old
		}
		b.advance(time.Second)
		b.open(t)
		_, err = b.tell()
		b.rest()
	}
	if err != nil {
		t.Fatalf("the start: %v", err)
	}
	store.left = 1 << 30 // what follows is no part of the story
	run := b.record(t, "h")
	if run.Status != host.StatusCompleted {
		t.Fatalf("the run is %+v", run)
	}
	for session, want := range st.want {
		got, err := await(b, func() (host.Run, error) {
			return b.sched.Start(t.Context(), host.StartRequest{Tenant: "t", Workflow: "look", SessionID: session, Wait: true})
		})
		if err != nil {
			t.Fatal(err)
		}
		if text := string(must(abi.ToJSON(got.Result.Body))); text != fmt.Sprintf(`{"result":%d}`, want) {
			t.Errorf("session %s counts %s, want %d", session, text, want)
		}
	}
	if st.check != nil {
		st.check(t, lives)
	}
	if st.checkStore != nil {
		st.checkStore(t, b.store)
	}
	if leak := b.sched.Leak(); leak != "" {
		t.Error(leak)
	}
	return ended
}

// tell starts the story's run, as a client does that sends it again until it is
// answered.
func (b *bench) tell() (host.Run, error) {
	return await(b, func() (host.Run, error) {
		return b.sched.Start(b.t.Context(), host.StartRequest{Tenant: "t", Workflow: "one", HandlerID: "h", SessionID: "s",
			Once: host.Once{Route: "run", Key: "k", Hash: "h"}})
	})
}
