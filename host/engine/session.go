package engine

import (
	"cmp"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/work"
)

// Session is the state machine: the state of a session and its active runs. Only one
// goroutine may use it at a time.
type Session struct {
	key    host.SessionKey
	graphs func(version string) (*Graph, error)

	seq  uint64
	now  int64
	root *state.Node
	own  work.Meter // of the tick; see Own

	// The ids given last. Each only counts up, over the whole life of the session.
	lastEvent      uint64
	lastInvocation uint64
	lastTimer      uint64
	lastCollection uint64
	lastSeat       uint64
	lastWait       uint64
	lastMessage    uint64
	lastCall       uint64

	handlers    map[string]*handler
	runs        map[string]*run
	invocations map[uint64]*invocation // of active runs
	timers      timers
	children    map[string]*child   // those that have not ended, by their run
	calls       map[uint64]*outcall // of resources: those without an answer, by invocation
	outbox      outbox
	turns       turns // starts that wait for the runs before them
	// seats counts the attempts that hold a worker slot in runs that are not blocked.
	seats int
	ended host.Run // the run that ended last
	// ran lists the workflows that have run here, latest last: see outside.go.
	ran []ranVersion

	// out gathers the commands of the entry that is being folded.
	out []Command
	// visited counts the items that deciding and folding looked at: the cost of a tick.
	visited uint64
}

// handler is what a session remembers of a handler when its runs have ended.
type handler struct {
	id   string
	run  string // the latest
	next uint64 // sequence number of its stream
}

// handlerOf returns a handler and creates it if necessary.
func (s *Session) handlerOf(id string) *handler {
	h := s.handlers[id]
	if h == nil {
		h = &handler{id: id}
		s.handlers[id] = h
	}
	return h
}

// New returns an empty session. graphs returns the compiled workflow of a version. The
// session calls it when a run starts, and it must always return an equal graph for the
// same version.
func New(key host.SessionKey, graphs func(version string) (*Graph, error)) *Session {
	return &Session{
		key:         key,
		graphs:      graphs,
		root:        state.Empty(),
		handlers:    make(map[string]*handler),
		runs:        make(map[string]*run),
		invocations: make(map[uint64]*invocation),
		children:    make(map[string]*child),
		calls:       make(map[uint64]*outcall),
		timers:      timers{byID: make(map[uint64]*timer)},
	}
}

// Reduce decides a tick at now, in Unix nanoseconds, and folds the resulting entry. A
// time before the last entry counts as the time of the last entry. If Reduce returns an
// error, the session is unchanged. The session owns the contents of the tick afterwards.
//
// # Errors
//
// [ErrStale], [ErrConflict] (CommitState only), [ErrMoved], [ErrUnknownRun]; [*abi.Error]
// for the mistake of the guest that made the call; [*host.Error] for a client's
// (StartRun, PostEvent, Pause, Resume).
func (s *Session) Reduce(now int64, t Tick) (Result, error) {
	before := s.visited
	s.own = *work.New(mostOwn, nil)
	// Decide against one fixed time: the time of the journal never goes back.
	d, err := s.decide(max(now, s.now), t)
	if err != nil || d.entry == nil {
		// A refused tick, and a tick that changes nothing, leave no trace in the journal.
		return Result{Response: d.response, Visited: s.visited - before}, err
	}
	commands, err := s.fold(d.entry, d.root)
	// decide only makes entries that fold. A failure here is a defect of this package.
	if err != nil {
		return Result{}, err
	}
	return Result{Entry: d.entry, Response: d.response, Commands: commands, Visited: s.visited - before}, nil
}

// mostOwn bounds the work on the state within one tick, in units. It is worth seconds.
const mostOwn = 1 << 34

// Own is the work on the state, in units, that the last call of Reduce or Try did itself.
// Prepared work does not count.
func (s *Session) Own() uint64 { return s.own.Spent() }

// Fold applies an entry of the journal and does not keep it. An error means that the
// journal is corrupt, and the session must not be used any more.
func (s *Session) Fold(e *Entry) ([]Command, error) { return s.fold(e, nil) }

// Key identifies the session.
func (s *Session) Key() host.SessionKey { return s.key }

// Seq is the position of the last entry, 0 before the first.
func (s *Session) Seq() uint64 { return s.seq }

// Now is the time of the last entry in Unix nanoseconds.
func (s *Session) Now() int64 { return s.now }

