package engine

import (
	"bytes"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// bufferKey identifies a buffer of collect_events. Each step of a run has its own
// buffers.
type bufferKey struct {
	step int
	name string
}

// buffer holds events until a set of them is complete. Surplus events stay for the next
// set.
type buffer struct {
	events map[uint64]abi.Event
	types  map[string]*arrivals
}

// arrivals are the buffered events of one type, in the order of arrival.
type arrivals struct { // the first ones may have been released
	ids  []uint64 // the first ones may have been released already
	live int
}

// oldest is the id of the n-th buffered event.
func (a *arrivals) oldest(n int) uint64 { return a.ids[len(a.ids)-a.live+n] }

// collectCalls records what an invocation did with collect_events. It belongs to the
// invocation, not to the attempt, so that a retry does not repeat it.
type collectCalls struct {
	made map[collectKey]*collectCall
	// fresh counts the events of this attempt that are not from the trigger. The n-th
	// such event of an attempt corresponds to the n-th of the attempt before.
	fresh uint64
	byID  map[uint64]int // of a long trigger, filled on first use
}

type collectKey struct {
	buffer string
	given  uint64 // id of an event of the trigger, or 0
	fresh  uint64 // number of the event if given is 0
}

type collectCall struct{ sets []releasedSet }

type releasedSet struct {
	expected []string
	events   []abi.Event
}

// key identifies a call among the calls of an invocation.
func (c *collectCalls) key(buffer string, given uint64) collectKey {
	k := collectKey{buffer: buffer, given: given}
	if given == 0 {
		k.fresh = c.fresh + 1
	}
	return k
}

// released returns the set that the call has released before, if any.
func (c *collectCall) released(expected []string) ([]abi.Event, bool) {
	if c == nil {
		return nil, false
	}
	for _, set := range c.sets {
		if slices.Equal(set.expected, expected) {
			return set.events, true
		}
	}
	return nil, false
}

// triggered returns the event of the trigger with the id.
func (inv *invocation) triggered(id uint64) (abi.Event, bool) {
	const few = 8
	if id == 0 {
		return abi.Event{}, false
	}
	// A short trigger is searched faster than a map is filled.
	if len(inv.trigger) <= few {
		for _, ev := range inv.trigger {
			if ev.ID == id {
				return ev, true
			}
		}
		return abi.Event{}, false
	}
	if inv.calls.byID == nil {
		inv.calls.byID = make(map[uint64]int, len(inv.trigger))
		for i, ev := range inv.trigger {
			inv.calls.byID[ev.ID] = i
		}
	}
	i, ok := inv.calls.byID[id]
	if !ok {
		return abi.Event{}, false
	}
	return inv.trigger[i], true
}

// decideCollect decides a collect_events. A call that the invocation has made before
// needs an entry only if it completes a set now or must be counted.
func (s *Session) decideCollect(e *Entry, inv *invocation, req CollectEvents) (decision, error) {
	part := &CollectPart{Buffer: req.Buffer}
	own, recognised := inv.triggered(req.Event.ID)
	switch typ := req.Event.Type; {
	case recognised && typ == own.Type: // also accepts the failure that a catching step got
	case IsRuntimeType(typ):
		return decision{}, refuseRuntimeType(typ)
	case !inv.run.graph.knows(typ):
		return decision{}, refusal(host.RunInvalidOutput, "step %s collects %s, which is not declared: declare it in events", inv.step.name, clip(typ))
	}
	if recognised {
		part.Given = own.ID
	}
	e.Kind, e.Collect = EntryCollect, part
	call := inv.calls.made[inv.calls.key(req.Buffer, part.Given)]
	response, err := s.decideSet(e, inv, req, call, own)
	if err != nil {
		return decision{}, err
	}
	// A later attempt finds its event buffered already. Only a call with an event of the
	// guest's own needs an entry, because it moves the count of such events.
	if call != nil && recognised && !part.Complete {
		return decision{response: response}, nil
	}
	return decision{entry: e, response: response}, nil
}

// decideSet finds the set that a call returns: a set released before, or a set that is
// complete now. own is the event of the trigger that the guest passed.
func (s *Session) decideSet(e *Entry, inv *invocation, req CollectEvents, call *collectCall, own abi.Event) (Response, error) {
	// A retry must get the very set that the earlier attempt got.
	if set, ok := call.released(req.Expected); ok {
		return Response{Collected: set, Complete: true}, nil
	}
	var added *abi.Event
	// An earlier attempt may have buffered the event already.
	if call == nil {
		var err error
		if added, err = s.decideAdd(e, inv, req.Event, own); err != nil {
			return Response{}, err
		}
	}
	set, ok := inv.run.buffers[bufferKey{inv.step.index, req.Buffer}].complete(req.Expected, added)
	if !ok {
		return Response{}, nil
	}
	part := e.Collect
	part.Complete, part.Expected = true, req.Expected
	for _, ev := range set {
		part.Release = append(part.Release, ev.ID)
	}
	return Response{Collected: set, Complete: true}, nil
}

// decideAdd puts the event into the entry. An unchanged event of the trigger is
// represented by its id alone.
func (s *Session) decideAdd(e *Entry, inv *invocation, ev, own abi.Event) (*abi.Event, error) {
	r, part := inv.run, e.Collect
	switch {
	case part.Given != 0 && ev.Type == own.Type && bytes.Equal(ev.Body, own.Body):
		part.Added = part.Given
		return &own, nil
	case part.Given != 0:
		part.Added = part.Given
	// Only events that the guest made count: those of the trigger were counted before.
	case r.routed >= r.limits.RunEvents:
		return nil, refusal(host.RunLimitExceeded, "the run has had %d events, its limit", r.routed)
	default:
		part.Added = s.lastEvent + 1
	}
	ev.ID = part.Added
	e.Event = &ev
	return &ev, nil
}

// complete returns the set for the expected types, if the buffered events and the one
// about to be added contain it. Of each type it takes the oldest events.
func (b *buffer) complete(expected []string, added *abi.Event) ([]abi.Event, bool) {
	have := 0
	if b != nil {
		have = len(b.events)
	}
	if added != nil {
		have++
	}
	if have < len(expected) {
		return nil, false // most calls end here, however long the set is
	}
	next := make(map[string]int)
	set := make([]abi.Event, 0, len(expected))
	for _, typ := range expected {
		n := next[typ]
		next[typ]++
		live := 0
		if b != nil && b.types[typ] != nil {
			live = b.types[typ].live
		}
		switch {
		case n < live:
			set = append(set, b.events[b.types[typ].oldest(n)])
		case n == live && added != nil && added.Type == typ:
			set = append(set, *added)
		default:
			return nil, false
		}
	}
	return set, true
}

// foldCollect folds a collect_events.
func (s *Session) foldCollect(e *Entry, inv *invocation) error {
	p, r := e.Collect, inv.run
	key := inv.calls.key(p.Buffer, p.Given)
	if p.Given == 0 {
		inv.calls.fresh++
	}
	call := inv.calls.made[key]
	if call != nil && p.Added != 0 {
		return corrupt(e, "event %d is collected twice", p.Added)
	}
	if call == nil {
		if inv.calls.made == nil {
			inv.calls.made = make(map[collectKey]*collectCall)
		}
		call = &collectCall{}
		inv.calls.made[key] = call
	}
	if r.buffers == nil {
		r.buffers = make(map[bufferKey]*buffer)
	}
	at := bufferKey{inv.step.index, p.Buffer}
	b := r.buffers[at]
	if b == nil {
		b = &buffer{events: make(map[uint64]abi.Event), types: make(map[string]*arrivals)}
		r.buffers[at] = b
	}
	if p.Added != 0 {
		ev, err := s.collected(e, inv)
		if err != nil {
			return err
		}
		b.add(ev)
	}
	if p.Complete {
		set, err := b.release(e, p.Release)
		if err != nil {
			return err
		}
		s.visited += uint64(len(set))
		call.sets = append(call.sets, releasedSet{expected: p.Expected, events: set})
	}
	// Empty buffers do not stay: a guest could make any number of names.
	if len(b.events) == 0 {
		delete(r.buffers, at)
	}
	return nil
}

// collected returns the event that an entry adds to a buffer.
func (s *Session) collected(e *Entry, inv *invocation) (abi.Event, error) {
	p := e.Collect
	s.visited++
	if p.Given == 0 {
		if p.Added != s.lastEvent+1 || e.Event == nil {
			return abi.Event{}, corrupt(e, "event %d is collected out of turn", p.Added)
			// An event that the guest made gets its id here, and counts against the run's
			// limit.
		}
		s.lastEvent++
		inv.run.routed++
	}
	ev, ok := inv.triggered(p.Given)
	if p.Given != 0 && (!ok || p.Added != p.Given) {
		return abi.Event{}, corrupt(e, "event %d is not of the trigger", p.Given)
	}
	if e.Event != nil {
		ev = *e.Event
	}
	ev.ID = p.Added
	return ev, nil
}

func (b *buffer) add(ev abi.Event) {
	b.events[ev.ID] = ev
	of := b.types[ev.Type]
	if of == nil {
		of = &arrivals{}
		b.types[ev.Type] = of
	}
	of.ids = append(of.ids, ev.ID)
	of.live++
}

// release takes events out of the buffer. The events of each type are its oldest, in the
// order of their arrival.
func (b *buffer) release(e *Entry, ids []uint64) ([]abi.Event, error) {
	set := make([]abi.Event, 0, len(ids))
	for _, id := range ids {
		ev, ok := b.events[id]
		if !ok {
			return nil, corrupt(e, "event %d is released but not in the buffer", id)
		}
		of := b.types[ev.Type]
		if of.oldest(0) != id {
			return nil, corrupt(e, "event %d is released before its turn", id)
		}
		delete(b.events, id)
		of.live--
		switch {
		case of.live == 0:
			delete(b.types, ev.Type)
		// Give the memory of released ids back now and then, at a constant cost for each
		// event.
		case len(of.ids) > 2*of.live+16:
			of.ids = slices.Clone(of.ids[len(of.ids)-of.live:])
		}
		set = append(set, ev)
	}
	return set, nil
}
