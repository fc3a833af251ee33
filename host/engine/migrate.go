package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// A run keeps the version that it began with until it is migrated. Everything that waits
// in the run must then fit the new version, by the names of steps and types. The engine
// cannot check the open attempts: the caller has their records, and replays them on the
// new version.

// Migrate continues a run with another version.
type Migrate struct {
	RunID   string
	Version string
}

func (Migrate) tick() {}

// MayMigrate checks that everything that waits in a run fits another version, and returns
// that version's graph. The run must not have ended.
//
// # Errors
//
// [ErrUnknownRun]; a [*host.Error] with CodeConflict, which says what does not fit.
func (s *Session) MayMigrate(runID, version string) (*Graph, error) {
	g, err := s.graphs(version)
	if err != nil {
		return nil, fmt.Errorf("find the workflow of version %s: %w", clip(version), err)
	}
	// A queued run holds nothing but its start event.
	if q, waits := s.turns.of(runID); waits {
		if q.graph.Workflow() != g.Workflow() || !g.mayStart(q.start.Event.Type) {
			return nil, misfit("it does not begin with %s", clip(q.start.Event.Type))
		}
		return g, nil
	}
	r, err := s.activeRun(runID)
	if err != nil {
		return nil, err
	}
	if r.graph.Workflow() != g.Workflow() {
		return nil, misfit("it is of workflow %s", clip(g.Workflow()))
	}
	m := &mover{s: s, r: r, g: g}
	return g, m.check()
}

func misfit(format string, args ...any) error {
	return host.Errorf(host.CodeConflict, "The run does not fit the version: %s", fmt.Sprintf(format, args...))
}

func (s *Session) decideMigrate(e *Entry, t Migrate) (decision, error) {
	if now := s.version(t.RunID); now != "" && now == t.Version {
		return decision{}, ErrStale
	}
	if _, err := s.MayMigrate(t.RunID, t.Version); err != nil {
		return decision{}, err
	}
	e.Kind, e.RunID, e.Version = EntryMigrate, t.RunID, t.Version
	return decision{entry: e}, nil
}

// version returns the version of a run that has not ended, else "".
func (s *Session) version(runID string) string {
	if r, ok := s.runs[runID]; ok {
		return r.rec.Version
	}
	if q, ok := s.turns.of(runID); ok {
		return q.start.Version
	}
	return ""
}

func (s *Session) foldMigrate(e *Entry) error {
	// A journal written by a newer or broken server may hold a migration that does not
	// fit.
	g, err := s.MayMigrate(e.RunID, e.Version)
	if err != nil {
		return fmt.Errorf("%w: entry %d: %w", errCorrupt, e.Seq, err)
	}
	if q, waits := s.turns.of(e.RunID); waits {
		start := *q.start
		start.Version = e.Version
		q.start, q.graph = &start, g
		q.rec.Version, q.rec.Updated = e.Version, s.now
		s.emit(RunChanged{Run: q.rec})
		return nil
	}
	r := s.runs[e.RunID]
	s.move(r, e.Version, g)
	s.changed(r)
	// The new version may have more workers.
	for _, st := range g.steps {
		for p := &r.pools[st.index]; p.first != nil && p.busy < st.workers && !r.held(); {
			s.refill(r, st)
		}
	}
	s.settle(r, false)
	return nil
}

// mover checks a run against another version and moves it.
type mover struct {
	s *Session
	r *run
	g *Graph
}

// check returns the first thing that does not fit.
func (m *mover) check() error {
	for inv := m.r.oldest; inv != nil; inv = inv.newer {
		if err := m.invocation(inv); err != nil {
			return err
		}
	}
	if err := m.collection(m.r.outermost); err != nil {
		return err
	}
	for _, id := range sortedKeys(m.r.collections) {
		if err := m.collection(m.r.collections[id]); err != nil {
			return err
		}
	}
	if err := m.buffers(); err != nil {
		return err
	}
	for _, typ := range sortedKeys(m.r.inbox.byType) {
		for _, kept := range m.r.inbox.byType[typ] {
			if !m.g.keeps(typ, kept.step) {
				return misfit("an event of type %s is kept, for which no step waits", typ)
			}
			if err := m.lineage(kept.lineage); err != nil {
				return err
			}
		}
	}
	if err := m.g.schema.Check(m.s.root, nil); err != nil {
		return misfit("the state breaks its schema at %s", schemaBreach(err))
	}
	return nil
}

func (m *mover) buffers() error {
	for i, st := range m.r.graph.steps {
		if m.g.HasStep(st.name) {
			continue
		}
		for key := range m.r.buffers {
			if key.step == i {
				return misfit("step %s, which has collected events, is not there", st.name)
			}
		}
	}
	return nil
}

