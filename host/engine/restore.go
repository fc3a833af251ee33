package engine

import (
	"fmt"
	"sort"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
)

// Restore rebuilds a session from the result of [Session.Snapshot]. key and graphs are as
// for [New]; key may differ from the key of the snapshot. The bytes may be hostile:
// Restore checks everything that the code of the session relies on, and its work is
// proportional to their length.
//
// # Errors
//
// [ErrSnapshot] for bytes that are not a snapshot, contradict themselves or have a newer
// version; the errors of graphs.
func Restore(key host.SessionKey, graphs func(version string) (*Graph, error), data []byte) (*Session, error) {
	s := New(key, graphs)
	if err := s.restore(data); err != nil {
		return nil, err
	}
	return s, nil
}

// restore fills an empty session. After an error the session must not be used.
func (s *Session) restore(data []byte) error {
	saved, err := readSnapshot(data)
	if err != nil {
		return err
	}
	return newLoader(s, saved).session()
}

// readSnapshot decodes a snapshot and makes the checks that need no session.
func readSnapshot(data []byte) (*savedSession, error) {
	var form savedForm
	// The outer form is decoded alone, so that a newer version gets a clear error.
	if err := abi.Unmarshal(data, &form); err != nil {
		return nil, badSnapshot("%s", err)
	}
	switch {
	case form.Format != snapshotFormat:
		return nil, badSnapshot("it is not a snapshot of a session but of %q", clip(form.Format))
	case form.Version > SnapshotVersion:
		return nil, badSnapshot("its format version is %d, this weft reads up to %d: it was written by a newer weft", form.Version, SnapshotVersion)
	case form.Version == 0:
		return nil, badSnapshot("it has no format version")
	}
	saved := &savedSession{}
	if err := abi.Unmarshal(form.Session, saved); err != nil {
		return nil, badSnapshot("%s", err)
	}
	return saved, nil
}

// maxGiven bounds the numbers that a snapshot may claim to have given. A session can
// never use up the rest.
const maxGiven = 1 << 62

// loader builds a session from a snapshot, or adds the runs of a snapshot to a session.
type loader struct {
	s     *Session
	saved *savedSession
	armed map[uint64]*timer      // by their ids in the snapshot
	wants []wanting              // the waits of all runs, to be enlisted
	seats map[uint64]*invocation // by their numbers in the snapshot
	calls map[uint64]bool        // the orders of calls that have been read
}

func newLoader(s *Session, saved *savedSession) *loader {
	return &loader{s: s, saved: saved, armed: make(map[uint64]*timer), seats: make(map[uint64]*invocation)}
}

// wanting is the wait of a suspended invocation, with what it requires.
type wanting struct {
	w *waiter
	q requirement
}

func (l *loader) session() error {
	s, saved := l.s, l.saved
	// The numbers come first: everything below is checked against them.
	s.seq, s.now = saved.Seq, saved.Now
	s.lastEvent, s.lastInvocation, s.lastTimer = saved.LastEvent, saved.LastInvocation, saved.LastTimer
	s.lastCollection, s.lastSeat, s.lastWait, s.lastMessage = saved.LastCollection, saved.LastSeat, saved.LastWait, saved.LastMessage
	s.lastCall = saved.LastCall
	root, err := saved.check()
	if err != nil {
		return err
	}
	s.root = root
	for _, h := range saved.Handlers {
		if h.ID == "" || s.handlers[h.ID] != nil {
			return badSnapshot("handler %q appears twice, or has no name", clip(h.ID))
		}
		s.handlers[h.ID] = &handler{id: h.ID, run: h.Run, next: h.Next}
	}
	// Queued runs come after the runs, and messages after both, as their checks need
	// them.
	if err := each(saved.Runs, "run", l.run); err != nil {
		return err
	}
	if err := each(saved.Turns, "queued run", l.turn); err != nil {
		return err
	}
	if err := each(saved.Outbox, "message", l.message); err != nil {
		return err
	}
	if saved.Ended != nil {
		s.ended = l.record(*saved.Ended)
	}
	if err := s.restoreRan(saved.Ran); err != nil {
		return err
	}
	return l.settle()
}

