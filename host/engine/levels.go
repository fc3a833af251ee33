package engine

import "slices"

// level describes the collections that one list emit opens: the steps that may run in
// them and the collectors that take their events.
type level struct {
	list       *listEmit
	types      map[string]bool // of the events in it
	runs       map[*step]bool
	collectors map[*step]bool
	// outer are the levels in which the emitting step may run. The invocation of a
	// collector belongs to the collection around, so it runs in an outer level.
	outer []*level
}

// leveler finds the collectors of all list emits by following the graph from the emitted
// types. It looks at each type and step once in each level.
type leveler struct {
	g    *Graph
	of   map[*listEmit]*level
	todo []func()
}

// collectors fills in the collectors of every list emit.
func (c *compiler) collectors() {
	l := &leveler{g: c.g, of: make(map[*listEmit]*level)}
	var levels []*level
	for _, st := range c.g.steps {
		for i := range st.lists {
			lv := &level{list: &st.lists[i], types: make(map[string]bool), runs: make(map[*step]bool), collectors: make(map[*step]bool)}
			l.of[lv.list] = lv
			levels = append(levels, lv)
		}
	}
	for _, lv := range levels {
		for typ := range lv.list.types {
			l.reach(lv, typ)
		}
	}
	// A work list instead of recursion: a manifest may have long chains of steps.
	for len(l.todo) > 0 {
		next := l.todo[len(l.todo)-1]
		l.todo = l.todo[:len(l.todo)-1]
		next()
	}
	for _, lv := range levels {
		for st := range lv.collectors {
			lv.list.collectors = append(lv.list.collectors, st)
		}
		slices.SortFunc(lv.list.collectors, func(a, b *step) int { return a.index - b.index })
	}
}

// reach follows an event of the type within a level.
func (l *leveler) reach(lv *level, typ string) {
	if lv.types[typ] {
		return
	}
	lv.types[typ] = true
	for _, r := range l.g.routes[typ] {
		if r.step.mode == modeCollect {
			l.join(lv, r.step)
		} else {
			l.run(lv, r.step)
		}
	}
}

// join records a collector of the level. The collector runs in the outer levels.
func (l *leveler) join(lv *level, st *step) {
	if lv.collectors[st] {
		return
	}
	lv.collectors[st] = true
	for _, outer := range lv.outer {
		l.run(outer, st)
	}
}

// run records that the step may run in the level.
func (l *leveler) run(lv *level, st *step) {
	if lv.runs[st] {
		return
	}
	lv.runs[st] = true
	l.todo = append(l.todo, func() {
		for typ := range st.single {
			l.reach(lv, typ)
		}
		if st.catcher != nil {
			l.run(lv, st.catcher)
		}
		for i := range st.lists {
			inner := l.of[&st.lists[i]]
			// The step may be reached in another level later: its collectors then run
			// there too.
			inner.outer = append(inner.outer, lv)
			for collector := range inner.collectors {
				l.run(lv, collector)
			}
		}
	})
}
