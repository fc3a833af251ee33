package hostcall

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/state"
)

func (a *Attempt) wait(req []byte, clock int64) ([]byte, error) {
	m, err := abi.DecodeWaitForEvent(req)
	if err != nil {
		return nil, invalid(err)
	}
	id := a.waiterID(&m)
	if n := len(m.Requirements); n > maxRequirements && a.open.Prices > 0 {
		return nil, &abi.Error{Code: abi.StatusLimitExceeded.Code(), Message: fmt.Sprintf("the requirements have %d bytes, more than %d", n, maxRequirements)}
	}
	if err := a.meter.Spend(requireUnits * uint64(len(m.Requirements))); err != nil {
		return nil, err
	}
	resp, err := a.effect(abi.ImportWait, req, clock, engine.WaitForEvent{
		ID: id, Type: m.Type, Requirements: m.Requirements, Ask: m.WaiterEvent,
		Timeout: int64(m.Timeout), Broadcast: m.Broadcast,
	}, func(r engine.Response) ([]byte, error) { return r.Event.Encode() })
	return resp, suspensionLimit(err)
}

// waiterID names a wait in its invocation. The name is the id that the guest gave.
// Without an id it consists of what the wait waits for and the number of equal waits
// before it, so that the next attempt gives it the same name. The first wait of an id has
// the id itself as its name, the second "ID (2)". An id that looks like such a name
// always gets a number, so no two waits have the same name.
func (a *Attempt) waiterID(m *abi.WaitForEvent) string {
	if a.waits == nil {
		a.waits = map[string]int{}
	}
	if m.WaiterID != "" {
		id := "=" + m.WaiterID
		a.waits[id]++
		if n := a.waits[id]; n > 1 || numbered(m.WaiterID) {
			return fmt.Sprintf("%s (%d)", m.WaiterID, n)
		}
		return m.WaiterID
	}
	id := m.Type
	if m.Requirements != nil {
		id = fmt.Sprintf("%s %x", id, sha256.Sum256(m.Requirements))
	}
	a.waits[id]++
	return fmt.Sprintf("%s #%d", id, a.waits[id])
}

// numbered reports whether an id ends in a number in brackets.
func numbered(id string) bool {
	rest, closed := strings.CutSuffix(id, ")")
	digits := strings.TrimRight(rest, "0123456789")
	return closed && len(digits) < len(rest) && strings.HasSuffix(digits, " (")
}

func (a *Attempt) sleep(req []byte, clock int64) ([]byte, error) {
	m, err := abi.DecodeSleep(req)
	if err != nil {
		return nil, invalid(err)
	}
	resp, err := a.effect(abi.ImportSleep, req, clock, engine.Sleep{Duration: int64(m.Duration)}, nullResponse)
	return resp, suspensionLimit(err)
}

func (a *Attempt) runWorkflow(req []byte, clock int64) ([]byte, error) {
	m, err := abi.DecodeRunWorkflow(req)
	if err != nil {
		return nil, invalid(err)
	}
	if err := a.chargeEvent(req); err != nil {
		return nil, err
	}
	r := engine.RunWorkflow{ID: m.ID, Workflow: m.Workflow, Event: m.Event, Stream: m.IncludeStream}
	if m.Session != nil {
		r.Shared, r.Session = m.Session.Shared, m.Session.ID
	}
	resp, err := a.effect(abi.ImportRunWorkflow, req, clock, r, func(r engine.Response) ([]byte, error) { return r.Event.Encode() })
	return resp, suspensionLimit(err)
}

func (a *Attempt) callResource(req []byte, clock int64) ([]byte, error) {
	m, err := abi.DecodeCallResource(req)
	if err != nil {
		return nil, invalid(err)
	}
	if err := a.meter.Spend(state.JournalPrice(len(req)) + digestUnits*uint64(len(m.Payload))); err != nil {
		return nil, err
	}
	r := engine.CallResource{Resource: m.Resource, Method: m.Method, Payload: m.Payload, Ordinal: a.ordinal(&m)}
	resp, err := a.effect(abi.ImportResource, req, clock, r, func(r engine.Response) ([]byte, error) { return r.Value, nil })
	return resp, suspensionLimit(err)
}

// ordinal counts a call among the equal calls of the attempt, so that the next attempt
// gives it the same number.
func (a *Attempt) ordinal(m *abi.CallResource) uint64 {
	if a.outcalls == nil {
		a.outcalls = map[string]uint64{}
	}
	like := fmt.Sprintf("%q %q %x", m.Resource, m.Method, sha256.Sum256(m.Payload))
	a.outcalls[like]++
	return a.outcalls[like]
}

// suspensionLimit ends an attempt that has waited, slept, run children or called
// resources too often. A repeated call could not succeed either.
func suspensionLimit(err error) error {
	if over := (*engine.Exhausted)(nil); errors.As(err, &over) {
		return limitf("%s", over.Err.Message)
	}
	return err
}
