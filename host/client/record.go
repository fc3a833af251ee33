package client

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// basePrefix is the name space of the base and runtime event types.
const basePrefix = "workflows.events."

// internalType is the ancestor that marks internal events.
const internalType = "InternalDispatchEvent"

// recordJSON is a record as the API writes it.
type recordJSON struct {
	HandlerID   string        `json:"handler_id"`
	Workflow    string        `json:"workflow_name"`
	RunID       string        `json:"run_id"`
	Error       string        `json:"error"`
	ErrorCode   string        `json:"error_code"`
	ErrorStep   string        `json:"error_step"`
	Attempt     uint64        `json:"error_attempt"`
	Remedy      string        `json:"error_remedy"`
	Result      *envelopeJSON `json:"result"`
	Status      host.Status   `json:"status"`
	StartedAt   *time.Time    `json:"started_at"`
	UpdatedAt   *time.Time    `json:"updated_at"`
	CompletedAt *time.Time    `json:"completed_at"`
	SessionID   string        `json:"session_id"`
	Version     string        `json:"version"`
	Paused      bool          `json:"paused"`
	Steps       uint64        `json:"steps"`
	Blocked     *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"blocked"`
	WaitingFor []struct {
		Step     string     `json:"step"`
		Type     string     `json:"type"`
		WaiterID string     `json:"waiter_id"`
		Child    string     `json:"child"`
		Resource string     `json:"resource"`
		Until    *time.Time `json:"until"`
		Since    *time.Time `json:"since"`
		Reason   string     `json:"reason"`
		// Requirements is an object, or absent.
		Requirements json.RawMessage `json:"requirements"`
	} `json:"waiting_for"`
	Kept []struct {
		Type string `json:"type"`
		Step string `json:"step"`
	} `json:"kept"`
}

// envelopeJSON is an event as the API writes it.
type envelopeJSON struct {
	Value         json.RawMessage `json:"value"`
	QualifiedName string          `json:"qualified_name"`
	Type          string          `json:"type"`
	Types         []string        `json:"types"`
}

func decodeRecord(text []byte) (Record, error) {
	var r recordJSON
	if err := json.Unmarshal(text, &r); err != nil {
		return Record{}, &host.Error{Code: host.CodeInvalidMessage, Message: "The server's record is not understood: " + err.Error(), Cause: err}
	}
	rec := Record{JSON: text, Remedy: r.Remedy, Run: host.Run{
		HandlerID: r.HandlerID, RunID: r.RunID, SessionID: r.SessionID, Workflow: r.Workflow, Version: r.Version,
		Status: r.Status, Error: r.Error, ErrorCode: r.ErrorCode,
		ErrorStep: r.ErrorStep, ErrorAttempt: r.Attempt, Paused: r.Paused, Steps: r.Steps,
		Started: nanos(r.StartedAt), Updated: nanos(r.UpdatedAt), Completed: nanos(r.CompletedAt),
	}}
	for _, w := range r.WaitingFor {
		rec.WaitingFor = append(rec.WaitingFor, host.Waiting{
			Step: w.Step, Type: w.Type, WaiterID: w.WaiterID, Child: w.Child, Resource: w.Resource,
			Until: nanos(w.Until), Since: nanos(w.Since), Reason: w.Reason, Requirements: string(w.Requirements),
		})
	}
	for _, k := range r.Kept {
		rec.Kept = append(rec.Kept, host.Kept{Type: k.Type, Step: k.Step})
	}
	if r.Blocked != nil {
		rec.Blocked = &host.Blocked{Code: r.Blocked.Code, Message: r.Blocked.Message}
	}
	if r.Result != nil {
		e, err := r.Result.event()
		if err != nil {
			return Record{}, err
		}
		e.RunID, e.Terminal = r.RunID, true
		rec.Result = &e
	}
	return rec, nil
}

func nanos(t *time.Time) int64 {
	if t == nil {
		return 0
	}
	return t.UnixNano()
}

// event makes the stream event that an envelope shows. Its run and sequence
// number are not in there.
func (j *envelopeJSON) event() (host.StreamEvent, error) {
	body, err := abi.FromJSON(j.Value)
	if err != nil {
		return host.StreamEvent{}, &host.Error{Code: host.CodeInvalidMessage, Message: "The server's event is not understood: " + err.Error(), Cause: err}
	}
	e := host.StreamEvent{Type: j.Type, Types: j.Types, Body: body}
	if strings.HasPrefix(j.QualifiedName, basePrefix) {
		e.Base = true
	} else {
		e.Workflow = strings.TrimSuffix(j.QualifiedName, "."+j.Type)
	}
	e.Internal = slices.Contains(j.Types, internalType)
	e.Terminal = j.Type == abi.TypeStop && e.Base || slices.Contains(j.Types, abi.TypeStop)
	return e, nil
}
