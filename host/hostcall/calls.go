package hostcall

import (
	"errors"
	"fmt"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/state"
	"github.com/weftrun/weft/host/work"
)

// answer makes a live call. An [*abi.Error] is the answer for the guest. Any other error
// unwinds the guest.
func (a *Attempt) answer(im abi.Import, req []byte, clock int64) ([]byte, error) {
	if a.live.Atomic() {
		if err := a.checkStage(); err != nil {
			return nil, err
		}
	}
	if a.region != nil {
		if err := a.checkRegion(); err != nil {
			return nil, err
		}
		switch im {
		case abi.ImportStateGet, abi.ImportLog, abi.ImportNow, abi.ImportRandom,
			abi.ImportStateCommit, abi.ImportStateAbort:
		default:
			return nil, precondition("%s inside an edit: call it before or after the edit, in which only state_get, log, now and random may be called", im)
		}
	}
	var resp []byte
	err := a.chargeDecoding(req)
	if err == nil {
		resp, err = a.dispatch(im, req, clock)
	}
	if err == nil && a.n > uint64(len(a.record)) { // an effect checks its own length
		err = a.checkLength(im, len(resp))
	}
	if err != nil && im == abi.ImportStateBegin && a.region != nil && a.region.begin == a.n {
		err = a.closeRegion(err) // the guest does not get the value, so there is no edit
	}
	return resp, guestError(err)
}

// checkLength returns an [*abi.Error] for an answer that is too long.
func (a *Attempt) checkLength(im abi.Import, length int) error {
	if length <= a.open.Limits.CallBytes {
		return nil
	}
	return &abi.Error{Code: abi.StatusLimitExceeded.Code(),
		Message: fmt.Sprintf("the answer of %s has %d bytes, more than %d (limit call_bytes)", im, length, a.open.Limits.CallBytes)}
}

func (a *Attempt) dispatch(im abi.Import, req []byte, clock int64) ([]byte, error) {
	switch im {
	case abi.ImportStateGet:
		return a.stateGet(req)
	case abi.ImportStateEdit:
		return a.stateEdit(req, clock)
	case abi.ImportStateBegin:
		return a.stateBegin(req)
	case abi.ImportStateCommit:
		return a.stateCommit(req, clock)
	case abi.ImportStateAbort:
		return a.stateAbort(req)
	case abi.ImportSendEvent:
		return a.sendEvent(req, clock)
	case abi.ImportCollect:
		return a.collect(req, clock)
	case abi.ImportWriteStream:
		return a.writeStream(req, clock)
	case abi.ImportWait:
		return a.wait(req, clock)
	case abi.ImportSleep:
		return a.sleep(req, clock)
	case abi.ImportRunWorkflow:
		return a.runWorkflow(req, clock)
	case abi.ImportResource:
		return a.callResource(req, clock)
	case abi.ImportNow:
		if err := abi.DecodeEmpty(req); err != nil {
			return nil, invalid(err)
		}
		return abi.EncodeValue(clock)
	case abi.ImportRandom:
		b, err := a.draw(req)
		if err != nil {
			return nil, err
		}
		return abi.EncodeValue(b)
	case abi.ImportLog:
		if err := a.meter.Spend(logUnits + uint64(len(req))); err != nil {
			return nil, err
		}
		if err := a.log(req, clock); err != nil {
			return nil, err
		}
		return abi.Null, nil
	default:
		return nil, &abi.Error{Code: abi.StatusUnavailable.Code(), Message: fmt.Sprintf("%s is not served by this version of weft", im)}
	}
}

func (a *Attempt) stateGet(req []byte) ([]byte, error) {
	m, err := abi.DecodeStateGet(req)
	if err != nil {
		return nil, invalid(err)
	}
	p, err := state.ParsePath(m.Path)
	if err != nil {
		return nil, err
	}
	if n, ok := a.read(p); ok {
		return a.encode(abi.ImportStateGet, n)
	}
	if m.Default != nil {
		return m.Default, nil
	}
	return nil, absent(m.Path)
}

