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

// Graph is a compiled manifest: which step accepts which event, which steps
// collect which lists, who catches whose failures. It is immutable and may be
// used by any number of goroutines.
type Graph struct {
	manifest  *abi.Manifest
	steps     []*step
	byName    map[string]*step
	types     map[string]*eventType
	routes    map[string][]route          // by event type: the steps that accept it, in manifest order
	waits     map[string][]*step          // by event type: the steps that may wait for it, in manifest order
	answers   []host.Waiting              // of people, that steps accept, in manifest order
	cleaners  map[string][]*step          // by abi.CatchCancelled and abi.CatchTimeout: who cleans up, in manifest order
	resources map[string]abi.ResourceDecl // that its plugins ask for
	fed       bool                        // some step accepts an event that comes from outside
	start     string
	stops     []string
	schema    *state.Schema
	defaults  *state.Node
	// correlation is how steps answer calls; nil: they do not.
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
	take    uint64 // of modeCollect; 0: when the collection closes
	// single and lists are what the step may emit, subtypes included.
	single map[string]bool
	lists  []listEmit
	out    map[string]bool // all types of single and lists
	waits  map[string]bool // that it declares to wait for, without subtypes
	// catcher handles this step's exhausted failures; nil: nobody.
	catcher       *step
	maxRecoveries uint64
}

// listEmit is a list that a step may emit.
type listEmit struct {
	types      map[string]bool // of the elements, subtypes included
	collectors []*step         // that may be reached from it, in manifest order
}

// route leads from an event type to a step that accepts it.
type route struct {
	step  *step
	slots []int // of a join: those that take the type
}

// inputName is the event type that stands for a trigger of the step.
func (st *step) inputName(trigger []abi.Event) string {
	if st.mode == modeOne && len(trigger) > 0 {
		return trigger[0].Type
	}
	return st.decl.Accepts[0].Types[0]
}

// Bounds of a manifest beyond those of its encoding; compiling is quadratic in
// some of them.
const (
	maxSteps     = 1000
	maxTypes     = 1000
	maxSlots     = 64 // of one step
	maxResources = 100
	maxNamed     = 50_000 // types, in all accepts and emits together
	maxLists     = 200    // list emits
	// maxFollowed bounds list emits times routes: what is looked at to find the
	// collectors.
	maxFollowed = 20_000_000
)

// defaultWorkers is the number of concurrent invocations of a step that does
// not say.
const defaultWorkers = 4

// compiler builds a graph and gathers what is wrong with it.
type compiler struct {
	m        *abi.Manifest
	g        *Graph
	problems []host.Problem
}

// problem notes a fault of the manifest; the message says how to mend it.
func (c *compiler) problem(code, step, event, format string, args ...any) {
	c.problems = append(c.problems, host.Problem{
		Code: code, Step: clip(step), Event: clip(event), Message: fmt.Sprintf(format, args...),
	})
}

// Compile checks a manifest as a whole workflow and compiles it. It returns
// either a graph or everything that is wrong with the manifest, in the order
// of the manifest where there is one. The manifest belongs to the graph from
// then on and must not be changed.
//
// Of a part (see [abi.Manifest]) only its own declarations are checked: events
// may come from the steps of other parts and go there, and it may catch their
// failures. No run can be made of its graph.
func Compile(m *abi.Manifest) (*Graph, []host.Problem) {
	c := &compiler{m: m, g: &Graph{
		manifest: m,
		byName:   make(map[string]*step, len(m.Steps)),
		types:    make(map[string]*eventType, len(m.Events)+len(abi.BaseKinds)),
		routes:   make(map[string][]route, len(m.Events)),
		waits:    make(map[string][]*step),
		cleaners: make(map[string][]*step),
	}}
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
	if !m.Part && c.route() {
		c.whole()
	}
	if len(c.problems) > 0 {
		return nil, c.problems
	}
	return c.g, nil
}

// resources notes the resources that the plugins ask for. One that several ask for
// is optional if all can do without it.
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

// sizes refuses what would be too much work to look at.
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

// route fills the routing table and the collectors of list emits. It is false
// if that would be too much work.
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

// closure is the set of the known types among types, with their subtypes if
// asked for.
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

// Workflow is the name of the workflow.
func (g *Graph) Workflow() string { return g.manifest.Workflow }

// Manifest is what the graph was compiled from. It must not be changed.
func (g *Graph) Manifest() *abi.Manifest { return g.manifest }

// Timeout is the timeout that the manifest sets for a run, 0 for none; set is
// false if it leaves it to the host.
func (g *Graph) Timeout() (d time.Duration, set bool) {
	if g.manifest.Timeout == nil {
		return 0, false
	}
	return *g.manifest.Timeout, true
}

// StartType is the event type that a run begins with.
func (g *Graph) StartType() string { return g.start }

// StopTypes are the event types that steps may end a run with, sorted.
func (g *Graph) StopTypes() []string { return slices.Clone(g.stops) }

// Kind is the kind of an event type, inherited through extends; known is false
// for a type that is neither declared nor base.
func (g *Graph) Kind(typ string) (kind abi.EventKind, known bool) {
	t, ok := g.types[typ]
	if !ok {
		return "", false
	}
	return t.kind, true
}

// Ancestors lists the types that a type extends, nearest first, ending in the
// base type of its kind. It is nil for base types and for plain types that
// extend nothing. The caller must not change it.
func (g *Graph) Ancestors(typ string) []string {
	if t, ok := g.types[typ]; ok {
		return t.ancestors
	}
	return nil
}

// EventTypes lists all declared event types and the base types that steps use,
// sorted.
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

// Accepts reports whether the step takes events of the type.
func (g *Graph) Accepts(step, typ string) bool {
	return slices.ContainsFunc(g.routes[typ], func(r route) bool { return r.step.name == step })
}

// CheckPost says whether a client may give such an event to a run: to the step
// if one is named, else to all that accept it. A known type that no step
// accepts is no error. All errors are [host.CodeInvalidArgument].
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

// StateDefaults are the declared defaults of the session state, nil without.
func (g *Graph) StateDefaults() *state.Node { return g.defaults }

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// clip bounds a name in a message.
func clip(s string) string { return abi.Clip(s, 256) }
