package engine

import "github.com/weftrun/weft/abi"

// emission is an event on its way to the steps.
type emission struct {
	event   abi.Event
	in      *collection
	lineage lineage
	step    string // the only step that it is meant for; "": all steps that accept it
	shown   bool   // the event is on the stream, so no step has to take it
}

// newEvent gives an event its id. An id from a guest or a client is ignored.
func (s *Session) newEvent(ev abi.Event) abi.Event {
	s.lastEvent++
	ev.ID = s.lastEvent
	return ev
}

// route brings an event to every step that accepts it. The entry reports an event that no
// step takes as unhandled.
func (s *Session) route(r *run, e emission) {
	e.event = s.newEvent(e.event)
	// A step that waits for the event takes it instead of the steps that accept it.
	if s.answerWaiters(r, e.event, e.step) {
		return
	}
	taken := false
	for _, to := range r.graph.routes[e.event.Type] {
		s.visited++
		if (e.step == "" || e.step == to.step.name) && s.deliver(r, to, e) {
			taken = true
		}
	}
	switch {
	case taken:
	// A step may wait for the event later. If the inbox is full, the event is lost, and
	// the stream says so.
	case r.graph.keeps(e.event.Type, e.step) && r.inbox.size < r.limits.InboxEvents:
		r.inbox.put(e)
	case !e.shown:
		r.unhandled = append(r.unhandled, e)
	}
}

// deliver brings an event to one step. It returns false if the step collects and the
// event belongs to no collection that leads to the step.
func (s *Session) deliver(r *run, to route, e emission) bool {
	switch to.step.mode {
	case modeJoin:
		j := e.in.join(to.step)
		j.put(to.slots, e)
		// The trigger is complete only if every other slot has an event waiting.
		if trigger, from, ok := j.take(); ok {
			s.invoke(r, to.step, trigger, e.in, from)
		}
		return true
	case modeCollect:
		return s.collect(r, to.step, e)
	default:
		s.invoke(r, to.step, []abi.Event{e.event}, e.in, e.lineage)
		return true
	}
}

// join holds the events of a step that needs one event for every slot.
type join struct {
	slots [][]emission // oldest first
	ready int          // slots that have an event
}

// put adds an event to the emptiest of the slots that take its type.
func (j *join) put(slots []int, e emission) {
	best := slots[0]
	for _, i := range slots[1:] {
		if len(j.slots[i]) < len(j.slots[best]) {
			best = i
		}
	}
	if len(j.slots[best]) == 0 {
		j.ready++
	}
	j.slots[best] = append(j.slots[best], e)
}

// take removes the oldest event of each slot, in the order of the slots, if every slot
// has an event.
func (j *join) take() ([]abi.Event, lineage, bool) {
	if j.ready < len(j.slots) {
		return nil, nil, false
	}
	trigger := make([]abi.Event, len(j.slots))
	var from lineage
	for i, slot := range j.slots {
		trigger[i] = slot[0].event
		from = from.merge(slot[0].lineage)
		slot[0] = emission{} // the array lives on: do not keep the event alive
		j.slots[i] = slot[1:]
		if len(j.slots[i]) == 0 {
			j.slots[i] = nil
			j.ready--
		}
	}
	return trigger, from, true
}
