package hostcall

import (
	"slices"
	"testing"

	"github.com/weftrun/weft/abi"
)

// The waits of an attempt have different names, whatever ids a guest gives, and the next
// attempt uses the same names.
func TestNamesOfWaits(t *testing.T) {
	given := []string{"boss", "boss", "", "boss", "boss (2)", "boss (2)", "clerk", "", "x (a)", "(1)"}
	names := func() []string {
		a := &Attempt{}
		var out []string
		for _, id := range given {
			out = append(out, a.waiterID(&abi.WaitForEvent{Type: "Answer", WaiterID: id}))
		}
		return out
	}
	got := names()
	want := []string{"boss", "boss (2)", "Answer #1", "boss (3)", "boss (2) (1)", "boss (2) (2)", "clerk", "Answer #2", "x (a)", "(1)"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if again := names(); !slices.Equal(again, got) {
		t.Errorf("the next attempt has %q", again)
	}
}
