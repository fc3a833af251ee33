// Package hostcall answers the host calls of a guest, keeps the record of an attempt and
// replays it.
//
// The package does not know how sessions are stored or scheduled. It sees a session
// through [Live], and passes effects to it as requests of package engine.
//
// # Record and replay
//
// An [Attempt] outlives the guest that runs it. When a guest is unwound (a lost commit, a
// ticket that another attempt holds) or the server restarts, a new guest runs the attempt
// from the start, on the same input.
//
//  1. Calls are numbered from 1. Calls 1..k are in the record, and are answered from it
//     without effects, checks or limits. Calls from k+1 on are live, and each adds its
//     own record.
//  2. A replayed call must equal the recorded one: the same import and the same request.
//     Otherwise the guest is unwound with a [*Mismatch], and nothing has been done.
//  3. The entry of an effect carries the part of the record that no earlier entry
//     carries, up to and with its own call. So reads become durable with the next effect
//     that could depend on them.
//  4. The answer of state_begin, and everything read inside the region, stays out of
//     entries until the region has ended. A commit that loses takes the record back to
//     before the state_begin. So does a stop inside the region, because nothing inside it
//     is an effect.
//  5. Log lines after the attempt's last effect belong to the run of the guest that
//     reaches the next effect. Every run makes them again. Earlier lines are durable.
//  6. The guest's clock and the position of its random stream are those of the first run:
//     each record has the clock, and replayed draws are drawn again.
//  7. A call that suspends is an effect. Its entry carries the records of the calls
//     before it. When there is an answer, the call is made again, as the first live call
//     of the replay, and only then recorded.
//  8. An open edit has a limit of fuel. The limit counts what the guest burns, which is
//     the same in each run. During a replay no edit is open.
//  9. The attempt of an atomic step has no effects before it finishes, and so no record in
//     the journal. It reads a snapshot and its own edits. Each run of its guest begins
//     again on a new snapshot.
package hostcall

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/work"
)

// Live is the session that an attempt works on. Its methods are safe for concurrent use.
//
// # Errors
//
// Effect and Begin return engine.ErrStale when the attempt is not wanted any more,
// engine.ErrConflict when a commit lost, [ErrParked] when another attempt holds the
// path's write ticket, and [*abi.Error] for mistakes of the guest.
type Live interface {
	// Now returns the time in Unix nanoseconds.
	Now() int64
	// State returns the last committed state. It never blocks.
	State() *state.Node
	// Begin returns the value at a path for an edit; ok is false if there is no value. If
	// want is set, the attempt takes the write ticket of the path.
	Begin(p state.Path, want bool) (n *state.Node, ok bool, err error)
	// End gives back the ticket of an edit that was aborted, if the attempt holds one.
	End()
	// Atomic reports whether the attempt belongs to an atomic step. The calls of an
	// atomic step are tried first, and take effect together when the step finishes.
	Atomic() bool
	// Try works out a call on the state that an atomic step sees, like
	// engine.Session.Try. The work is charged to m.
	Try(m *work.Meter, root *state.Node, req engine.Request) (engine.Tried, error)
	// Effect performs an effect. attach is called with the result and completes the
	// entry, before anybody else can see the result. attach is not called when Effect
	// fails. The result has no Entry when nothing changed. The work before attach is
	// charged to m, whose error Effect may return.
	Effect(m *work.Meter, n uint64, req engine.Request, attach func(*engine.Result)) error
}

// ErrParked unwinds a guest that must wait for a write ticket.
var ErrParked = errors.New("waits for a write ticket")

// ErrSuspended unwinds a guest whose call has no answer yet: it waits for an event, a
// child or a resource, or sleeps. The attempt continues by replay when there is an
// answer.
var ErrSuspended = errors.New("waits for an event or a time")

// ticketAfter is the number of lost commits after which an attempt takes the write
// ticket.
const ticketAfter = 3

// maxWhole is the longest request, in bytes, that a record keeps whole. Of a longer
// request the record keeps the SHA-256.
const maxWhole = 1 << 10

// Mismatch is the error of a replay that departs from its record.
type Mismatch struct {
	N         uint64
	Was, Is   abi.Import
	WasReq    string // diagnostic notation, or the hash of a long request
	IsReq     string
	Recording int // calls in the record
}

// Error names the call and both requests.
func (m *Mismatch) Error() string {
	return fmt.Sprintf("replay departs from the record at call %d of %d: it was %s %s, now it is %s %s",
		m.N, m.Recording, m.Was, m.WasReq, m.Is, m.IsReq)
}

// LimitError ends an attempt that exceeded a limit.
type LimitError struct{ Err *abi.Error }

// Error returns the message of the limit.
func (e *LimitError) Error() string { return e.Err.Error() }

