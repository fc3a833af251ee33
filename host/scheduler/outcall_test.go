package scheduler_test

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// calling is a workflow whose steps call a resource, three at a time.
const calling = `{"abi": 1, "workflow": "two", "timeout": 60000000000, "events": {"Work": {}, "Done": {}},
  "resources": [{"name": "crm", "kind": "held"}, {"name": "maybe", "kind": "held", "optional": true}],
  "steps": [
    {"name": "begin", "accepts": ["StartEvent"], "emits": [["list", ["Work"]]]},
    {"name": "work", "accepts": ["Work"], "emits": ["Done"], "workers": 3},
    {"name": "end", "accepts": [["list", ["Done"]]], "emits": ["StopEvent"]}]}`

// held is a resource whose calls take until they are let go, or nobody wants them.
type held struct {
	noKV
	mode     host.ResourceMode
	inFlight int
	denied   bool
	entered  chan host.ResourceCall
	goOn     chan struct{}

	mu      sync.Mutex // guards what follows
	calls   []host.ResourceCall
	aborted int
}

func newHeld(mode host.ResourceMode, inFlight int) *held {
	return &held{mode: mode, inFlight: inFlight, entered: make(chan host.ResourceCall), goOn: make(chan struct{})}
}

func (h *held) Grant(user host.ResourceUser, decl abi.ResourceDecl) (host.ResourceGrant, error) {
	if h.denied || decl.Name != "crm" || user.Tenant != "t" || user.Workflow != "two" || user.Digest != "two" || decl.Kind != "held" {
		return host.ResourceGrant{}, host.Errorf(host.CodePermissionDenied, "the resource '%s' is not granted", decl.Name)
	}
	return host.ResourceGrant{Mode: h.mode, Pool: decl.Name, InFlight: h.inFlight}, nil
}

func (h *held) Call(ctx context.Context, call host.ResourceCall) (abi.Raw, *abi.Error) {
	h.mu.Lock()
	h.calls = append(h.calls, call)
	h.mu.Unlock()
	h.entered <- call
	select {
	case <-h.goOn:
		return must(abi.EncodeValue("done")), nil
	case <-ctx.Done():
		h.mu.Lock()
		h.aborted++
		h.mu.Unlock()
		return nil, &abi.Error{Code: "unavailable", Message: "aborted"}
	}
}

// outsideBench is a bench whose work may be held up by a resource.
type outsideBench struct {
	*bench
	held  *held
	under []chan struct{} // ends of the work that is held up
}

// caller is a guest whose work steps call the resource once.
func caller(_ context.Context, c *call) (abi.StepOutput, error) {
	switch c.in.Step {
	case "begin":
		return list(3), nil
	case "end":
		return stopEvent(), nil
	}
	resp, err := c.do(abi.ImportResource, []any{"crm", "put", map[string]any{"n": c.in.Run.Invocation}})
	if err != nil {
		return abi.StepOutput{}, err
	}
	if resp == nil {
		return abi.StepOutput{Err: &abi.Error{Code: "refused", Message: "by the resource"}}, nil
	}
	return abi.StepOutput{Events: []abi.Event{{Type: "Done", Body: abi.EmptyMap}}}, nil
}

func newOutside(t *testing.T, h *held) *outsideBench {
	t.Helper()
	b := &bench{tokens: 1, guest: caller, outside: h, modules: newSimModules(t, map[string]string{"two": calling})}
	return &outsideBench{bench: b.open(t), held: h}
}

// rest carries out everything but what the resource holds up.
func (b *outsideBench) rest() {
	b.t.Helper()
	for {
		work := b.step()
		for _, w := range work {
			done := make(chan struct{})
			go func() { w(); close(done) }()
			select {
			case <-done:
			case <-b.held.entered:
				b.under = append(b.under, done)
			}
		}
		b.commit()
		if len(work) == 0 {
			return
		}
	}
}

// let lets one call go on, and waits until what it was held up in is done.
func (b *outsideBench) let(n int) {
	for range n {
		b.held.goOn <- struct{}{}
	}
	if n == len(b.under) {
		b.joined()
	}
	b.rest()
}

// joined waits until nothing is held up any more.
func (b *outsideBench) joined() {
	for _, done := range b.under {
		<-done
	}
	b.under = nil
}

func (b *outsideBench) do(request func() error) error {
	b.t.Helper()
	done := make(chan error, 1)
	go func() { done <- request() }()
	for {
		select {
		case err := <-done:
			b.rest()
			return err
		default:
			b.rest()
			runtime.Gosched()
		}
	}
}

func (b *outsideBench) startRun() (run host.Run, err error) {
	err = b.do(func() (err error) {
		run, err = b.sched.Start(b.t.Context(), host.StartRequest{Tenant: "t", Workflow: "two", HandlerID: "h", SessionID: "s"})
		return err
	})
	return run, err
}

