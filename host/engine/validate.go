package engine

import (
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
)

// whole checks the workflow as a whole: how it begins and ends, and that each emitted
// event is accepted and each accepted event is emitted.
func (c *compiler) whole() {
	c.starts()
	c.ends()
	produced := c.produced()
	c.g.fed = c.fed(produced)
	c.neverProduced(produced)
	c.neverAccepted()
	c.unreachable()
	c.deadEnds()
	c.lonelyCollectors()
}

// starts finds the start type: the only one that steps accept by name.
func (c *compiler) starts() {
	var found []string
	for _, st := range c.g.steps {
		for _, typ := range slotTypes(st) {
			if kind, ok := c.g.Kind(typ); ok && kind == abi.KindStart && !slices.Contains(found, typ) {
				found = append(found, typ)
			}
		}
	}
	switch len(found) {
	case 0:
		c.problem("no_start", "", "", "no step accepts a start event: let the first step accept %s or a type of the kind \"start\"", abi.TypeStart)
	case 1:
		c.g.start = found[0]
	default:
		c.problem("several_starts", "", found[1], "steps accept several start events (%s): a workflow has one", strings.Join(found, ", "))
	}
}

// ends finds the stop types.
func (c *compiler) ends() {
	stops := make(map[string]bool)
	for _, st := range c.g.steps {
		for typ := range st.single {
			if c.g.types[typ].kind == abi.KindStop {
				stops[typ] = true
			}
		}
	}
	if len(stops) == 0 {
		c.problem("no_stop", "", "", "no step emits a stop event, so no run would ever end: let the last step emit %s or a type of the kind \"stop\"", abi.TypeStop)
	}
	c.g.stops = sortedKeys(stops)
}

// produced is the set of the types that steps may emit, subtypes included.
func (c *compiler) produced() map[string]bool {
	out := make(map[string]bool)
	for _, st := range c.g.steps {
		for typ := range st.out {
			out[typ] = true
		}
	}
	return out
}

// slotTypes lists the types that the step names in its slots.
func slotTypes(st *step) []string {
	var out []string
	for _, slot := range st.decl.Accepts {
		out = append(out, slot.Types...)
	}
	return out
}

// fromOutside reports whether events of the type may arrive without being emitted.
func (c *compiler) fromOutside(typ string) bool {
	kind, known := c.g.Kind(typ)
	return typ == abi.TypeStepFailed || len(c.g.waits[typ]) > 0 || known && (kind == abi.KindStart || kind == abi.KindHumanResponse)
}

// fed reports whether a step accepts an event from outside: the answer of a person, or a
// type that no step emits.
func (c *compiler) fed(produced map[string]bool) bool {
	for _, st := range c.g.steps {
		for _, typ := range slotTypes(st) {
			made, posted := false, false
			for t := range c.g.closure([]string{typ}, st.decl.AcceptSubtypes) {
				kind := c.g.types[t].kind
				if kind == abi.KindHumanResponse {
					return true
				}
				made = made || produced[t]
				posted = posted || kind != abi.KindStart && kind != abi.KindStop
			}
			if posted && !made {
				return true
			}
		}
	}
	return false
}

// neverProduced reports accepted types that no step emits.
func (c *compiler) neverProduced(produced map[string]bool) {
	for _, st := range c.g.steps {
		for _, typ := range slices.Compact(slices.Sorted(slices.Values(slotTypes(st)))) {
			taken := c.g.closure([]string{typ}, st.decl.AcceptSubtypes)
			fed := len(taken) == 0 || c.fromOutside(typ) // unknown types have been reported
			for t := range taken {
				fed = fed || produced[t] || c.fromOutside(t) || c.g.types[t].kind == abi.KindStop
			}
			if !fed {
				c.problem("never_produced", st.name, typ, "step %s accepts %s, but no step emits it: let a step emit it, or give it the kind \"human_response\" if it comes from outside", st.name, typ)
			}
		}
	}
}

// neverAccepted reports emitted types that no step accepts.
func (c *compiler) neverAccepted() {
	for _, st := range c.g.steps {
		for _, emit := range st.decl.Emits {
			for _, typ := range emit.Types {
				may := c.g.closure([]string{typ}, true)
				taken := len(may) == 0
				for t := range may {
					kind := c.g.types[t].kind
					taken = taken || len(c.g.routes[t]) > 0 || len(c.g.waits[t]) > 0 || kind == abi.KindStop || kind == abi.KindInputRequired || kind == abi.KindStart
				}
				if !taken {
					c.problem("never_accepted", st.name, typ, "step %s emits %s, but no step accepts it: let a step accept it, or only write it to the stream", st.name, typ)
				}
			}
		}
	}
}

