package sandbox

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/missing"
)

// guestBuilds holds, by name and compiler, the guests of testdata/plugins that
// were built for this test process.
var guestBuilds sync.Map // string -> func() ([]byte, error)

// guestBuild gives a guest of testdata/plugins, built by a compiler of
// guestCompilers; tags are build tags, or features of a crate. Each is built
// once.
func guestBuild(tb testing.TB, name, compiler string, tags ...string) []byte {
	tb.Helper()
	key := strings.Join(append([]string{name, compiler}, tags...), " ")
	tool := map[string]string{"go": "go", "tinygo": "tinygo", "rust": "wasm32-cargo"}[strings.TrimSuffix(compiler, "-debug")]
	program := suite.Tool(tb, tool)
	build, _ := guestBuilds.LoadOrStore(key, sync.OnceValues(func() ([]byte, error) { return buildGuest(name, compiler, program, tags) }))
	wasm, err := build.(func() ([]byte, error))()
	if err != nil {
		tb.Fatal(err)
	}
	return wasm
}

// guestCompilers are those that build the guests of testdata/plugins.
var guestCompilers = []string{"tinygo", "go", "rust"}

// testedCompilers are those whose guests tests run. Compiling a standard
// Go guest takes long, and the host has no branch for such a guest that the others
// do not take.
func testedCompilers() []string {
	if few {
		return []string{"tinygo", "rust"}
	}
	return guestCompilers
}

func buildGuest(name, compiler, program string, tags []string) ([]byte, error) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "weft-guest-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	out := filepath.Join(scratch, "guest.wasm")
	listed := strings.Join(tags, ",")
	var cmd *exec.Cmd
	compiler, debug := strings.CutSuffix(compiler, "-debug") // with the lines of sources
	switch compiler {
	case "go":
		cmd = exec.Command(program, "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-tags="+listed, "-o", out, ".")
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	case "tinygo":
		cmd = exec.Command(program, "build", "-target=wasip1", "-buildmode=c-shared", "-scheduler=none", "-gc=leaking", "-no-debug", "-tags="+strings.Join(tags, " "), "-o", out, ".")
		if debug {
			cmd.Args = slices.DeleteFunc(cmd.Args, func(arg string) bool { return arg == "-no-debug" })
		}
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false")
	case "rust":
		name += "-rust"
		// A folder for each set of features: what they make has one name.
		target := filepath.Join(root, "build", "cargo", strings.Join(append([]string{"guest"}, tags...), "-"))
		if debug {
			target += "-debug"
		}
		out = filepath.Join(target, "wasm32-unknown-unknown", "release", strings.ReplaceAll(name, "-", "_")+".wasm")
		cmd = exec.Command(program, "build", "--release", "--quiet", "--features="+listed)
		cmd.Env = append(os.Environ(), "CARGO_TARGET_DIR="+target, "CARGO_BUILD_TARGET=wasm32-unknown-unknown", "MAKEFLAGS=", "MFLAGS=")
		if debug {
			cmd.Env = append(cmd.Env, "CARGO_PROFILE_RELEASE_STRIP=false", "CARGO_PROFILE_RELEASE_DEBUG=line-tables-only")
		}
	}
	cmd.Dir = filepath.Join(root, "testdata", "plugins", name)
	if text, err := suite.Build(cmd, out, cmd.Dir, suite.GuestSDK()); err != nil {
		return nil, fmt.Errorf("build the guest %s with %s (make toolchain installs the compilers): %w\n%s", name, compiler, err, text)
	}
	return os.ReadFile(out)
}

// answerHead is the length of what comes before the bytes in an answer of a
// guest that has no SDK: [0, bytes].
const answerHead = len("\x82\x00\x5alen.")

// The clock at which the guests of these tests are run.
const guestNow = 1_800_000_000_000_000_000

// worldCase is what a guest sees in one case. Texts in the wanted lines: NOW is
// the clock at the start, * anything up to the line's end.
type worldCase struct {
	name   string
	only   string // the one compiler that has it
	want   []string
	clock  int64  // how far the virtual clock has moved at the next host call
	print  string // part of what is printed
	fails  string // code of the failure
	reason string // part of its message
}

