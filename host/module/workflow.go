package module

import (
	"context"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

func byName(a, b host.PluginInfo) int { return strings.Compare(a.Name, b.Name) }

// Workflow implements [host.Plugins].
func (s *Service) Workflow(ctx context.Context, tenant, name string) (host.WorkflowInfo, error) {
	current, ok := s.current(tenant, name)
	if !ok {
		return host.WorkflowInfo{}, workflowNotFound()
	}
	v, err := s.version(ctx, current.digest)
	if err != nil {
		return host.WorkflowInfo{}, err
	}
	info, err := v.info()
	if err != nil {
		return host.WorkflowInfo{}, err
	}
	info.Plugins, info.Digest = []string{current.plugin}, v.digest
	if v.record != nil {
		info.Plugins, info.Composed, info.Settings = v.record.names(), true, v.record.settings()
		if v.record.flow != nil {
			info.Flow = v.record.flow.Raw()
		}
	}
	return info, nil
}

// Summaries implements [host.Plugins].
func (s *Service) Summaries(ctx context.Context, tenant string) ([]host.WorkflowSummary, error) {
	names, err := s.Workflows(ctx, tenant)
	if err != nil {
		return nil, err
	}
	counts, err := s.store.CountRuns(ctx, tenant)
	if err != nil {
		return nil, storeError("the runs could not be counted", err)
	}
	running := map[string]int{}
	for _, n := range counts {
		running[n.Workflow] += n.Runs
	}
	list := make([]host.WorkflowSummary, 0, len(names))
	for _, name := range names {
		current, ok := s.current(tenant, name)
		if !ok {
			continue // it was removed meanwhile
		}
		v, err := s.version(ctx, current.digest)
		if err != nil {
			return nil, err
		}
		w := host.WorkflowSummary{
			Name: name, Description: v.graph.Manifest().Description, Plugins: []string{current.plugin},
			Version: current.number, Digest: current.digest, Runs: running[name],
		}
		if v.record != nil {
			w.Plugins, w.Composed, w.Flow = v.record.names(), true, v.record.flow != nil
		}
		list = append(list, w)
	}
	return list, nil
}

// describe makes what a version shows of itself; see version.info.
func (v *version) describe() (info host.WorkflowInfo, err error) {
	g, m := v.graph, v.graph.Manifest()
	info = host.WorkflowInfo{
		Name: g.Workflow(), Description: m.Description,
		StartType: g.StartType(), StopTypes: g.StopTypes(), Graph: g.Drawing(),
	}
	info.Timeout.Span, info.Timeout.Set = g.Timeout()
	if v.record != nil && v.record.flow != nil {
		info.Graph = v.record.flow.Drawing()
	}
	if info.StartSchema, err = v.shown(info.StartType); err != nil {
		return host.WorkflowInfo{}, err
	}
	stop := abi.TypeStop
	if len(info.StopTypes) > 0 {
		stop = info.StopTypes[0]
	}
	if info.StopSchema, err = v.shown(stop); err != nil {
		return host.WorkflowInfo{}, err
	}
	for _, typ := range g.EventTypes() {
		kind, _ := g.Kind(typ)
		_, base := abi.BaseKinds[typ]
		event := host.EventInfo{Type: typ, Types: g.Ancestors(typ), Kind: kind, Base: base}
		if event.Schema, err = v.shown(typ); err != nil {
			return host.WorkflowInfo{}, err
		}
		info.Events = append(info.Events, event)
	}
	return info, nil
}

// shown gives the schema of an event type as clients see it: as declared, or
// that of an object without declared properties, with the type's name as title.
func (v *version) shown(typ string) (abi.Raw, error) {
	schema := map[string]any{"type": "object", "properties": map[string]any{}}
	if raw := v.graph.Manifest().Events[typ].Schema; raw != nil {
		decoded, err := abi.DecodeValue(raw)
		if err != nil {
			return nil, host.Errorf(host.CodeInternal, "the schema of event type %s cannot be read: %w", typ, err)
		}
		schema, _ = decoded.(map[string]any) // it was compiled as one
	}
	schema["title"] = typ
	raw, err := abi.EncodeValue(schema)
	if err != nil {
		return nil, host.Errorf(host.CodeInternal, "the schema of event type %s cannot be written: %w", typ, err)
	}
	return raw, nil
}