func (a *Attempt) stateEdit(req []byte, clock int64) ([]byte, error) {
	edits, err := abi.DecodeEdits(req)
	if err != nil {
		return nil, invalid(err)
	}
	return a.effect(abi.ImportStateEdit, req, clock, engine.EditState{Edits: edits}, func(r engine.Response) ([]byte, error) {
		return abi.EncodeResults(r.Results)
	})
}

func (a *Attempt) stateBegin(req []byte) ([]byte, error) {
	m, err := abi.DecodeStateBegin(req)
	if err != nil {
		return nil, invalid(err)
	}
	p, err := state.ParsePath(m.Path)
	if err != nil {
		return nil, err
	}
	n, ok, err := a.begin(p)
	if err != nil {
		return nil, err
	}
	if !ok {
		a.end()
		return nil, absent(m.Path)
	}
	a.region = &region{path: p, base: n, begin: a.n, start: a.live.Now()}
	return a.encode(abi.ImportStateBegin, n)
}

func (a *Attempt) stateCommit(req []byte, clock int64) ([]byte, error) {
	if a.region == nil {
		return nil, precondition("state_commit without an open edit: call state_begin first")
	}
	m, err := abi.DecodeStateCommit(req)
	if err != nil {
		return nil, a.closeRegion(invalid(err))
	}
	value, err := state.DecodeOn(a.meter, m.Value)
	if ended := a.meter.Err(); ended != nil {
		return nil, ended // the guest is unwound, and the record goes back to before the edit
	}
	if err != nil {
		return nil, a.closeRegion(invalid(err))
	}
	r := a.region
	resp, err := a.effect(abi.ImportStateCommit, req, clock,
		engine.CommitState{Path: r.path, Base: r.base, Value: value}, nullResponse)
	switch {
	case errors.Is(err, engine.ErrConflict), errors.Is(err, ErrParked):
		a.commitLost()
		return nil, err
	case a.meter.Err() != nil && !a.kept():
		return nil, err // the same as above
	case err != nil:
		return nil, a.closeRegion(err)
	}
	a.region = nil
	if a.stage == nil {
		a.losses = 0
	}
	return resp, nil
}

// kept reports whether the present call is in the record.
func (a *Attempt) kept() bool { return a.n <= uint64(len(a.record)) }

// begin returns the value at a path for an edit.
func (a *Attempt) begin(p state.Path) (*state.Node, bool, error) {
	if a.stage != nil {
		n, ok := a.read(p)
		return n, ok, nil
	}
	return a.live.Begin(p, a.losses >= ticketAfter)
}

// end gives back the ticket of an edit, if there is one. The ticket of an atomic step
// covers the whole step, and stays.
func (a *Attempt) end() {
	if a.stage == nil {
		a.live.End()
	}
}

// closeRegion ends the open edit without a change.
func (a *Attempt) closeRegion(err error) error {
	a.region = nil
	a.end()
	return err
}

func (a *Attempt) stateAbort(req []byte) ([]byte, error) {
	if err := abi.DecodeEmpty(req); err != nil {
		return nil, invalid(err)
	}
	if a.region == nil {
		return nil, precondition("state_abort without an open edit")
	}
	_ = a.closeRegion(nil)
	return abi.Null, nil
}

func (a *Attempt) sendEvent(req []byte, clock int64) ([]byte, error) {
	m, err := abi.DecodeSendEvent(req)
	if err != nil {
		return nil, invalid(err)
	}
	if err := a.chargeEvent(req); err != nil {
		return nil, err
	}
	return a.effect(abi.ImportSendEvent, req, clock, engine.SendEvent{Event: m.Event, Step: m.Step}, nullResponse)
}

func (a *Attempt) writeStream(req []byte, clock int64) ([]byte, error) {
	m, err := abi.DecodeWriteStream(req)
	if err != nil {
		return nil, invalid(err)
	}
	if err := a.chargeEvent(req); err != nil {
		return nil, err
	}
	return a.effect(abi.ImportWriteStream, req, clock, engine.WriteStream{Event: m.Event}, nullResponse)
}

