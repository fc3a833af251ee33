package module

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/flow"
)

// A flow is composed like any workflow: of a module of its own, which is data, and
// of the plugins whose functions it names. Within it the steps of a plugin are
// called PLUGIN.STEP, so that several plugins may have functions of one name.

// Codes of what flows name and there is not.
const (
	problemFunction = "unknown_function"
	problemWorkflow = "unknown_workflow"
)

// plan takes a flow that was read, checks all that it names, and gives the plugins that it needs.
// Everything that is wrong comes in one error. s.changing is held.
func (s *Service) plan(ctx context.Context, tenant string, r *record, c *host.Composition, doc *flow.Document, problems []host.Problem) ([]string, error) {
	if len(c.Plugins) > 0 {
		return nil, host.Errorf(host.CodeInvalidArgument, "a flow names its plugins by their functions: leave 'plugins' out")
	}
	if own, ok := s.ofWorkflow(tenant, r.Name); ok {
		return nil, host.Errorf(host.CodeConflict, "plugin %s makes a workflow %s by itself: choose another name for the flow", own.Name, r.Name)
	}
	if doc == nil {
		return nil, invalid("the flow", problems)
	}
	names, faults, err := s.functions(ctx, tenant, doc)
	if err != nil {
		return nil, err
	}
	problems = append(problems, faults...)
	if faults, err = s.nesting(ctx, tenant, r.Name, doc); err != nil {
		return nil, err
	}
	if problems = append(problems, faults...); len(problems) > 0 {
		return nil, invalid("the flow", problems)
	}
	sum := sha256.Sum256(flow.Seal(doc))
	r.Flow, r.flow = hex.EncodeToString(sum[:]), doc
	return names, nil
}

// readPosted reads the document of a flow on its tenant's clock.
func (s *Service) readPosted(ctx context.Context, tenant string, raw abi.Raw) (*flow.Document, []host.Problem, error) {
	m, done := s.work(ctx, tenant)
	defer done()
	doc, problems := flow.Parse(m, raw)
	return doc, problems, m.Err()
}

// functions finds the plugins that a flow's functions are of, in the order in which
// they are named, and what is wrong with the functions.
func (s *Service) functions(ctx context.Context, tenant string, doc *flow.Document) (names []string, problems []host.Problem, err error) {
	known := map[string]*part{}
	for _, ref := range doc.Functions() {
		for _, plugin := range plugins(ref.Name) {
			if _, seen := known[plugin]; seen {
				continue
			}
			known[plugin] = nil
			newest, ok := s.newest(tenant, plugin)
			if !ok {
				continue
			}
			v, err := s.version(ctx, newest.Digest)
			if err != nil {
				return nil, nil, err
			}
			known[plugin] = &part{plugin, v}
		}
		plugin, fault := function(ref, func(name string) *part { return known[name] })
		if fault != nil {
			problems = append(problems, *fault)
		} else if !slices.Contains(names, plugin) {
			names = append(names, plugin)
		}
	}
	return names, problems, nil
}

// plugins are the plugins that a function's name may be of: names may have dots.
func plugins(name string) []string {
	var out []string
	for i := range len(name) {
		if name[i] == '.' && i > 0 {
			out = append(out, name[:i])
		}
	}
	return out
}

// function finds the plugin that a flow's function is of, or says what is wrong.
func function(ref flow.Reference, of func(plugin string) *part) (string, *host.Problem) {
	fault := func(code, format string, args ...any) (string, *host.Problem) {
		return "", &host.Problem{Code: code, Step: clipPlain(ref.Node), Message: "node " + clipPlain(ref.Node) + ": " + fmt.Sprintf(format, args...)}
	}
	var has []string
	first := ""
	for _, plugin := range plugins(ref.Name) {
		p := of(plugin)
		if p == nil {
			continue
		}
		if first == "" {
			first = plugin
		}
		for i := range p.declares().Steps {
			decl := &p.declares().Steps[i]
			if decl.Name != ref.Name[len(plugin)+1:] {
				if isFunction(decl) {
					has = append(has, decl.Name)
				}
				continue
			}
			if !isFunction(decl) {
				return fault("wrong_kind", "step %s of plugin %s is not a function: one accepts %s alone and emits %s",
					clipPlain(decl.Name), plugin, flow.TypeInput, flow.TypeOutput)
			}
			return plugin, nil
		}
	}
	if first == "" {
		plugin, _, _ := strings.Cut(ref.Name, ".")
		return fault("unknown_plugin", "it names %s, and there is no plugin %s: upload it first", clipPlain(ref.Name), clipPlain(plugin))
	}
	if len(has) > mostInvolved {
		has = append(has[:mostInvolved], "...")
	}
	return fault(problemFunction, "it names %s, and plugin %s does not have that function: it has %s", clipPlain(ref.Name), first, strings.Join(has, ", "))
}

