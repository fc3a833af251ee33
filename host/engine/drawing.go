package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/diagram"
)

// externalNode is the id of the node for the outside world, where people answer.
const externalNode = "external_step"

// Drawing returns the workflow as nodes and edges, both sorted by name. The schema of an
// event node has the type's name as its title. It is nil for types without a declared
// schema. If a step and an event type share a name, the step's id is "step:" and the
// name.
func (g *Graph) Drawing() diagram.Graph {
	d := drawing{g: g, events: make(map[string]*diagram.GraphNode)}
	for _, st := range g.steps {
		d.step(st)
	}
	var out diagram.Graph
	for _, st := range g.steps {
		out.Nodes = append(out.Nodes, diagram.GraphNode{ID: d.stepID(st), Label: st.name, Kind: "step", Description: st.decl.Description})
	}
	for _, name := range sortedKeys(d.events) {
		n := d.events[name]
		slices.Sort(n.ProducedBy)
		n.ProducedBy = slices.Compact(n.ProducedBy)
		out.Nodes = append(out.Nodes, *n)
	}
	if d.external {
		out.Nodes = append(out.Nodes, diagram.GraphNode{ID: externalNode, Label: externalNode, Kind: "external"})
	}
	slices.SortStableFunc(out.Nodes, func(a, b diagram.GraphNode) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(d.edges, func(a, b diagram.GraphEdge) int {
		return cmp.Or(strings.Compare(a.Source, b.Source), strings.Compare(a.Target, b.Target), strings.Compare(b.Label, a.Label))
	})
	// Draw one of several edges between two nodes, with a label if one of them has it.
	out.Edges = slices.CompactFunc(d.edges, func(a, b diagram.GraphEdge) bool { return a.Source == b.Source && a.Target == b.Target })
	return out
}

// drawing is a graph while it is drawn.
type drawing struct {
	g        *Graph
	events   map[string]*diagram.GraphNode
	edges    []diagram.GraphEdge
	external bool
}

func (d *drawing) stepID(st *step) string {
	if _, clash := d.g.types[st.name]; clash || st.name == externalNode || IsRuntimeType(st.name) {
		return "step:" + st.name
	}
	return st.name
}

func (d *drawing) edge(source, target, label string) {
	d.edges = append(d.edges, diagram.GraphEdge{Source: source, Target: target, Label: label})
}

// label describes how a slot takes its events.
func (st *step) label(slot *abi.Slot) string {
	switch {
	case slot.Kind == abi.SlotList && slot.Take > 0:
		return fmt.Sprintf("collects %d", slot.Take)
	case slot.Kind == abi.SlotList:
		return "collects"
	case st.mode == modeJoin:
		return "joins"
	}
	return ""
}

// step draws what a step emits, accepts, waits for and catches.
func (d *drawing) step(st *step) {
	id := d.stepID(st)
	for _, emit := range st.decl.Emits {
		for _, typ := range emit.Types {
			n := d.event(typ)
			n.ProducedBy = append(n.ProducedBy, id)
			label := ""
			if emit.List {
				label = "list"
			}
			d.edge(id, typ, label)
		}
	}
	for i := range st.decl.Accepts {
		for _, typ := range st.decl.Accepts[i].Types {
			d.accepts(st, typ, st.label(&st.decl.Accepts[i]))
		}
	}
	for typ := range st.waits {
		d.event(typ)
		d.edge(typ, id, "waits")
	}
	if st.catcher != nil {
		n := d.event(abi.TypeStepFailed)
		n.ProducedBy = append(n.ProducedBy, id)
		d.edge(id, abi.TypeStepFailed, "")
	}
}

// accepts draws that a step takes a type and, if it accepts subtypes, its used subtypes.
func (d *drawing) accepts(st *step, typ, label string) {
	id := d.stepID(st)
	d.event(typ)
	d.edge(typ, id, label)
	if !st.decl.AcceptSubtypes || IsRuntimeType(typ) {
		return
	}
	for _, sub := range d.g.types[typ].descendants {
		if t := d.g.types[sub]; t.used {
			d.event(sub)
			d.edge(sub, id, label)
		}
	}
}

// event adds an event type once, with its edges to the outside.
func (d *drawing) event(typ string) *diagram.GraphNode {
	if n, ok := d.events[typ]; ok {
		return n
	}
	n := &diagram.GraphNode{
		ID: typ, Label: typ, Kind: "event", EventType: typ,
		EventTypes: append([]string{typ}, d.g.Ancestors(typ)...),
	}
	d.events[typ] = n
	t, ok := d.g.types[typ]
	if !ok {
		return n // StepFailedEvent
	}
	n.Description, n.Schema = t.decl.Description, titled(t.decl.Schema, typ)
	switch t.kind {
	case abi.KindInputRequired:
		d.external = true
		d.edge(typ, externalNode, "")
	case abi.KindHumanResponse:
		d.external = true
		d.edge(externalNode, typ, "")
	}
	return n
}

// titled returns the schema with a title, unless it has a title already.
func titled(schema abi.Raw, title string) abi.Raw {
	if schema == nil {
		return nil
	}
	v, err := abi.DecodeValue(schema)
	m, ok := v.(map[string]any)
	if err != nil || !ok || m["title"] != nil {
		return schema
	}
	m["title"] = title
	out, err := abi.EncodeValue(m)
	if err != nil {
		return schema
	}
	return out
}
