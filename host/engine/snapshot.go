package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// A snapshot is everything that a session holds between two entries. A session that is
// restored from it behaves the same for ever. Values that follow from others are not in
// the snapshot (counts, queues of waiters, the heap of timers, which timers run).
// Restoring works them out again, so they cannot contradict the rest.
//
// The form is versioned. A new field with its own key needs no new version, if its
// absence means what was true before. Any other change needs a new version, and the old
// form must still be readable.

// SnapshotVersion is the version of the form that [Session.Snapshot] writes, and the
// newest version that [Restore] reads.
const SnapshotVersion = 1

// snapshotFormat identifies a snapshot.
const snapshotFormat = "weft session"

// ErrSnapshot is in the chain of errors of [Restore] that the bytes cause.
var ErrSnapshot = errors.New("the snapshot cannot be read")

func badSnapshot(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrSnapshot, fmt.Sprintf(format, args...))
}

// savedForm is the outermost form of a snapshot. It is decoded before the rest.
type savedForm struct {
	Format  string `cbor:"1,keyasint"`
	Version uint64 `cbor:"2,keyasint"`
	Session []byte `cbor:"3,keyasint"`
}

// Lists of large items are lists of encoded items ([][]byte). Each item is decoded and
// checked before the next one, so that the cost of a hostile snapshot is proportional to
// its length.

// savedSession is a session. The order of its lists, and of the lists of its parts,
// follows from the session alone, so that equal sessions have equal bytes.
type savedSession struct {
	Seq   uint64 `cbor:"1,keyasint"`
	Now   int64  `cbor:"2,keyasint"`
	State []byte `cbor:"3,keyasint"`

	LastEvent      uint64 `cbor:"4,keyasint,omitempty"`
	LastInvocation uint64 `cbor:"5,keyasint,omitempty"`
	LastTimer      uint64 `cbor:"6,keyasint,omitempty"`
	LastCollection uint64 `cbor:"7,keyasint,omitempty"`
	LastSeat       uint64 `cbor:"8,keyasint,omitempty"`
	LastWait       uint64 `cbor:"9,keyasint,omitempty"`
	LastMessage    uint64 `cbor:"10,keyasint,omitempty"`
	LastCall       uint64 `cbor:"16,keyasint,omitempty"`

	Handlers []savedHandler `cbor:"11,keyasint,omitempty"` // by id
	Runs     [][]byte       `cbor:"12,keyasint,omitempty"` // savedRun, by run id
	Turns    [][]byte       `cbor:"13,keyasint,omitempty"` // savedTurn, first come first
	Outbox   [][]byte       `cbor:"14,keyasint,omitempty"` // savedMessage, by id
	Ended    *savedRecord   `cbor:"15,keyasint,omitempty"`
	Ran      []savedRan     `cbor:"17,keyasint,omitempty"` // latest last; older forms do not have it
}

type savedHandler struct {
	ID   string `cbor:"1,keyasint"`
	Run  string `cbor:"2,keyasint"`
	Next uint64 `cbor:"3,keyasint,omitempty"`
}

// savedRecord is a host.Run. The two types convert into each other, so the compiler
// reports a field that is missing here.
type savedRecord struct {
	Tenant       string            `cbor:"1,keyasint"`
	HandlerID    string            `cbor:"2,keyasint"`
	RunID        string            `cbor:"3,keyasint"`
	SessionID    string            `cbor:"4,keyasint"`
	Workflow     string            `cbor:"5,keyasint"`
	Version      string            `cbor:"18,keyasint,omitempty"` // absent in older forms: that of the run or the start
	Status       host.Status       `cbor:"6,keyasint"`
	Error        string            `cbor:"7,keyasint,omitempty"`
	ErrorCode    string            `cbor:"8,keyasint,omitempty"`
	ErrorStep    string            `cbor:"21,keyasint,omitempty"`
	ErrorAttempt uint64            `cbor:"22,keyasint,omitempty"`
	Result       *host.StreamEvent `cbor:"9,keyasint,omitempty"`
	Started      int64             `cbor:"10,keyasint"`
	Updated      int64             `cbor:"11,keyasint"`
	Completed    int64             `cbor:"12,keyasint,omitempty"`
	Paused       bool              `cbor:"13,keyasint,omitempty"`
	Blocked      *host.Blocked     `cbor:"14,keyasint,omitempty"`
	WaitingFor   []host.Waiting    `cbor:"15,keyasint,omitempty"`
	Kept         []host.Kept       `cbor:"20,keyasint,omitempty"`
	ParentRun    string            `cbor:"23,keyasint,omitempty"`
	ParentStep   string            `cbor:"24,keyasint,omitempty"`
	ForkedFrom   string            `cbor:"25,keyasint,omitempty"`
	ForkedAt     uint64            `cbor:"26,keyasint,omitempty"`
	RetriedFrom  string            `cbor:"27,keyasint,omitempty"`
	Steps        uint64            `cbor:"16,keyasint,omitempty"`
	Fuel         uint64            `cbor:"17,keyasint,omitempty"`
	Trace        *host.Trace       `cbor:"19,keyasint,omitempty"`
}