// alike returns the step of the new version that replaces a step of the run.
func (m *mover) alike(st *step) (*step, error) {
	is := m.g.byName[st.name]
	switch {
	case is == nil:
		return nil, misfit("step %s is not there", st.name)
	// Waiting events are stored in a form that depends on the mode.
	case is.mode != st.mode:
		return nil, misfit("step %s takes its events in another way", st.name)
	// An atomic attempt has no record that could go on as one with effects.
	case is.decl.Atomic != st.decl.Atomic:
		return nil, misfit("step %s is atomic in one of them only", st.name)
	}
	return is, nil
}

func (m *mover) lineage(from lineage) error {
	for _, r := range from {
		if name := m.r.graph.steps[r.catcher].name; !m.g.HasStep(name) {
			return misfit("step %s, which has caught a failure, is not there", name)
		}
	}
	return nil
}

// accepts returns an error unless the step takes all of the events.
func (m *mover) accepts(st *step, events []abi.Event) error {
	catches := len(st.decl.Catches) > 0 || st.decl.CatchesAll
	for i := range events {
		typ := events[i].Type
		// A catching step accepts a failure without a route from any step.
		caught := typ == abi.TypeStepFailed && catches
		if !caught && !m.g.Accepts(st.name, typ) {
			return misfit("step %s has been given an event of type %s, which it does not accept", st.name, clip(typ))
		}
	}
	return nil
}

func (m *mover) invocation(inv *invocation) error {
	st, err := m.alike(inv.step)
	if err != nil {
		return err
	}
	if err := m.lineage(inv.lineage); err != nil {
		return err
	}
	if err := m.accepts(st, inv.trigger); err != nil {
		return err
	}
	if st.mode == modeJoin && !m.joins(st, inv.trigger) {
		return misfit("step %s joins other events", st.name)
	}
	if inv.phase == phaseRunning && inv.worker >= st.workers {
		return misfit("step %s has %d workers, and number %d is at work", st.name, st.workers, inv.worker+1)
	}
	for _, id := range sortedKeys(inv.waiters) {
		if w := inv.waiters[id]; !st.waits[w.typ] {
			return misfit("step %s waits for %s, which it does not declare", st.name, w.typ)
		}
	}
	for _, id := range sortedKeys(inv.asked) {
		name := inv.asked[id].part.Resource
		if is, declared := m.g.resources[name]; !declared || is.Kind != m.r.graph.resources[name].Kind {
			return misfit("step %s has called the resource %s, which is not declared, or of another kind", st.name, name)
		}
	}
	return nil
}

// joins reports whether a join takes the events in this order.
func (m *mover) joins(st *step, events []abi.Event) bool {
	if len(st.decl.Accepts) != len(events) {
		return false
	}
	for i, slot := range st.decl.Accepts {
		if !m.g.closure(slot.Types, st.decl.AcceptSubtypes)[events[i].Type] {
			return false
		}
	}
	return true
}

