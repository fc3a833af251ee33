package engine_test

import (
	"slices"

	"github.com/weftrun/weft/abi"
)

// The model reads the whole manifest each time it needs a fact about it.

// modelGraph is a workflow as the model sees it.
type modelGraph struct{ m *abi.Manifest }

// kindOf returns the kind of a type, which it may inherit from the type that it extends.
func (g modelGraph) kindOf(typ string) (kind abi.EventKind, known bool) {
	if kind, base := abi.BaseKinds[typ]; base {
		return kind, true
	}
	decl, ok := g.m.Events[typ]
	if !ok {
		return "", false
	}
	if decl.Kind == "" && decl.Extends != "" {
		return g.kindOf(decl.Extends)
	}
	return decl.Kind, true
}

// isA reports whether a type is another type or a subtype of it.
func (g modelGraph) isA(typ, of string) bool {
	if typ == of {
		return true
	}
	kind, known := g.kindOf(typ)
	if !known {
		return false
	}
	if base, is := abi.BaseKinds[of]; is {
		_, self := abi.BaseKinds[typ]
		return kind == base && !self
	}
	decl := g.m.Events[typ]
	return decl.Extends != "" && g.isA(decl.Extends, of)
}

func (g modelGraph) step(name string) *abi.StepDecl {
	for i := range g.m.Steps {
		if g.m.Steps[i].Name == name {
			return &g.m.Steps[i]
		}
	}
	return nil
}

// slotTakes reports whether a slot of a step takes a type.
func (g modelGraph) slotTakes(st *abi.StepDecl, slot abi.Slot, typ string) bool {
	for _, of := range slot.Types {
		if typ == of || st.AcceptSubtypes && g.isA(typ, of) {
			return true
		}
	}
	return false
}

func (g modelGraph) accepts(st *abi.StepDecl, typ string) bool {
	for _, slot := range st.Accepts {
		if g.slotTakes(st, slot, typ) {
			return true
		}
	}
	return false
}

// fed reports whether some step accepts a type that no step emits.
func (g modelGraph) fed() bool {
	for i := range g.m.Steps {
		st := &g.m.Steps[i]
		for _, slot := range st.Accepts {
			for _, of := range slot.Types {
				made, posted := false, false
				for _, typ := range g.allTypes() {
					if typ != of && (!st.AcceptSubtypes || !g.isA(typ, of)) {
						continue
					}
					kind, _ := g.kindOf(typ)
					if kind == abi.KindHumanResponse {
						return true
					}
					posted = posted || kind != abi.KindStart && kind != abi.KindStop
					for j := range g.m.Steps {
						for n := range g.m.Steps[j].Emits {
							emit := g.m.Steps[j].Emits[n]
							made = made || emit.List && g.inList(emit, typ) || !emit.List && g.mayEmit(&g.m.Steps[j], typ)
						}
					}
				}
				if posted && !made {
					return true
				}
			}
		}
	}
	return false
}

// waitsFor reports whether a step declares that it may wait for a type.
func (g modelGraph) waitsFor(st *abi.StepDecl, typ string) bool {
	for _, of := range st.Waits {
		if typ == of || st.AcceptSubtypes && g.isA(typ, of) {
			return true
		}
	}
	return false
}

func isJoin(st *abi.StepDecl) bool { return len(st.Accepts) > 1 }

func isCollector(st *abi.StepDecl) bool {
	return len(st.Accepts) == 1 && st.Accepts[0].Kind == abi.SlotList
}

func workersOf(st *abi.StepDecl) int {
	if st.Workers == 0 {
		return 4
	}
	return st.Workers
}

// mayEmit reports whether a step may emit a type by itself, not in a list.
func (g modelGraph) mayEmit(st *abi.StepDecl, typ string) bool {
	for _, emit := range st.Emits {
		if !emit.List && g.isA(typ, emit.Types[0]) {
			return true
		}
	}
	return false
}

// inList reports whether a type may be in a list.
func (g modelGraph) inList(emit abi.Emit, typ string) bool {
	for _, of := range emit.Types {
		if g.isA(typ, of) {
			return true
		}
	}
	return false
}