// savedTurn is a start that waits for its session's turn.
type savedTurn struct {
	Record savedRecord `cbor:"1,keyasint"`
	Start  StartPart   `cbor:"2,keyasint"`
}

type savedMessage struct {
	ID     uint64      `cbor:"1,keyasint"`
	To     string      `cbor:"2,keyasint"`
	Start  *savedStart `cbor:"3,keyasint,omitempty"`
	Ended  *ChildEnd   `cbor:"4,keyasint,omitempty"`
	Shown  *ChildShow  `cbor:"5,keyasint,omitempty"`
	Cancel string      `cbor:"6,keyasint,omitempty"`
}

// savedStart is a StartRun, by conversion like savedRecord.
type savedStart struct {
	RunID     string      `cbor:"1,keyasint"`
	HandlerID string      `cbor:"2,keyasint"`
	Version   string      `cbor:"3,keyasint"`
	Event     abi.Event   `cbor:"4,keyasint"`
	Seed      [32]byte    `cbor:"5,keyasint"`
	Timeout   int64       `cbor:"6,keyasint,omitempty"`
	Limits    host.Limits `cbor:"7,keyasint"`
	Parent    *Parent     `cbor:"8,keyasint,omitempty"`
	Trace     *host.Trace `cbor:"10,keyasint,omitempty"`
	Age       int64       `cbor:"12,keyasint,omitempty"`
	Queue     bool        `cbor:"9,keyasint,omitempty"`
	Work      bool        `cbor:"11,keyasint,omitempty"`
}

type savedRun struct {
	Record      savedRecord   `cbor:"1,keyasint"`
	Version     string        `cbor:"2,keyasint"`
	Limits      host.Limits   `cbor:"3,keyasint"`
	Seed        [32]byte      `cbor:"4,keyasint"`
	Parent      *savedParent  `cbor:"5,keyasint,omitempty"`
	Begun       int64         `cbor:"6,keyasint"`
	HeldAt      int64         `cbor:"7,keyasint,omitempty"`
	Routed      int           `cbor:"8,keyasint"`
	StreamBytes int           `cbor:"9,keyasint,omitempty"`
	Deadline    *savedTimer   `cbor:"10,keyasint,omitempty"`
	Ending      *savedEnding  `cbor:"11,keyasint,omitempty"`
	Joins       []savedJoin   `cbor:"12,keyasint,omitempty"` // of the outermost collection
	Collections [][]byte      `cbor:"13,keyasint,omitempty"` // savedCollection, by id: outer ones first
	Buffers     []savedBuffer `cbor:"14,keyasint,omitempty"` // by step and name
	Inbox       []savedKept   `cbor:"15,keyasint,omitempty"` // by type, oldest first
	Invocations [][]byte      `cbor:"16,keyasint,omitempty"` // savedInvocation, oldest first
	Queues      [][]uint64    `cbor:"17,keyasint,omitempty"` // by step: invocations that wait for a worker
	Standing    []uint64      `cbor:"18,keyasint,omitempty"` // invocations that stand still, longest first
	Work        bool          `cbor:"19,keyasint,omitempty"`
	Stopped     *int64        `cbor:"20,keyasint,omitempty"` // when a stopped deadline was stopped; older forms: HeldAt
	Stalls      bool          `cbor:"21,keyasint,omitempty"`
	Silent      string        `cbor:"22,keyasint,omitempty"`
	Age         int64         `cbor:"23,keyasint,omitempty"` // of a child
}

