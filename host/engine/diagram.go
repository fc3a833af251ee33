package engine

import (
	"fmt"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// Diagram returns the nodes and edges of the workflow: those of [Graph.Drawing], with the
// declarations of the steps, and with resources. The failure of a step leads to the step
// that catches it.
func (g *Graph) Diagram() (host.Diagram, error) {
	declared, err := g.declarations()
	if err != nil {
		return host.Diagram{}, err
	}
	out := host.Diagram{Workflow: g.manifest.Workflow, Description: g.manifest.Description}
	drawn, kinds := g.Drawing(), map[string]host.NodeKind{}
	for _, n := range drawn.Nodes {
		if n.ID == abi.TypeStepFailed {
			continue
		}
		node := host.DiagramNode{ID: n.ID, Label: n.Label, Description: n.Description}
		switch n.Kind {
		case "step":
			node.Kind, node.Step, node.Declared = host.NodeStep, n.Label, declared[n.Label]
		case "event":
			node.Kind = host.NodeEvent
			node.EventKind, _ = g.Kind(n.EventType)
		default:
			node.Kind, node.Label = host.NodeOutside, "outside"
		}
		kinds[n.ID] = node.Kind
		out.Nodes = append(out.Nodes, node)
	}
	for _, e := range drawn.Edges {
		if e.Source == abi.TypeStepFailed || e.Target == abi.TypeStepFailed {
			continue
		}
		edge := host.DiagramEdge{Source: e.Source, Target: e.Target, Label: e.Label}
		switch {
		case kinds[e.Source] == host.NodeOutside:
			edge.Kind = host.EdgeAnswers
		case kinds[e.Target] == host.NodeOutside:
			edge.Kind = host.EdgeAsks
		case kinds[e.Source] == host.NodeStep:
			edge.Kind = host.EdgeEmits
		case e.Label == "waits":
			edge.Kind, edge.Label = host.EdgeWaits, ""
		default:
			edge.Kind = host.EdgeAccepts
		}
		out.Edges = append(out.Edges, edge)
	}
	g.failures(&out)
	g.questions(&out)
	for _, name := range sortedKeys(g.resources) {
		r := g.resources[name]
		out.Nodes = append(out.Nodes, host.DiagramNode{
			ID: "resource:" + name, Kind: host.NodeResource, Label: name, Description: r.Description, Resource: r.Kind, Optional: r.Optional,
		})
	}
	return out, nil
}

// failures adds what leads to the steps that catch.
func (g *Graph) failures(out *host.Diagram) {
	d := drawing{g: g}
	catches := func(source string, by *step) {
		out.Edges = append(out.Edges, host.DiagramEdge{Source: source, Target: d.stepID(by), Kind: host.EdgeCatches})
	}
	for _, st := range g.steps {
		if st.catcher != nil {
			catches(d.stepID(st), st.catcher)
		}
	}
	for _, ending := range sortedKeys(g.cleaners) {
		id := "ending:" + ending
		out.Nodes = append(out.Nodes, host.DiagramNode{ID: id, Kind: host.NodeEnding, Label: ending})
		for _, st := range g.cleaners[ending] {
			catches(id, st)
		}
	}
}

// questions adds what the steps ask that wait for answers of people. A question of such a
// step is a declared type that no step emits; if there is none, the step itself asks.
func (g *Graph) questions(out *host.Diagram) {
	d := drawing{g: g}
	asks := func(source, target string) {
		out.Edges = append(out.Edges, host.DiagramEdge{Source: source, Target: target, Kind: host.EdgeAsks})
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
		drawn := slices.ContainsFunc(out.Nodes, func(n host.DiagramNode) bool { return n.ID == typ })
		if !t.declared || t.kind != abi.KindInputRequired || drawn {
			continue
		}
		if questions[0] == externalNode {
			questions = nil
		}
		questions = append(questions, typ)
		out.Nodes = append(out.Nodes, host.DiagramNode{ID: typ, Kind: host.NodeEvent, Label: typ, Description: t.decl.Description, EventKind: t.kind})
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
