package wefttest

import (
	"errors"
	"fmt"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/state"
)

// program is a workflow that can run: a guest's workflow, or a function that replaces a
// workflow.
type program struct {
	version string
	graph   *engine.Graph
	guest   Guest                           // nil: see stand
	stand   func(body abi.Raw) (any, error) // nil: see guest
	played  map[string]play                 // steps that the test plays itself
	schemas map[string]*state.Schema        // schemas of events, as far as they can be read
}

// play replaces a step: it returns the output for the events that the step receives.
type play func(trigger []abi.Event) abi.StepOutput

// compile reads a guest's manifest.
func compile(version string, guest Guest) (*program, error) {
	m, err := manifestOf(guest)
	if err != nil {
		return nil, err
	}
	if m.Part {
		return nil, errors.New("the plugin has steps for a workflow of several plugins (weft.Part): run one of them, by Session.Step, or one of its functions, by Session.Function")
	}
	p := &program{version: version, guest: guest}
	return p, p.compile(m)
}

func manifestOf(guest Guest) (*abi.Manifest, error) {
	b, err := guest.Describe()
	if err != nil {
		return nil, err
	}
	m, err := abi.DecodeManifest(b)
	if err != nil {
		return nil, fmt.Errorf("the manifest: %w", err)
	}
	return &m, nil
}

func (p *program) compile(m *abi.Manifest) error {
	graph, problems := engine.Compile(m)
	if len(problems) > 0 {
		return problemsError(m.Workflow, problems)
	}
	p.graph, p.schemas = graph, map[string]*state.Schema{}
	for name, decl := range m.Events {
		if schema, err := state.CompileSchema(decl.Schema); err == nil {
			p.schemas[name] = schema
		}
	}
	return nil
}

// problemsError is the error that a server would report when the plugin is uploaded.
func problemsError(workflow string, problems []host.Problem) error {
	var all []error
	for _, p := range problems {
		all = append(all, errors.New(p.Message))
	}
	return fmt.Errorf("workflow %s cannot run: %w", workflow, errors.Join(all...))
}

// start makes the tick that begins a run of the program.
func (p *program) start(body abi.Raw, typ string) (engine.StartRun, error) {
	want := p.graph.StartType()
	if typ == "" || typ == abi.TypeStart {
		typ = want
	}
	if typ != want {
		return engine.StartRun{}, &Failure{Code: "invalid_argument", Message: "start event must be a " + want + ", not a " + typ}
	}
	t := engine.StartRun{
		Version: p.version, Event: abi.Event{Type: typ, Body: body},
		Timeout: int64(host.DefaultRunTimeout), Work: true, Limits: limit.Default(),
	}
	if d, set := p.graph.Timeout(); set {
		t.Timeout, t.Work = int64(d), false
	}
	return t, p.check(typ, body)
}

// check validates an external event against its schema.
func (p *program) check(typ string, body abi.Raw) error {
	schema := p.schemas[typ]
	if schema == nil {
		return nil
	}
	n, err := state.Decode(body)
	if err == nil {
		err = schema.Check(n, nil)
	}
	if breach := (*state.SchemaError)(nil); errors.As(err, &breach) {
		return &Failure{Code: "invalid_argument", Message: fmt.Sprintf("event %s: %q: %s", typ, breach.Path, breach.Reason)}
	}
	return err
}

// standIn is the program of a function that replaces a workflow.
func standIn(workflow string, run func(body abi.Raw) (any, error)) *program {
	p := &program{version: "stand-in " + workflow, stand: run}
	err := p.compile(&abi.Manifest{
		ABI: abi.Version, Workflow: workflow, Timeout: new(time.Duration(0)),
		Steps: []abi.StepDecl{{
			Name: "run", Accepts: []abi.Slot{{Types: []string{abi.TypeStart}}}, Emits: []abi.Emit{{Types: []string{abi.TypeStop}}},
		}},
	})
	if err != nil {
		return &program{version: p.version, stand: func(abi.Raw) (any, error) { return nil, err }}
	}
	return p
}
