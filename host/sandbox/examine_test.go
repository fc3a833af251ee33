package sandbox

import (
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/behalf"
)

// TestInspectionsTakeTurns: a tenant's modules are inspected one after the other in the
// server's own process, and do not keep another tenant waiting.
func TestInspectionsTakeTurns(t *testing.T) {
	b := newBench(t, nil)
	inspected := func(tenant string) <-chan string {
		code := make(chan string, 1)
		go func() {
			_, problems := b.Inspect(behalf.With(t.Context(), tenant), []byte("text"), host.Limits{})
			code <- problems[0].Code
		}()
		return code
	}
	b.examining.Take("loud", 1, nil, nil)
	loud := inspected("loud")
	for range 3 {
		if code := <-inspected("calm"); code != problemNotWasm {
			t.Fatalf("problem %q", code)
		}
	}
	select {
	case <-loud:
		t.Error("two modules of a tenant are inspected at once")
	default:
	}
	b.examining.Leave("loud")
	if code := <-loud; code != problemNotWasm {
		t.Errorf("problem %q", code)
	}
}
