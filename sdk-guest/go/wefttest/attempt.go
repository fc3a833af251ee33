package wefttest

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/hostcall"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/work"
)

// attempt is an open attempt of an invocation. Its guest runs on a separate goroutine,
// which continues only when it has the turn.
type attempt struct {
	world   *world
	place   *place
	program *program
	run     *Run // nil: not a run that the test knows
	view    engine.Invocation
	calls   *hostcall.Attempt
	clock   int64

	gone    bool // the attempt is no longer needed
	resumed bool // the awaited event came while the guest was being unwound

	// The following fields belong to the guest's current run.
	turn    chan struct{} // nil: none is
	ended   bool
	result  guestResult
	unwound error // why the guest was unwound; nil: it was not
}

// guestResult is how a guest's run ended by itself.
type guestResult struct {
	output   []byte
	returned bool
	err      error
}

// open begins an attempt, or resumes an attempt that has waited.
func (w *world) open(p *place, invocation uint64) {
	view, ok := p.eng.Invocation(invocation)
	if !ok {
		return
	}
	a := p.attempts[invocation]
	switch {
	case a != nil && a.view.Attempt == view.Attempt && a.turn != nil:
		a.resumed = true
		return
	case a == nil || a.view.Attempt != view.Attempt:
		a = &attempt{world: w, place: p, program: w.programs[view.Version], run: w.runs[view.RunID], view: view, clock: w.now()}
		o := engine.AttemptOpen{Clock: a.clock, Seed: w.seed(), Limits: view.Limits}
		a.calls = hostcall.New(live{a}, o, nil)
		p.attempts[invocation] = a
	}
	w.ready = append(w.ready, a)
}

// abandon ends an attempt that is no longer needed. A guest that has begun ends at its
// next turn.
func (w *world) abandon(p *place, invocation uint64) {
	a := p.attempts[invocation]
	if a == nil {
		return
	}
	delete(p.attempts, invocation)
	a.gone = true
	a.giveUp()
	if a.turn == nil {
		w.ready = slices.DeleteFunc(w.ready, func(o *attempt) bool { return o == a })
	}
}

// run gives one of the ready attempts its turn: until the attempt ends or waits or, with
// a seed, until its next host call.
func (w *world) run() {
	i := slices.Index(w.ready, w.exclusive)
	if i < 0 {
		i = w.draw(len(w.ready))
	}
	a := w.ready[i]
	w.ready = slices.Delete(w.ready, i, i+1)
	if a.turn == nil && a.played() {
		return
	}
	if a.turn == nil {
		a.begin()
	}
	a.turn <- struct{}{}
	<-w.back
	if !a.ended {
		w.ready = append(w.ready, a)
		return
	}
	a.turn = nil
	a.settle()
}

// played finishes an attempt of a step that the test plays, or that one of the test's
// functions replaces.
func (a *attempt) played() bool {
	if play := a.program.played[a.view.Step]; play != nil {
		a.finish(play(a.view.Trigger))
		return true
	}
	if a.program.stand == nil {
		return false
	}
	process.Unlock() // the function is the test's own, which may use this package
	v, err := a.program.stand(a.view.Trigger[0].Body)
	process.Lock()
	out := abi.StepOutput{Events: []abi.Event{{Type: abi.TypeStop}}}
	if err == nil {
		out.Events[0].Body, err = encodeValue(map[string]any{"result": v})
	}
	if err != nil {
		out = abi.StepOutput{Err: guestError(err)}
	}
	a.finish(out)
	return true
}

// begin starts a run of the guest from the start of its step.
func (a *attempt) begin() {
	a.calls.Restart()
	a.turn, a.ended, a.unwound, a.result = make(chan struct{}), false, nil, guestResult{}
	a.clock = a.calls.Open().Clock
	input, err := a.input()
	go func() {
		defer func() {
			a.ended = true
			a.world.back <- struct{}{}
		}()
		<-a.turn
		if err != nil {
			a.result = guestResult{err: err}
			return
		}
		output, status, err := a.program.guest.Step(a, input)
		a.result = guestResult{output: output, returned: true, err: err}
		if kind, ok := outputKind(output); err == nil && (!ok || kind != status) {
			a.result.err = fmt.Errorf("step %s: the status %d and the output disagree", a.view.Step, status)
		}
	}()
}

