package wefttest

import (
	"slices"

	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// manifest is the part of a workflow's manifest that is needed to run it.
type manifest struct {
	Abi      int
	Workflow string
	Steps    []stepDecl
	Events   map[string]eventDecl
	State    struct {
		Default map[string]any `weft:",omitempty"`
	} `weft:",omitempty"`
	Resources []resourceDecl `weft:",omitempty"`
}

type resourceDecl struct{ Name string }

// wants tells whether the workflow asks for a resource.
func (m *manifest) wants(name string) bool {
	return slices.ContainsFunc(m.Resources, func(r resourceDecl) bool { return r.Name == name })
}

type eventDecl struct {
	Kind    string `weft:",omitempty"`
	Extends string `weft:",omitempty"`
}

type stepDecl struct {
	Name    string
	Accepts []any
	Emits   []any    `weft:",omitempty"`
	Waits   []string `weft:",omitempty"`
	Catches any      `weft:",omitempty"`

	Atomic         bool `weft:",omitempty"`
	AcceptSubtypes bool `weft:",omitempty"`

	list  bool // collects
	take  int
	types []string // that it accepts
}

func readManifest(b []byte) (*manifest, error) {
	m := &manifest{}
	if err := codec.Unmarshal(b, m); err != nil {
		return nil, err
	}
	for i := range m.Steps {
		s := &m.Steps[i]
		for _, slot := range s.Accepts {
			s.addSlot(slot)
		}
	}
	return m, nil
}

func (s *stepDecl) addSlot(slot any) {
	parts, ok := slot.([]any)
	if !ok {
		s.types = append(s.types, slot.(string))
		return
	}
	s.types = append(s.types, texts(parts[1])...)
	s.list = parts[0] == "list"
	if len(parts) > 2 {
		s.take = int(parts[2].(int64))
	}
}

// join tells whether the step waits for one event of each of its types.
func (s *stepDecl) join() bool { return len(s.Accepts) > 1 }

// emit is one entry of a step's emits.
type emit struct {
	types []string
	list  bool
}

func (s *stepDecl) emits() []emit {
	var emits []emit
	for _, e := range s.Emits {
		if parts, ok := e.([]any); ok {
			emits = append(emits, emit{texts(parts[1]), true})
		} else {
			emits = append(emits, emit{[]string{e.(string)}, false})
		}
	}
	return emits
}

// mayEmit tells whether the step declares an event type.
func (s *stepDecl) mayEmit(name string) bool {
	return slices.ContainsFunc(s.emits(), func(e emit) bool { return slices.Contains(e.types, name) })
}

func texts(v any) []string {
	var list []string
	for _, item := range v.([]any) {
		list = append(list, item.(string))
	}
	return list
}

// catcher gives the step that catches the failures of another, or nil.
func (m *manifest) catcher(failed *stepDecl) *stepDecl {
	var all *stepDecl
	for i := range m.Steps {
		s := &m.Steps[i]
		switch catches := s.Catches.(type) {
		case string:
			all = s
		case []any:
			if slices.Contains(catches, any(failed.Name)) {
				return s
			}
		}
	}
	if all == failed {
		return nil
	}
	return all
}

// waitedFor tells whether a step waits for events of the type.
func (m *manifest) waitedFor(name string) bool {
	return slices.ContainsFunc(m.Steps, func(s stepDecl) bool { return m.isOneOf(name, s.Waits, s.AcceptSubtypes) })
}

// is tells whether an event of one type counts as one of another.
func (m *manifest) is(name, other string, subtypes bool) bool {
	for range len(m.Events) + 1 {
		if name == other {
			return true
		}
		if name = m.Events[name].Extends; !subtypes {
			break
		}
	}
	return false
}

func (m *manifest) isOneOf(name string, types []string, subtypes bool) bool {
	return slices.ContainsFunc(types, func(other string) bool { return m.is(name, other, subtypes) })
}

// kind gives the kind of an event type.
func (m *manifest) kind(name string) string {
	switch name {
	case "StartEvent":
		return "start"
	case "StopEvent":
		return "stop"
	case "InputRequiredEvent":
		return "input_required"
	case "HumanResponseEvent":
		return "human_response"
	}
	return m.Events[name].Kind
}

// startType gives the type of the workflow's start event.
func (m *manifest) startType() string {
	for name, decl := range m.Events {
		if decl.Kind == "start" {
			return name
		}
	}
	return "StartEvent"
}

// accepting gives the steps that accept a type.
func (m *manifest) accepting(name string) []*stepDecl {
	var steps []*stepDecl
	for i := range m.Steps {
		if s := &m.Steps[i]; m.isOneOf(name, s.types, s.AcceptSubtypes) {
			steps = append(steps, s)
		}
	}
	return steps
}

// collectors gives the steps that collect what a list of events of the type
// leads to. A list on the way opens a stream within this one, whose collector
// leads back to it.
func (m *manifest) collectors(name string) []*stepDecl {
	type place struct {
		name  string
		depth int
	}
	var found []*stepDecl
	seen := map[place]bool{}
	var follow func(p place)
	follow = func(p place) {
		if seen[p] || p.depth > len(m.Steps) {
			return
		}
		seen[p] = true
		for _, s := range m.accepting(p.name) {
			if s.list && p.depth == 0 {
				found = append(found, s)
				continue
			}
			for _, e := range s.emits() {
				next := place{depth: p.depth}
				if s.list {
					next.depth--
				}
				if e.list {
					next.depth++
				}
				for _, next.name = range e.types {
					follow(next)
				}
			}
		}
	}
	follow(place{name: name})
	return found
}
