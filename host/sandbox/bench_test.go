package sandbox

import (
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// BenchmarkInvoke compares the ways to give an invocation its instance.
func BenchmarkInvoke(b *testing.B) {
	guests := []struct {
		name string
		wasm func() []byte
	}{
		{"wat", func() []byte { return hostile(b, "good") }},
		{"tinygo", func() []byte { return plugin(b, "counter-tinygo") }},
		{"rust", func() []byte { return plugin(b, "counter-rust") }},
		{"go", func() []byte { return plugin(b, "counter-go") }},
		{"ts", func() []byte { return plugin(b, "counter-ts") }},
		{"c", func() []byte { return plugin(b, "greet-c") }},
		{"zig", func() []byte { return plugin(b, "greet-zig") }},
	}
	for _, g := range guests {
		for _, mode := range []struct {
			name  string
			batch int
			edit  func(*Config)
		}{
			{"reference", 1, func(c *Config) { c.Reference, c.Spares = true, -1 }},
			{"image", 1, func(c *Config) { c.Spares = -1 }}, // a fresh instance each time
			{"reset", 64, nil},
		} {
			b.Run(g.name+"/"+mode.name, func(b *testing.B) {
				s := newBench(b, mode.edit)
				inv := s.invocation(s.library.add(g.wasm()), nil)
				switch g.name {
				case "wat":
				case "c", "zig":
					inv = stepOf(b, inv, "greet-"+g.name, "compose", map[string]any{"name": "Ada"})
					inv.Calls = &answers{abi.ImportStateEdit: abi.Raw{0x81, 0x01}} // [1]
				default:
					inv = counterStep(b, s, inv)
				}
				inv.Buffer = make([]byte, 0, 4096)
				if res, err := s.Invoke(b.Context(), inv); err != nil || res.Err != nil { // builds the module
					b.Fatalf("Invoke = %+v, %v", res, err)
				}
				inBatches(b, mode.batch, func() {
					res, err := s.Invoke(b.Context(), inv)
					if err != nil || res.Err != nil {
						b.Fatalf("Invoke = %+v, %v", res, err)
					}
				})
			})
		}
	}
}

// counterStep is an invocation of the counter plugin's step, with a state that
// counts 41 runs.
func counterStep(tb testing.TB, s bench, inv host.Invocation) host.Invocation {
	tb.Helper()
	inv = stepOf(tb, inv, "counter", "increment", map[string]any{})
	state, err := abi.EncodeValue(map[string]any{"count": 41})
	if err != nil {
		tb.Fatal(err)
	}
	calls := &answers{abi.ImportStateBegin: state}
	inv.Calls, inv.Token = calls, calls
	return inv
}

// stepOf is an invocation of a step by a start event.
func stepOf(tb testing.TB, inv host.Invocation, workflow, step string, start map[string]any) host.Invocation {
	tb.Helper()
	body, err := abi.EncodeValue(start)
	if err != nil {
		tb.Fatal(err)
	}
	input := abi.StepInput{
		Step:    step,
		Trigger: []abi.Event{{Type: abi.TypeStart, Body: body, ID: 1}},
		Run:     abi.RunInfo{Tenant: "default", Workflow: workflow, RunID: "r", SessionID: "s", Invocation: 1, Attempt: 1, Clock: inv.Clock},
	}
	if inv.Input, err = input.Encode(); err != nil {
		tb.Fatal(err)
	}
	calls := &answers{}
	inv.Calls, inv.Token = calls, calls
	return inv
}

// answers is a host.Calls that has one answer for each import, and a
// host.Token that never waits.
type answers map[abi.Import]abi.Raw

func (a answers) Call(im abi.Import, _ []byte, clock int64) ([]byte, abi.Status, int64, error) {
	if answer, ok := a[im]; ok {
		return answer, abi.StatusOK, clock, nil
	}
	return abi.Null, abi.StatusOK, clock, nil
}

func (answers) Print(uint32, []byte) {}

func (answers) Checkpoint(uint64) error { return nil }