// outputKind reads the first item of a step output: 0 for success, 1 for failure.
func outputKind(output []byte) (int, bool) {
	if len(output) < 2 || output[0] != 0x82 || output[1] > 1 {
		return 0, false
	}
	return int(output[1]), true
}

func (a *attempt) input() ([]byte, error) {
	in := abi.StepInput{Step: a.view.Step, Trigger: a.view.Trigger, List: a.view.List, Run: abi.RunInfo{
		Tenant: host.DefaultTenant, Workflow: a.view.Workflow, RunID: a.view.RunID, SessionID: a.place.id,
		Invocation: a.view.ID, Attempt: a.view.Attempt, Clock: a.clock, LastError: a.view.LastError,
	}}
	if config, ok := a.world.root.Config[a.view.Step]; ok {
		var err error
		if in.Config, err = encodeValue(config); err != nil {
			return nil, fmt.Errorf("step %s: its configuration: %w", a.view.Step, err)
		}
	}
	return in.Encode()
}

// Call implements [Calls].
func (a *attempt) Call(name string, request []byte) (uint32, []byte) {
	if a.world.chance != nil && !a.gone {
		a.world.back <- struct{}{}
		<-a.turn
	}
	if a.gone {
		a.leave(engine.ErrStale)
	}
	response, status, clock, err := a.calls.Call(abi.Import(name), bytes.Clone(request), a.clock)
	if err != nil {
		a.leave(err)
	}
	a.clock = clock
	return uint32(status), bytes.Clone(response)
}

// leave unwinds the guest at its present host call.
func (a *attempt) leave(why error) {
	a.unwound = why
	runtime.Goexit()
}

// settle carries out what follows from the end of a guest's run.
func (a *attempt) settle() {
	w := a.world
	var limit *hostcall.LimitError
	var departs *hostcall.Mismatch
	switch {
	case a.gone || errors.Is(a.unwound, engine.ErrStale):
	case errors.Is(a.unwound, hostcall.ErrSuspended):
		if a.resumed {
			a.resumed = false
			w.ready = append(w.ready, a)
		}
	case errors.Is(a.unwound, engine.ErrConflict):
		w.ready = append(w.ready, a)
	case errors.As(a.unwound, &limit):
		a.finish(abi.StepOutput{Err: limit.Err})
	case errors.As(a.unwound, &departs):
		w.note(fmt.Errorf("step %s makes other calls when it continues after a wait: %w: let it depend only on its event, its state and its context (ctx.Now for the time, ctx.Random for chance)", a.view.Step, departs))
	case a.unwound != nil:
		w.note(a.unwound)
	case a.result.err != nil:
		w.note(a.result.err)
	case !a.result.returned:
		w.note(fmt.Errorf("step %s ended its goroutine, as t.FailNow does: return an error instead", a.view.Step))
	default:
		a.finish(a.decode())
	}
}

func (a *attempt) decode() abi.StepOutput {
	out, err := abi.DecodeStepOutput(a.result.output)
	if err != nil {
		return abi.StepOutput{Err: &abi.Error{Code: host.RunInvalidOutput, Message: "the step's output does not decode: " + err.Error()}}
	}
	if open := a.calls.Unfinished(); open != nil && out.Err == nil {
		return abi.StepOutput{Err: open}
	}
	return out
}

