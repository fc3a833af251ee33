package calls

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/kv"
)

// rig is a caller with one session, a resource and a store, all in one goroutine. told says
// what happened, in order.
type rig struct {
	Caller
	mu      sync.Mutex
	now     time.Time
	durable uint64
	load    error // of the session
	stored  error // of reads of the store
	gone    bool  // the session does not wait for the call any more
	during  func()
	told    []string
}

func newRig() *rig {
	r := &rig{now: time.Unix(1_800_000_000, 0)}
	r.Init(CallerConfig{
		Host: r, Lock: &r.mu, Resources: r, Store: r, Grow: func(context.Context, string) error { return nil },
		Journal: r, Clock: func() time.Time { return r.now }, Now: func() int64 { return r.now.UnixNano() },
	})
	return r
}

func (r *rig) say(format string, args ...any) { r.told = append(r.told, fmt.Sprintf(format, args...)) }

// steps does the work that is due, until nothing more is, and returns what happened.
func (r *rig) steps() []string {
	r.told = nil
	for {
		r.mu.Lock()
		work, _ := r.Work(r.now)
		r.mu.Unlock()
		if len(work) == 0 {
			return r.told
		}
		for _, w := range work {
			w()
		}
	}
}

func (r *rig) queue(c *Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Queue(c, host.ResourceGrant{Pool: "p", InFlight: 1})
}

func (r *rig) Acquire(context.Context, host.SessionKey) (Session, error) {
	if r.load != nil {
		return nil, r.load
	}
	return waiting{r}, nil
}

func (r *rig) RetryAfter(_ host.SessionKey, after time.Duration) time.Time { return r.now.Add(after) }

func (r *rig) Note(*Call, *host.ResourceCall) (wait func() (back func()), leave func()) {
	r.say("noted")
	return nil, func() { r.say("left") }
}

func (r *rig) CameBack(*Call)                                      { r.say("back") }
func (r *rig) Read(failed bool)                                    { r.say("read, failed %t", failed) }
func (r *rig) Durable() uint64                                     { return r.durable }
func (r *rig) Signal()                                             {}
func (r *rig) Log(_ slog.Level, message string, _ *Call, _ ...any) { r.say("log: %s", message) }

func (r *rig) Grant(host.ResourceUser, abi.ResourceDecl) (host.ResourceGrant, error) {
	return host.ResourceGrant{}, nil
}

func (r *rig) Call(ctx context.Context, c host.ResourceCall) (abi.Raw, *abi.Error) {
	r.say("call of %s", c.Resource)
	if r.during != nil {
		r.during()
	}
	return abi.EmptyMap, nil
}

func (r *rig) Operate(c host.ResourceCall, _ kv.Space, _ kv.Data) kv.Answer {
	r.say("operation on %s", c.Resource)
	return kv.Answer{Value: abi.EmptyMap, Write: &kv.Item{Key: "k", Value: abi.EmptyMap}}
}

func (r *rig) KVTotals(context.Context, kv.Space) (kv.Totals, error) {
	return kv.Totals{}, r.stored
}

func (r *rig) KVItem(context.Context, kv.Space, string) (kv.Item, error) {
	return kv.Item{}, host.ErrNotFound
}

func (r *rig) KVItems(context.Context, kv.Space, kv.Query) ([]kv.Item, bool, error) {
	return nil, false, nil
}

// waiting is the session of a rig.
type waiting struct{ *rig }

func (w waiting) Open(c *Call) (Open, bool) {
	return Open{Call: host.ResourceCall{Resource: "r"}}, !w.gone
}

func (w waiting) Ask(c *Call) {
	if w.Take(c) {
		w.say("asked")
		w.queue(&Call{Key: c.Key, Attempt: c.Attempt, N: c.N})
	}
}

func (w waiting) Delta(_ *Call, d host.ResourceDelta) { w.say("delta %q", d.Text) }

func (w waiting) Answer(_ *Call, _ abi.Raw, fail *abi.Error) {
	if fail != nil {
		w.say("answer: %s", fail.Message)
		return
	}
	w.say("answer")
}

func (w waiting) AnswerInside(_ *Call, _ *kv.Answer, write *kv.Write) (uint64, bool) {
	w.say("answer with version %d of %s", write.Item.Version, write.Item.Key)
	return w.durable + 1, true
}

func (w waiting) Release() {}