func (b *outsideBench) mustStart() host.Run {
	b.t.Helper()
	run, err := b.startRun()
	if err != nil {
		b.t.Fatal(err)
	}
	return run
}

// leave has the session leave memory, with calls of it under way.
func (b *outsideBench) leave() {
	b.t.Helper()
	for range 2 {
		b.advance(time.Second)
		b.rest()
	}
	if n := b.sched.Loaded(); n != 0 {
		b.t.Fatalf("%d sessions stay in memory while calls are under way", n)
	}
}

func (b *outsideBench) completed(run host.Run, calls int) {
	b.t.Helper()
	if got, err := b.store.Run(b.t.Context(), "t", run.RunID); err != nil || got.Status != host.StatusCompleted {
		b.t.Fatalf("%+v, %v", got, err)
	}
	if len(b.held.calls) != calls {
		b.t.Errorf("%d calls, want %d", len(b.held.calls), calls)
	}
	if leak := b.sched.Leak(); leak != "" {
		b.t.Error(leak)
	}
}

// Calls under way pin no session: it leaves memory, and their answers load it.
func TestCallsDoNotPin(t *testing.T) {
	b := newOutside(t, newHeld(host.ResourceRepeat, 8))
	run := b.mustStart()
	if len(b.under) != 3 {
		t.Fatalf("%d calls are under way, want 3", len(b.under))
	}
	b.leave()
	b.let(3)
	b.completed(run, 3)
	keys := map[string]bool{}
	for _, c := range b.held.calls {
		keys[c.Key] = true
		if len(c.Key) != 32 || c.User.Tenant != "t" || c.Method != "put" || c.Resource != "crm" || c.Step != "work" || c.RunID != run.RunID {
			t.Errorf("call %+v", c)
		}
	}
	if len(keys) != 3 {
		t.Errorf("%d keys of 3 calls", len(keys))
	}
}

// A grant's surplus waits, also while its session is not in memory, and is made in
// the order in which it was asked for. A session that comes back is no new server:
// its calls of mode fail go on.
func TestSurplusCallsWait(t *testing.T) {
	b := newOutside(t, newHeld(host.ResourceFail, 1))
	run := b.mustStart()
	for n := 1; n <= 3; n++ {
		if len(b.held.calls) != n || len(b.under) != 1 {
			t.Fatalf("%d calls, %d under way; want %d and 1", len(b.held.calls), len(b.under), n)
		}
		b.leave()
		b.let(1)
	}
	b.completed(run, 3)
	for i, c := range b.held.calls {
		if want := must(abi.EncodeValue(map[string]any{"n": 2 + i})); string(c.Payload) != string(want) {
			t.Errorf("call %d has the payload %x", i, c.Payload)
		}
	}
}

