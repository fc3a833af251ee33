package module

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// part is a plugin of a composed workflow: a compiled version under its name.
type part struct {
	name string
	*version
}

// merger makes one manifest of those of several plugins, and gathers where they
// clash.
type merger struct {
	parts    []part
	out      abi.Manifest
	owners   map[string]string // plugin by step
	problems []host.Problem
	alike    map[string][]string // see catchAlike
}

// problem notes a clash; the message says how to mend it.
func (m *merger) problem(code, step, event, format string, args ...any) {
	m.problems = append(m.problems, host.Problem{Code: code, Step: step, Event: event, Message: fmt.Sprintf(format, args...)})
}

// merge joins the manifests of the parts to that of one workflow. What clashes is
// taken from the first, so that the rest can be looked at.
func merge(workflow string, parts []part, settings *host.WorkflowSettings) *merger {
	m := &merger{parts: parts, owners: map[string]string{}, out: abi.Manifest{
		ABI: abi.Version, Workflow: workflow, Events: map[string]abi.EventDecl{}, Description: settings.Description,
	}}
	if len(parts) == 1 && m.out.Description == "" {
		m.out.Description = parts[0].declares().Description
	}
	m.steps()
	m.events()
	m.resources()
	m.state()
	m.out.Timeout = settings.Timeout
	if m.out.Timeout == nil {
		m.out.Timeout = agreedTimeout(parts)
	}
	return m
}

// declares is the version's own manifest.
func (v *version) declares() *abi.Manifest { return v.graph.Manifest() }

// agreedTimeout is the timeout that the manifests name, if those that name one
// agree.
func agreedTimeout(parts []part) *time.Duration {
	var agreed *time.Duration
	for _, p := range parts {
		named := p.declares().Timeout
		switch {
		case named == nil:
		case agreed != nil && *agreed != *named:
			return nil
		default:
			agreed = named
		}
	}
	return agreed
}

// steps appends the steps in the order of the plugins.
func (m *merger) steps() {
	for _, p := range m.parts {
		for _, decl := range p.declares().Steps {
			if owner, taken := m.owners[decl.Name]; taken {
				// It is compiled all the same, so that its other problems are told too.
				m.problem("duplicate_step", decl.Name, "", "plugins %s and %s both have a step %s: rename one of them, or leave one plugin out", owner, p.name, decl.Name)
			} else {
				m.owners[decl.Name] = p.name
			}
			m.out.Steps = append(m.out.Steps, decl)
		}
	}
}

// events joins the event types: of equal declarations the first is taken, and
// one that says nothing but the kind gives way to one that says more.
func (m *merger) events() {
	from := map[string]part{}
	for _, p := range m.parts {
		declared := p.declares().Events
		for _, typ := range slices.Sorted(maps.Keys(declared)) {
			decl := declared[typ]
			first, known := from[typ]
			if !known {
				from[typ], m.out.Events[typ] = p, decl
				continue
			}
			have := m.out.Events[typ]
			if what := difference(typ, first, p, &have, &decl); what != "" {
				m.problem("event_clash", "", typ, "plugins %s and %s declare %s of event type %s differently: declare it alike in both, or give the type another name in one of them",
					first.name, p.name, what, typ)
				continue
			}
			if bare(&have) && !bare(&decl) {
				from[typ] = p
				have, decl = decl, have
			}
			if have.Description == "" {
				have.Description = decl.Description
			}
			m.out.Events[typ] = have
		}
	}
}

// bare reports whether a declaration says nothing but the kind.
func bare(decl *abi.EventDecl) bool { return decl.Extends == "" && decl.Schema == nil }

// difference names what two declarations of a type disagree in; "" if nothing.
// Kinds are compared as they are inherited.
func difference(typ string, first, second part, a, b *abi.EventDecl) string {
	kind, _ := first.graph.Kind(typ)
	other, _ := second.graph.Kind(typ)
	switch {
	case kind != other:
		return fmt.Sprintf("the kind (%s and %s)", kindName(kind), kindName(other))
	case bare(a) || bare(b):
		return ""
	case a.Extends != b.Extends:
		return "what is extended"
	case (a.Schema == nil) != (b.Schema == nil), a.Schema != nil && !sameSchemas(a.Schema, b.Schema):
		return "the schema"
	}
	return ""
}

