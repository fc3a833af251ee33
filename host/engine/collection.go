package engine

import (
	"maps"
	"slices"

	"github.com/weftrun/weft/abi"
)

// collection is the scope of the branches that the events of one list emit begin. Every
// event and invocation belongs to a collection. Those outside of any list belong to the
// run's outermost collection.
//
// A collection counts its members: invocations that have not ended, and open collections
// inside. Events are on their way only while an entry is folded, and the invocation that
// emits them still counts then. Events that wait in a join and collected events do not
// count, because nothing can follow from them when no member is left. When the count
// reaches zero, the collection closes and its collectors that have not fired do so.
type collection struct {
	id         uint64
	parent     *collection // nil: the run's outermost, which never closes
	alive      int
	collectors []collector // the steps that may be reached, in manifest order
	joins      map[int]*join
}

// collector is the share of one list[E] step in a collection.
type collector struct {
	step    *step
	events  []abi.Event // in completion order
	lineage lineage
	fired   bool
}

// join returns the events that wait for a join in this collection.
func (c *collection) join(st *step) *join {
	j := c.joins[st.index]
	if j == nil {
		if c.joins == nil {
			c.joins = make(map[int]*join)
		}
		j = &join{slots: make([][]emission, len(st.decl.Accepts))}
		c.joins[st.index] = j
	}
	return j
}

// open creates a collection for a list that a step emitted, inside another collection.
// Its count starts at one, for the emission itself.
func (s *Session) open(r *run, st *step, events []abi.Event, in *collection, from lineage) *collection {
	steps := st.collectorsOf(events)
	s.lastCollection++
	s.visited += uint64(1 + len(steps))
	c := &collection{id: s.lastCollection, parent: in, alive: 1, collectors: make([]collector, len(steps))}
	for i, st := range steps {
		c.collectors[i] = collector{step: st, lineage: from}
	}
	if r.collections == nil {
		r.collections = make(map[uint64]*collection)
	}
	r.collections[c.id] = c
	// The collection around cannot close before this one.
	in.alive++
	return c
}

// collectorsOf returns the collectors of the list emits that fit the events.
func (st *step) collectorsOf(events []abi.Event) []*step {
	var fits []*listEmit
	for i := range st.lists {
		if st.lists[i].fits(events) {
			fits = append(fits, &st.lists[i])
		}
	}
	// One fitting emit is the usual case. If several fit, the step could have meant any.
	if len(fits) == 1 {
		return fits[0].collectors
	}
	all := make(map[int]*step)
	for _, list := range fits {
		for _, st := range list.collectors {
			all[st.index] = st
		}
	}
	out := slices.Collect(maps.Values(all))
	slices.SortFunc(out, func(a, b *step) int { return a.index - b.index })
	return out
}

func (l *listEmit) fits(events []abi.Event) bool {
	for i := range events {
		if !l.types[events[i].Type] {
			return false
		}
	}
	return true
}

// collect gives an event to a collector. It returns false if the event's collection does
// not lead to the step. Events that arrive after the collector has fired are dropped.
func (s *Session) collect(r *run, st *step, e emission) bool {
	i, ok := e.in.find(st)
	if !ok {
		return false
	}
	c := &e.in.collectors[i]
	if c.fired {
		return true
	}
	c.events = append(c.events, e.event)
	c.lineage = c.lineage.merge(e.lineage)
	if st.take > 0 && uint64(len(c.events)) == st.take {
		s.fire(r, e.in, c)
	}
	return true
}

// find returns the place of a step among the collectors.
func (c *collection) find(st *step) (int, bool) {
	return slices.BinarySearchFunc(c.collectors, st.index, func(c collector, index int) int { return c.step.index - index })
}

// fire invokes a collector, in the collection around its own.
func (s *Session) fire(r *run, in *collection, c *collector) {
	events := c.events
	c.fired, c.events = true, nil
	s.invoke(r, c.step, events, in.parent, c.lineage)
}

// release removes one member from a collection and closes the collection if it was the
// last member. It then continues with the collection around.
func (s *Session) release(r *run, c *collection) {
	for ; ; c = c.parent {
		s.visited++
		c.alive--
		if c.alive > 0 || c.parent == nil {
			return
		}
		// The list is complete, because nothing can emit into the collection any more. A
		// collector's invocation belongs to the collection around, so that stays open.
		for i := range c.collectors {
			s.visited++
			if !c.collectors[i].fired {
				s.fire(r, c, &c.collectors[i])
			}
		}
		delete(r.collections, c.id)
	}
}

// lineage counts how often each catching step has recovered failures on the way to an
// event. It is sorted by step index and immutable.
type lineage []recovery

type recovery struct {
	catcher int
	count   uint64
}

func (l lineage) count(catcher int) uint64 {
	for _, r := range l {
		if r.catcher == catcher {
			return r.count
		}
	}
	return 0
}

// recovered returns the lineage with one more recovery.
func (l lineage) recovered(catcher int) lineage {
	return l.merge(lineage{{catcher: catcher, count: l.count(catcher) + 1}})
}

// merge returns the lineage of an event that follows from two: the greater of each count.
func (l lineage) merge(o lineage) lineage {
	// Events of one invocation share their lineage: most merges end here.
	if len(o) == 0 || len(l) > 0 && len(o) > 0 && &l[0] == &o[0] && len(l) == len(o) {
		return l
	}
	if len(l) == 0 {
		return o
	}
	out := make(lineage, 0, len(l)+len(o))
	for len(l) > 0 && len(o) > 0 {
		switch {
		case l[0].catcher < o[0].catcher:
			out, l = append(out, l[0]), l[1:]
		case l[0].catcher > o[0].catcher:
			out, o = append(out, o[0]), o[1:]
		default:
			out = append(out, recovery{l[0].catcher, max(l[0].count, o[0].count)})
			l, o = l[1:], o[1:]
		}
	}
	return append(append(out, l...), o...)
}