// check makes the checks that need nothing else, and returns the state.
func (saved *savedSession) check() (*state.Node, error) {
	for _, n := range []uint64{
		saved.Seq, saved.LastEvent, saved.LastInvocation, saved.LastTimer, saved.LastCollection, saved.LastSeat, saved.LastWait,
		saved.LastMessage, saved.LastCall,
	} {
		if n > maxGiven {
			return nil, badSnapshot("one of its counters is %d, which is too large", n)
		}
	}
	if saved.Now < 0 {
		return nil, badSnapshot("its time is before 1970")
	}
	root, err := state.Decode(saved.State)
	if err != nil || !root.IsMap() {
		return nil, badSnapshot("the state is not a map that can be read: %v", err)
	}
	return root, nil
}

// settle makes the checks and links that need all runs.
func (l *loader) settle() error {
	s := l.s
	// A child in this session must exist and point back, or its end would reach nobody.
	for id, c := range s.children {
		if r := s.runs[id]; c.session == "" && (r == nil || r.parent == nil || r == c.inv.run) {
			return badSnapshot("the child %s is not one of its runs", clip(id))
		}
	}
	// enlist appends, so go through the waits in the order in which they began.
	sort.SliceStable(l.wants, func(i, j int) bool { return l.wants[i].w.seq < l.wants[j].w.seq })
	for _, want := range l.wants {
		want.w.inv.run.enlist(want.w, want.q)
	}
	for _, t := range l.armed {
		if t.slot >= 0 {
			s.timers.byID[t.id] = t
		}
	}
	sort.Sort(s.timers.heap) // a sorted list is a heap
	return nil
}

// each decodes the items of a list and passes each to take before it decodes the next.
func each[T any](items [][]byte, what string, take func(*T) error) error {
	for _, item := range items {
		var v T
		if err := abi.Unmarshal(item, &v); err != nil {
			return badSnapshot("%s: %s", what, err)
		}
		if err := take(&v); err != nil {
			return err
		}
	}
	return nil
}

// record returns a run's record with the names of the session that it is restored into.
func (l *loader) record(saved savedRecord) host.Run {
	r := host.Run(saved)
	r.Tenant, r.SessionID = l.s.key.Tenant, l.s.key.Session
	return r
}

// graph returns the workflow of a version. Its error is not a fault of the snapshot.
func (l *loader) graph(version string) (*Graph, error) {
	g, err := l.s.graphs(version)
	if err != nil {
		return nil, fmt.Errorf("find the workflow of version %s: %w", clip(version), err)
	}
	return g, nil
}

// claim returns the handler of a run that has not ended.
func (l *loader) claim(rec *host.Run) (*handler, error) {
	s := l.s
	h := s.handlers[rec.HandlerID]
	_, queued := s.turns.of(rec.RunID)
	switch {
	case rec.RunID == "" || s.runs[rec.RunID] != nil || queued:
		return nil, badSnapshot("run %q appears twice, or has no name", clip(rec.RunID))
	case h == nil || h.run != rec.RunID:
		return nil, badSnapshot("run %s is not its handler's latest", clip(rec.RunID))
	case rec.Status != host.StatusRunning:
		return nil, badSnapshot("run %s has ended", clip(rec.RunID))
	}
	return h, nil
}

func (l *loader) turn(saved *savedTurn) error {
	rec := l.record(saved.Record)
	if _, err := l.claim(&rec); err != nil {
		return err
	}
	g, err := l.graph(saved.Start.Version)
	if err != nil {
		return err
	}
	if saved.Start.HandlerID != rec.HandlerID || !g.mayStart(saved.Start.Event.Type) {
		return badSnapshot("the queued run %s cannot begin", clip(rec.RunID))
	}
	start := saved.Start
	start.Limits = start.Limits.Complete()
	rec.Workflow, rec.Version = g.Workflow(), start.Version
	l.s.turns.push(&queued{rec: rec, start: &start, graph: g})
	return nil
}

