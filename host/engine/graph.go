package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
)

// Graph is a compiled manifest: which step accepts which event, which steps collect which
// lists, which step catches whose failures. It is immutable and safe for concurrent use.
type Graph struct {
	manifest  *abi.Manifest
	steps     []*step
	byName    map[string]*step
	types     map[string]*eventType
	routes    map[string][]route          // by event type: the steps that accept it, in manifest order
	waits     map[string][]*step          // by event type: the steps that may wait for it, in manifest order
	answers   []host.Waiting              // answers of people that steps accept, in manifest order
	cleaners  map[string][]*step          // by abi.CatchCancelled and abi.CatchTimeout: the steps that clean up, in manifest order
	resources map[string]abi.ResourceDecl // that the plugins ask for
	fed       bool                        // some step accepts an event that comes from outside
	start     string
	stops     []string
	schema    *state.Schema
	defaults  *state.Node
	// correlation is how steps answer calls; nil: no step does.
	correlation *Correlation
}

// mode is how a step takes events.
type mode uint8

const (
	modeOne     mode = iota // each event is an invocation
	modeJoin                // one event of every slot is an invocation
	modeCollect             // the events of a collection are an invocation
)

// step is a compiled step declaration.
type step struct {
	index   int // in manifest order
	name    string
	decl    *abi.StepDecl
	mode    mode
	workers int
	take    uint64 // of modeCollect: events to wait for; 0: until the collection closes
	// single and lists are the types that the step may emit, subtypes included.
	single map[string]bool
	lists  []listEmit
	out    map[string]bool // all types of single and lists
	waits  map[string]bool // the types that it declares to wait for, without subtypes
	// catcher handles this step's failures when no retry is left; nil: no step does.
	catcher       *step
	maxRecoveries uint64
}

// listEmit is a list that a step may emit.
type listEmit struct {
	types      map[string]bool // of the elements, subtypes included
	collectors []*step         // the collectors that its events may reach, in manifest order
}

// route leads from an event type to a step that accepts it.
type route struct {
	step  *step
	slots []int // of a join: the slots that take the type
}

// inputName is the event type that represents a trigger of the step.
func (st *step) inputName(trigger []abi.Event) string {
	if st.mode == modeOne && len(trigger) > 0 {
		return trigger[0].Type
	}
	return st.decl.Accepts[0].Types[0]
}

// Bounds of a manifest, beyond those of its encoding. Compiling is quadratic in some of
// these numbers.
const (
	maxSteps     = 1000
	maxTypes     = 1000
	maxSlots     = 64 // of one step
	maxResources = 100
	maxNamed     = 50_000 // types, in all accepts and emits together
	maxLists     = 200    // list emits
	// maxFollowed bounds list emits times routes: the work of finding the collectors.
	maxFollowed = 20_000_000
)

// defaultWorkers is the number of concurrent invocations of a step that does not set it.
const defaultWorkers = 4

// compiler builds a graph and gathers the problems of its manifest.
type compiler struct {
	m        *abi.Manifest
	g        *Graph
	problems []host.Problem
}

// problem records a fault of the manifest. The message says how to fix it.
func (c *compiler) problem(code, step, event, format string, args ...any) {
	c.problems = append(c.problems, host.Problem{
		Code: code, Step: clip(step), Event: clip(event), Message: fmt.Sprintf(format, args...),
	})
}

