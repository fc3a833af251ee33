package calls

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/kv"
	"github.com/weftrun/weft/host/traced"
)

// A call of a resource has its intent in the journal. A [Caller] queues the call by its
// grant, makes the call when the intent is durable and the grant has room, and brings the
// answer to the session. A call pins no session: the caller keeps its name, and the payload
// while the call is made. The session may leave memory meanwhile, and is loaded
// again for the answer.

const (
	// unreadAfter is when a call is tried again that the store could not read.
	unreadAfter = time.Second
	// unloadedAfter is when an answer is brought again whose session did not load.
	unloadedAfter = 10 * time.Second
)

// Open is an open call as its session has it.
type Open struct {
	Call     host.ResourceCall
	Streamed int          // bytes of the answer that are on the run's stream already
	Hash     [32]byte     // SHA-256 of these bytes
	Span     *traced.Call // nil: there are no spans
}

// Session is a session that waits for calls. It is pinned until Release.
type Session interface {
	// Open returns a call; false: the session waits for another call, or for none.
	Open(c *Call) (o Open, ok bool)
	// Ask asks anew how a call may be made and queues the call, if [Caller.Take] allows it.
	Ask(c *Call)
	// Delta shows a part of an answer.
	Delta(c *Call, d host.ResourceDelta)
	// Answer brings an answer.
	Answer(c *Call, value abi.Raw, fail *abi.Error)
	// AnswerInside brings an answer together with its write: the journal takes both or
	// neither. pos is the queue position; ok is false if the answer was refused.
	AnswerInside(c *Call, answer *kv.Answer, write *kv.Write) (pos uint64, ok bool)
	Release()
}

// Host is the scheduler as a [Caller] sees it. Its methods are called without locks.
type Host interface {
	// Acquire pins a session, and loads it if need be. The code of the error is
	// [host.CodeNotFound] if the session was purged.
	Acquire(ctx context.Context, key host.SessionKey) (Session, error)
	// RetryAfter is when to try again what an error of loading a session has prevented:
	// after a while, unless the session has a time of its own.
	RetryAfter(key host.SessionKey, after time.Duration) time.Time
	// Note notes that the process works on a call until leave. wait is the call's Waits.
	Note(c *Call, call *host.ResourceCall) (wait func() (back func()), leave func())
	// CameBack notes that a call has not ended the process.
	CameBack(c *Call)
	// Read notes whether a read of the store failed.
	Read(failed bool)
	// Signal makes the scheduler call [Caller.Work].
	Signal()
	// Log writes a line about a call's session.
	Log(level slog.Level, message string, c *Call, args ...any)
}

// Tracer makes the spans of calls.
type Tracer interface {
	Outgoing(call *traced.Call) *host.Trace
	Called(call *traced.Call)
}

// Journal is the part of the journal that a caller asks.
type Journal interface {
	// Durable returns the queue position up to which the journal is durable.
	Durable() uint64
}

// CallerConfig says what a caller works with. All fields must be set, except Tracer.
type CallerConfig struct {
	Host      Host
	Lock      sync.Locker // of the book, held by methods that say so
	Resources host.Resources
	Store     kv.Store
	// Grow refuses what would be too much for a tenant.
	Grow    func(ctx context.Context, tenant string) error
	Journal Journal
	Clock   func() time.Time
	Now     func() int64 // Unix nanoseconds
	Tracer  Tracer       // nil: sessions give no spans
}

// Caller makes the calls that sessions wait for. A method that says so is called with the
// lock held; the other methods must be called without the lock.
type Caller struct {
	cfg    CallerConfig
	spaces Spaces // has a mutex of its own
	Book          // guarded by the lock
	Made   uint64 // calls that were made; guarded by the lock
}

// Init begins without calls.
func (c *Caller) Init(cfg CallerConfig) {
	c.cfg = cfg
	c.spaces.Init(SpacesConfig{Store: cfg.Store, Resources: cfg.Resources, Grow: cfg.Grow})
	c.Book.Init()
}

// Queue queues a call with its grant, unless the call is queued already. Another call of
// the invocation ends. The caller holds the lock.
func (c *Caller) Queue(o *Call, grant host.ResourceGrant) {
	if c.replaces(o) {
		c.Add(o, grant)
	}
}

// QueueUngranted is Queue for a call whose grant could not be read: the caller asks for the
// grant again. The caller holds the lock.
func (c *Caller) QueueUngranted(o *Call) {
	if c.replaces(o) {
		c.Hold(o)
		c.grantLater(o)
	}
}

