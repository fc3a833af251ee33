package flow

import (
	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/diagram"
)

// Drawing returns a flow as a graph of its nodes and their order.
func (d *Document) Drawing() diagram.Graph {
	w := &drawing{}
	w.event(TypeStart, abi.TypeStart)
	ends := w.sequence(d.Root.Steps, []string{TypeStart})
	w.event(abi.TypeStop, "")
	w.lead(ends, abi.TypeStop)
	return w.out
}

// drawing gathers a graph.
type drawing struct{ out diagram.Graph }

func (w *drawing) event(typ, ancestor string) {
	n := diagram.GraphNode{ID: typ, Label: typ, Kind: "event", EventType: typ, EventTypes: []string{typ}}
	if ancestor != "" {
		n.EventTypes = append(n.EventTypes, ancestor)
	}
	w.out.Nodes = append(w.out.Nodes, n)
}

func (w *drawing) lead(from []string, to string) {
	for _, source := range from {
		w.out.Edges = append(w.out.Edges, diagram.GraphEdge{Source: source, Target: to})
	}
}

// sequence draws nodes after the nodes in from, and returns the last ones.
func (w *drawing) sequence(nodes []*Node, from []string) []string {
	for _, n := range nodes {
		from = w.node(n, from)
	}
	return from
}

func (w *drawing) node(n *Node, from []string) []string {
	w.out.Nodes = append(w.out.Nodes, diagram.GraphNode{ID: n.Path, Label: n.Name, Kind: "step", Description: n.About()})
	w.lead(from, n.Path)
	self := []string{n.Path}
	switch n.Kind {
	case KindSteps:
		return w.sequence(n.Steps, self)
	case KindParallel, KindRouter:
		var ends []string
		for _, c := range n.Steps {
			ends = append(ends, w.node(c, self)...)
		}
		return ends
	case KindCondition:
		ends := w.sequence(n.Steps, self)
		if len(n.Else) == 0 {
			return append(ends, n.Path)
		}
		return append(ends, w.sequence(n.Else, self)...)
	case KindLoop:
		w.lead(w.sequence(n.Steps, self), n.Path)
	}
	return self
}

// About describes a node in one line.
func (n *Node) About() string {
	text := string(n.Kind)
	switch {
	case n.Function != "":
		text = n.Function
	case n.Workflow != "":
		text = "workflow " + n.Workflow
	case n.Test == nil:
	case n.Test.Function != "":
		text += " by " + n.Test.Function
	case n.Test.expr != nil:
		text += " by " + n.Test.expr.text
	}
	if n.Description != "" {
		text += ": " + n.Description
	}
	return text
}