func (l *loader) message(saved *savedMessage) error {
	s, parts := l.s, 0
	m := Message{ID: saved.ID, To: saved.To, Start: (*StartRun)(saved.Start), Ended: saved.Ended, Shown: saved.Shown, Cancel: saved.Cancel}
	for _, set := range []bool{m.Start != nil, m.Ended != nil, m.Shown != nil, m.Cancel != ""} {
		if set {
			parts++
		}
	}
	// Delivery relies on messages in the order of their ids, and on another session as
	// target.
	list := s.outbox.byTarget[m.To]
	if parts != 1 || m.ID > l.saved.LastMessage || len(list) > 0 && list[len(list)-1].ID >= m.ID || m.To == s.key.Session {
		return badSnapshot("message %d to session %s is out of order, or does not have exactly one part", m.ID, clip(m.To))
	}
	if m.Ended != nil && (m.Ended.Result == nil) == (m.Ended.Err == nil) {
		return badSnapshot("message %d does not say how the child ended", m.ID)
	}
	if s.outbox.byTarget == nil {
		s.outbox.byTarget = make(map[string][]Message)
	}
	s.outbox.byTarget[m.To] = append(list, m)
	s.outbox.size++
	return nil
}

func (l *loader) run(saved *savedRun) error {
	s := l.s
	rec := l.record(saved.Record)
	h, err := l.claim(&rec)
	if err != nil {
		return err
	}
	g, err := l.graph(saved.Version)
	if err != nil {
		return err
	}
	rec.Workflow, rec.Version = g.Workflow(), saved.Version
	r := &run{
		rec: rec, graph: g, limits: saved.Limits.Complete(), seed: saved.Seed, handler: h,
		begun: saved.Begun, heldAt: saved.HeldAt, routed: saved.Routed, streamBytes: saved.StreamBytes, age: max(saved.Age, 0),
		work: saved.Work, stopped: saved.HeldAt, stalls: saved.Stalls, silent: saved.Silent,
		pools: make([]pool, len(g.steps)), outermost: &collection{},
	}
	if saved.Stopped != nil {
		r.stopped = *saved.Stopped
	}
	if p := saved.Parent; p != nil {
		r.parent = &parentLink{session: p.Session, stream: p.Stream, shown: p.Shown, depth: p.Depth}
	}
	// Only a caught cancellation or timeout has a clean-up, and the grace period ends it.
	if e := saved.Ending; e != nil {
		if e.Cause != abi.CatchCancelled && e.Cause != abi.CatchTimeout || saved.Deadline == nil || r.held() {
			return badSnapshot("run %s is in clean-up without a cause or without a time limit", clip(rec.RunID))
		}
		r.ending = &ending{cause: e.Cause, span: e.Span, active: e.Active}
	}
	// A negative count would lift the run's limits.
	if r.routed < 0 || r.streamBytes < 0 {
		return badSnapshot("run %s has had %d events and %d bytes on its stream", clip(rec.RunID), r.routed, r.streamBytes)
	}
	s.runs[rec.RunID] = r
	of := &runLoader{loader: l, r: r}
	if err := of.all(saved); err != nil {
		return fmt.Errorf("run %s: %w", clip(rec.RunID), err)
	}
	return nil
}