// replaces ends another call of the invocation; false: the call itself is open.
func (c *Caller) replaces(o *Call) bool {
	if old := c.Find(o.Key); old != nil {
		if old.Attempt == o.Attempt && old.N == o.N {
			return false
		}
		c.Drop(old)
	}
	return true
}

// grantLater asks for a call's grant again after a while. The caller holds the lock.
func (c *Caller) grantLater(o *Call) {
	c.Later(Late{Call: o, Due: c.cfg.Clock().Add(unreadAfter), Ungranted: true})
}

// grantAgain asks for a call's grant again, and queues the call.
func (c *Caller) grantAgain(o *Call) {
	ss, err := c.cfg.Host.Acquire(context.Background(), o.Key.Session)
	if err == nil {
		ss.Ask(o)
		ss.Release()
		return
	}
	c.cfg.Lock.Lock()
	// A session that is not found was purged. Any other error may pass.
	if host.CodeOf(err) == host.CodeNotFound {
		c.Remove(o)
	} else if c.Has(o) {
		c.grantLater(o)
	}
	c.cfg.Lock.Unlock()
	c.cfg.Host.Signal()
}

// Take removes a call that a session makes anew; false: nobody waits for the call.
func (c *Caller) Take(o *Call) bool {
	c.cfg.Lock.Lock()
	defer c.cfg.Lock.Unlock()
	wanted := c.Has(o)
	c.Remove(o)
	return wanted
}

// TakeBack ends the call of an invocation, if there is one without an answer.
func (c *Caller) TakeBack(key host.SessionKey, inv uint64) {
	c.cfg.Lock.Lock()
	defer c.cfg.Lock.Unlock()
	if o := c.Find(Key{Session: key, Invocation: inv}); o != nil {
		c.Drop(o)
	}
}

// Cancel ends the calls in progress without an answer. They stay open in the journal.
func (c *Caller) Cancel() {
	c.cfg.Lock.Lock()
	defer c.cfg.Lock.Unlock()
	c.Book.Cancel()
}

// Work begins the calls that may begin now, and brings again the answers that did not reach
// their sessions. next is when to look again, zero: when something happens. Called with the
// lock held.
func (c *Caller) Work(now time.Time) (work []func(), next time.Time) {
	durable := c.cfg.Journal.Durable()
	c.spaces.Settle(durable)
	late, next := c.Due(now)
	for _, l := range late {
		if l.Ungranted {
			work = append(work, func() { c.grantAgain(l.Call) })
			continue
		}
		work = append(work, func() { c.answer(l.Call, l.Value, l.Err) })
	}
	c.Ready(durable, func(o *Call) { work = append(work, c.Begin(o)) })
	return work, next
}

// Begin begins a queued call and returns the work that makes it. The caller holds the lock.
func (c *Caller) Begin(o *Call) (work func()) {
	ctx := c.Book.Begin(o)
	return func() { c.make(ctx, o) }
}

// make makes a call that was begun, and brings its answer.
func (c *Caller) make(ctx context.Context, o *Call) {
	value, fail := abi.Raw(nil), o.Known
	wanted := true
	var away error // why the store could not be asked
	within := fail == nil && o.Space != (kv.Space{})
	switch {
	case within:
		away = c.inside(ctx, o)
	case fail == nil:
		value, fail, wanted, away = c.outside(ctx, o)
	}
	// A call that was cancelled has no answer: it stays open in the journal, or nobody wants
	// it. A call inside has brought its own answer, in one item with its write.
	if wanted && !within && away == nil && ctx.Err() == nil {
		c.answer(o, value, fail)
	}
	c.cfg.Host.CameBack(o)
	late := Late{Call: o, Again: true}
	if away != nil {
		late.Due = c.cfg.Host.RetryAfter(o.Key.Session, unreadAfter)
	}
	c.cfg.Lock.Lock()
	if away != nil && ctx.Err() == nil { // before End, which ends the context
		c.Later(late)
	}
	c.End(o)
	if !wanted {
		c.Remove(o)
	}
	c.cfg.Lock.Unlock()
	c.cfg.Host.Signal()
}