// State is the committed state of the session, a map, never nil.
func (s *Session) State() *state.Node { return s.root }

// Active is the number of runs that have not ended, including queued runs.
func (s *Session) Active() int { return len(s.runs) + s.turns.line.Len() }

// Record returns the record of an active run, or of the run that ended last.
func (s *Session) Record(runID string) (host.Run, bool) {
	if r, ok := s.runs[runID]; ok {
		return r.rec, true
	}
	if q, ok := s.turns.of(runID); ok {
		return q.rec, true
	}
	return s.ended, runID != "" && s.ended.RunID == runID
}

// Begun reports whether a run is active and has begun. A queued run has not begun.
func (s *Session) Begun(runID string) bool { return s.runs[runID] != nil }

// Streams returns the sequence number of the next event on each handler's stream.
func (s *Session) Streams() map[string]uint64 {
	out := make(map[string]uint64, len(s.handlers))
	for id, h := range s.handlers {
		out[id] = h.next
	}
	return out
}

// HandlerRun returns the latest run of a handler and whether it is active. known is false
// for a handler that never ran in this session.
func (s *Session) HandlerRun(handlerID string) (runID string, active, known bool) {
	h, ok := s.handlers[handlerID]
	if !ok {
		return "", false, false
	}
	_, active = s.runs[h.run]
	// A queued run has its handler too, though it has not begun.
	if !active {
		_, active = s.turns.of(h.run)
	}
	return h.run, active, true
}

// WakeAt returns the time at which the session next has something to do. It is 0 if an
// attempt is open in a run that is not blocked, a call of a resource has no answer,
// messages wait for delivery or a queued run can begin. Otherwise it is the time of the
// next timer in Unix nanoseconds, or [host.WakeNever].
func (s *Session) WakeAt() int64 {
	if s.seats > 0 || s.outbox.size > 0 || len(s.calls) > 0 || s.TurnDue() {
		return 0
	}
	return s.NextTimer()
}

// NextTimer is when the earliest timer is due, in Unix nanoseconds, or [host.WakeNever].
// Unlike [Session.WakeAt] it does not depend on open attempts.
func (s *Session) NextTimer() int64 {
	if t := s.timers.first(); t != nil {
		return max(t.at, 1) // 0 is the WakeAt of open attempts
	}
	return host.WakeNever
}

// Invocation is a view of an invocation: everything that the input of its current attempt
// is made of. Callers must not change its slices.
type Invocation struct {
	ID        uint64
	RunID     string
	HandlerID string
	Workflow  string
	Version   string
	Step      string
	Trigger   []abi.Event
	List      bool
	Attempt   uint64
	LastError *abi.Error
	Limits    host.Limits
	RunSeed   [32]byte
	Atomic    bool
	// FirstStart is when the run at the top of the run's tree first started, in Unix
	// nanoseconds. Child reports whether this run is below the top.
	FirstStart int64
	Child      bool
}

// Invocation returns an invocation that has not ended.
func (s *Session) Invocation(id uint64) (Invocation, bool) {
	inv, ok := s.invocations[id]
	if !ok {
		return Invocation{}, false
	}
	r := inv.run
	return Invocation{
		ID: id, RunID: r.rec.RunID, HandlerID: r.rec.HandlerID, Workflow: r.rec.Workflow, Version: r.rec.Version,
		Step: inv.step.name, Trigger: inv.trigger, List: inv.step.mode != modeOne,
		Attempt: inv.attempt, LastError: inv.lastErr, Limits: r.limits, RunSeed: r.seed, Atomic: inv.step.decl.Atomic,
		FirstStart: r.firstStart(), Child: r.parent != nil,
	}, true
}

// Open lists the invocations that hold a worker slot in runs that are not blocked, in the
// order in which they got the slot. It costs O(n log n) of all invocations and is meant
// for a session that has just been loaded.
func (s *Session) Open() []uint64 {
	var open []*invocation
	for _, inv := range s.invocations {
		if inv.phase == phaseRunning && inv.run.rec.Blocked == nil {
			open = append(open, inv)
		}
	}
	slices.SortFunc(open, func(a, b *invocation) int { return cmp.Compare(a.seat, b.seat) })
	ids := make([]uint64, len(open))
	for i, inv := range open {
		ids[i] = inv.id
	}
	return ids
}

func (s *Session) emit(c Command) { s.out = append(s.out, c) }
