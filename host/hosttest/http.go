package hosttest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
)

// Do makes a request with a JSON body (nil: none) and returns the status and
// the answer.
func (h *Host) Do(tb testing.TB, method, path string, body any) (int, []byte) {
	tb.Helper()
	var sent []byte
	switch b := body.(type) {
	case nil:
	case string:
		sent = []byte(b)
	case []byte:
		sent = b
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			tb.Fatal(err)
		}
		sent = raw
	}
	req, err := http.NewRequestWithContext(tb.Context(), method, h.URL+path, bytes.NewReader(sent))
	if err != nil {
		tb.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		tb.Fatal(err)
	}
	AsDescribed(tb, req, sent, res.StatusCode, res.Header, out)
	return res.StatusCode, out
}

// Record is a handler record as the API shows it.
type Record struct {
	HandlerID string `json:"handler_id"`
	RunID     string `json:"run_id"`
	SessionID string `json:"session_id"`
	Status    string `json:"status"`
	Error     string `json:"error"`
	Steps     uint64 `json:"steps"`
	Result    *struct {
		Type  string `json:"type"`
		Value struct {
			Result json.RawMessage `json:"result"`
		} `json:"value"`
	} `json:"result"`
}

// Run runs a workflow and waits for its record; body is the request's whole
// body, such as {"start_event": {...}}.
func (h *Host) Run(tb testing.TB, workflow string, body any) Record {
	tb.Helper()
	status, out := h.Do(tb, http.MethodPost, "/workflows/"+workflow+"/run", body)
	return record(tb, status, out)
}

// RunNoWait starts a workflow.
func (h *Host) RunNoWait(tb testing.TB, workflow string, body any) Record {
	tb.Helper()
	status, out := h.Do(tb, http.MethodPost, "/workflows/"+workflow+"/run-nowait", body)
	return record(tb, status, out)
}

func record(tb testing.TB, status int, out []byte) Record {
	tb.Helper()
	var r Record
	if err := json.Unmarshal(out, &r); err != nil || r.HandlerID == "" {
		tb.Fatalf("status %d: %s", status, out)
	}
	return r
}

// Result runs a workflow with a start event and returns its result as compact JSON. The
// test fails if the run does not complete.
func (h *Host) Result(tb testing.TB, workflow string, body any) string {
	tb.Helper()
	r := h.Run(tb, workflow, body)
	if r.Status != "completed" || r.Result == nil {
		tb.Fatalf("%s: %s %s", workflow, r.Status, r.Error)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, r.Result.Value.Result); err != nil {
		tb.Fatal(err)
	}
	return b.String()
}

// Event is one event of a stream as the API shows it.
type Event struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// Events reads a handler's stream as NDJSON from the start of its latest run to its end,
// or until done returns true.
func (h *Host) Events(tb testing.TB, id, query string, done func(Event) bool) []Event {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.URL+"/events/"+id+"?sse=false&after_sequence=-1"+query, nil)
	if err != nil {
		tb.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		tb.Fatalf("events of %s: status %d", id, res.StatusCode)
	}
	var out []Event
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<26)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue
		}
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			tb.Fatalf("%s: %v", lines.Bytes(), err)
		}
		out = append(out, e)
		if done != nil && done(e) {
			return out
		}
	}
	return out
}