// finish ends the attempt. An attempt of an atomic step that had a conflict is run again.
func (a *attempt) finish(out abi.StepOutput) {
	a.giveUp()
	stage := a.calls.Stage()
	err := a.world.tick(a.place, engine.Finish{Invocation: a.view.ID, Attempt: a.view.Attempt, Output: out, Stage: stage}, func(r *engine.Result) {
		if r.Entry != nil {
			a.calls.Finish(r.Entry)
			if r.Entry.Finish.Err == nil && stage != nil {
				for _, req := range stage.Effects {
					a.note(req)
				}
			}
		}
	})
	switch {
	case errors.Is(err, engine.ErrConflict):
		a.calls.Lost()
		a.world.ready = append(a.world.ready, a)
		return
	case err != nil:
		a.world.note(err)
	}
	if a.place.attempts[a.view.ID] == a {
		delete(a.place.attempts, a.view.ID)
	}
	if r := a.run; err == nil && r != nil && r.step == a.view.Step && !r.Ended {
		if _, again := a.place.eng.Invocation(a.view.ID); !again {
			r.endStep(out)
		}
	}
}

// giveUp returns the write ticket.
func (a *attempt) giveUp() {
	if a.world.exclusive == a {
		a.world.exclusive = nil
	}
}

// note records an edit for the test.
func (a *attempt) note(req engine.Request) {
	if a.run == nil {
		return
	}
	switch r := req.(type) {
	case engine.EditState:
		for i := range r.Edits {
			e := &r.Edits[i]
			a.run.Edits = append(a.run.Edits, Edit{Op: string(e.Op), Path: e.Path, Value: decodeValue(e.Value)})
		}
	case engine.CommitState:
		a.run.Edits = append(a.run.Edits, Edit{Op: "edit", Path: r.Path.String(), Value: decodeValue(r.Value.Encode())})
	}
}

// live is what an attempt's host calls operate on; it implements hostcall.Live.
type live struct{ a *attempt }

func (l live) Now() int64 { return l.a.world.now() }

func (l live) State() *state.Node { return l.a.place.eng.State() }

func (l live) Atomic() bool { return l.a.view.Atomic }

func (l live) Begin(p state.Path, want bool) (*state.Node, bool, error) {
	if l.a.gone {
		return nil, false, engine.ErrStale
	}
	if want {
		l.a.world.exclusive = l.a
	}
	n, ok := state.Get(l.State(), p)
	return n, ok, nil
}

func (l live) End() { l.a.giveUp() }

// Try and Effect work without the meter, because tests do not limit fuel.
func (l live) Try(_ *work.Meter, root *state.Node, req engine.Request) (engine.Tried, error) {
	if l.a.gone {
		return engine.Tried{}, engine.ErrStale
	}
	return l.a.place.eng.Try(l.a.view.ID, l.a.view.Attempt, root, req)
}

func (l live) Effect(_ *work.Meter, n uint64, req engine.Request, attach func(*engine.Result)) error {
	a := l.a
	if a.gone {
		return engine.ErrStale
	}
	call := engine.Call{Invocation: a.view.ID, Attempt: a.view.Attempt, N: n, Request: req}
	err := a.world.tick(a.place, call, attach)
	if errors.Is(err, engine.ErrUnresolved) {
		switch ask := req.(type) {
		case engine.RunWorkflow:
			if ask.Start, err = a.world.resolve(a, ask); err != nil {
				return err
			}
			call.Request = ask
		case engine.CallResource:
			ask.Mode = a.world.modeOf(ask.Resource, ask.Method)
			if _, ok := a.world.resources[ask.Resource]; !ok {
				return &abi.Error{Code: "permission_denied", Message: fmt.Sprintf(
					"step %s calls the resource %s, which is not granted: give the session one, wefttest.Resource(%q, ...)", a.view.Step, ask.Resource, ask.Resource)}
			}
			call.Request = ask
		}
		err = a.world.tick(a.place, call, attach)
	}
	if err == nil {
		a.note(req)
	}
	if _, commit := req.(engine.CommitState); commit && err == nil {
		a.giveUp()
	}
	return err
}