func limitf(format string, args ...any) *LimitError {
	no := false
	return &LimitError{&abi.Error{Code: host.RunLimitExceeded, Message: fmt.Sprintf(format, args...), Retryable: &no}}
}

// Attempt is an open attempt of an invocation. Only one goroutine may use it at a time:
// the goroutine of the guest that runs it.
type Attempt struct {
	live   Live
	open   engine.AttemptOpen
	record []engine.CallRecord
	logs   []engine.LogRecord
	// attached is the number of records that entries carry, and opened says whether an
	// entry carries open. lastEffect is the call of the newest entry.
	attached   int
	opened     bool
	lastEffect uint64
	bytes      int // of the record
	losses     int

	// These fields belong to the present call.
	left    uint64 // units that the guest can pay
	look    func(units uint64) error
	meter   *work.Meter // own, or nil in a replay
	own     work.Meter
	charged uint64

	// These fields belong to one run of the guest.
	n        uint64
	replayed int // calls that this run answers from the record
	region   *region
	stage    *stage // of an atomic step, from its first call on
	random   *rand.ChaCha8
	logBytes int
	logLines int
	waits    map[string]int    // waits without an id, by what they wait for
	outcalls map[string]uint64 // calls of resources, by request
}

// region is an open edit.
type region struct {
	path  state.Path
	base  *state.Node
	begin uint64 // the call that opened it
	start int64  // host time, Unix nanoseconds, moved on by idle time
	fuel  uint64 // units burnt since the start
	free  uint64 // units still to come that the call which opened the edit charges
}

// New creates an attempt. record holds what earlier entries of the attempt carry. It is
// empty for a new attempt.
func New(live Live, open engine.AttemptOpen, record []engine.CallRecord) *Attempt {
	a := &Attempt{live: live, open: open, record: record, attached: len(record), opened: len(record) > 0}
	if len(record) > 0 {
		a.lastEffect = record[len(record)-1].N
	}
	for i := range record {
		a.bytes += recordSize(&record[i])
	}
	return a
}

// Restart prepares for another run of the guest from the start.
func (a *Attempt) Restart() {
	if a.region != nil {
		a.rollBack() // the guest was stopped inside an edit
	}
	// An atomic step has no record: it runs again on a new snapshot.
	if a.live.Atomic() {
		a.record, a.attached, a.bytes, a.stage = nil, 0, 0, nil
	}
	a.n, a.replayed, a.waits, a.outcalls = 0, len(a.record), nil, nil
	a.logs, a.logBytes, a.logLines = nil, 0, 0
	// This stream is separate from the one that WASI's random_get draws from.
	seed := a.open.Seed
	seed[0] ^= 0xff
	a.random = rand.NewChaCha8(seed)
}

// Record returns the durable record. It is complete when no run of the guest is under
// way. The caller must not change it, and must not use the attempt any more.
func (a *Attempt) Record() []engine.CallRecord { return a.record[:a.attached] }

// Open returns what the attempt's input is made of.
func (a *Attempt) Open() engine.AttemptOpen { return a.open }

// Unfinished returns the failure of a guest that returned without an error while an edit
// was open, else nil. The edit changes nothing. The caller must give up its ticket.
func (a *Attempt) Unfinished() *abi.Error {
	if a.region == nil {
		return nil
	}
	began := a.region.begin
	a.region = nil
	return &abi.Error{Code: abi.StatusFailedPrecondition.Code(), Message: fmt.Sprintf(
		"the step ended inside an edit, which it began by host call %d: end each edit by state_commit or state_abort", began)}
}

// Finish completes the entry that ends the attempt.
func (a *Attempt) Finish(e *engine.Entry) { a.attach(e) }

// attach adds to an entry the parts that no entry of the attempt carries yet.
func (a *Attempt) attach(e *engine.Entry) {
	if !a.opened {
		open := a.open
		e.Open, a.opened = &open, true
	}
	e.Calls = a.record[a.attached:len(a.record):len(a.record)]
	e.Logs = a.logs
	a.attached, a.logs, a.lastEffect = len(a.record), nil, a.n
}

// Call answers a host call. It implements host.Calls.
func (a *Attempt) Call(im abi.Import, req []byte, clock int64) ([]byte, abi.Status, int64, error) {
	a.n++
	if a.n <= uint64(a.replayed) {
		a.meter, a.charged = nil, a.record[a.n-1].Fuel // a replay charges the recorded work and does none
		return a.replay(im, req)
	}
	if a.n > uint64(a.open.Limits.HostCalls) {
		return nil, 0, 0, limitf("more than %d host calls in one invocation (limit host_calls)", a.open.Limits.HostCalls)
	}
	// The guest's clock never goes back, even if the host's does.
	clock = max(clock, a.live.Now())
	a.startMeter()
	resp, status, err := a.make(im, req, clock)
	a.charged = a.fuel()
	// The call that opens an edit is not part of it, so the edit does not pay for it.
	if a.region != nil && a.region.begin == a.n {
		a.region.free = a.charged
	}
	return resp, status, clock, a.unaffordable(im, err)
}