func (r *rig) want(t *testing.T, what string, want ...string) {
	t.Helper()
	if got := r.steps(); !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func (r *rig) empty(t *testing.T) {
	t.Helper()
	if open, pools, late := r.Left(); open+pools+late > 0 {
		t.Errorf("left: %d open, %d pools, %d late", open, pools, late)
	}
}

// A call is made when its intent is durable, once, and its answer reaches the session.
func TestACallIsMadeOnceItsIntentIsDurable(t *testing.T) {
	r := newRig()
	r.queue(call(3))
	r.want(t, "before", []string{}...)
	r.queue(call(3)) // the same call
	r.durable = 3
	r.want(t, "durable", "noted", "call of r", "left", "answer", "back")
	r.empty(t)
	if r.Made != 1 {
		t.Errorf("%d calls were made", r.Made)
	}
}

// An answer is kept while the session does not load: the resource is not asked again. A
// purged session wants no answer.
func TestAnAnswerIsKeptUntilItsSessionLoads(t *testing.T) {
	for _, purged := range []bool{false, true} {
		r := newRig()
		r.durable = 9
		r.during = func() { r.load = errors.New("broken") }
		r.queue(call(1))
		r.want(t, "broken", "noted", "call of r", "left", "log: the answer of a resource cannot be noted, and is kept", "back")
		if r.now = r.now.Add(unloadedAfter); purged {
			r.load = &host.Error{Code: host.CodeNotFound}
			r.want(t, "purged", []string{}...)
		} else {
			r.load = nil
			r.want(t, "loads", "answer")
		}
		r.empty(t)
	}
}

// An error of the store is not an answer: the call is made later.
func TestACallThatTheStorePreventsIsMadeLater(t *testing.T) {
	r := newRig()
	r.durable = 9
	r.load = &host.Error{Code: host.CodeUnavailable}
	r.queue(call(1))
	r.want(t, "no session", "back")
	r.load, r.now = nil, r.now.Add(unreadAfter)
	r.want(t, "outside", "noted", "call of r", "left", "answer", "back")

	inside := call(2)
	inside.Space = kv.Space{Tenant: "t", Resource: "r"}
	r.stored = errors.New("broken")
	r.queue(inside)
	r.want(t, "no totals", "noted", "left", "read, failed true", "log: a call of a resource is put off: the store cannot be read", "back")
	r.stored, r.now = nil, r.now.Add(unreadAfter)
	first := uint64(r.now.UnixMicro()) + 1
	r.want(t, "inside", "noted", "operation on r", "left", "read, failed false", fmt.Sprintf("answer with version %d of k", first), "back")
	r.empty(t)
	if again := call(4); true {
		again.Space = inside.Space
		r.queue(again) // sees the write before it, which is not durable yet
	}
	r.want(t, "inside again", "noted", "operation on r", "left", "read, failed false", fmt.Sprintf("answer with version %d of k", first+1), "back")
}

// A call that is taken back while it is made has no answer. Neither has a call that the
// session does not wait for.
func TestACallThatNobodyWantsHasNoAnswer(t *testing.T) {
	r := newRig()
	r.durable = 9
	c := call(1)
	r.during = func() { r.TakeBack(c.Key.Session, c.Key.Invocation) }
	r.queue(c)
	r.want(t, "taken back", "noted", "call of r", "left", "back")
	r.gone = true
	r.queue(call(2))
	r.want(t, "gone", "back")
	r.gone, r.during = false, r.Cancel
	r.queue(call(3))
	r.want(t, "cancelled", "noted", "call of r", "left", "back")
	if r.Find(call(3).Key) == nil {
		t.Error("a cancelled call is not open any more")
	}
}

// A refusal is the answer of a call that is not made. A grant that could not be read is
// asked for again, unless the call was replaced.
func TestAGrantThatCouldNotBeRead(t *testing.T) {
	r := newRig()
	r.durable = 9
	refused := call(1)
	refused.Known = &abi.Error{Message: "no"}
	r.queue(refused)
	r.want(t, "refused", "answer: no", "back")
	r.mu.Lock()
	r.QueueUngranted(call(2))
	r.mu.Unlock()
	r.load = errors.New("broken")
	r.now = r.now.Add(unreadAfter)
	r.want(t, "no session", []string{}...)
	r.load = nil
	r.now = r.now.Add(unreadAfter)
	r.want(t, "asked", "asked", "noted", "call of r", "left", "answer", "back")
	r.mu.Lock()
	r.QueueUngranted(call(3))
	r.mu.Unlock()
	other := call(3)
	other.N = 2
	r.queue(other)
	r.now = r.now.Add(unreadAfter)
	r.want(t, "replaced", "noted", "call of r", "left", "answer", "back")
	r.empty(t)
}
