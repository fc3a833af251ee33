package hostcall_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/hostcall"
	"github.com/weftrun/weft/host/limit"
)

// short is an attempt's input with a small call_bytes.
func short() engine.AttemptOpen {
	open := engine.AttemptOpen{Clock: 500, Limits: limit.Default()}
	open.Limits.CallBytes = 40
	return open
}

// A state_begin whose answer is too long opens no edit, because the guest does not get
// the value.
func TestBeginWithATooLongAnswerOpensNoEdit(t *testing.T) {
	w := newWorld(t)
	a := w.attempt(short(), nil)
	ask := func(im abi.Import, req abi.Raw) abi.Status {
		t.Helper()
		_, status, _, err := a.Call(im, req, 0)
		if err != nil {
			t.Fatal(err)
		}
		return status
	}
	ask(abi.ImportStateEdit, value([]any{[]any{"set", "x", strings.Repeat("x", 100)}}))
	if got := ask(abi.ImportStateBegin, value([]any{"x"})); got != abi.StatusLimitExceeded {
		t.Fatalf("status %d", got)
	}
	if got := ask(abi.ImportStateAbort, value([]any{})); got != abi.StatusFailedPrecondition {
		t.Errorf("an abort finds an edit: status %d", got)
	}
	if got := ask(abi.ImportStateEdit, value([]any{[]any{"set", "x", 1}})); got != abi.StatusOK {
		t.Errorf("an edit afterwards: status %d", got)
	}
}

// An effect whose answer is too long stands. Its record holds what the guest got: one
// answer for one call.
func TestEffectWithATooLongAnswerReplays(t *testing.T) {
	w := newWorld(t)
	a := w.attempt(short(), nil)
	edits := make([]any, 60) // sixty results: more than call_bytes
	for i := range edits {
		edits[i] = []any{"increment", "n", 1}
	}
	program := func(a *hostcall.Attempt) []abi.Status {
		var got []abi.Status
		for _, req := range []abi.Raw{value(edits), value([]any{[]any{"increment", "n", 1}})} {
			_, status, _, err := a.Call(abi.ImportStateEdit, req, 0)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, status)
		}
		return got
	}
	if got := program(a); got[0] != abi.StatusLimitExceeded || got[1] != abi.StatusOK {
		t.Fatalf("statuses %v", got)
	}
	if got := w.stateNow(); got != `{"n": 61}` {
		t.Fatalf("state %s", got)
	}
	open, record := w.crash()
	if len(record) != 2 {
		t.Fatalf("%d records of 2 calls", len(record))
	}
	if got := program(w.attempt(open, record)); got[0] != abi.StatusLimitExceeded || got[1] != abi.StatusOK {
		t.Fatalf("replayed statuses %v", got)
	}
	if got := w.stateNow(); got != `{"n": 61}` {
		t.Fatalf("the replay makes effects: state %s", got)
	}
}

// The description of a departing replay becomes part of the journal, which holds only
// valid text. So a long request is not cut inside a character.
func TestMismatchIsValidText(t *testing.T) {
	for pad := range 4 {
		w := newWorld(t)
		a := w.attempt(engine.AttemptOpen{}, nil)
		req := func(n int) abi.Raw {
			return value([]any{[]any{"set", "x", strings.Repeat("a", pad) + strings.Repeat("\u65e5", n)}})
		}
		if _, _, _, err := a.Call(abi.ImportStateEdit, req(200), 0); err != nil {
			t.Fatal(err)
		}
		a.Restart()
		_, _, _, err := a.Call(abi.ImportStateEdit, req(201), 0)
		var m *hostcall.Mismatch
		if !errors.As(err, &m) || !utf8.ValidString(err.Error()) {
			t.Fatalf("%q", err)
		}
	}
}
