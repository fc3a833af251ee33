// Package hostcall answers a guest's host calls, keeps the record of an
// attempt and replays it.
//
// It must not know how a session is stored or scheduled: it sees the session
// through [Live], and gives its effects to it as requests of package engine.
//
// # Record and replay
//
// An [Attempt] outlives the guest that runs it: when a guest is unwound (a lost
// commit, a ticket that another holds) or the server restarts, a new guest runs
// the attempt from the start, on the same input.
//
//  1. Calls are numbered from 1. Calls 1..k, those in the record, are answered
//     from it; nothing else happens: no effect, no check, no limit. From k+1 on
//     calls are live, and each adds its record.
//  2. A replayed call must be the recorded one: same import, same request.
//     If not, the guest is unwound with a [*Mismatch]; nothing was done.
//  3. An effect's entry carries the part of the record that no entry carries
//     yet, up to and with its own call. So reads become durable with the next
//     effect that could have been made from them.
//  4. The answer of state_begin and what is read inside the region stay behind
//     the region: a commit that loses takes the record back to before the
//     state_begin, and so does a stop inside the region, as nothing inside it is
//     an effect.
//  5. Log lines after the attempt's last effect belong to the run that comes
//     to the next effect: each run makes them anew, and those before are
//     already durable.
//  6. The guest's clock and the position of its random stream are those of the
//     first run: each record says the clock, and replayed draws are drawn again.
//  7. A call that suspends is an effect: its entry carries the record of the calls
//     before it. It is made again when there is an answer, as the first live call
//     of the replay, and only then remembered.
//  8. An open edit has a bound of fuel, which is counted from what the guest
//     burns: the same in each run. In a replay no edit is open.
//  9. The attempt of an atomic step has no effects before its finish, and so no
//     record in the journal: it reads a snapshot and its own edits, and each run
//     of its guest begins anew on a new one.
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

// Live is the session that an attempt works on. Its methods may be called from
// any goroutine.
//
// # Errors
//
// Effect and Begin give engine.ErrStale when the attempt is no longer wanted,
// engine.ErrConflict when a commit lost, [ErrParked] when another attempt has
// the path's write ticket, and [*abi.Error] for the guest's own mistakes.
type Live interface {
	// Now is the time, in Unix nanoseconds.
	Now() int64
	// State is the last committed state. It never blocks.
	State() *state.Node
	// Begin gives the value at a path for an edit, with want as the holder of
	// the path's write ticket; ok is false if there is none.
	Begin(p state.Path, want bool) (n *state.Node, ok bool, err error)
	// End gives back the ticket, if there is one, of an edit that was aborted.
	End()
	// Atomic reports whether the attempt is of an atomic step: its calls are tried
	// instead of made, and take effect when it finishes.
	Atomic() bool
	// Try works out a call on the state that an atomic step sees, as
	// engine.Session.Try does. The work is on the meter.
	Try(m *work.Meter, root *state.Node, req engine.Request) (engine.Tried, error)
	// Effect makes an effect. attach is called, with the result, before any
	// other can see it, and completes the entry; it is not called when Effect
	// fails, and its result has no Entry when nothing changed. The work before is on
	// the meter, whose error it may give.
	Effect(m *work.Meter, n uint64, req engine.Request, attach func(*engine.Result)) error
}

// ErrParked unwinds a guest that has to wait until a write ticket is free.
var ErrParked = errors.New("waits for a write ticket")

// ErrSuspended unwinds a guest whose call has no answer yet: it waits for an
// event, a child or a resource, or sleeps. Its attempt goes on by replay when there is one.
var ErrSuspended = errors.New("waits for an event or a time")

// ticketAfter is the number of lost commits after which an attempt gets the
// write ticket.
const ticketAfter = 3

// maxWhole is the longest request that a record keeps whole; of longer ones it
// keeps the SHA-256.
const maxWhole = 1 << 10

// Mismatch is a replay that departed from its record.
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

// LimitError ends an attempt that broke a limit.
type LimitError struct{ Err *abi.Error }

// Error gives the limit's message.
func (e *LimitError) Error() string { return e.Err.Error() }

func limitf(format string, args ...any) *LimitError {
	no := false
	return &LimitError{&abi.Error{Code: host.RunLimitExceeded, Message: fmt.Sprintf(format, args...), Retryable: &no}}
}

// Attempt is an open attempt of an invocation. It is used by one goroutine at
// a time: that of the guest that runs it.
type Attempt struct {
	live   Live
	open   engine.AttemptOpen
	record []engine.CallRecord
	logs   []engine.LogRecord
	// attached counts the records, and opened says whether open, are in an
	// entry; lastEffect is the call of the newest entry.
	attached   int
	opened     bool
	lastEffect uint64
	bytes      int // of the record
	losses     int

	// Of the present call.
	left    uint64 // units that the guest can pay
	look    func(units uint64) error
	meter   *work.Meter // own, or nil in a replay
	own     work.Meter
	charged uint64

	// What follows belongs to one run of the guest.
	n        uint64
	replayed int // calls that this run answers from the record
	region   *region
	stage    *stage // of an atomic step, from its first call on
	random   *rand.ChaCha8
	logBytes int
	logLines int
	waits    map[string]int    // without an id, by what they wait for
	outcalls map[string]uint64 // of resources, by what they ask
}