func kindName(kind abi.EventKind) string {
	if kind == abi.KindPlain {
		return "plain"
	}
	return string(kind)
}

// resources joins what the plugins ask for. One is optional if none needs it.
func (m *merger) resources() {
	place := map[string]int{}
	from := map[string]string{}
	for _, p := range m.parts {
		for _, decl := range p.declares().Resources {
			i, known := place[decl.Name]
			if !known {
				place[decl.Name], from[decl.Name] = len(m.out.Resources), p.name
				m.out.Resources = append(m.out.Resources, decl)
				continue
			}
			have := &m.out.Resources[i]
			if have.Kind != decl.Kind {
				m.problem("resource_clash", "", "", "plugins %s and %s ask for resource %s as different kinds, %s and %s: give it another name in one of them",
					from[decl.Name], p.name, decl.Name, have.Kind, decl.Kind)
				continue
			}
			have.Optional = have.Optional && decl.Optional
			if have.Description == "" {
				have.Description = decl.Description
			}
		}
	}
}

// state joins the schemas and defaults of the session state.
func (m *merger) state() {
	schema, defaults := stateMerger{m: m, what: "the schema"}, stateMerger{m: m, what: "the defaults"}
	for _, p := range m.parts {
		if decl := p.declares().State; decl != nil {
			schema.take(p.name, decl.Schema, (*stateMerger).schema)
			defaults.take(p.name, decl.Default, (*stateMerger).defaults)
		}
	}
	if s, d := schema.encode(), defaults.encode(); s != nil || d != nil {
		m.out.State = &abi.StateDecl{Schema: s, Default: d}
	}
}

// stateMerger joins maps of one kind: schemas or defaults.
type stateMerger struct {
	m     *merger
	what  string
	out   map[string]any
	first string            // the plugin whose map came first
	from  map[string]string // plugin by property
}

// take adds a plugin's map, which is nil if it has none.
func (s *stateMerger) take(plugin string, raw abi.Raw, add func(s *stateMerger, plugin string, have map[string]any)) {
	if raw == nil {
		return
	}
	v, err := abi.DecodeValue(raw)
	have, ok := v.(map[string]any)
	if err != nil || !ok {
		s.m.problem("state_clash", "", "", "%s of plugin %s's state cannot be read: upload the plugin again", s.what, plugin)
		return
	}
	if s.from == nil {
		s.from = map[string]string{}
	}
	add(s, plugin, have)
	if s.first == "" {
		s.first = plugin
	}
}

func (s *stateMerger) encode() abi.Raw {
	if s.out == nil {
		return nil
	}
	raw, err := abi.EncodeValue(s.out)
	if err != nil { // it was made of what was decoded
		s.m.problem("state_clash", "", "", "%s of the state cannot be written: %v", s.what, err)
	}
	return raw
}

// sameProperties reports whether two schemas of a property are the same.
func sameProperties(a, b any) bool { return reflect.DeepEqual(stripped(a), stripped(b)) }

// union adds the entries of have to those of to, which other plugins gave.
func (s *stateMerger) union(plugin, what string, alike func(a, b any) bool, to, have map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(have)) {
		value, known := to[name]
		switch {
		case !known:
			to[name], s.from[name] = have[name], plugin
		case !alike(value, have[name]):
			s.m.problem("state_clash", "", "", "plugins %s and %s give the state's property %q different %s: make them alike, or give the property another name in one of them",
				s.from[name], plugin, name, what)
		}
	}
}

func (s *stateMerger) defaults(plugin string, have map[string]any) {
	if s.out == nil {
		s.out = map[string]any{}
	}
	s.union(plugin, "defaults", reflect.DeepEqual, s.out, have)
}