// make makes a live call and records it.
func (a *Attempt) make(im abi.Import, req []byte, clock int64) ([]byte, abi.Status, error) {
	resp, err := a.answer(im, req, clock)
	if err != nil {
		var mistake *abi.Error
		// Other errors than the guest's own unwind the guest, and leave no record.
		if !errors.As(err, &mistake) {
			return nil, 0, err
		}
		if resp, err = mistake.Encode(); err != nil {
			return nil, 0, fmt.Errorf("encode the error of %s: %w", im, err)
		}
		status := abi.StatusOf(mistake.Code)
		return resp, status, a.keep(im, req, resp, status, clock)
	}
	if a.n <= uint64(len(a.record)) { // the effect has recorded its call
		r := &a.record[a.n-1]
		return r.Response, r.Status, nil
	}
	return resp, abi.StatusOK, a.keep(im, req, resp, abi.StatusOK, clock)
}

// Replaying implements host.Replayer.
func (a *Attempt) Replaying() bool { return a.n < uint64(a.replayed) }

func (a *Attempt) replay(im abi.Import, req []byte) ([]byte, abi.Status, int64, error) {
	r := &a.record[a.n-1]
	if r.Import != im || !sameRequest(r, req) {
		m := &Mismatch{N: a.n, Was: r.Import, Is: im, IsReq: show(req), Recording: a.replayed}
		if m.WasReq = show(r.Request); r.Hashed {
			m.WasReq = fmt.Sprintf("sha256:%x", r.Request)
		}
		return nil, 0, 0, m
	}
	// A replay must leave counters and streams as the first run left them.
	switch im {
	case abi.ImportRandom:
		if r.Status == abi.StatusOK {
			_, _ = a.draw(req)
		}
	case abi.ImportWait:
		if m, err := abi.DecodeWaitForEvent(req); err == nil {
			_ = a.waiterID(&m) // counts the wait
		}
	case abi.ImportResource:
		if m, err := abi.DecodeCallResource(req); err == nil {
			_ = a.ordinal(&m) // counts the call
		}
	case abi.ImportLog:
		// The entry of the last effect has the earlier lines already.
		if a.n > a.lastEffect && r.Status == abi.StatusOK {
			_ = a.log(req, r.Clock)
		}
	}
	return r.Response, r.Status, r.Clock, nil
}

// keep records a call that is not an effect, and can still be refused.
func (a *Attempt) keep(im abi.Import, req, resp []byte, status abi.Status, clock int64) error {
	if err := a.meter.Spend(recordPrice(req, resp)); err != nil {
		return err
	}
	return a.remember(im, req, resp, status, clock)
}

// remember adds a call to the record.
func (a *Attempt) remember(im abi.Import, req, resp []byte, status abi.Status, clock int64) error {
	r := engine.CallRecord{N: a.n, Import: im, Request: req, Status: status, Response: resp, Clock: clock, Fuel: a.fuel()}
	if len(req) > maxWhole {
		sum := sha256.Sum256(req)
		r.Request, r.Hashed = sum[:], true
	}
	a.record = append(a.record, r)
	a.bytes += recordSize(&r)
	if a.bytes > a.open.Limits.RecordBytes {
		return limitf("the calls of one invocation and their answers exceed %d bytes (limit record_bytes)", a.open.Limits.RecordBytes)
	}
	return nil
}

func recordSize(r *engine.CallRecord) int {
	const overhead = 32
	return overhead + len(r.Import) + len(r.Request) + len(r.Response)
}

func sameRequest(r *engine.CallRecord, req []byte) bool {
	if !r.Hashed {
		return bytes.Equal(r.Request, req)
	}
	sum := sha256.Sum256(req)
	return bytes.Equal(r.Request, sum[:])
}

// show formats a request for people, and cuts a long one.
func show(req []byte) string {
	const most = 200
	s := abi.Diag(req)
	if len(s) > most {
		// The cut may split a character, and the text becomes part of an entry.
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}

// commitLost gives up the open region after its commit lost.
func (a *Attempt) commitLost() {
	a.rollBack()
	a.losses++
}

// rollBack gives up the open region and takes the record back to before it.
func (a *Attempt) rollBack() {
	a.record = a.record[:a.region.begin-1]
	a.bytes = 0
	for i := range a.record {
		a.bytes += recordSize(&a.record[i])
	}
	a.region = nil
}
