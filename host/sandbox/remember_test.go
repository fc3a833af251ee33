package sandbox

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// The places where the guests "remember" look for marks of earlier invocations,
// as bits; see testdata/plugins/remember.
const (
	inGlobal = 1 << iota
	inHeap
	inMap
	inFunction
	inPool // Rust: thread-local
	inGoroutine
	inGrown
	onStack
	anywhere
)

// The ways in which they end when they are told to.
const (
	endReturn = iota
	endTrap
	endPanic
	endGrow
	endDeep
	endBottomless
	endLoop
	endError
	endUnwound
	endExit
	endTwice
	endGarbage
	endSilent
	endFault
	ends
)

var endNames = [ends]string{
	"return", "trap", "panic", "grow", "deep", "bottomless", "loop", "error", "unwound", "exit", "twice", "garbage", "silent", "fault",
}

// found reads, of a report, where marks were found and how many steps had run.
func found(report []byte) (places, count, first, steps uint32) {
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(report[4*i:]) }
	return word(0), word(1), word(2), word(4)
}

func ending(end byte, arg uint32) []byte { return binary.LittleEndian.AppendUint32([]byte{end}, arg) }

// The guests find what is there to be found: where nothing is reset, a mark in
// every place.
func TestGuestsRememberWhereNothingIsReset(t *testing.T) {
	places := map[string]uint32{
		"tinygo": inGlobal | inHeap | inMap | inFunction | inGrown | onStack | anywhere,
		"go":     inGlobal | inHeap | inMap | inFunction | inPool | inGoroutine | inGrown | onStack | anywhere,
		"rust":   inGlobal | inHeap | inMap | inFunction | inPool | inGrown | onStack | anywhere,
	}
	for _, compiler := range testedCompilers() {
		b := newBare(t, guestBuild(t, "remember", compiler), wazero.NewRuntimeConfig())
		for run, want := range []uint32{0, places[compiler]} {
			if err := b.call(t.Context(), ending(endGrow, 1)); err != nil {
				t.Fatalf("%s: %v", compiler, err)
			}
			places, count, first, steps := found(b.shown[0])
			t.Logf("%s: found %#b: %d words from %#x", compiler, places, count, first)
			if places != want || steps != uint32(run) {
				t.Errorf("%s, call %d: found %#b after %d steps, want %#b", compiler, run, places, steps, want)
			}
		}
	}
}

// remembered is all that an invocation of "remember" lets others see.
type remembered struct {
	result  host.InvocationResult
	err     string
	shown   string
	printed string
}

func (r remembered) equal(o remembered) bool {
	return same(r.result, o.result) && r.result.Fuel == o.result.Fuel && r.err == o.err && r.shown == o.shown && r.printed == o.printed
}

var errUnwind = errors.New("unwound")

// remember runs one invocation, and looks at what the guest has found.
func remember(t *testing.T, b bench, inv host.Invocation) (r remembered, report []byte) {
	t.Helper()
	s := &script{call: func(im abi.Import, request []byte, clock int64) ([]byte, abi.Status, int64, error) {
		r.shown += fmt.Sprintf("%s % x at %d\n", im, request, clock)
		if string(request) == "unwind" {
			return nil, 0, clock, errUnwind
		}
		report = request
		return abi.Null, abi.StatusOK, clock + 1, nil
	}}
	inv.Calls, inv.Token = s, s
	res, err := b.Invoke(suite.Context(t), inv)
	if err != nil && !errors.Is(err, errUnwind) {
		t.Fatal(err)
	}
	r.result, r.printed = res, s.printed.String()
	if err != nil {
		r.err = err.Error()
	}
	return r, report
}

var rememberSeed = flag.Uint64("seed", 0, "of the sequences of invocations; 0: another at each run")

// Long sequences of invocations that end in every way: each is the same, byte
// for byte and unit for unit, as in an instance that the guest's own code makes
// for it alone, and finds nothing of those before it.
func TestNothingIsRememberedInLongSequences(t *testing.T) {
	seed := *rememberSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	for _, compiler := range testedCompilers() {
		length := 800
		switch {
		case few: // other seeds come with the next run
			length = 100
		case compiler == "go":
			length = 300 // making an instance anew takes milliseconds
		}
		t.Run(compiler, func(t *testing.T) {
			t.Parallel()
			t.Logf("again: go test ./host/sandbox -run %s -seed %d", t.Name(), seed)
			chance := rand.New(rand.NewPCG(seed, 1))
			inPlace := newBench(t, func(c *Config) { c.Spares = 1 })
			reference := newBench(t, func(c *Config) { c.Reference, c.Spares = true, -1 })
			wasm := guestBuild(t, "remember", compiler)
			inPlace.library.add(wasm)
			reference.library.add(wasm)
			codes := map[string]int{}
			for n := range length {
				inv := rememberInvocation(inPlace, wasm, chance)
				got, report := remember(t, inPlace, inv)
				want, _ := remember(t, reference, inv)
				what := fmt.Sprintf("invocation %d (%s)", n, endNames[inv.Input[0]])
				if places, count, first, steps := found(report); places != 0 || steps != 0 {
					t.Fatalf("%s found marks in %#b, %d words from %#x, after %d steps", what, places, count, first, steps)
				}
				if !got.equal(want) {
					t.Fatalf("%s: %+v\nin a fresh instance: %+v", what, got, want)
				}
				codes[endNames[inv.Input[0]]+" "+outcomeOf(got)]++
			}
			t.Log(codes)
		})
	}
}

// rememberInvocation is one with everything left to chance; most return.
func rememberInvocation(b bench, wasm []byte, chance *rand.Rand) host.Invocation {
	end := byte(chance.IntN(ends))
	if end == endBottomless || end == endLoop || chance.IntN(2) == 0 {
		end = byte(chance.IntN(ends))
	}
	inv := b.invocation(digestOf(wasm), ending(end, chance.Uint32()))
	inv.Clock += chance.Int64N(1 << 40)
	inv.Limits.MemoryBytes = 16 << 20
	inv.Limits.Fuel = 40_000_000
	for i := range inv.Seed {
		inv.Seed[i] = byte(chance.Uint32())
	}
	return inv
}

func outcomeOf(r remembered) string {
	switch {
	case r.err != "":
		return r.err
	case r.result.Err != nil:
		return r.result.Err.Code
	}
	return fmt.Sprint("gives ", r.result.Code)
}