// timer creates a timer. The timer runs unless its run is held or its time does not
// count.
func (l *loader) timer(saved *savedTimer, kind timerKind, r *run, inv *invocation) (*timer, error) {
	if saved == nil {
		return nil, nil
	}
	if saved.ID == 0 || saved.ID > l.saved.LastTimer || l.armed[saved.ID] != nil {
		return nil, badSnapshot("timer %d appears twice, or was never given", saved.ID)
	}
	t := &timer{id: saved.ID, kind: kind, at: saved.At, span: saved.Span, run: r, inv: inv, slot: -1}
	l.armed[t.id] = t
	// Whether a timer runs is not stored: it follows from the run, so it cannot
	// contradict it.
	if r.rec.Blocked != nil || r.rec.Paused && kind.servingTime() || kind == timerDeadline && !r.counts() {
		return t, nil
	}
	l.s.timers.heap.Push(t) // settle puts the heap in order
	return t, nil
}

// runLoader restores the inside of a run.
type runLoader struct {
	*loader
	r    *run
	last uint64 // id of the invocation before
}

func (l *runLoader) all(saved *savedRun) error {
	r := l.r
	var err error
	kind := timerDeadline
	if r.ending != nil {
		kind = timerGrace
	}
	// Invocations refer to collections, so those come first.
	if err := l.joins(r.outermost, saved.Joins); err != nil {
		return err
	}
	if err := each(saved.Collections, "collection", l.collection); err != nil {
		return err
	}
	for i := range saved.Buffers {
		if err := l.buffer(&saved.Buffers[i]); err != nil {
			return err
		}
	}
	for _, kept := range saved.Inbox {
		e, err := l.kept(kept, r.outermost)
		if err != nil {
			return err
		}
		r.inbox.put(e)
	}
	if err := each(saved.Invocations, "invocation", l.invocation); err != nil {
		return err
	}
	// Whether the deadline runs depends on the invocations.
	if r.deadline, err = l.timer(saved.Deadline, kind, r, nil); err != nil {
		return err
	}
	// A collection without members would never close, and its collectors never fire.
	for id, c := range r.collections {
		if c.alive == 0 {
			return badSnapshot("collection %d is open without a member", id)
		}
	}
	if r.ending != nil && r.alive == 0 {
		return badSnapshot("it is in clean-up without an invocation")
	}
	return l.lines(saved)
}

// step returns the step with a number.
func (l *runLoader) step(index int) (*step, error) {
	if index < 0 || index >= len(l.r.graph.steps) {
		return nil, badSnapshot("the workflow has no step %d", index)
	}
	return l.r.graph.steps[index], nil
}

func (l *runLoader) lineage(saved []savedRecovery) (lineage, error) {
	var out lineage
	for i, r := range saved {
		if _, err := l.step(r.Catcher); err != nil {
			return nil, err
		}
		// Lookups and merges rely on the order.
		if i > 0 && saved[i-1].Catcher >= r.Catcher {
			return nil, badSnapshot("a lineage is not in order")
		}
		out = append(out, recovery{catcher: r.Catcher, count: r.Count})
	}
	return out, nil
}

func (l *runLoader) kept(saved savedKept, in *collection) (emission, error) {
	from, err := l.lineage(saved.Lineage)
	return emission{event: saved.Event, in: in, lineage: from, step: saved.Step}, err
}

func (l *runLoader) joins(c *collection, saved []savedJoin) error {
	for _, from := range saved {
		st, err := l.step(from.Step)
		if err != nil {
			return err
		}
		if st.mode != modeJoin || len(from.Slots) != len(st.decl.Accepts) || c.joins[st.index] != nil {
			return badSnapshot("step %s does not join events of that shape", st.name)
		}
		j := c.join(st)
		for i, slot := range from.Slots {
			for _, kept := range slot {
				e, err := l.kept(kept, c)
				if err != nil {
					return err
				}
				j.slots[i] = append(j.slots[i], e)
			}
			if len(slot) > 0 {
				j.ready++
			}
		}
		// A complete join has fired: it cannot be waiting.
		if j.ready == len(j.slots) {
			return badSnapshot("step %s has an event for every slot of its join, and has not run", st.name)
		}
	}
	return nil
}