// Compile checks a manifest as a whole workflow and compiles it. It returns either a
// graph or all problems of the manifest, in the order of the manifest as far as it has
// one. The graph owns the manifest, which must not be changed afterwards.
//
// Of a part (see [abi.Manifest]) Compile checks only the part's own declarations. Its
// events may come from steps of other parts and go to them, and it may catch their
// failures. No run can use the graph of a part.
func Compile(m *abi.Manifest) (*Graph, []host.Problem) {
	c := &compiler{m: m, g: &Graph{
		manifest: m,
		byName:   make(map[string]*step, len(m.Steps)),
		types:    make(map[string]*eventType, len(m.Events)+len(abi.BaseKinds)),
		routes:   make(map[string][]route, len(m.Events)),
		waits:    make(map[string][]*step),
		cleaners: make(map[string][]*step),
	}}
	// Everything after this may be quadratic in the sizes.
	if !c.sizes() {
		return nil, c.problems
	}
	c.eventTypes()
	for i := range m.Steps {
		c.step(&m.Steps[i])
	}
	c.catchers()
	c.state()
	c.resources()
	// A part is not a workflow: its routes are known only when all parts are.
	if !m.Part && c.route() {
		c.whole()
	}
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return c.g, nil
}

// resources records the resources that the plugins ask for. A resource is optional if it
// is optional for every plugin that asks for it.
func (c *compiler) resources() {
	c.g.resources = make(map[string]abi.ResourceDecl, len(c.m.Resources))
	for _, d := range c.m.Resources {
		if other, twice := c.g.resources[d.Name]; twice {
			if d.Kind != other.Kind {
				c.problem("resource_kinds", "", "", "the resource %s is asked for as one of the kind %s and one of the kind %s: use two names", clip(d.Name), clip(other.Kind), clip(d.Kind))
			}
			d.Optional = d.Optional && other.Optional
		}
		c.g.resources[d.Name] = d
	}
}

// sizes refuses a manifest that would be too much work to compile.
func (c *compiler) sizes() bool {
	if n := len(c.m.Steps); n == 0 || n > maxSteps {
		c.problem("limit_exceeded", "", "", "the manifest has %d steps: it needs 1 to %d", n, maxSteps)
	}
	if n := len(c.m.Events); n > maxTypes {
		c.problem("limit_exceeded", "", "", "the manifest declares %d event types, more than %d", n, maxTypes)
	}
	if n := len(c.m.Resources); n > maxResources {
		c.problem("limit_exceeded", "", "", "the manifest asks for %d resources, more than %d", n, maxResources)
	}
	named := 0
	for i := range c.m.Steps {
		for _, slot := range c.m.Steps[i].Accepts {
			named += len(slot.Types)
		}
		for _, emit := range c.m.Steps[i].Emits {
			named += len(emit.Types)
		}
		named += len(c.m.Steps[i].Waits)
	}
	if named > maxNamed {
		c.problem("limit_exceeded", "", "", "the steps name %d event types in what they accept, emit and wait for, more than %d", named, maxNamed)
	}
	return len(c.problems) == 0
}

// route fills the routing table and the collectors of list emits. It returns false if
// that would be too much work.
func (c *compiler) route() bool {
	routes, lists := 0, 0
	for _, st := range c.g.steps {
		slots := make(map[string][]int)
		for i, slot := range st.decl.Accepts {
			for typ := range c.g.closure(slot.Types, st.decl.AcceptSubtypes) {
				slots[typ] = append(slots[typ], i)
			}
		}
		for typ, in := range slots {
			c.g.routes[typ] = append(c.g.routes[typ], route{step: st, slots: in})
		}
		for _, typ := range sortedKeys(slots) {
			if c.g.types[typ].kind == abi.KindHumanResponse {
				c.g.answers = append(c.g.answers, host.Waiting{Step: st.name, Type: typ})
			}
		}
		routes += len(slots)
		lists += len(st.lists)
	}
	if lists > maxLists || routes*lists > maxFollowed {
		c.problem("limit_exceeded", "", "", "%d emitted lists that may go %d ways are more than can be followed: emit at most %d lists, or accept fewer types", lists, routes, maxLists)
		return false
	}
	c.collectors()
	return true
}

// closure returns the known types among types and, if subtypes is set, their subtypes.
func (g *Graph) closure(types []string, subtypes bool) map[string]bool {
	out := make(map[string]bool, len(types))
	for _, typ := range types {
		t, ok := g.types[typ]
		if !ok {
			continue
		}
		out[typ] = true
		if subtypes {
			for _, d := range t.descendants {
				out[d] = true
			}
		}
	}
	return out
}