type savedParent struct {
	Session string `cbor:"1,keyasint"`
	Stream  bool   `cbor:"2,keyasint,omitempty"`
	Shown   uint64 `cbor:"3,keyasint,omitempty"`
	Depth   int    `cbor:"4,keyasint,omitempty"`
}

// savedTimer is a timer. Its kind, and whether it runs, follow from its owner.
type savedTimer struct {
	ID   uint64 `cbor:"1,keyasint"`
	At   int64  `cbor:"2,keyasint"`
	Span int64  `cbor:"3,keyasint,omitempty"`
}

type savedEnding struct {
	Cause  string   `cbor:"1,keyasint"`
	Span   int64    `cbor:"2,keyasint,omitempty"`
	Active []string `cbor:"3,keyasint,omitempty"`
}

type savedRecovery struct {
	Catcher int    `cbor:"1,keyasint"`
	Count   uint64 `cbor:"2,keyasint"`
}

// savedKept is an event that waits in a join or in the inbox.
type savedKept struct {
	Event   abi.Event       `cbor:"1,keyasint"`
	Lineage []savedRecovery `cbor:"2,keyasint,omitempty"`
	Step    string          `cbor:"3,keyasint,omitempty"`
}

type savedJoin struct {
	Step  int           `cbor:"1,keyasint"`
	Slots [][]savedKept `cbor:"2,keyasint"`
}

type savedCollection struct {
	ID         uint64           `cbor:"1,keyasint"`
	Parent     uint64           `cbor:"2,keyasint,omitempty"` // 0: the outermost
	Collectors []savedCollector `cbor:"3,keyasint,omitempty"`
	Joins      []savedJoin      `cbor:"4,keyasint,omitempty"`
}

type savedCollector struct {
	Step    int             `cbor:"1,keyasint"`
	Events  []abi.Event     `cbor:"2,keyasint,omitempty"`
	Lineage []savedRecovery `cbor:"3,keyasint,omitempty"`
	Fired   bool            `cbor:"4,keyasint,omitempty"`
}

// savedBuffer is a buffer of collect_events. The types are sorted by name, and the events
// of a type are in the order of their arrival.
type savedBuffer struct {
	Step   int         `cbor:"1,keyasint"`
	Name   string      `cbor:"2,keyasint,omitempty"`
	Events []abi.Event `cbor:"3,keyasint"`
}

type savedInvocation struct {
	ID          uint64           `cbor:"1,keyasint"`
	Step        int              `cbor:"2,keyasint"`
	Trigger     []abi.Event      `cbor:"3,keyasint,omitempty"`
	In          uint64           `cbor:"4,keyasint,omitempty"` // collection; 0: the outermost
	Lineage     []savedRecovery  `cbor:"5,keyasint,omitempty"`
	Attempt     uint64           `cbor:"6,keyasint"`
	LastError   *abi.Error       `cbor:"7,keyasint,omitempty"`
	Began       bool             `cbor:"8,keyasint,omitempty"`
	Start       int64            `cbor:"9,keyasint,omitempty"`
	Phase       phase            `cbor:"10,keyasint,omitempty"`
	Worker      int              `cbor:"11,keyasint,omitempty"`
	Seat        uint64           `cbor:"12,keyasint,omitempty"`
	Timer       *savedTimer      `cbor:"13,keyasint,omitempty"`
	Calls       []savedCall      `cbor:"14,keyasint,omitempty"`
	Fresh       uint64           `cbor:"15,keyasint,omitempty"`
	Suspension  *savedSuspension `cbor:"16,keyasint,omitempty"`
	Suspensions int              `cbor:"17,keyasint,omitempty"`
	Waiters     []savedWaiter    `cbor:"18,keyasint,omitempty"` // by id
	Children    []savedChild     `cbor:"19,keyasint,omitempty"` // by key
	Slept       uint64           `cbor:"20,keyasint,omitempty"`
	Since       int64            `cbor:"21,keyasint,omitempty"` // while it stands still
	Halfway     bool             `cbor:"22,keyasint,omitempty"`
	Asked       []savedOutcall   `cbor:"23,keyasint,omitempty"` // by id
	AskedBytes  int              `cbor:"24,keyasint,omitempty"`
}

