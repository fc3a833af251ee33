package scheduler

import (
	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/deaths"
	"github.com/weftrun/weft/host/missing"
	"github.com/weftrun/weft/host/scheduler/calls"
	"github.com/weftrun/weft/host/scheduler/suspects"
)

// Notes are what the next process knows of this one if this one ends without a word:
// what held a core. Work is noted for as long as it can end the process: a run of a
// guest with what its end does, a resource call while it is made, a session while it
// is loaded.
//
// Methods may be called from any goroutine; a slot belongs to one goroutine at a time.
// None of them waits or fails: notes that cannot be taken are left out.
type Notes interface {
	// Before tells how the process before ended.
	Before() deaths.Death
	// Begin begins this life, with suspects in phase apart, else in phase serving. If
	// the process ends before, the next one hears of the end before once more.
	Begin(s deaths.Suspicion)
	// Enter notes work that begins to hold a core; the slot is below 0 if there is
	// none. The note is not kept.
	Enter(n *deaths.CoreNote) (slot int)
	// At notes how far the guest of a slot has come; newest is "" if the newest host
	// call is still the same. Leave notes that the work is over.
	At(slot int, calls, burnt uint64, newest string)
	Leave(slot int)
	// Phase notes what the server does from now on, and Suspect who is suspected.
	Phase(p deaths.CorePhase)
	Suspect(list []deaths.Suspect)
	// Alive is called every few seconds.
	Alive()
	// Unnoted counts the work that found no slot.
	Unnoted() uint64
}

// note is what is noted of a run of the attempt's guest. The caller holds ss.mu.
func (at *attempt) note() deaths.CoreNote {
	return deaths.CoreNote{
		Kind: deaths.CoreRun, Tenant: at.ss.key.Tenant, Session: at.ss.key.Session,
		Invocation: at.inv, Attempt: at.view.Attempt, Kept: at.kept,
		Digest: suspects.Hash(at.view.Version), Step: suspects.Hash(at.view.Step),
	}
}

// suspectKey is the attempt's key among the suspects.
func (at *attempt) suspectKey() deaths.CoreKey {
	return deaths.CoreKey{Kind: deaths.CoreRun, Tenant: at.ss.key.Tenant, Session: at.ss.key.Session, Invocation: at.inv, Attempt: at.view.Attempt}
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

// callNote notes a resource call while this process works on it, and not while the
// call waits for others: a call may wait for minutes, and cannot end the process then.
type callNote struct {
	notes Notes
	note  deaths.CoreNote
	slot  int
}

func (s *Scheduler) noteCall(o *calls.Call, call *host.ResourceCall) *callNote {
	n := &callNote{notes: s.cfg.Notes, note: deaths.CoreNote{
		Kind: deaths.CoreCall, Tenant: o.Key.Session.Tenant, Session: o.Key.Session.Session, Invocation: o.Key.Invocation, Attempt: o.Attempt,
		Digest: suspects.Hash(call.User.Digest), Step: suspects.Hash(call.Step),
	}}
	n.enter()
	return n
}

// callKey is the call's key among the suspects.
func callKey(o *calls.Call) deaths.CoreKey {
	return deaths.CoreKey{Kind: deaths.CoreCall, Tenant: o.Key.Session.Tenant, Session: o.Key.Session.Session, Invocation: o.Key.Invocation, Attempt: o.Attempt}
}

func (c *callNote) enter() { c.slot = c.notes.Enter(&c.note) }
func (c *callNote) leave() { c.notes.Leave(c.slot) }

// wait implements host.ResourceCall.Waits.
func (c *callNote) wait() (back func()) {
	c.leave()
	return c.enter
}

// noNotes takes no notes.
type noNotes struct{}

func (noNotes) Before() deaths.Death           { return deaths.Death{} }
func (noNotes) Begin(deaths.Suspicion)         {}
func (noNotes) Enter(*deaths.CoreNote) int     { return -1 }
func (noNotes) At(int, uint64, uint64, string) {}
func (noNotes) Leave(int)                      {}
func (noNotes) Phase(deaths.CorePhase)         {}
func (noNotes) Suspect([]deaths.Suspect)       {}
func (noNotes) Alive()                         {}
func (noNotes) Unnoted() uint64                { return 0 }
