package engine

import (
	"fmt"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/diagram"
)

// Diagram returns the nodes and edges of the workflow: those of [Graph.Drawing], with the
// declarations of the steps, and with resources. The failure of a step leads to the step
// that catches it.
func (g *Graph) Diagram() (diagram.Diagram, error) {
	declared, err := g.declarations()
	if err != nil {
		return diagram.Diagram{}, err
	}
	out := diagram.Diagram{Workflow: g.manifest.Workflow, Description: g.manifest.Description}
	drawn, kinds := g.Drawing(), map[string]diagram.NodeKind{}
	for _, n := range drawn.Nodes {
		if n.ID == abi.TypeStepFailed {
			continue
		}
		node := diagram.Node{ID: n.ID, Label: n.Label, Description: n.Description}
		switch n.Kind {
		case "step":
			node.Kind, node.Step, node.Declared = diagram.NodeStep, n.Label, declared[n.Label]
		case "event":
			node.Kind = diagram.NodeEvent
			node.EventKind, _ = g.Kind(n.EventType)
		default:
			node.Kind, node.Label = diagram.NodeOutside, "outside"
		}
		kinds[n.ID] = node.Kind
		out.Nodes = append(out.Nodes, node)
	}
	for _, e := range drawn.Edges {
		if e.Source == abi.TypeStepFailed || e.Target == abi.TypeStepFailed {
			continue
		}
		edge := diagram.Edge{Source: e.Source, Target: e.Target, Label: e.Label}
		switch {
		case kinds[e.Source] == diagram.NodeOutside:
			edge.Kind = diagram.EdgeAnswers
		case kinds[e.Target] == diagram.NodeOutside:
			edge.Kind = diagram.EdgeAsks
		case kinds[e.Source] == diagram.NodeStep:
			edge.Kind = diagram.EdgeEmits
		case e.Label == "waits":
			edge.Kind, edge.Label = diagram.EdgeWaits, ""
		default:
			edge.Kind = diagram.EdgeAccepts
		}
		out.Edges = append(out.Edges, edge)
	}
	g.failures(&out)
	g.questions(&out)
	for _, name := range sortedKeys(g.resources) {
		r := g.resources[name]
		out.Nodes = append(out.Nodes, diagram.Node{
			ID: "resource:" + name, Kind: diagram.NodeResource, Label: name, Description: r.Description, Resource: r.Kind, Optional: r.Optional,
		})
	}
	return out, nil
}

// failures adds what leads to the steps that catch.
func (g *Graph) failures(out *diagram.Diagram) {
	d := drawing{g: g}
	catches := func(source string, by *step) {
		out.Edges = append(out.Edges, diagram.Edge{Source: source, Target: d.stepID(by), Kind: diagram.EdgeCatches})
	}
	for _, st := range g.steps {
		if st.catcher != nil {
			catches(d.stepID(st), st.catcher)
		}
	}
	for _, ending := range sortedKeys(g.cleaners) {
		id := "ending:" + ending
		out.Nodes = append(out.Nodes, diagram.Node{ID: id, Kind: diagram.NodeEnding, Label: ending})
		for _, st := range g.cleaners[ending] {
			catches(id, st)
		}
	}
}

// questions adds what the steps ask that wait for answers of people. A question of such a
// step is a declared type that no step emits; if there is none, the step itself asks.
func (g *Graph) questions(out *diagram.Diagram) {
	d := drawing{g: g}
	asks := func(source, target string) {
		out.Edges = append(out.Edges, diagram.Edge{Source: source, Target: target, Kind: diagram.EdgeAsks})
	}
	var asking []string
	for _, st := range g.steps {
		for _, typ := range sortedKeys(st.waits) {
			if kind, _ := g.Kind(typ); kind == abi.KindHumanResponse {
				asking = append(asking, d.stepID(st))
				break
			}
		}
	}
	if len(asking) == 0 {
		return
	}
	questions := []string{externalNode}
	for _, typ := range sortedKeys(g.types) {
		t := g.types[typ]
		drawn := slices.ContainsFunc(out.Nodes, func(n diagram.Node) bool { return n.ID == typ })
		if !t.declared || t.kind != abi.KindInputRequired || drawn {
			continue
		}
		if questions[0] == externalNode {
			questions = nil
		}
		questions = append(questions, typ)
		out.Nodes = append(out.Nodes, diagram.Node{ID: typ, Kind: diagram.NodeEvent, Label: typ, Description: t.decl.Description, EventKind: t.kind})
		asks(typ, externalNode)
	}
	for _, source := range asking {
		for _, target := range questions {
			asks(source, target)
		}
	}
}

// declarations returns the steps as the manifest declares them, by name.
func (g *Graph) declarations() (map[string]abi.Raw, error) {
	b, err := g.manifest.Encode()
	if err != nil {
		return nil, fmt.Errorf("write the manifest of workflow %s: %w", g.manifest.Workflow, err)
	}
	v, err := abi.DecodeValue(b)
	if err != nil {
		return nil, fmt.Errorf("read the manifest of workflow %s: %w", g.manifest.Workflow, err)
	}
	manifest, _ := v.(map[string]any)
	steps, _ := manifest["steps"].([]any)
	out := make(map[string]abi.Raw, len(steps))
	for i, step := range steps {
		if out[g.manifest.Steps[i].Name], err = abi.EncodeValue(step); err != nil {
			return nil, fmt.Errorf("write step %s: %w", g.manifest.Steps[i].Name, err)
		}
	}
	return out, nil
}
