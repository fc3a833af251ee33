// Package versions describes a version of a workflow as the scheduler uses it: the module
// that serves each step, the limits of its runs, and what a start of it takes.
//
// It must not depend on sessions, the store or how a guest runs.
package versions

import (
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/work"
)

// Source has the versions of workflows. Errors are [*host.Error]s. Its methods may be
// called from any goroutine.
type Source interface {
	// Starting is called before Newest for a run. The caller calls done when the run's
	// first entry is in the journal, or will not be written. No version is deleted before.
	Starting() (done func())
	// Newest returns the version that a new run of a workflow takes.
	Newest(tenant, workflow string) (Module, error)
	// ByDigest returns any stored version.
	ByDigest(digest string) (Module, error)
	// PrepareEvent checks an event from outside against its type's schema and returns the
	// body as steps see it. The work is charged to the meter; an error of the meter's hook
	// is returned unchanged.
	PrepareEvent(m *work.Meter, digest, typ string, body abi.Raw) (abi.Raw, error)
}

// Module is a version of a workflow: one module, or several modules that the workflow is
// composed of.
type Module struct {
	Digest    string // runs keep it
	ImageHash string
	Graph     *engine.Graph
	Plugin    string // its name; ByDigest need not set it
	// Plugins names the plugins of a composed workflow, and Step returns the module that
	// serves a step of it. Step is nil if this module serves all steps.
	Plugins []string
	Step    func(name string) (s Step, ok bool)
}

// Step is the module that serves a step of a composed workflow.
type Step struct {
	Digest    string
	ImageHash string
	Config    abi.Raw // of the step; nil: none
}

// Serving returns the module that serves a step.
func (m *Module) Serving(step string) (Step, error) {
	if m.Step == nil {
		return Step{Digest: m.Digest, ImageHash: m.ImageHash}, nil
	}
	s, ok := m.Step(step)
	if !ok {
		return s, host.Errorf(host.CodeInternal, "no plugin of workflow version %s serves step %s", m.Digest, step)
	}
	return s, nil
}

// Limits returns the limits of a run that starts now.
func (m *Module) Limits(t *limit.Table, tenant string) host.Limits {
	if m.Step == nil {
		return t.Limits(tenant, m.Plugin)
	}
	return t.Composed(tenant, m.Graph.Workflow(), m.Plugins...)
}

// Code names the code that an attempt of a step needs, under the attempt's limits.
func (m *Module) Code(tenant, step string, limits host.Limits) (host.Invocation, error) {
	s, err := m.Serving(step)
	return host.Invocation{Tenant: tenant, Digest: s.Digest, ImageHash: s.ImageHash, Limits: limits}, err
}

// Invocation returns the sandbox's part of an attempt, without its calls and its token.
func (m *Module) Invocation(key host.SessionKey, view *engine.Invocation, o engine.AttemptOpen) (host.Invocation, error) {
	s, err := m.Serving(view.Step)
	if err != nil {
		return host.Invocation{}, err
	}
	in := abi.StepInput{
		Step: m.Graph.OwnName(view.Step), Config: s.Config, Trigger: view.Trigger, List: view.List,
		Run: abi.RunInfo{
			Tenant: key.Tenant, Workflow: view.Workflow, RunID: view.RunID, SessionID: key.Session,
			Invocation: view.ID, Attempt: view.Attempt, Clock: o.Clock, LastError: view.LastError,
		},
	}
	if o.RunID != "" { // the attempt began before its run was forked
		in.Run.RunID, in.Run.SessionID = o.RunID, o.SessionID
	}
	input, err := in.Encode()
	if err != nil {
		return host.Invocation{}, err
	}
	return host.Invocation{Tenant: key.Tenant, Digest: s.Digest, ImageHash: s.ImageHash, Input: input, Clock: o.Clock, Seed: o.Seed, Limits: o.Limits, Prices: o.Prices}, nil
}

// CheckResources refuses a workflow that needs a resource which is not granted.
func (m *Module) CheckResources(from host.Resources, tenant string) error {
	for _, asked := range m.Graph.Manifest().Resources {
		decl, _ := m.Graph.Resource(asked.Name) // merged from all plugins
		if decl.Optional {
			continue
		}
		user := host.ResourceUser{Tenant: tenant, Workflow: m.Graph.Workflow(), Digest: m.Digest}
		if _, err := from.Grant(user, decl); err != nil {
			return host.Errorf(host.CodeOf(err), "workflow '%s' cannot start: %w", user.Workflow, err)
		}
	}
	return nil
}

// Start returns the start of a run with everything that the workflow and the settings
// decide. timeout is the one of workflows whose manifest names none; at most 0: no timeout.
func (m *Module) Start(t *limit.Table, timeout time.Duration, tenant string, ev abi.Event) engine.StartRun {
	out := engine.StartRun{
		Version: m.Digest, Event: ev, Timeout: int64(max(timeout, 0)), Work: true,
		Limits: m.Limits(t, tenant),
	}
	if d, set := m.Graph.Timeout(); set {
		out.Timeout, out.Work = int64(d), false
	}
	return out
}

// Patience returns how long a start may wait for its first core. bounded is false if the
// start may wait forever. timeout is the one of workflows whose manifest names none. most
// bounds a start whose client waits for the end of the run; below 0: no bound.
func (m *Module) Patience(wait bool, timeout, most time.Duration) (d time.Duration, bounded bool) {
	own, set := m.Graph.Timeout()
	if !wait {
		return own, set && own > 0
	}
	if set {
		timeout = own
	}
	if timeout > 0 && (most < 0 || timeout < most) {
		return timeout, true
	}
	return most, most >= 0
}

// StartEvent checks the start event of a run of the module, sets its type if it has none,
// and prepares its body on the meter.
func (m *Module) StartEvent(meter *work.Meter, from Source, ev abi.Event) (abi.Event, error) {
	want := m.Graph.StartType()
	if ev.Type == "" {
		ev.Type = want
	}
	if ev.Type != want {
		return ev, host.Errorf(host.CodeInvalidArgument, "Start event must be a %s, not a %s", want, ev.Type)
	}
	if ev.Body == nil {
		ev.Body = abi.EmptyMap
	}
	body, err := from.PrepareEvent(meter, m.Digest, ev.Type, ev.Body)
	ev.Body = body
	return ev, err
}