// Workflow returns the name of the workflow.
func (g *Graph) Workflow() string { return g.manifest.Workflow }

// Manifest returns the manifest of the graph. It must not be changed.
func (g *Graph) Manifest() *abi.Manifest { return g.manifest }

// Timeout returns the timeout that the manifest sets for a run, 0 for none. set is false
// if the manifest leaves the timeout to the host.
func (g *Graph) Timeout() (d time.Duration, set bool) {
	if g.manifest.Timeout == nil {
		return 0, false
	}
	return *g.manifest.Timeout, true
}

// StartType returns the event type that begins a run.
func (g *Graph) StartType() string { return g.start }

// StopTypes returns the event types with which steps may end a run, sorted.
func (g *Graph) StopTypes() []string { return slices.Clone(g.stops) }

// Kind returns the kind of an event type, inherited through extends. known is false for a
// type that is neither declared nor base.
func (g *Graph) Kind(typ string) (kind abi.EventKind, known bool) {
	t, ok := g.types[typ]
	if !ok {
		return "", false
	}
	return t.kind, true
}

// Ancestors returns the types that a type extends: nearest first, ending in the base type
// of its kind. The list is nil for base types and for plain types that extend nothing.
// Callers must not change it.
func (g *Graph) Ancestors(typ string) []string {
	if t, ok := g.types[typ]; ok {
		return t.ancestors
	}
	return nil
}

// EventTypes returns all declared event types and the base types that steps use, sorted.
func (g *Graph) EventTypes() []string {
	var out []string
	for _, name := range sortedKeys(g.types) {
		if t := g.types[name]; t.declared || t.used {
			out = append(out, name)
		}
	}
	return out
}

// HasStep reports whether the workflow has a step of that name.
func (g *Graph) HasStep(name string) bool { return g.byName[name] != nil }

// Accepts reports whether the step accepts events of the type.
func (g *Graph) Accepts(step, typ string) bool {
	return slices.ContainsFunc(g.routes[typ], func(r route) bool { return r.step.name == step })
}

// CheckPost reports whether a client may send an event of the type to a run: to the named
// step or, if step is "", to all steps that accept it. A known type that no step accepts
// is not an error. All errors are [host.CodeInvalidArgument].
func (g *Graph) CheckPost(typ, step string) *host.Error {
	kind, known := g.Kind(typ)
	switch {
	case IsRuntimeType(typ):
		return host.Errorf(host.CodeInvalidArgument, "Invalid event type: %s. Only the server makes events of this type", clip(typ))
	case !known:
		return host.Errorf(host.CodeInvalidArgument, "Invalid event type: %s. Expected one of %s", clip(typ), strings.Join(g.EventTypes(), ", "))
	case kind == abi.KindStart:
		return host.Errorf(host.CodeInvalidArgument, "Invalid event type: %s. A start event begins a run and cannot be sent to one", typ)
	case kind == abi.KindStop:
		return host.Errorf(host.CodeInvalidArgument, "Invalid event type: %s. Only a step can end a run", typ)
	case g.correlation.inner(typ):
		return host.Errorf(host.CodeInvalidArgument, "Invalid event type: %s. Only steps of the workflow make events of this type", typ)
	case step == "":
		return nil
	case !g.HasStep(step):
		return host.Errorf(host.CodeInvalidArgument, "Step %s does not exist", clip(step))
	case !g.Accepts(step, typ) && !g.keeps(typ, step):
		return host.Errorf(host.CodeInvalidArgument, "Step %s does not accept events of type %s", step, typ)
	}
	return nil
}

// StateDefaults returns the declared defaults of the session state; nil: none.
func (g *Graph) StateDefaults() *state.Node { return g.defaults }

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// clip bounds the length of a name in a message.
func clip(s string) string { return abi.Clip(s, 256) }