// outside makes the call. wanted is false if nobody waits for the call any more. away says
// why the call was not made and is made later: an error of the store is not an answer of
// the resource.
func (c *Caller) outside(ctx context.Context, o *Call) (value abi.Raw, fail *abi.Error, wanted bool, away error) {
	ss, err := c.cfg.Host.Acquire(ctx, o.Key.Session)
	if err != nil {
		if host.CodeOf(err) == host.CodeNotFound || ctx.Err() != nil {
			return nil, nil, false, nil
		}
		return nil, nil, true, err
	}
	open, ok := ss.Open(o)
	// The call may take long: its session may leave memory meanwhile.
	ss.Release()
	if !ok {
		return nil, nil, false, nil
	}
	c.count()
	open.Call.Stream = &host.ResourceStream{Published: open.Streamed, Hash: open.Hash, Publish: func(ctx context.Context, d host.ResourceDelta) error {
		return c.delta(ctx, o, d)
	}}
	if open.Span != nil {
		open.Call.Trace = c.cfg.Tracer.Outgoing(open.Span)
	}
	wait, leave := c.cfg.Host.Note(o, &open.Call)
	open.Call.Waits = wait
	value, fail = c.cfg.Resources.Call(ctx, open.Call)
	leave()
	c.called(open.Span, fail)
	return value, fail, true, nil
}

// called makes the span of a call that was made.
func (c *Caller) called(span *traced.Call, fail *abi.Error) {
	if span != nil {
		span.Ended, span.Code = c.cfg.Now(), traced.FailureCode(fail)
		c.cfg.Tracer.Called(span)
	}
}

func (c *Caller) count() {
	c.cfg.Lock.Lock()
	c.Made++
	c.cfg.Lock.Unlock()
}

// delta brings a part of an answer to its session, which shows the part. Nothing waits until
// the part is durable: clients see durable parts only, and the rest follows in order.
func (c *Caller) delta(ctx context.Context, o *Call, d host.ResourceDelta) error {
	ss, err := c.cfg.Host.Acquire(ctx, o.Key.Session)
	if err != nil {
		return err
	}
	ss.Delta(o, d)
	ss.Release()
	return nil
}

// answer brings an answer to its session.
func (c *Caller) answer(o *Call, value abi.Raw, fail *abi.Error) {
	ss, err := c.cfg.Host.Acquire(context.Background(), o.Key.Session)
	switch {
	case err == nil:
		ss.Answer(o, value, fail)
		ss.Release()
	// The resource has answered, and must not be asked again: the answer is kept until the
	// session loads. A session that is not found was purged, and wants none.
	case host.CodeOf(err) != host.CodeNotFound:
		c.cfg.Host.Log(slog.LevelError, "the answer of a resource cannot be noted, and is kept", o, "error", err)
		again := c.cfg.Host.RetryAfter(o.Key.Session, unloadedAfter)
		c.cfg.Lock.Lock()
		c.Later(Late{Call: o, Value: value, Err: fail, Due: again})
		c.cfg.Lock.Unlock()
		c.cfg.Host.Signal()
		return
	}
	c.Take(o)
}

// inside makes a call of a resource that is kept with the journal, and brings its answer.
// The error says why the call was not made and is made later: an error of the store is not
// an answer.
func (c *Caller) inside(ctx context.Context, o *Call) (away error) {
	ss, err := c.cfg.Host.Acquire(ctx, o.Key.Session)
	if err != nil && host.CodeOf(err) != host.CodeNotFound && ctx.Err() == nil {
		return err
	}
	if err != nil { // nobody wants it
		c.Take(o)
		return nil
	}
	defer ss.Release()
	// The turn comes before the session's lock, which Open and AnswerInside take: a
	// goroutine that holds that lock must not wait for a turn.
	sp := c.spaces.Enter(o.Space)
	defer c.spaces.Leave(sp)
	open, ok := ss.Open(o)
	if ctx.Err() != nil {
		return nil
	}
	if !ok {
		c.Take(o)
		return nil
	}
	c.count()
	_, leave := c.cfg.Host.Note(o, &open.Call)
	answer, write, err := c.spaces.Answer(ctx, sp, open.Call, c.cfg.Now())
	leave()
	// Cancelled while it was made: nothing was written, and there is no answer.
	if ctx.Err() != nil {
		return nil
	}
	c.cfg.Host.Read(err != nil)
	if err != nil {
		c.cfg.Host.Log(slog.LevelError, "a call of a resource is put off: the store cannot be read", o, "resource", open.Call.Resource, "error", err)
		return err
	}
	c.called(open.Span, answer.Err)
	if pos, ok := ss.AnswerInside(o, &answer, write); ok && write != nil {
		c.spaces.Wrote(sp, write, pos)
	}
	c.Take(o)
	return nil
}
