package engine

import (
	"container/list"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// decideWait decides a wait_for_event: it has an answer already, the inbox has one, or
// the attempt is suspended.
func (s *Session) decideWait(e *Entry, inv *invocation, req WaitForEvent) (decision, error) {
	st := inv.step
	if !st.waits[req.Type] {
		return decision{}, refusal("failed_precondition", "step %s waits for %s, which it does not declare: add it to its waits", st.name, clip(req.Type))
	}
	w := inv.waiters[req.ID]
	switch {
	// The id decides which answer a retry gets, so it must not name two types.
	case w != nil && w.typ != req.Type:
		return decision{}, refusal("failed_precondition", "step %s waits for %s by the waiter id %s, by which it has waited for %s: give each wait an id of its own", st.name, req.Type, clip(req.ID), w.typ)
	case w != nil && w.answer != nil:
		return decision{response: Response{Event: *w.answer}}, nil
	// The timeout belongs to this call of this attempt. A retry may wait again.
	case w != nil && w.late == e.N:
		return decision{}, refusal(abi.StatusTimeout.Code(), "step %s waited too long for %s", st.name, req.Type)
	}
	q, err := readRequirement(req.Requirements)
	if err != nil {
		return decision{}, refusal(abi.StatusInvalidMessage.Code(), "the requirements cannot be read: %s", err)
	}
	part := &WaitPart{ID: req.ID, Type: req.Type, Requirements: req.Requirements, Broadcast: req.Broadcast}
	e.Kind, e.Wait = EntryWait, part
	// A retry must not ask people a second time.
	if req.Ask != nil && (w == nil || !w.asked) {
		if err := inv.checkAsk(req.Ask.Type); err != nil {
			return decision{}, err
		}
		ask := sanitized(*req.Ask)
		e.Event = &ask
	}
	types := map[string]bool{req.Type: true}
	if st.decl.AcceptSubtypes {
		types = inv.run.graph.closure([]string{req.Type}, true)
	}
	// An event may have arrived before the step waited for it.
	if ev, ok := inv.run.inbox.find(&s.visited, types, q, st.name); ok {
		part.Taken = ev.ID
		return decision{entry: e, response: Response{Event: ev}}, nil
	}
	if req.Timeout > 0 {
		e.Due = later(e.At, req.Timeout)
	}
	return s.decideSuspension(e, inv)
}

// checkAsk reports whether an event may be published to ask for the answer of a wait.
func (inv *invocation) checkAsk(typ string) error {
	kind, known := inv.run.graph.Kind(typ)
	switch {
	case IsRuntimeType(typ):
		return refuseRuntimeType(typ)
	case !known:
		return refusal(host.RunInvalidOutput, "step %s asks by %s, which is not declared: declare it in events", inv.step.name, clip(typ))
	case kind == abi.KindStop || kind == abi.KindStart:
		return refusal("failed_precondition", "step %s asks by %s, which begins or ends a run: ask by %s or a type of the kind \"input_required\"", inv.step.name, typ, abi.TypeInputRequired)
	}
	return nil
}

func (s *Session) decideSleep(e *Entry, inv *invocation, req Sleep) (decision, error) {
	// The replay makes the call again when the sleep is over.
	if req.Duration <= 0 || inv.slept == e.N {
		return decision{}, nil
	}
	e.Kind, e.Due = EntrySleep, later(e.At, req.Duration)
	return s.decideSuspension(e, inv)
}

func (s *Session) decideSuspension(e *Entry, inv *invocation) (decision, error) {
	// Each suspension costs a replay of the attempt, so their number is bounded.
	if most := inv.run.limits.Suspensions; inv.suspensions >= most {
		return decision{}, exhausted("step %s waits, sleeps, runs children and calls resources more than %d times (limit suspensions)", inv.step.name, most)
	}
	return decision{entry: e, response: Response{Suspended: true}}, nil
}

func (s *Session) foldWait(e *Entry, inv *invocation) error {
	p, r := e.Wait, inv.run
	if p == nil || !inv.step.waits[p.Type] {
		return corrupt(e, "it has no event that the step waits for")
	}
	w := inv.waiters[p.ID]
	if w == nil {
		w = &waiter{id: p.ID, inv: inv, step: inv.step, typ: p.Type}
		if inv.waiters == nil {
			inv.waiters = make(map[string]*waiter)
		}
		inv.waiters[p.ID] = w
	}
	if w.typ != p.Type || w.answer != nil {
		return corrupt(e, "the wait %s has its answer, or is for another type", clip(p.ID))
	}
	q, err := readRequirement(p.Requirements)
	if err != nil {
		return corrupt(e, "requirements: %v", err)
	}
	// The question goes on the stream even if the inbox has the answer.
	if e.Event != nil {
		if !r.graph.knows(e.Event.Type) {
			return corrupt(e, "it has no event of a known type")
		}
		w.asked = true
		if !s.published(inv, *e.Event) {
			return nil
		}
	}
	// Take the event that was decided, not the oldest one now: the entry is the truth.
	if p.Taken != 0 {
		ev, ok := r.inbox.take(r.graph.closure([]string{p.Type}, true), p.Taken)
		if !ok {
			return corrupt(e, "event %d is not in the inbox", p.Taken)
		}
		w.answer = &ev
		s.settle(r, false)
		return nil
	}
	s.lastWait++
	w.seq, w.since, w.broadcast = s.lastWait, s.now, p.Broadcast
	w.need = shownRequirements(p.Requirements)
	on := suspension{n: e.N, waiter: w}
	if e.Due != 0 {
		on.timer = s.arm(&timer{kind: timerWait, at: e.Due, run: r, inv: inv})
	}
	r.enlist(w, q)
	s.suspend(inv, on)
	s.settle(r, true)
	return nil
}

func (s *Session) foldSleep(e *Entry, inv *invocation) error {
	if e.Due < e.At {
		return corrupt(e, "the sleep ends before it begins")
	}
	s.suspend(inv, suspension{n: e.N, timer: s.arm(&timer{kind: timerSleep, at: e.Due, run: inv.run, inv: inv})})
	s.settle(inv.run, false)
	return nil
}

// parcel is a list of events to be routed in a collection. step, if not "", is the only
// step that they are meant for.
type parcel struct {
	events []abi.Event
	step   string
	in     reach
}

// overflows reports whether one of the events, taken in order, would have to go to an
// inbox that is full.
func (s *Session) overflows(r *run, parcels ...parcel) bool {
	free, n := r.limits.InboxEvents-r.inbox.size, 0
	for i := range parcels {
		n += len(parcels[i].events)
	}
	// Most events need no simulation: nobody waits in the workflow, or the inbox has
	// room.
	if len(r.graph.waits) == 0 || n <= free {
		return false
	}
	served := make(map[*list.List]*list.Element)
	for _, p := range parcels {
		for _, ev := range p.events {
			if r.graph.keeps(ev.Type, p.step) && !s.goesOn(r, ev, p.step, p.in, served) {
				free--
			}
		}
	}
	return free < 0
}

// reach reports whether a collection leads to a collector.
type reach func(collector *step) bool

func (c *collection) leadsTo(st *step) bool {
	_, ok := c.find(st)
	return ok
}

// reach returns the reach of the collection in which the events of a result are routed.
func (inv *invocation) reach(out abi.StepOutput) reach {
	if !out.List {
		return inv.in.leadsTo
	}
	return func(collector *step) bool { return slices.Contains(inv.step.collectorsOf(out.Events), collector) }
}

// goesOn reports whether an event finds a waiter or a step. served maps the queues whose
// first waiters earlier events will answer to the first waiter that is left.
func (s *Session) goesOn(r *run, ev abi.Event, step string, in reach, served map[*list.List]*list.Element) bool {
	takers := s.takers(r, ev, step, served)
	for _, w := range takers {
		queue := w.shape.byWant[w.values].of(w)
		// A broadcast answers all waiters of its queue.
		if served[queue] = w.place.Next(); w.broadcast {
			served[queue] = nil
		}
	}
	if len(takers) > 0 {
		return true
	}
	for _, to := range r.graph.routes[ev.Type] {
		if (step == "" || step == to.step.name) && (to.step.mode != modeCollect || in(to.step)) {
			return true
		}
	}
	return false
}

func refuseInbox(r *run) *abi.Error {
	return refusal(host.RunLimitExceeded, "the run keeps %d events that no step has waited for yet (limit inbox_events)", r.inbox.size)
}
