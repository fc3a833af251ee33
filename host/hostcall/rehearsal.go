package hostcall

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
)

// errRehearsed unwinds a guest whose calls so far were those of the record.
var errRehearsed = errors.New("the record has been played")

// Rehearsal plays the record of an attempt to a guest, perhaps of another version, to
// find out whether the guest makes the same calls. It has no effects. One goroutine may
// use it, once.
type Rehearsal struct {
	attempt *Attempt
	pending *engine.Pending // the call that the attempt waits in; nil: it waits in none
	met     bool            // the guest has made the pending call
}

// NewRehearsal creates a rehearsal of an attempt's record. It does not change the record.
func NewRehearsal(open engine.AttemptOpen, record []engine.CallRecord, pending *engine.Pending) *Rehearsal {
	r := &Rehearsal{attempt: New(idle{}, open, record), pending: pending}
	r.attempt.Restart()
	return r
}

// Call implements host.Calls.
func (r *Rehearsal) Call(im abi.Import, req []byte, clock int64) ([]byte, abi.Status, int64, error) {
	a := r.attempt
	if a.Replaying() {
		return a.Call(im, req, clock)
	}
	if r.pending != nil && !r.met {
		if r.met = r.awaits(im, req); !r.met {
			return nil, 0, 0, &Mismatch{
				N: a.n + 1, Was: r.pending.Import, WasReq: r.pending.Show(), Is: im, IsReq: show(req), Recording: a.replayed + 1,
			}
		}
	}
	return nil, 0, 0, errRehearsed
}

// awaits reports whether a call is the one that the attempt waits in.
func (r *Rehearsal) awaits(im abi.Import, req []byte) bool {
	p, a := r.pending, r.attempt
	if im != p.Import {
		return false
	}
	switch im {
	case abi.ImportWait:
		m, err := abi.DecodeWaitForEvent(req)
		return err == nil && a.waiterID(&m) == p.Waiter && m.Type == p.Type
	case abi.ImportRunWorkflow:
		m, err := abi.DecodeRunWorkflow(req)
		return err == nil && m.Workflow == p.Workflow && m.ID == p.Child
	case abi.ImportResource:
		m, err := abi.DecodeCallResource(req)
		return err == nil && m.Resource == p.Resource && m.Method == p.Method && bytes.Equal(m.Payload, p.Payload)
	}
	return true
}

// Afford implements host.Metered.
func (r *Rehearsal) Afford(left uint64, look func(units uint64) error) { r.attempt.Afford(left, look) }

// Charged implements host.Metered.
func (r *Rehearsal) Charged() uint64 { return r.attempt.Charged() }

// Print implements host.Calls.
func (r *Rehearsal) Print(uint32, []byte) {}

// Replaying implements host.Replayer.
func (r *Rehearsal) Replaying() bool { return r.attempt.Replaying() }

// Departs returns where the guest departed from the record, given the result of its run;
// nil: nowhere. The error is a fault of the host.
func (r *Rehearsal) Departs(res host.InvocationResult, err error) (*host.Departure, error) {
	var m *Mismatch
	made, all := r.attempt.n, uint64(r.attempt.replayed)
	switch {
	case errors.Is(err, errRehearsed):
		return nil, nil
	case errors.As(err, &m):
		return &host.Departure{Call: m.N, Import: string(m.Was), Code: host.BlockedReplayMismatch, Message: m.Error()}, nil
	case err != nil:
		return nil, err
	case made >= all && (r.pending == nil || r.met):
		return nil, nil // calls after the record are new
	}
	d := &host.Departure{Call: made + 1, Code: host.BlockedReplayMismatch}
	if made < all {
		d.Import = string(r.attempt.record[made].Import)
	} else {
		d.Import = string(r.pending.Import)
	}
	ended := "it ended"
	if res.Err != nil {
		ended = fmt.Sprintf("it failed (%s: %s)", res.Err.Code, res.Err.Message)
	}
	d.Message = fmt.Sprintf("replay departs from the record: %s after call %d, where the record has %s as call %d", ended, made, d.Import, d.Call)
	return d, nil
}

// idle is the session of a rehearsal. No call reaches it.
type idle struct{ Live }

// Atomic implements Live.
func (idle) Atomic() bool { return false }