// advised is what a guest is told in its log that it does without, by case. Of files Go
// asks the host, and TinyGo's library knows since its start that there are none.
var advised = map[string][]missing.Thing{
	"sleep": {missing.Sleep}, "ticker": {missing.Sleep},
	"clock": nil, "chance": nil, "world": nil, "print": nil,
}

// sleeps is what the case "sleep" sees, and the sum of its sleeps.
func sleeps() (want []string, sum int64) {
	for _, d := range []time.Duration{0, -1, 1, time.Microsecond, 20 * time.Millisecond, 90 * time.Minute, 30 * 24 * time.Hour} {
		moved := max(d, 0)
		want = append(want, fmt.Sprintf("%d %d", d, moved), fmt.Sprintf("wall %d", moved))
		sum += int64(moved)
	}
	return append(want, fmt.Sprintf("host %d", guestNow+sum)), sum
}

func worldCases() []worldCase {
	slept, sum := sleeps()
	return []worldCase{
		{name: "clock", want: []string{"boot 0", "wall NOW", "since boot NOW", "computing took 0", "host NOW", "zone *"}},
		{name: "sleep", want: slept, clock: sum},
		{name: "ages", want: []string{"wall 92233720368547758*", "wall 92233720368547758*"}},
		{name: "order", want: []string{"of init *", "new *", "again *"}},
		{name: "chance", want: []string{"init *", "crypto/rand *", "math/rand *", "seeded *", "host 0102030405060708"}},
		{name: "world", want: []string{"args 0", "environ 0", `HOME ""`, "stdin 0 true"}},
		{name: "files", want: []string{"list failed", "mkdir failed", "read failed", "remove failed", "rename failed", "stat failed", "write failed"}},
		{name: "print", want: []string{"stdout 10 <nil>", "stderr 10 <nil>"}, print: "to stdout\nto stderr\n"},
		{name: "exit", fails: codeTrap, reason: "called proc_exit(3)"},
		{name: "ticker", only: "go", want: []string{"tick 20000000", "tick 40000000", "tick 60000000", "took 60000000", "host *"}, clock: 60_000_000},
		{name: "timeout", only: "go", want: []string{"left 5000000000", "error context deadline exceeded", "took 5000000000", "host *"}, clock: 5_000_000_000},
		{name: "timers", only: "go", want: []string{"first 10000000", "second 20000000", "third 30000000", "last 3600000000000"}},
		{name: "leave", only: "go", want: []string{"left true", "goroutines *"}},
		{name: "look", only: "go", want: []string{"goroutines *", "left 0"}},
		{name: "stuck", only: "go", fails: codeTrap, reason: "all goroutines are asleep - deadlock!"},
	}
}