// savedCall is what the collect_events calls of an invocation with one key did.
type savedCall struct {
	Buffer string     `cbor:"1,keyasint,omitempty"`
	Given  uint64     `cbor:"2,keyasint,omitempty"`
	Fresh  uint64     `cbor:"3,keyasint,omitempty"`
	Sets   []savedSet `cbor:"4,keyasint,omitempty"`
}

type savedSet struct {
	Expected []string    `cbor:"1,keyasint,omitempty"`
	Events   []abi.Event `cbor:"2,keyasint,omitempty"`
}

// savedSuspension is what an invocation waits for: a waiter, a child, a call of a
// resource or, if none of these is set, a time.
type savedSuspension struct {
	N      uint64      `cbor:"1,keyasint"`
	Waiter *savedWish  `cbor:"2,keyasint,omitempty"`
	Child  *string     `cbor:"3,keyasint,omitempty"` // its key in the invocation
	Call   *string     `cbor:"4,keyasint,omitempty"` // its id in the invocation
	Timer  *savedTimer `cbor:"5,keyasint,omitempty"`
}

// savedWish is the requirement of the waiter of a suspension.
type savedWish struct {
	ID     string   `cbor:"1,keyasint"`
	Fields []string `cbor:"2,keyasint,omitempty"`
	Values []byte   `cbor:"3,keyasint,omitempty"`
}

type savedWaiter struct {
	ID        string     `cbor:"1,keyasint"`
	Type      string     `cbor:"2,keyasint"`
	Broadcast bool       `cbor:"3,keyasint,omitempty"`
	Seq       uint64     `cbor:"4,keyasint,omitempty"`
	Since     int64      `cbor:"5,keyasint,omitempty"`
	Asked     bool       `cbor:"6,keyasint,omitempty"`
	Answer    *abi.Event `cbor:"7,keyasint,omitempty"`
	Late      uint64     `cbor:"8,keyasint,omitempty"`
	Need      string     `cbor:"9,keyasint,omitempty"`
}

type savedChild struct {
	Key      string     `cbor:"1,keyasint"`
	Workflow string     `cbor:"2,keyasint"`
	Run      string     `cbor:"3,keyasint"`
	Handler  string     `cbor:"4,keyasint"`
	Session  string     `cbor:"5,keyasint,omitempty"`
	Begun    bool       `cbor:"6,keyasint,omitempty"`
	Stream   bool       `cbor:"7,keyasint,omitempty"`
	Seen     uint64     `cbor:"8,keyasint,omitempty"`
	Since    int64      `cbor:"9,keyasint"`
	Result   *abi.Event `cbor:"10,keyasint,omitempty"`
	Err      *abi.Error `cbor:"11,keyasint,omitempty"`
	Start    *StartPart `cbor:"12,keyasint,omitempty"`
}

// savedOutcall is a call of a resource. Its payload is kept until the call ends.
type savedOutcall struct {
	ID      string       `cbor:"1,keyasint"`
	Attempt uint64       `cbor:"2,keyasint"`
	N       uint64       `cbor:"3,keyasint"`
	Order   uint64       `cbor:"4,keyasint"`
	Part    ResourcePart `cbor:"5,keyasint"`
	Value   abi.Raw      `cbor:"6,keyasint,omitempty"`
	Err     *abi.Error   `cbor:"7,keyasint,omitempty"`

	Streamed int    `cbor:"8,keyasint,omitempty"`
	Hash     []byte `cbor:"9,keyasint,omitempty"` // SHA-256 of the streamed text, if any
}