// schema adds a schema of the whole state: the union of the properties and of
// what is required. Other keywords have to agree.
func (s *stateMerger) schema(plugin string, have map[string]any) {
	properties, _ := have["properties"].(map[string]any)
	required, _ := have["required"].([]any)
	rest := maps.Clone(have)
	delete(rest, "properties")
	delete(rest, "required")
	maps.DeleteFunc(rest, func(name string, _ any) bool { return annotations[name] })
	if rest["type"] == nil {
		rest["type"] = "object" // a state is nothing else
	}
	if s.out == nil {
		s.out = rest
	}
	s.rest(plugin, rest)
	all, _ := s.out["properties"].(map[string]any)
	if all == nil {
		all = map[string]any{}
	}
	s.union(plugin, "schemas", sameProperties, all, properties)
	needed, _ := s.out["required"].([]any)
	for _, name := range required {
		if !slices.Contains(needed, name) {
			needed = append(needed, name)
		}
	}
	s.out["properties"] = all
	if len(needed) > 0 {
		s.out["required"] = needed
	}
}

// rest holds the other keywords of a schema to those of the first.
func (s *stateMerger) rest(plugin string, have map[string]any) {
	if s.first == "" {
		return
	}
	names := map[string]bool{}
	for name := range have {
		names[name] = true
	}
	for name := range s.out {
		names[name] = name != "properties" && name != "required"
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if names[name] && !sameProperties(have[name], s.out[name]) {
			s.m.problem("state_clash", "", "", "the state schemas of plugins %s and %s differ in %q: make them alike, or leave it out of both",
				s.first, plugin, name)
		}
	}
}

// placed adds to the problems of the merged manifest which plugins they lie
// between. Duplicate steps are known already.
func (m *merger) placed(problems []host.Problem) []host.Problem {
	problems = slices.DeleteFunc(problems, func(p host.Problem) bool { return p.Code == "duplicate_step" })
	for i := range problems {
		p := &problems[i]
		var where []string
		for _, step := range m.involved(p) {
			if owner, ok := m.owners[step]; ok {
				where = append(where, fmt.Sprintf("step %s is of plugin %s", step, owner))
			}
		}
		if len(where) > 0 {
			p.Message += " (" + strings.Join(where, ", ") + ")"
		}
	}
	return problems
}

// mostInvolved bounds the steps that a message names.
const mostInvolved = 8

// involved names the steps that a problem is about.
func (m *merger) involved(p *host.Problem) []string {
	switch p.Code {
	case "several_starts":
		return m.starting()
	case "several_catchers":
		return m.catchAlike(p.Step)
	}
	return []string{p.Step}
}

// starting names the steps that accept a start event.
func (m *merger) starting() []string {
	var names []string
	for _, p := range m.parts {
		isStart := func(typ string) bool {
			kind, _ := p.graph.Kind(typ)
			return kind == abi.KindStart
		}
		for _, d := range p.declares().Steps {
			if slices.ContainsFunc(d.Accepts, func(s abi.Slot) bool { return slices.ContainsFunc(s.Types, isStart) }) && len(names) < mostInvolved {
				names = append(names, d.Name)
			}
		}
	}
	return names
}

// catchAlike names the steps that catch what the step catches, too.
func (m *merger) catchAlike(step string) []string {
	if m.alike == nil {
		m.alike = m.catchers()
	}
	return m.alike[step]
}

// catchers finds for each step some of those that catch what it catches, itself
// included, if there are others.
func (m *merger) catchers() map[string][]string {
	of := map[string][]string{} // by target
	for i := range m.out.Steps {
		d := &m.out.Steps[i]
		for _, target := range targets(d) {
			if list := of[target]; len(list) < mostInvolved && !slices.Contains(list, d.Name) {
				of[target] = append(list, d.Name)
			}
		}
	}
	alike := map[string][]string{}
	for i := range m.out.Steps {
		d := &m.out.Steps[i]
		for _, target := range targets(d) {
			for _, name := range of[target] {
				if list := alike[d.Name]; len(of[target]) > 1 && len(list) < mostInvolved && !slices.Contains(list, name) {
					alike[d.Name] = append(list, name)
				}
			}
		}
	}
	return alike
}

// targets are the steps whose failures a step catches; "*" for all.
func targets(d *abi.StepDecl) []string {
	if d.CatchesAll {
		return []string{"*"}
	}
	return d.Catches
}