// isFunction reports whether a flow can call a step.
func isFunction(decl *abi.StepDecl) bool {
	if len(decl.Accepts) != 1 || decl.Accepts[0].Kind == abi.SlotList || !slices.Contains(decl.Accepts[0].Types, flow.TypeInput) {
		return false
	}
	return len(decl.Emits) > 0
}

// nesting finds what is wrong with the workflows that a flow runs: they have to be
// there, and none may come to run itself.
func (s *Service) nesting(ctx context.Context, tenant, name string, doc *flow.Document) ([]host.Problem, error) {
	var problems []host.Problem
	for _, ref := range doc.Workflows() {
		say := func(code, format string, args ...any) {
			problems = append(problems, host.Problem{Code: code, Step: clipPlain(ref.Node), Message: "node " + clipPlain(ref.Node) + ": " + fmt.Sprintf(format, args...)})
		}
		if _, ok := s.current(tenant, ref.Name); !ok && ref.Name != name {
			say(problemWorkflow, "there is no workflow %s: make it first", clipPlain(ref.Name))
			continue
		}
		depth, err := s.depth(ctx, tenant, ref.Name, name, 1)
		if err != nil {
			return nil, err
		}
		if depth > flow.MaxNesting {
			say("limit_exceeded", "workflow %s nests workflows more than %d deep, or runs %s again", ref.Name, flow.MaxNesting, name)
		}
	}
	return problems, nil
}

// depth is how deep the workflows of a flow are nested, as far as more than
// flow.MaxNesting; self is the one that is about to change.
func (s *Service) depth(ctx context.Context, tenant, name, self string, at int) (int, error) {
	if name == self || at > flow.MaxNesting {
		return flow.MaxNesting + 1, nil
	}
	c, ok := s.composition(tenant, name)
	if !ok || c.record.Flow == "" {
		return at, nil
	}
	if err := s.readFlow(ctx, &c.record); err != nil {
		return 0, err
	}
	deepest := at
	for _, ref := range c.record.flow.Workflows() {
		d, err := s.depth(ctx, tenant, ref.Name, self, at+1)
		if err != nil {
			return 0, err
		}
		if deepest = max(deepest, d); deepest > flow.MaxNesting {
			break
		}
	}
	return deepest, nil
}

// readFlow gives a record its flow, if it has one.
func (s *Service) readFlow(ctx context.Context, r *record) error {
	if r.Flow == "" || r.flow != nil {
		return nil
	}
	m, err := s.store.Module(ctx, r.Flow)
	if err != nil {
		return moduleError(r.Flow, err)
	}
	if r.flow, err = flow.Open(m.Bytes); err != nil {
		return host.Errorf(host.CodeInternal, "the flow of workflow %s was stored by a server that took it, this one does not: %w", r.Name, err)
	}
	return nil
}

// storeFlow stores the module of a record's flow.
func (s *Service) storeFlow(ctx context.Context, r *record) error {
	if r.Flow == "" {
		return nil
	}
	manifest, err := r.flow.Manifest("flow", nil).Encode()
	if err != nil {
		return host.Errorf(host.CodeInternal, "the flow's manifest cannot be written: %w", err)
	}
	err = s.store.PutModule(ctx, host.ModuleRecord{
		Digest: r.Flow, Rewritten: r.Flow, ImageHash: flow.ImageHash, Manifest: manifest, Bytes: flow.Seal(r.flow),
	})
	if err != nil {
		return storeError("the flow could not be stored", err)
	}
	return nil
}