// A cancelled run's calls are aborted, and those that wait are not made.
func TestCancelAbortsCalls(t *testing.T) {
	b := newOutside(t, newHeld(host.ResourceRepeat, 2))
	run := b.mustStart()
	b.leave()
	err := b.do(func() error {
		_, err := b.sched.Cancel(t.Context(), "t", run.RunID, false)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	b.joined()
	b.rest()
	if len(b.held.calls) != 2 || b.held.aborted != 2 {
		t.Errorf("%d calls, %d aborted; want 2 and 2", len(b.held.calls), b.held.aborted)
	}
	b.advance(time.Second)
	b.rest()
	if leak := b.sched.Leak(); leak != "" {
		t.Error(leak)
	}
}

// The deadline of a run ends its calls while its session is not in memory.
func TestDeadlineEndsCallsOfASessionOnDisk(t *testing.T) {
	b := newOutside(t, newHeld(host.ResourceRepeat, 8))
	run := b.mustStart()
	b.leave()
	b.advance(time.Minute)
	b.rest()
	b.joined()
	if got, err := b.store.Run(t.Context(), "t", run.RunID); err != nil || got.ErrorCode != host.RunTimeout {
		t.Errorf("%+v, %v", got, err)
	}
	if b.held.aborted != 3 {
		t.Errorf("%d calls were aborted, want 3", b.held.aborted)
	}
}

// The next server makes a call again under its key; one of mode fail it does not
// make, and the step gets an error.
func TestCallsOfAnotherServer(t *testing.T) {
	for _, mode := range []host.ResourceMode{host.ResourceReadOnly, host.ResourceRepeat, host.ResourceFail} {
		t.Run(string(mode), func(t *testing.T) {
			first := newHeld(mode, 8)
			b := newOutside(t, first)
			run := b.mustStart()
			next := newHeld(mode, 8)
			b.outside, b.held = next, next
			old := b.under
			b.under = nil
			b.open(t)
			b.rest()
			if mode == host.ResourceFail {
				got, err := b.store.Run(t.Context(), "t", run.RunID)
				if err != nil || got.Status != host.StatusFailed || got.ErrorCode != "refused" || len(next.calls) != 0 {
					t.Errorf("%+v, %v, calls %+v", got, err, next.calls)
				}
			} else {
				b.let(3)
				b.completed(run, 3)
				known := map[string]bool{}
				for _, c := range first.calls {
					known[c.Key] = true
				}
				for _, c := range next.calls {
					if !known[c.Key] {
						t.Errorf("the call %+v is made again under another key", c)
					}
				}
			}
			for range old { // the server before has lost its power: nobody hears this
				first.goOn <- struct{}{}
			}
			for _, done := range old {
				<-done
			}
		})
	}
}

// A start whose resource is not granted is refused with its name; an optional one
// is refused to the step.
func TestResourcesMustBeGranted(t *testing.T) {
	h := newHeld(host.ResourceRepeat, 8)
	b := newOutside(t, h)
	h.denied = true
	_, err := b.startRun()
	if host.CodeOf(err) != host.CodePermissionDenied || !strings.Contains(err.Error(), "'crm'") || !strings.Contains(err.Error(), "'two'") {
		t.Errorf("a start without its resource: %v", err)
	}
	h.denied = false
	var status []abi.Status
	b.guest = func(_ context.Context, c *call) (abi.StepOutput, error) {
		for _, name := range []string{"maybe", "other"} {
			_, st, _, err := c.inv.Calls.Call(abi.ImportResource, must(abi.EncodeValue([]any{name, "put", nil})), c.clock)
			if err != nil {
				return abi.StepOutput{}, err
			}
			status = append(status, st)
		}
		return abi.StepOutput{Err: &abi.Error{Code: "enough", Message: "seen"}}, nil
	}
	b.mustStart()
	if len(status) != 2 || status[0] != abi.StatusPermissionDenied || status[1] != abi.StatusFailedPrecondition {
		t.Errorf("statuses %v", status)
	}
	if len(h.calls) != 0 {
		t.Errorf("calls %+v", h.calls)
	}
}

// scripted is a resource that answers as the test says, at once.
type scripted struct {
	held
	answers []*abi.Error // nil: well
}

func (s *scripted) Call(_ context.Context, call host.ResourceCall) (abi.Raw, *abi.Error) {
	s.calls = append(s.calls, call)
	return abi.Null, s.answers[len(s.calls)-1]
}

// A retry gets the answers that are there, and asks again what has failed, under
// the same key.
func TestRetryAsksWhatHasFailed(t *testing.T) {
	const trying = `{"abi": 1, "workflow": "two", "events": {}, "resources": [{"name": "crm", "kind": "held"}],
	  "steps": [{"name": "try", "accepts": ["StartEvent"], "emits": ["StopEvent"], "retry": {"wait": {"fixed": 1000000000}, "stop": {"attempts": 3}}}]}`
	down := &abi.Error{Code: "unavailable", Message: "no route"}
	for mode, wantCalls := range map[host.ResourceMode]int{host.ResourceRepeat: 4, host.ResourceFail: 2} {
		t.Run(string(mode), func(t *testing.T) {
			r := &scripted{held: held{mode: mode, inFlight: 1}, answers: []*abi.Error{nil, down, down, nil}}
			b := &bench{tokens: 1, outside: r, modules: newSimModules(t, map[string]string{"two": trying})}
			b.guest = func(_ context.Context, c *call) (abi.StepOutput, error) {
				for _, method := range []string{"first", "second"} {
					_, status, _, err := c.inv.Calls.Call(abi.ImportResource, must(abi.EncodeValue([]any{"crm", method, nil})), c.clock)
					if err != nil {
						return abi.StepOutput{}, err
					}
					if status != abi.StatusOK {
						return abi.StepOutput{Err: &abi.Error{Code: status.Code(), Message: method}}, nil
					}
				}
				return stopEvent(), nil
			}
			b.open(t)
			run := b.start("h", "s")
			for range 3 {
				b.rest()
				b.advance(time.Second)
			}
			b.rest()
			want := host.StatusCompleted
			if mode == host.ResourceFail {
				want = host.StatusFailed
			}
			if got := b.status(run.RunID); got != want || len(r.calls) != wantCalls {
				t.Fatalf("the run is %s after %d calls, want %s and %d", got, len(r.calls), want, wantCalls)
			}
			for i, c := range r.calls {
				if first := c.Method == "first"; first != (i == 0) || c.Key == r.calls[0].Key != first || i > 0 && c.Key != r.calls[1].Key {
					t.Errorf("call %d: %s under the key %s", i, c.Method, c.Key)
				}
			}
		})
	}
}
