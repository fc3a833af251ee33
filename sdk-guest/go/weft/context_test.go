package weft

import (
	"encoding/hex"
	"testing"
)

func hexOf(b []byte) string { return hex.EncodeToString(b) }

func TestErrorf(t *testing.T) {
	got := Errorf("c", "%s %d %v %q %% %v %v %x %d", "s", 1, -1.25, "q", true, []byte("b"), uint64(7)).Message
	if want := `s 1 -1.25 "q" % true b 7 %!d`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for f, want := range map[float64]string{0: "0", 0.1: "0.1", 3: "3", -2.000001: "-2.000001", 1e13: "(a float of 1e12 or more)"} {
		if got := textOf(f); got != want {
			t.Errorf("%v shows as %s", f, got)
		}
	}
}

func TestAllocations(t *testing.T) {
	define(t, Step("only", func(ctx *Context[tally], ev first) (second, error) {
		return second(ev), nil
	}))
	const trigger, runInfo = "83656669727374a16169182a01", "8760606060010100"
	host := &recorder{input: unhex("83646f6e6c79" + trigger + runInfo)}
	withHost(t, host)
	run := func() {
		if status := runStep(len(host.input)); status != 0 {
			t.Fatalf("status %d: %x", status, host.output)
		}
	}
	run()
	if want := "820082667365636f6e64a16169182a"; hexOf(host.output) != want {
		t.Errorf("output %x, want %s", host.output, want)
	}
	// The invocation, its decoder, the step's argument and result, the context,
	// the output with its encoder; the recorder's copy of it.
	if got := testing.AllocsPerRun(100, run); got > 8 {
		t.Errorf("%v allocations", got)
	}
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}

func TestPart(t *testing.T) {
	for _, options := range [][]Option{{}, {Part()}} {
		define(t, append(options, Step("run", stopAt[start]))...)
		m, err := defined.manifest()
		if _, part := m["part"]; err != nil || part != (len(options) == 1) {
			t.Errorf("manifest %v (%v)", m, err)
		}
	}
}