// listsFor returns the numbers of the list emits that may have all those types.
func (g modelGraph) listsFor(st *abi.StepDecl, events []abi.Event) []int {
	var out []int
	for i, emit := range st.Emits {
		fits := emit.List
		for _, ev := range events {
			fits = fits && g.inList(emit, ev.Type)
		}
		if fits {
			out = append(out, i)
		}
	}
	return out
}

// catcherOf returns the step that handles the failures of another step, or nil.
func (g modelGraph) catcherOf(st *abi.StepDecl) *abi.StepDecl {
	for i := range g.m.Steps {
		if slices.Contains(g.m.Steps[i].Catches, st.Name) {
			return &g.m.Steps[i]
		}
	}
	for i := range g.m.Steps {
		if g.m.Steps[i].CatchesAll && g.m.Steps[i].Name != st.Name {
			return &g.m.Steps[i]
		}
	}
	return nil
}

// allTypes lists the declared types and the runtime's types that every workflow has.
func (g modelGraph) allTypes() []string {
	var out []string
	for typ := range g.m.Events {
		out = append(out, typ)
	}
	for typ := range abi.BaseKinds {
		if !slices.Contains(out, typ) {
			out = append(out, typ)
		}
	}
	slices.Sort(out)
	return out
}

// listEmitOf names a list emit: its step, and its number there.
type listEmitOf struct {
	step string
	emit int
}

// inside is what may happen in the collections that a list emit opens.
type inside struct {
	types, steps, collectors map[string]bool
	around                   map[listEmitOf]bool // lists that may be open around it
}

// collectorsOf finds for each list emit the collectors that its branches may reach. It
// follows every event from every list until nothing new is found.
func (g modelGraph) collectorsOf() map[listEmitOf][]string {
	all := make(map[listEmitOf]*inside)
	for i := range g.m.Steps {
		for n, emit := range g.m.Steps[i].Emits {
			if !emit.List {
				continue
			}
			in := &inside{types: map[string]bool{}, steps: map[string]bool{}, collectors: map[string]bool{}, around: map[listEmitOf]bool{}}
			for _, typ := range g.allTypes() {
				in.types[typ] = g.inList(emit, typ)
			}
			all[listEmitOf{g.m.Steps[i].Name, n}] = in
		}
	}
	for before := -1; before != size(all); {
		before = size(all)
		for name, in := range all {
			g.spread(all, name, in)
		}
	}
	out := make(map[listEmitOf][]string)
	for name, in := range all {
		for i := range g.m.Steps {
			if in.collectors[g.m.Steps[i].Name] {
				out[name] = append(out[name], g.m.Steps[i].Name)
			}
		}
	}
	return out
}

// spread follows the events of one list once.
func (g modelGraph) spread(all map[listEmitOf]*inside, name listEmitOf, in *inside) {
	for typ, may := range in.types {
		for i := range g.m.Steps {
			st := &g.m.Steps[i]
			switch {
			case !may || !g.accepts(st, typ):
			case isCollector(st):
				in.collectors[st.Name] = true
			default:
				in.steps[st.Name] = true
			}
		}
	}
	for around := range in.around { // a collector belongs to the collection around it
		for st := range in.collectors {
			all[around].steps[st] = true
		}
	}
	for i := range g.m.Steps {
		st := &g.m.Steps[i]
		if !in.steps[st.Name] {
			continue
		}
		for _, typ := range g.allTypes() {
			if g.mayEmit(st, typ) {
				in.types[typ] = true
			}
		}
		if c := g.catcherOf(st); c != nil {
			in.steps[c.Name] = true
		}
		for n, emit := range st.Emits {
			if emit.List {
				all[listEmitOf{st.Name, n}].around[name] = true
			}
		}
	}
}

func size(all map[listEmitOf]*inside) int {
	n := 0
	for _, in := range all {
		for _, may := range in.types {
			if may {
				n++
			}
		}
		n += len(in.steps) + len(in.collectors) + len(in.around)
	}
	return n
}
