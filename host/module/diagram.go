package module

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/diagram"
)

// Diagram implements [host.Plugins].
func (s *Service) Diagram(ctx context.Context, tenant, name, digest string) (diagram.Diagram, error) {
	current, ok := s.current(tenant, name)
	if !ok {
		return diagram.Diagram{}, workflowNotFound()
	}
	if digest == "" {
		digest = current.digest
	}
	if digest != current.digest {
		if err := s.madeBy(ctx, tenant, name, digest); err != nil {
			return diagram.Diagram{}, err
		}
	}
	v, err := s.version(ctx, digest)
	if err != nil {
		return diagram.Diagram{}, err
	}
	d, err := v.graph.Diagram()
	if err != nil {
		return diagram.Diagram{}, host.Errorf(host.CodeInternal, "%w", err)
	}
	d.Workflow, d.Digest = name, digest
	own := ""
	if v.record == nil {
		if made, ok := s.ofWorkflow(tenant, name); ok {
			own = made.Name
		}
	}
	for i := range d.Nodes {
		n := &d.Nodes[i]
		if n.Kind != diagram.NodeStep {
			continue
		}
		n.Plugin = own
		if v.record != nil {
			n.Plugin, n.Config = v.record.serves(v.steps[n.Step].Digest), v.record.Config[n.Step]
		}
	}
	if v.record != nil && v.record.flow != nil {
		return v.record.diagram(&d), nil
	}
	return d, nil
}

// madeBy returns CodeNotFound unless the digest is that of a version of the workflow.
func (s *Service) madeBy(ctx context.Context, tenant, name, digest string) error {
	c, err := s.store.Composition(ctx, digest)
	if err == nil && c.Tenant == tenant && c.Name == name {
		return nil
	}
	if err != nil && !errors.Is(err, host.ErrNotFound) {
		return storeError("the version could not be read", err)
	}
	made, ok := s.ofWorkflow(tenant, name)
	if !ok {
		return workflowVersionNotFound()
	}
	versions, err := s.store.PluginVersions(ctx, tenant, made.Name)
	if err != nil && !errors.Is(err, host.ErrNotFound) {
		return storeError("the versions could not be read", err)
	}
	for _, v := range versions {
		if v.Digest == digest && v.Workflow == name {
			return nil
		}
	}
	return workflowVersionNotFound()
}

func workflowVersionNotFound() *host.Error {
	return host.Errorf(host.CodeNotFound, "The workflow has no such version: leave the version out for the newest")
}

// outside is the id of the node of a flow's people.
const outside = "external_step"

// serves returns the name of the plugin whose module has the digest, or "".
func (r *record) serves(digest string) string {
	i := slices.IndexFunc(r.Plugins, func(p recordPlugin) bool { return p.Digest == digest })
	if i < 0 {
		return ""
	}
	return r.Plugins[i].Name
}

// diagram returns the tree of a flow, with what the steps and the resources of the
// diagram of its plugins say.
func (r *record) diagram(of *diagram.Diagram) diagram.Diagram {
	out := diagram.Diagram{Workflow: of.Workflow, Digest: of.Digest, Description: of.Description, Flow: true}
	drawn := r.flow.Drawing()
	for _, n := range drawn.Nodes {
		if n.Kind == "event" {
			i := slices.IndexFunc(of.Nodes, func(have diagram.Node) bool { return have.ID == n.ID && have.Kind == diagram.NodeEvent })
			if i >= 0 {
				out.Nodes = append(out.Nodes, of.Nodes[i])
			}
		}
	}
	ran := map[string]bool{}
	for _, n := range r.flow.Nodes() {
		node := diagram.Node{ID: n.Path, Kind: diagram.NodeStep, Label: n.Name, Description: n.About(), Form: string(n.Kind), Step: n.Function}
		if at := strings.LastIndexByte(n.Path, '/'); at >= 0 {
			node.Parent = n.Path[:at]
		}
		if node.Step == "" && n.Test != nil {
			node.Step = n.Test.Function
		}
		i := slices.IndexFunc(of.Nodes, func(have diagram.Node) bool { return node.Step != "" && have.Step == node.Step })
		if i >= 0 {
			node.Plugin, node.Declared, node.Config = of.Nodes[i].Plugin, of.Nodes[i].Declared, of.Nodes[i].Config
		}
		out.Nodes = append(out.Nodes, node)
		if n.Workflow != "" {
			id := "workflow:" + n.Workflow
			if !ran[id] {
				out.Nodes = append(out.Nodes, diagram.Node{ID: id, Kind: diagram.NodeWorkflow, Label: n.Workflow})
			}
			ran[id] = true
			out.Edges = append(out.Edges, diagram.Edge{Source: n.Path, Target: id, Kind: diagram.EdgeRuns})
		}
		if n.Review != nil {
			out.Edges = append(out.Edges, diagram.Edge{Source: n.Path, Target: outside, Kind: diagram.EdgeAsks})
		}
	}
	for _, e := range drawn.Edges {
		out.Edges = append(out.Edges, diagram.Edge{Source: e.Source, Target: e.Target, Kind: diagram.EdgeLeads, Label: e.Label})
	}
	if slices.ContainsFunc(out.Edges, func(e diagram.Edge) bool { return e.Kind == diagram.EdgeAsks }) {
		out.Nodes = append(out.Nodes, diagram.Node{ID: outside, Kind: diagram.NodeOutside, Label: "outside"})
	}
	for i := range of.Nodes {
		if of.Nodes[i].Kind == diagram.NodeResource {
			out.Nodes = append(out.Nodes, of.Nodes[i])
		}
	}
	return out
}