// region is an open edit.
type region struct {
	path  state.Path
	base  *state.Node
	begin uint64 // the call that opened it
	start int64  // host time, Unix nanoseconds, later by what it was idle
	fuel  uint64 // units burnt since
	free  uint64 // units to come that are no part of it: of the call that opened it
}

// New makes an attempt. record holds what earlier entries of it carry: empty
// for a fresh one.
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
		a.back() // it was cut off inside an edit
	}
	if a.live.Atomic() {
		a.record, a.attached, a.bytes, a.stage = nil, 0, 0, nil
	}
	a.n, a.replayed, a.waits, a.outcalls = 0, len(a.record), nil, nil
	a.logs, a.logBytes, a.logLines = nil, 0, 0
	// A stream of its own, beside the one that WASI's random_get draws from.
	seed := a.open.Seed
	seed[0] ^= 0xff
	a.random = rand.NewChaCha8(seed)
}

// Record is the record, whole when no run of the guest is under way. The caller
// must not change it, and not use the attempt any more.
func (a *Attempt) Record() []engine.CallRecord { return a.record[:a.attached] }

// Open is what the attempt's input is made of.
func (a *Attempt) Open() engine.AttemptOpen { return a.open }

// Unfinished is the failure of a guest that ends, in its own eyes well, with an
// edit open; else nil. The edit changes nothing; its ticket is the caller's to
// give up.
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

// attach gives an entry the parts that no entry of the attempt carries yet.
func (a *Attempt) attach(e *engine.Entry) {
	if !a.opened {
		open := a.open
		e.Open, a.opened = &open, true
	}
	e.Calls = a.record[a.attached:len(a.record):len(a.record)]
	e.Logs = a.logs
	a.attached, a.logs, a.lastEffect = len(a.record), nil, a.n
}

// Call answers a host call; it implements host.Calls.
func (a *Attempt) Call(im abi.Import, req []byte, clock int64) ([]byte, abi.Status, int64, error) {
	a.n++
	if a.n <= uint64(a.replayed) {
		a.meter, a.charged = nil, a.record[a.n-1].Fuel // the work is not done again
		return a.replay(im, req)
	}
	if a.n > uint64(a.open.Limits.HostCalls) {
		return nil, 0, 0, limitf("more than %d host calls in one invocation (limit host_calls)", a.open.Limits.HostCalls)
	}
	clock = max(clock, a.live.Now())
	a.begins()
	resp, status, err := a.make(im, req, clock)
	a.charged = a.fuel()
	if a.region != nil && a.region.begin == a.n {
		a.region.free = a.charged
	}
	return resp, status, clock, a.unaffordable(im, err)
}

// make makes a live call and keeps its record.
func (a *Attempt) make(im abi.Import, req []byte, clock int64) ([]byte, abi.Status, error) {
	resp, err := a.answer(im, req, clock)
	if err != nil {
		var mistake *abi.Error
		if !errors.As(err, &mistake) {
			return nil, 0, err
		}
		if resp, err = mistake.Encode(); err != nil {
			return nil, 0, fmt.Errorf("encode the error of %s: %w", im, err)
		}
		status := abi.StatusOf(mistake.Code)
		return resp, status, a.keep(im, req, resp, status, clock)
	}
	if a.n <= uint64(len(a.record)) { // an effect has remembered itself
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
	switch im {
	case abi.ImportRandom:
		if r.Status == abi.StatusOK {
			_, _ = a.draw(req)
		}
	case abi.ImportWait:
		if m, err := abi.DecodeWaitForEvent(req); err == nil {
			_ = a.waiterID(&m) // counts it
		}
	case abi.ImportResource:
		if m, err := abi.DecodeCallResource(req); err == nil {
			_ = a.ordinal(&m) // counts it
		}
	case abi.ImportLog:
		if a.n > a.lastEffect && r.Status == abi.StatusOK {
			_ = a.log(req, r.Clock)
		}
	}
	return r.Response, r.Status, r.Clock, nil
}

// keep is remember for what is no effect, and can still be refused.
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

// show is a request for people, cut where it gets long.
func show(req []byte) string {
	const most = 200
	s := abi.Diag(req)
	if len(s) > most {
		// The cut may go through a letter, and this becomes part of an entry.
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}

// lose gives up the open region, whose commit lost.
func (a *Attempt) lose() {
	a.back()
	a.losses++
}

// back takes the record back to before the open region, which is given up.
func (a *Attempt) back() {
	a.record = a.record[:a.region.begin-1]
	a.bytes = 0
	for i := range a.record {
		a.bytes += recordSize(&a.record[i])
	}
	a.region = nil
}