// What guests see of the world is the same in every invocation, whatever ran
// before it in the instance, and the same as in an instance that is made anew.
func TestWorldOfGuests(t *testing.T) {
	inPlace := newBench(t, func(c *Config) { c.Spares = 1 })
	reference := newBench(t, func(c *Config) { c.Reference, c.Spares = true, -1 })
	for _, compiler := range testedCompilers() {
		if compiler == "rust" {
			continue // see TestWorldOfRustGuests
		}
		wasm := guestBuild(t, "time", compiler)
		for _, b := range []bench{inPlace, reference} {
			b.library.add(wasm)
		}
		for _, tt := range worldCases() {
			if tt.only != "" && tt.only != compiler {
				continue
			}
			t.Run(compiler+"/"+tt.name, func(t *testing.T) {
				first := observeWorld(t, inPlace, wasm, tt.name, [32]byte{1})
				tt.check(t, first)
				for range 3 {
					if again := observeWorld(t, inPlace, wasm, tt.name, [32]byte{1}); !again.equal(first) {
						t.Errorf("again: %+v, first %+v", again, first)
					}
				}
				if anew := observeWorld(t, reference, wasm, tt.name, [32]byte{1}); !anew.equal(first) {
					t.Errorf("in an instance made anew: %+v, in place %+v", anew, first)
				}
				if _, err := inPlace.Agree(t.Context(), 10, func(int) host.Invocation {
					inv := worldInvocation(t, inPlace, wasm, tt.name)
					s := &script{call: worldCalls(nil)}
					inv.Calls, inv.Token = s, s
					return inv
				}); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// world is what an invocation of the guest "time" lets others see.
type world struct {
	result  host.InvocationResult
	printed string
	clocks  []int64 // at the host calls
	advised []missing.Thing
}

func (w world) equal(v world) bool {
	return same(w.result, v.result) && w.printed == v.printed && slices.Equal(w.clocks, v.clocks) && slices.Equal(w.advised, v.advised)
}

func observeWorld(t *testing.T, b bench, wasm []byte, name string, seed [32]byte) world {
	t.Helper()
	var w world
	s := &script{call: worldCalls(&w.clocks)}
	inv := worldInvocation(t, b, wasm, name)
	inv.Seed, inv.Calls, inv.Token = seed, s, s
	res, err := b.Invoke(suite.Context(t), inv)
	if err != nil {
		t.Fatal(err)
	}
	w.result, w.printed, w.advised = res, s.printed.String(), s.advised
	return w
}

func worldInvocation(t *testing.T, b bench, wasm []byte, name string) host.Invocation {
	t.Helper()
	inv := b.invocation(digestOf(wasm), nil)
	inv.Clock = guestNow
	body, err := abi.EncodeValue(map[string]any{"case": name})
	if err != nil {
		t.Fatal(err)
	}
	input := abi.StepInput{
		Step:    "run",
		Trigger: []abi.Event{{Type: "StartEvent", Body: body, ID: 1}},
		Run:     abi.RunInfo{Tenant: "default", Workflow: "time", RunID: "r", SessionID: "s", Invocation: 1, Attempt: 1, Clock: inv.Clock},
	}
	if inv.Input, err = input.Encode(); err != nil {
		t.Fatal(err)
	}
	return inv
}

// worldCalls answers the calls that the guest makes, and notes its clock.
func worldCalls(clocks *[]int64) func(abi.Import, []byte, int64) ([]byte, abi.Status, int64, error) {
	return func(im abi.Import, _ []byte, clock int64) ([]byte, abi.Status, int64, error) {
		if clocks != nil {
			*clocks = append(*clocks, clock)
		}
		var answer any
		switch im {
		case abi.ImportNow:
			answer = clock
		case abi.ImportRandom:
			answer = []byte{1, 2, 3, 4, 5, 6, 7, 8}
		}
		raw, err := abi.EncodeValue(answer)
		return raw, abi.StatusOK, clock, err
	}
}

func (tt worldCase) check(t *testing.T, w world) {
	t.Helper()
	if tt.fails != "" {
		if e := w.result.Err; e == nil || e.Code != tt.fails || !strings.Contains(e.Message, tt.reason) {
			t.Errorf("result = %+v, want %s with %q", w.result, tt.fails, tt.reason)
		}
		return
	}
	if wants, known := advised[tt.name]; !slices.Equal(w.advised, wants) && known {
		t.Errorf("the host advised on %v, want %v", w.advised, wants)
	}
	lines := linesOf(t, w.result)
	if !slices.EqualFunc(lines, tt.want, matches) {
		t.Errorf("saw %q, want %q", lines, tt.want)
	}
	if tt.clock > 0 && !slices.Equal(w.clocks, []int64{guestNow + tt.clock}) {
		t.Errorf("clocks at the host calls = %d, want one at %d", w.clocks, guestNow+tt.clock)
	}
	if w.printed != tt.print {
		t.Errorf("printed %q, want %q", w.printed, tt.print)
	}
}

// matches compares a line with what is wanted of it; see worldCase.
func matches(line, want string) bool {
	want = strings.ReplaceAll(want, "NOW", fmt.Sprint(int64(guestNow)))
	if prefix, ok := strings.CutSuffix(want, "*"); ok {
		return strings.HasPrefix(line, prefix) && len(line) > len(prefix)
	}
	return line == want
}

// linesOf reads the report in the stop event of a result.
func linesOf(t *testing.T, res host.InvocationResult) (lines []string) {
	t.Helper()
	out, err := abi.DecodeStepOutput(res.Output)
	if err != nil || len(out.Events) != 1 {
		t.Fatalf("result = %+v, output %+v, %v", res, out, err)
	}
	body, err := abi.DecodeValue(out.Events[0].Body)
	if err != nil {
		t.Fatal(err)
	}
	list, _ := body.(map[string]any)["result"].([]any)
	for _, line := range list {
		lines = append(lines, line.(string))
	}
	return lines
}

// An invocation's seed reaches a guest by random_get alone. What a language
// drew from it when the image was made is the same in every invocation: the
// order of maps, math/rand, and with TinyGo even crypto/rand, as its libc is
// seeded once, when it starts.
func TestSeedOfGuests(t *testing.T) {
	b := newBench(t, nil)
	for _, tt := range []struct {
		compiler string
		fresh    []string // the sources that differ with the seed
	}{
		{"go", []string{"crypto/rand"}},
		{"tinygo", nil},
	} {
		if !slices.Contains(testedCompilers(), tt.compiler) {
			continue
		}
		wasm := guestBuild(t, "time", tt.compiler)
		b.library.add(wasm)
		for _, name := range []string{"chance", "order"} {
			one := linesOf(t, observeWorld(t, b, wasm, name, [32]byte{1}).result)
			two := linesOf(t, observeWorld(t, b, wasm, name, [32]byte{2}).result)
			var fresh []string
			for i, line := range one {
				if source, _, _ := strings.Cut(line, " "); line != two[i] {
					fresh = append(fresh, source)
				}
			}
			want := tt.fresh
			if name == "order" {
				want = nil
			}
			if !slices.Equal(fresh, want) {
				t.Errorf("%s, %s: with another seed %q differ, want %q", tt.compiler, name, fresh, want)
			}
		}
	}
}

// Rust for wasm32-unknown-unknown imports nothing of WASI, and has no clock,
// chance, threads or files: what needs them fails or panics. Statics and
// thread-locals begin anew in each invocation, and maps have one order.
func TestWorldOfRustGuests(t *testing.T) {
	inPlace := newBench(t, func(c *Config) { c.Spares = 1 })
	reference := newBench(t, func(c *Config) { c.Reference, c.Spares = true, -1 })
	wasm := guestBuild(t, "time", "rust")
	inPlace.library.add(wasm)
	reference.library.add(wasm)
	if imports, problems := inPlace.Inspect(t.Context(), wasm, host.Limits{}); len(problems) > 0 || strings.Contains(fmt.Sprint(imports), "wasi") {
		t.Errorf("imports %q, problems %v", imports, problems)
	}
	for _, tt := range []struct{ name, want, logs string }{
		{"order", "[*", ""},
		{"statics", "steps 0, local 0", ""},
		{"world", `args 0, var None, stdin Some(""), stdout true, thread false`, ""},
		{"vars", "", "not supported on this platform"},
		{"files", "read failed, write failed, list failed, connect failed, run failed", ""},
		{"panic", "", "a panic's message"},
		{"index", "", "index out of bounds: the len is 3 but the index is 5"},
		{"clock", "", "time not implemented on this platform"},
		{"instant", "", "time not implemented on this platform"},
		{"sleep", "", "can't sleep"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			first, logs := observeRust(t, inPlace, wasm, tt.name)
			switch {
			case tt.logs != "":
				if e := first.Err; e == nil || e.Code != codeTrap || !strings.Contains(logs, tt.logs) {
					t.Errorf("result = %+v, log %q, want a trap and %q", first, logs, tt.logs)
				}
			case first.Err != nil || !matches(string(first.Output[answerHead:]), tt.want):
				t.Errorf("result = %+v (%q), log %q, want %q", first, first.Output, logs, tt.want)
			}
			for run := range 4 {
				b := inPlace
				if run == 3 {
					b = reference
				}
				if again, text := observeRust(t, b, wasm, tt.name); !same(again, first) || text != logs {
					t.Errorf("run %d: %+v, log %q; first %+v, log %q", run, again, text, first, logs)
				}
			}
		})
	}
}

// observeRust runs a case of time-rust: what came of it, and what it logged.
func observeRust(t *testing.T, b bench, wasm []byte, name string) (host.InvocationResult, string) {
	t.Helper()
	var logs strings.Builder
	inv := b.invocation(digestOf(wasm), []byte(name))
	inv.Calls.(*script).call = func(_ abi.Import, request []byte, clock int64) ([]byte, abi.Status, int64, error) {
		logs.Write(request)
		return abi.Null, abi.StatusOK, clock, nil
	}
	res, err := b.Invoke(suite.Context(t), inv)
	if err != nil {
		t.Fatal(err)
	}
	return res, logs.String()
}
