package history

import (
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/engine"
)

// FuzzHeld reads the records of attempts that a client's snapshot brings (the session
// in it is engine's FuzzRestore): nothing panics, and what is kept of them is encoded
// as it was read.
func FuzzHeld(f *testing.F) {
	for _, held := range [][]engine.HeldAttempt{
		nil, {{Invocation: 1, Attempt: 1}},
		{{Invocation: 1, Attempt: 2, Crashes: 3, Open: &engine.AttemptOpen{Clock: 5}, Calls: []engine.CallRecord{{N: 1, Request: []byte("a"), Response: []byte("b")}}}, {Invocation: 1}},
	} {
		raw, err := abi.Marshal(held)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Add([]byte("\x9f"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var held []engine.HeldAttempt
		if abi.Unmarshal(raw, &held) != nil {
			return
		}
		l := NewLedger()
		l.Adopt(&engine.Entry{Held: held})
		if n := len(l.Copies()); n > len(held) {
			t.Errorf("%d records of %d", n, len(held))
		}
		by := HeldByRun{"was": held}
		out := by.Of([]engine.ForkedRun{{RunID: "r", Was: "was"}}, "s")
		if len(out) != len(held) || SizeOfHeld(out) < 0 {
			t.Errorf("%d records of %d", len(out), len(held))
		}
		if _, err := abi.Marshal(out); err != nil {
			t.Error(err)
		}
	})
}