// Snapshot encodes everything that the session holds. Sessions that hold the same have
// the same bytes. The cost is proportional to the size of the session, state included.
func (s *Session) Snapshot() ([]byte, error) {
	e := &saver{}
	out := savedSession{
		Seq: s.seq, Now: s.now, State: s.root.Encode(),
		LastEvent: s.lastEvent, LastInvocation: s.lastInvocation, LastTimer: s.lastTimer, LastCollection: s.lastCollection,
		LastSeat: s.lastSeat, LastWait: s.lastWait, LastMessage: s.lastMessage, LastCall: s.lastCall, Ran: s.saveRan(),
	}
	for _, id := range sortedKeys(s.handlers) {
		h := s.handlers[id]
		out.Handlers = append(out.Handlers, savedHandler{ID: h.id, Run: h.run, Next: h.next})
	}
	for _, id := range sortedKeys(s.runs) {
		out.Runs = append(out.Runs, e.item(e.run(s.runs[id])))
	}
	for at := s.turns.line.Front(); at != nil; at = at.Next() {
		q := at.Value.(*queued)
		out.Turns = append(out.Turns, e.item(savedTurn{Record: savedRecord(q.rec), Start: *q.start}))
	}
	for _, m := range s.outbox.all() {
		saved := savedMessage{ID: m.ID, To: m.To, Start: (*savedStart)(m.Start), Ended: m.Ended, Shown: m.Shown, Cancel: m.Cancel}
		out.Outbox = append(out.Outbox, e.item(saved))
	}
	if s.ended.RunID != "" {
		out.Ended = (*savedRecord)(&s.ended)
	}
	form := savedForm{Format: snapshotFormat, Version: SnapshotVersion, Session: e.item(out)}
	b := e.item(form)
	if e.err != nil {
		return nil, fmt.Errorf("snapshot of session %s: %w", s.key.Session, e.err)
	}
	return b, nil
}