// noWayIn are the codes of problems that explain why a step is not reached.
var noWayIn = []string{
	"never_produced", "accepts_runtime_type", "accepts_stop", "unknown_type",
	"unknown_catch_target", "catches_itself", "several_catchers",
}

// unreachable reports steps that no run reaches, except for steps with a problem that
// explains it.
func (c *compiler) unreachable() {
	known := make(map[string]bool)
	for _, p := range c.problems {
		if slices.Contains(noWayIn, p.Code) {
			known[p.Step] = true
		}
	}
	reached := c.reached(true)
	for _, st := range c.g.steps {
		if !reached[st] && !known[st.name] {
			c.problem("unreachable_step", st.name, "", "step %s is never reached from the start event: let a step that is reached emit what it accepts, or take it out", st.name)
		}
	}
}

// reached returns the steps that a run can reach. cleaning says whether the clean-up of a
// run counts.
func (c *compiler) reached(cleaning bool) map[*step]bool {
	reached := make(map[*step]bool)
	came := make(map[string]bool) // event types
	var todo []*step
	reach := func(st *step) {
		if !reached[st] {
			reached[st] = true
			todo = append(todo, st)
		}
	}
	come := func(typ string) {
		if !came[typ] {
			came[typ] = true
			for _, r := range c.g.routes[typ] {
				reach(r.step)
			}
		}
	}
	for _, name := range sortedKeys(c.g.types) {
		if c.fromOutside(name) {
			come(name)
		}
	}
	if cleaning {
		for _, steps := range c.g.cleaners {
			for _, st := range steps {
				reach(st)
			}
		}
	}
	for len(todo) > 0 {
		st := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for typ := range st.out {
			come(typ)
		}
		if st.catcher != nil {
			reach(st.catcher)
		}
	}
	return reached
}

// deadEnds reports steps after which a run can neither end nor ask for input. A step that
// emits nothing is not a dead end: it exists for its effects, beside a path that ends the
// run. Some path from the start event must end the run. Steps that only clean up are not
// dead ends either, because the run ends after them anyway.
func (c *compiler) deadEnds() {
	strict := c.leading(false)
	ends := false
	for _, r := range c.g.routes[c.g.start] {
		ends = ends || strict[r.step]
	}
	leads := strict
	// Sinks count only beside a path that ends the run: alone they would end nothing.
	if ends {
		leads = c.leading(true)
	}
	usual, reached := c.reached(false), c.reached(true)
	for _, st := range c.g.steps {
		if onlyCleans := reached[st] && !usual[st]; !leads[st] && !onlyCleans {
			c.problem("dead_end", st.name, "", "step %s is a dead end: nothing that follows from it ends the run or asks for input: let it emit an event that leads to a stop event", st.name)
		}
	}
}

// leading returns the steps from which a stop or input-required event can follow. With
// sinks, a step that emits nothing counts too.
func (c *compiler) leading(sinks bool) map[*step]bool {
	makers := make(map[string][]*step) // by event type
	takes := make(map[*step][]string)
	for _, st := range c.g.steps {
		for typ := range st.out {
			makers[typ] = append(makers[typ], st)
		}
	}
	for typ, routes := range c.g.routes {
		for _, r := range routes {
			takes[r.step] = append(takes[r.step], typ)
		}
	}
	for typ, steps := range c.g.waits {
		for _, st := range steps {
			takes[st] = append(takes[st], typ)
		}
	}
	leads := make(map[*step]bool)
	good := make(map[string]bool) // event types that lead on
	var todo []*step
	lead := func(typ string) {
		if good[typ] {
			return
		}
		good[typ] = true
		for _, st := range makers[typ] {
			if !leads[st] {
				leads[st] = true
				todo = append(todo, st)
			}
		}
	}
	for name, t := range c.g.types {
		if t.kind == abi.KindStop || t.kind == abi.KindInputRequired {
			lead(name)
		}
	}
	for _, st := range c.g.steps {
		if sinks && len(st.out) == 0 && !leads[st] {
			leads[st] = true
			todo = append(todo, st)
		}
	}
	for len(todo) > 0 {
		st := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, typ := range takes[st] {
			lead(typ)
		}
	}
	return leads
}

// lonelyCollectors reports collectors that no list leads to.
func (c *compiler) lonelyCollectors() {
	fed := make(map[*step]bool)
	for _, st := range c.g.steps {
		for _, list := range st.lists {
			for _, collector := range list.collectors {
				fed[collector] = true
			}
		}
	}
	for _, st := range c.g.steps {
		if st.mode == modeCollect && !fed[st] {
			typ := st.inputName(nil)
			c.problem("collector_without_producer", st.name, typ, "step %s collects a list of %s, but none comes from a step that emits a list: let a step before it emit a list", st.name, typ)
		}
	}
}
