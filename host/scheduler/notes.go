package scheduler

import (
	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/deaths"
	"github.com/weftrun/weft/host/missing"
	"github.com/weftrun/weft/host/scheduler/calls"
	"github.com/weftrun/weft/host/scheduler/suspects"
)

// note is what is noted of a run of the attempt's guest. The caller holds ss.mu.
func (at *attempt) note() deaths.CoreNote {
	return deaths.CoreNote{
		Kind: deaths.CoreRun, Tenant: at.ss.key.Tenant, Session: at.ss.key.Session,
		Invocation: at.inv, Attempt: at.view.Attempt, Kept: at.kept,
		Digest: suspects.Hash(at.view.Version), Step: suspects.Hash(at.view.Step),
	}
}

// enter notes that the token's run holds a core from now on.
func (t *token) enter() {
	t.slot = t.s.cfg.Notes.Enter(&t.note)
}

// leave notes that it does not any more.
func (t *token) leave() {
	t.s.cfg.Notes.Leave(t.slot)
	t.slot = -1
}

// Call implements host.Calls: the call is noted before the attempt answers.
func (t *token) Call(im abi.Import, req []byte, clock int64) (resp []byte, status abi.Status, newClock int64, err error) {
	t.calls++
	t.s.cfg.Notes.At(t.slot, t.calls, t.burnt, string(im))
	return t.at.answers.Call(im, req, clock)
}

// Print implements host.Calls.
func (t *token) Print(fd uint32, text []byte) { t.at.answers.Print(fd, text) }

// Advise implements host.Adviser.
func (t *token) Advise(m missing.Thing) {
	if a, ok := t.at.answers.(host.Adviser); ok {
		a.Advise(m)
	}
}

// Replaying implements host.Replayer.
func (t *token) Replaying() bool {
	r, ok := t.at.answers.(host.Replayer)
	return ok && r.Replaying()
}

// Afford implements host.Metered.
func (t *token) Afford(left uint64, look func(units uint64) error) {
	if m, ok := t.at.answers.(host.Metered); ok {
		m.Afford(left, look)
	}
}

// Charged implements host.Metered.
func (t *token) Charged() uint64 {
	if m, ok := t.at.answers.(host.Metered); ok {
		return m.Charged()
	}
	return 0
}

// noteCall notes a resource call while this process works on it.
func (s *Scheduler) noteCall(o *calls.Call, call *host.ResourceCall) *suspects.Noted {
	return suspects.Note(s.cfg.Notes, deaths.CoreNote{
		Kind: deaths.CoreCall, Tenant: o.Key.Session.Tenant, Session: o.Key.Session.Session, Invocation: o.Key.Invocation, Attempt: o.Attempt,
		Digest: suspects.Hash(call.User.Digest), Step: suspects.Hash(call.Step),
	})
}

// callKey is the call's key among the suspects.
func callKey(o *calls.Call) deaths.CoreKey {
	return deaths.CoreKey{Kind: deaths.CoreCall, Tenant: o.Key.Session.Tenant, Session: o.Key.Session.Session, Invocation: o.Key.Invocation, Attempt: o.Attempt}
}