func (m *mover) collection(c *collection) error {
	for i := range c.collectors {
		from := &c.collectors[i]
		st, err := m.alike(from.step)
		if err != nil {
			return err
		}
		if err := m.accepts(st, from.events); err != nil {
			return err
		}
		if err := m.lineage(from.lineage); err != nil {
			return err
		}
		// The collector would never fire: its count is only looked at when an event
		// arrives.
		if st.take > 0 && !from.fired && uint64(len(from.events)) >= st.take {
			return misfit("step %s takes %d events, and %d have been collected", st.name, st.take, len(from.events))
		}
	}
	for _, index := range sortedKeys(c.joins) {
		j := c.joins[index]
		if j.ready == 0 {
			continue
		}
		was := m.r.graph.steps[index]
		st, err := m.alike(was)
		if err != nil {
			return err
		}
		if !slices.EqualFunc(st.decl.Accepts, was.decl.Accepts, sameSlot) {
			return misfit("step %s joins other events", st.name)
		}
		for _, slot := range j.slots {
			for _, kept := range slot {
				if err := m.lineage(kept.lineage); err != nil {
					return err
				}
				if err := m.accepts(st, []abi.Event{kept.event}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func sameSlot(a, b abi.Slot) bool { return a.Kind == b.Kind && slices.Equal(a.Types, b.Types) }

// move moves a run to another version that it fits.
func (s *Session) move(r *run, version string, g *Graph) {
	m := &mover{s: s, r: r, g: g}
	pools := make([]pool, len(g.steps))
	for i, st := range r.graph.steps {
		if is := g.byName[st.name]; is != nil {
			pools[is.index] = r.pools[i]
		}
	}
	// The lists of waits are kept by step and type, so take the waits off and enlist them
	// again.
	waits := m.strike()
	for inv := r.oldest; inv != nil; inv = inv.newer {
		s.visited++
		inv.step, inv.lineage = m.to(inv.step.index), m.caught(inv.lineage)
		for _, w := range inv.waiters {
			w.step = inv.step
		}
	}
	for _, want := range waits {
		r.enlist(want.w, want.q)
	}
	m.moveCollection(r.outermost)
	for _, c := range r.collections {
		m.moveCollection(c)
	}
	buffers := make(map[bufferKey]*buffer, len(r.buffers))
	for key, b := range r.buffers {
		buffers[bufferKey{m.to(key.step).index, key.name}] = b
	}
	for _, kept := range r.inbox.byType {
		m.moveKept(kept)
	}
	r.pools, r.buffers, r.graph, r.rec.Version = pools, buffers, g, version
	s.noteRan(g.Workflow(), version)
}

// strike takes the waits of the run off its lists and returns them in the order in which
// they began. Their place in the lists depends on their step.
func (m *mover) strike() []wanting {
	var out []wanting
	for inv := m.r.oldest; inv != nil; inv = inv.newer {
		if on := inv.suspended; on != nil && on.waiter != nil {
			out = append(out, wanting{on.waiter, requirement{fields: on.waiter.shape.fields, values: on.waiter.values}})
		}
	}
	slices.SortFunc(out, func(a, b wanting) int { return cmp.Compare(a.w.seq, b.w.seq) })
	for _, want := range out {
		m.r.strike(want.w)
	}
	return out
}

// to returns the step of the new version for a step number of the old one.
func (m *mover) to(index int) *step { return m.g.byName[m.r.graph.steps[index].name] }

// caught returns a lineage with the step numbers of the new version.
func (m *mover) caught(from lineage) lineage {
	if len(from) == 0 {
		return from
	}
	out := make(lineage, len(from)) // others may share the old lineage
	for i, c := range from {
		out[i] = recovery{catcher: m.to(c.catcher).index, count: c.count}
	}
	slices.SortFunc(out, func(a, b recovery) int { return a.catcher - b.catcher })
	return out
}

func (m *mover) moveKept(kept []emission) {
	for i := range kept {
		kept[i].lineage = m.caught(kept[i].lineage)
	}
}

func (m *mover) moveCollection(c *collection) {
	for i := range c.collectors {
		k := &c.collectors[i]
		k.step, k.lineage = m.to(k.step.index), m.caught(k.lineage)
	}
	slices.SortFunc(c.collectors, func(a, b collector) int { return a.step.index - b.step.index })
	joins := make(map[int]*join, len(c.joins))
	for index, j := range c.joins {
		if j.ready == 0 {
			continue // it is created again for the next event to join
		}
		for _, slot := range j.slots {
			m.moveKept(slot)
		}
		joins[m.to(index).index] = j
	}
	c.joins = joins
}

// Pending is the call in which a suspended invocation waits.
type Pending struct {
	N      uint64 // of the call in its attempt
	Import abi.Import
	// Of a wait.
	Waiter string
	Type   string
	// Of a child: the id that the step gave it, if it did.
	Workflow string
	Child    string
	// Of a call of a resource.
	Resource string
	Method   string
	Payload  abi.Raw
}

// Show describes the call for people.
func (p *Pending) Show() string {
	switch p.Import {
	case abi.ImportWait:
		return fmt.Sprintf("for %s by the waiter id %q", p.Type, clip(p.Waiter))
	case abi.ImportRunWorkflow:
		return fmt.Sprintf("of %s by the id %q", clip(p.Workflow), clip(p.Child))
	case abi.ImportResource:
		return fmt.Sprintf("of %s, %s", clip(p.Resource), clip(p.Method))
	}
	return ""
}

// Pending returns the call in which an invocation waits; false if it is not suspended.
func (s *Session) Pending(invocation uint64) (Pending, bool) {
	inv := s.invocations[invocation]
	if inv == nil || inv.suspended == nil {
		return Pending{}, false
	}
	on := inv.suspended
	p := Pending{N: on.n, Import: abi.ImportSleep}
	switch {
	case on.waiter != nil:
		p.Import, p.Waiter, p.Type = abi.ImportWait, on.waiter.id, on.waiter.typ
	case on.child != nil:
		p.Import, p.Workflow = abi.ImportRunWorkflow, on.child.workflow
		if id, own := strings.CutPrefix(on.child.key, "="); own {
			p.Child = id
		}
	case on.call != nil:
		p.Import, p.Resource, p.Method, p.Payload = abi.ImportResource, on.call.part.Resource, on.call.part.Method, on.call.part.Payload
	}
	return p, true
}