// all lists the messages in the order of their ids.
func (o *outbox) all() []Message {
	var out []Message
	for _, list := range o.byTarget {
		out = append(out, list...)
	}
	slices.SortFunc(out, func(a, b Message) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// saver encodes the parts of a snapshot and keeps the first error.
type saver struct{ err error }

func (e *saver) item(v any) []byte {
	b, err := abi.Marshal(v)
	if err != nil && e.err == nil {
		e.err = err
	}
	return b
}

func (e *saver) run(r *run) savedRun {
	out := savedRun{
		Record: savedRecord(r.rec), Version: r.rec.Version, Limits: r.limits, Seed: r.seed, Begun: r.begun, HeldAt: r.heldAt,
		Routed: r.routed, StreamBytes: r.streamBytes, Deadline: saveTimer(r.deadline), Joins: saveJoins(r.outermost),
		Age: r.age, Work: r.work, Stalls: r.stalls, Silent: r.silent,
	}
	if r.deadline != nil && r.deadline.slot < 0 {
		out.Stopped = &r.stopped
	}
	if p := r.parent; p != nil {
		out.Parent = &savedParent{Session: p.session, Stream: p.stream, Shown: p.shown, Depth: p.depth}
	}
	if end := r.ending; end != nil {
		out.Ending = &savedEnding{Cause: end.cause, Span: end.span, Active: end.active}
	}
	for _, id := range sortedKeys(r.collections) {
		out.Collections = append(out.Collections, e.item(saveCollection(r.collections[id])))
	}
	out.Buffers = saveBuffers(r)
	for _, typ := range sortedKeys(r.inbox.byType) {
		for _, kept := range r.inbox.byType[typ] {
			out.Inbox = append(out.Inbox, saveKept(kept))
		}
	}
	for inv := r.oldest; inv != nil; inv = inv.newer {
		out.Invocations = append(out.Invocations, e.item(saveInvocation(inv)))
	}
	for i := range r.pools {
		for inv := r.pools[i].first; inv != nil; inv = inv.behind {
			if out.Queues == nil {
				out.Queues = make([][]uint64, len(r.pools))
			}
			out.Queues[i] = append(out.Queues[i], inv.id)
		}
	}
	for at := r.standing.Front(); at != nil; at = at.Next() {
		out.Standing = append(out.Standing, at.Value.(*invocation).id)
	}
	return out
}

func saveTimer(t *timer) *savedTimer {
	if t == nil {
		return nil
	}
	return &savedTimer{ID: t.id, At: t.at, Span: t.span}
}

func saveLineage(l lineage) []savedRecovery {
	var out []savedRecovery
	for _, r := range l {
		out = append(out, savedRecovery{Catcher: r.catcher, Count: r.count})
	}
	return out
}

func saveKept(e emission) savedKept {
	return savedKept{Event: e.event, Lineage: saveLineage(e.lineage), Step: e.step}
}

func saveJoins(c *collection) []savedJoin {
	var out []savedJoin
	for _, index := range sortedKeys(c.joins) {
		j := c.joins[index]
		if j.ready == 0 {
			continue // it is created again for the next event to join
		}
		saved := savedJoin{Step: index, Slots: make([][]savedKept, len(j.slots))}
		for i, slot := range j.slots {
			for _, e := range slot {
				saved.Slots[i] = append(saved.Slots[i], saveKept(e))
			}
		}
		out = append(out, saved)
	}
	return out
}

func saveCollection(c *collection) savedCollection {
	out := savedCollection{ID: c.id, Parent: c.parent.id, Joins: saveJoins(c)}
	for i := range c.collectors {
		k := &c.collectors[i]
		out.Collectors = append(out.Collectors, savedCollector{Step: k.step.index, Events: k.events, Lineage: saveLineage(k.lineage), Fired: k.fired})
	}
	return out
}

func saveBuffers(r *run) []savedBuffer {
	var out []savedBuffer
	for key, b := range r.buffers {
		saved := savedBuffer{Step: key.step, Name: key.name}
		for _, typ := range sortedKeys(b.types) {
			of := b.types[typ]
			for _, id := range of.ids[len(of.ids)-of.live:] {
				saved.Events = append(saved.Events, b.events[id])
			}
		}
		out = append(out, saved)
	}
	slices.SortFunc(out, func(a, b savedBuffer) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func saveInvocation(inv *invocation) savedInvocation {
	out := savedInvocation{
		ID: inv.id, Step: inv.step.index, Trigger: inv.trigger, In: inv.in.id, Lineage: saveLineage(inv.lineage),
		Attempt: inv.attempt, LastError: inv.lastErr, Began: inv.began, Start: inv.start, Phase: inv.phase, Worker: inv.worker,
		Seat: inv.seat, Timer: saveTimer(inv.timer), Calls: saveCalls(&inv.calls), Fresh: inv.calls.fresh,
		Suspensions: inv.suspensions, Slept: inv.slept, Halfway: inv.halfway, AskedBytes: inv.askedBytes,
	}
	if inv.line != nil {
		out.Since = inv.since
	}
	if on := inv.suspended; on != nil {
		out.Suspension = &savedSuspension{N: on.n, Timer: saveTimer(on.timer)}
		if w := on.waiter; w != nil {
			out.Suspension.Waiter = &savedWish{ID: w.id, Fields: w.shape.fields, Values: []byte(w.values)}
		}
		if c := on.child; c != nil {
			out.Suspension.Child = &c.key
		}
		if c := on.call; c != nil {
			out.Suspension.Call = &c.id
		}
	}
	for _, id := range sortedKeys(inv.waiters) {
		w := inv.waiters[id]
		out.Waiters = append(out.Waiters, savedWaiter{ID: w.id, Type: w.typ, Broadcast: w.broadcast, Seq: w.seq, Since: w.since, Asked: w.asked, Answer: w.answer, Late: w.late, Need: w.need})
	}
	for _, key := range sortedKeys(inv.children) {
		c := inv.children[key]
		out.Children = append(out.Children, savedChild{
			Key: c.key, Workflow: c.workflow, Run: c.run, Handler: c.handler, Session: c.session, Begun: c.begun, Stream: c.stream,
			Seen: c.seen, Since: c.since, Result: c.result, Err: c.err, Start: c.start,
		})
	}
	for _, id := range sortedKeys(inv.asked) {
		c := inv.asked[id]
		saved := savedOutcall{ID: c.id, Attempt: c.attempt, N: c.n, Order: c.order, Part: *c.part, Value: c.value, Err: c.err}
		if c.streamed > 0 {
			saved.Streamed, saved.Hash = c.streamed, c.hash[:]
		}
		out.Asked = append(out.Asked, saved)
	}
	return out
}

func saveCalls(c *collectCalls) []savedCall {
	var out []savedCall
	for key, call := range c.made {
		saved := savedCall{Buffer: key.buffer, Given: key.given, Fresh: key.fresh}
		for _, set := range call.sets {
			saved.Sets = append(saved.Sets, savedSet{Expected: set.expected, Events: set.events})
		}
		out = append(out, saved)
	}
	slices.SortFunc(out, func(a, b savedCall) int {
		return cmp.Or(cmp.Compare(a.Buffer, b.Buffer), cmp.Compare(a.Given, b.Given), cmp.Compare(a.Fresh, b.Fresh))
	})
	return out
}