func (l *runLoader) collection(saved *savedCollection) error {
	r := l.r
	parent := l.scope(saved.Parent)
	// A parent has a smaller id than its children, so there can be no circle.
	if parent == nil || saved.ID <= saved.Parent || saved.ID > l.s.lastCollection || r.collections[saved.ID] != nil {
		return badSnapshot("collection %d is in %d", saved.ID, saved.Parent)
	}
	c := &collection{id: saved.ID, parent: parent}
	for _, from := range saved.Collectors {
		st, err := l.step(from.Step)
		if err != nil {
			return err
		}
		// find searches the collectors by halves, so they must be sorted.
		if n := len(c.collectors); st.mode != modeCollect || n > 0 && c.collectors[n-1].step.index >= st.index {
			return badSnapshot("step %s does not collect, or collects twice", st.name)
		}
		of, err := l.lineage(from.Lineage)
		if err != nil {
			return err
		}
		c.collectors = append(c.collectors, collector{step: st, events: from.Events, lineage: of, fired: from.Fired})
	}
	if r.collections == nil {
		r.collections = make(map[uint64]*collection)
	}
	r.collections[c.id] = c
	parent.alive++
	return l.joins(c, saved.Joins)
}

// scope returns an open collection, or nil.
func (l *runLoader) scope(id uint64) *collection {
	if id == 0 {
		return l.r.outermost
	}
	return l.r.collections[id]
}

func (l *runLoader) buffer(saved *savedBuffer) error {
	r, key := l.r, bufferKey{saved.Step, saved.Name}
	if _, err := l.step(saved.Step); err != nil {
		return err
	}
	if r.buffers[key] != nil || len(saved.Events) == 0 {
		return badSnapshot("the buffer %q appears twice, or is empty", clip(saved.Name))
	}
	b := &buffer{events: make(map[uint64]abi.Event), types: make(map[string]*arrivals)}
	for _, ev := range saved.Events {
		if _, twice := b.events[ev.ID]; twice || ev.ID == 0 || ev.ID > l.s.lastEvent {
			return badSnapshot("event %d is buffered twice, or was never given", ev.ID)
		}
		b.add(ev)
	}
	if r.buffers == nil {
		r.buffers = make(map[bufferKey]*buffer)
	}
	r.buffers[key] = b
	return nil
}

// lines puts the invocations that wait for workers, and those that stand still, in order.
func (l *runLoader) lines(saved *savedRun) error {
	r := l.r
	if saved.Queues != nil && len(saved.Queues) != len(r.pools) {
		return badSnapshot("the number of its queues is not the number of its steps")
	}
	queued := 0
	for i, ids := range saved.Queues {
		for _, id := range ids {
			inv := l.s.invocations[id]
			p := &r.pools[i]
			// An invocation that is linked already would tie the queue into a circle.
			if inv == nil || inv.run != r || inv.step.index != i || inv.phase != phaseQueued || inv.ahead != nil || p.first == inv {
				return badSnapshot("invocation %d does not wait for a worker of step %d, or twice", id, i)
			}
			p.push(inv)
			queued++
		}
	}
	for _, id := range saved.Standing {
		inv := l.s.invocations[id]
		if inv == nil || inv.run != r || inv.phase != phaseSuspended && inv.phase != phaseWaiting || inv.line != nil {
			return badSnapshot("invocation %d does not stand still, or twice", id)
		}
		inv.line = r.standing.PushBack(inv)
	}
	// The lists must be complete: an invocation in none of them would never continue.
	for inv := r.oldest; inv != nil; inv = inv.newer {
		switch {
		case inv.phase == phaseQueued:
			queued--
		case (inv.phase == phaseSuspended || inv.phase == phaseWaiting) && inv.line == nil:
			return badSnapshot("invocation %d stands still and is not listed", inv.id)
		}
	}
	if queued != 0 {
		return badSnapshot("an invocation waits for a worker and is not listed")
	}
	return nil
}