func (a *Attempt) collect(req []byte, clock int64) ([]byte, error) {
	m, err := abi.DecodeCollectEvents(req)
	if err != nil {
		return nil, invalid(err)
	}
	if err := a.chargeEvent(req); err != nil {
		return nil, err
	}
	r := engine.CollectEvents{Event: m.Event, Expected: m.Expected, Buffer: m.Buffer}
	return a.effect(abi.ImportCollect, req, clock, r, func(r engine.Response) ([]byte, error) {
		if !r.Complete {
			return abi.Null, nil
		}
		bytes := 0
		for i := range r.Collected {
			bytes += len(r.Collected[i].Body)
		}
		if err := a.checkLength(abi.ImportCollect, bytes); err != nil {
			return nil, err
		}
		a.meter.Owe(work.Bytes(bytes, publishBytes))
		return abi.EncodeEvents(r.Collected)
	})
}

func nullResponse(engine.Response) ([]byte, error) { return abi.Null, nil }

// effect performs an effect. The record of the call, with the response that encode makes,
// goes into the entry of the effect. If the response is too long, the guest gets an error
// instead, and the error is recorded. The effect stands in any case.
func (a *Attempt) effect(im abi.Import, req []byte, clock int64, r engine.Request, encode func(engine.Response) ([]byte, error)) ([]byte, error) {
	if a.stage != nil {
		return a.try(req, r, encode)
	}
	var resp []byte
	var late error
	if err := a.meter.Spend(recordPrice(req, nil)); err != nil {
		return nil, err
	}
	err := a.live.Effect(a.meter, a.n, r, func(res *engine.Result) {
		// The effect is done. Charges from here on can end the guest, but not undo the
		// call.
		a.meter.Owe(visitUnits * res.Visited)
		if res.Response.Suspended {
			a.attach(res.Entry)
			late = ErrSuspended
			return
		}
		status := abi.StatusOK
		resp, late = encode(res.Response)
		if late == nil {
			late = a.checkLength(im, len(resp))
		}
		if long := (*abi.Error)(nil); errors.As(late, &long) {
			status = abi.StatusOf(long.Code)
			resp, late = long.Encode()
		}
		if late != nil {
			late = fmt.Errorf("encode the answer of %s: %w", im, late)
			return
		}
		a.meter.Owe(work.Bytes(len(resp), keepBytes))
		late = a.remember(im, req, resp, status, clock)
		if res.Entry != nil {
			a.attach(res.Entry)
		}
	})
	if err != nil {
		return nil, err
	}
	return resp, late
}

// draw takes bytes from the attempt's random stream.
func (a *Attempt) draw(req []byte) ([]byte, error) {
	m, err := abi.DecodeRandom(req)
	if err != nil {
		return nil, invalid(err)
	}
	if err := a.meter.Spend(randomUnits * m.N); err != nil {
		return nil, err
	}
	b := make([]byte, m.N)
	_, _ = a.random.Read(b) // never fails
	return b, nil
}

func invalid(err error) error {
	return &abi.Error{Code: abi.StatusInvalidMessage.Code(), Message: err.Error()}
}

func precondition(format string, args ...any) error {
	return &abi.Error{Code: abi.StatusFailedPrecondition.Code(), Message: fmt.Sprintf(format, args...)}
}

func absent(path string) error {
	return &abi.Error{Code: abi.StatusNotFound.Code(), Message: fmt.Sprintf("the state has nothing at %q, and no default was given", path)}
}

// guestError turns an error of package state into the guest's answer.
func guestError(err error) error {
	var e *state.Error
	if errors.As(err, &e) {
		message := e.Message
		if e.Path != "" {
			message = fmt.Sprintf("%q: %s", e.Path, message)
		}
		return &abi.Error{Code: e.Code, Message: message}
	}
	return err
}