// composeFlow compiles a flow with the plugins that its functions are of, or lists
// everything that is wrong.
func composeFlow(r *record, parts []part) (*version, []host.Problem) {
	correlation := &engine.Correlation{
		Field: flow.FieldCall, Call: flow.TypeInput, Answer: flow.TypeOutput, Inner: []string{flow.TypeBranch}, Steps: map[string]string{},
	}
	problems := unfit(r.flow, parts)
	all := []part{{}}
	var functions []string
	for _, p := range parts {
		q, faults := qualified(p, correlation.Steps)
		if problems = append(problems, faults...); len(faults) == 0 {
			all = append(all, q)
			functions = append(functions, uncaught(q.declares())...)
		}
	}
	own, faults := engine.Compile(r.flow.Manifest(r.Name, functions))
	if problems = append(problems, faults...); len(problems) > 0 {
		return nil, problems
	}
	all[0] = part{"the flow", &version{graph: own, digest: r.Flow, imageHash: flow.ImageHash}}
	settings := r.settings()
	if settings.Description == "" {
		settings.Description = r.flow.Description
	}
	m := merge(r.Name, all, &settings)
	if quiet := own.Manifest().Timeout; quiet != nil && settings.Timeout == nil {
		m.out.Timeout = quiet // people take longer than functions say
	}
	m.initial(r.flow.SessionState)
	return m.version(r, all, correlation, len(parts) < len(r.Plugins))
}

// initial puts what a flow's sessions begin with over the defaults of its plugins'
// state.
func (m *merger) initial(from map[string]any) {
	if from == nil {
		return
	}
	if m.out.State == nil {
		m.out.State = &abi.StateDecl{}
	}
	defaults := from
	if have, err := abi.DecodeValue(m.out.State.Default); err == nil {
		if under, ok := have.(map[string]any); ok {
			defaults = maps.Clone(under)
			maps.Copy(defaults, from)
		}
	}
	raw, err := abi.EncodeValue(defaults)
	if err != nil {
		m.problem("state_clash", "", "", "the flow's session_state cannot be written: %v", err)
		return
	}
	m.out.State.Default = raw
}

// unfit finds what is wrong with the functions that a flow names, among the parts
// that there are.
func unfit(doc *flow.Document, parts []part) []host.Problem {
	var problems []host.Problem
	of := func(plugin string) *part {
		if i := slices.IndexFunc(parts, func(p part) bool { return p.name == plugin }); i >= 0 {
			return &parts[i]
		}
		return nil
	}
	for _, ref := range doc.Functions() {
		if _, fault := function(ref, of); fault != nil {
			problems = append(problems, *fault)
		}
	}
	return problems
}

// qualified is a part whose steps have the plugin's name before theirs; own gets what
// each was called before.
func qualified(p part, own map[string]string) (part, []host.Problem) {
	m := *p.declares()
	if !m.Part {
		return p, []host.Problem{{Code: "wrong_kind", Message: "plugin " + p.name + " makes a workflow by itself: a flow takes functions of parts, so say \"part\" in its manifest"}}
	}
	m.Steps, m.Events = slices.Clone(m.Steps), maps.Clone(m.Events)
	for _, typ := range []string{flow.TypeInput, flow.TypeOutput} {
		if decl, ok := m.Events[typ]; ok { // what is in them is the flow's to say
			m.Events[typ] = abi.EventDecl{Kind: decl.Kind}
		}
	}
	for i := range m.Steps {
		decl := &m.Steps[i]
		own[p.name+"."+decl.Name] = decl.Name
		decl.Name = p.name + "." + decl.Name
		decl.Catches = slices.Clone(decl.Catches)
		for j, target := range decl.Catches {
			if target != abi.CatchCancelled && target != abi.CatchTimeout {
				decl.Catches[j] = p.name + "." + target
			}
		}
	}
	graph, problems := engine.Compile(&m)
	if len(problems) > 0 {
		return p, problems
	}
	v := *p.version
	v.graph = graph
	return part{p.name, &v}, nil
}

// uncaught are the steps whose failures no step of the same plugin catches.
func uncaught(m *abi.Manifest) []string {
	var out []string
	for i := range m.Steps {
		name := m.Steps[i].Name
		caught := false
		for j := range m.Steps {
			caught = caught || i != j && (m.Steps[j].CatchesAll || slices.Contains(m.Steps[j].Catches, name))
		}
		if !caught {
			out = append(out, name)
		}
	}
	return out
}
