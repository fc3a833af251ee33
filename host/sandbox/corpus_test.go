package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// The corpus is every module of testdata/hostile, whose headers say what must
// become of them, and those of binarySpecimens, which no text can say. The
// README there has the words of the headers.

const (
	corpusFuel = 20_000_000
	// sliceUnits is how much a guest burns at most between two checkpoints.
	sliceUnits = 50_000
	// callUnits is what one host call may cost at most: the copy of a whole
	// memory of the corpus, at a unit for eight bytes.
	callUnits = corpusMemory / 8
	// corpusMemory is the memory of a guest; the images are larger here and there.
	corpusMemory   = 8 << 20
	maxPresentable = 2000 // bytes of a message
)

// Places where something is to become of a specimen.
const (
	atUpload   = "upload"   // before any of its code runs
	atDescribe = "describe" // when its image is made
	atManifest = "manifest" // it describes itself, and lies
	atInvoke   = "invoke"
	atAny      = "any" // wherever that is, but by counted means
)

// examine takes a specimen through upload, description and its invocations, as
// far as it comes, and gives all that is not as it must be. run makes one
// invocation: by it the neighbour's test hands the run token around. It may be
// called from any goroutine.
func (s *specimen) examine(ctx context.Context, b bench, run func(host.Invocation) (host.InvocationResult, error)) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, s.name+": "+fmt.Sprintf(format, args...)) }
	defer func() {
		if r := recover(); r != nil {
			fault("the host panics: %v\n%s", r, debug.Stack())
		}
	}()
	digest := b.library.add(s.wasm)
	_, problems := b.Inspect(ctx, s.wasm, host.Limits{})
	described, err := b.Describe(ctx, digest, s.wasm, host.Limits{})
	at := atInvoke
	switch {
	case len(problems) > 0 && host.CodeOf(err) != host.CodeInvalidPlugin:
		fault("Inspect finds problems, Describe answers %v", err)
	case len(problems) == 0 && err != nil:
		return append(faults, fmt.Sprintf("%s: Inspect finds nothing, Describe answers %v", s.name, err))
	case len(problems) > 0 && strings.HasPrefix(problems[0].Code, "describe_"):
		at = atDescribe
	case len(problems) > 0:
		at = atUpload
	case s.at == atManifest:
		at, problems = atManifest, manifestProblems(described.Manifest)
	}
	for _, p := range problems {
		if wrong := presentable(p.Message); wrong != "" {
			fault("%s: %s", p.Code, wrong)
		}
		if wrong := nameless(p.Code, p.Message); wrong != "" {
			fault("%s", wrong)
		}
		if p.Code == problemCompileFault {
			fault("it crashes the compiler: %s", p.Message)
		}
	}
	if s.at != atAny && at != s.at {
		fault("it ended at %s, not %s: %v", at, s.at, problems)
		return faults
	}
	if at != atInvoke {
		return append(faults, s.compare(problems)...)
	}
	var first host.InvocationResult
	for n := range s.runs {
		res, wrong := s.invoke(digest, run)
		for _, w := range wrong {
			fault("run %d: %s", n, w)
		}
		if n == 0 {
			first = res
		}
		if again := sameEnd(first, res); again != "" && !s.timed() {
			fault("run %d: %s", n, again)
		}
	}
	return faults
}

// timed tells that a clock, not a count, is to end the specimen.
func (s *specimen) timed() bool {
	return len(s.wants) > 0 && s.wants[0].codes[0] == host.RunDeadlineExceeded
}

// compare holds the problems of an upload against what is wanted.
func (s *specimen) compare(problems []host.Problem) (faults []string) {
	if len(problems) > 100 {
		faults = append(faults, fmt.Sprintf("%s: %d problems are too many to read", s.name, len(problems)))
	}
	if s.at == atAny {
		return faults
	}
	if len(problems) != len(s.wants) {
		return append(faults, fmt.Sprintf("%s: %d problems, want %d: %.2000v", s.name, len(problems), len(s.wants), problems))
	}
	for i, p := range problems {
		if wrong := s.wants[i].met(p.Code, p.Message); wrong != "" {
			faults = append(faults, s.name+": "+wrong)
		}
	}
	return faults
}

// manifestProblems is what a server has against a manifest.
func manifestProblems(raw []byte) []host.Problem {
	m, err := abi.DecodeManifest(raw)
	if err != nil {
		return []host.Problem{{Code: "invalid_manifest", Message: err.Error()}}
	}
	_, problems := engine.Compile(&m)
	return problems
}

// invoke makes one invocation and gives what is wrong with its end.
func (s *specimen) invoke(digest string, run func(host.Invocation) (host.InvocationResult, error)) (res host.InvocationResult, faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	calls := &answering{answer: abi.Null}
	if s.answer > 0 {
		calls.answer = make([]byte, s.answer)
	}
	res, err := run(host.Invocation{
		Digest: digest, Input: []byte("twelve bytes"), Clock: 1_800_000_000_000_000_000, Seed: [32]byte{1}, Limits: s.limits, Calls: calls,
	})
	if err != nil {
		return res, []string{"Invoke: " + err.Error()}
	}
	code, message := "ok", ""
	if res.Err != nil {
		code, message = res.Err.Code, res.Err.Message
		if wrong := presentable(message); wrong != "" {
			fault("%s", wrong)
		}
		if wrong := nameless(code, message); wrong != "" {
			fault("%s", wrong)
		}
		if res.Output != nil || res.Code != 0 {
			fault("a failed invocation has output % .100x and code %d", res.Output, res.Code)
		}
	}
	if s.at != atAny {
		if wrong := s.wants[0].met(code, message); wrong != "" {
			fault("%s", wrong)
		}
		if code == "ok" && !s.opaque && !slices.Contains([]string{"\x82\x00\xf6", "\x82\x00\x82iStopEvent\xa0"}, string(res.Output)) {
			fault("output % .100x", res.Output)
		}
	}
	if code == host.RunDeadlineExceeded && !s.timed() {
		fault("a clock ended it: %s", message)
	}
	if res.Fuel > s.limits.Fuel+sliceUnits {
		fault("it burnt %d units, %d are allowed", res.Fuel, s.limits.Fuel)
	}
	if calls.calls > s.limits.HostCalls || calls.printed > s.limits.LogBytes {
		fault("%d calls and %d bytes of print came through", calls.calls, calls.printed)
	}
	return res, faults
}

// sameEnd tells in what two ends of the same invocation differ, "" in nothing.
func sameEnd(a, b host.InvocationResult) string {
	switch {
	case !bytes.Equal(a.Output, b.Output) || a.Code != b.Code:
		return fmt.Sprintf("output % .100x with code %d, at first % .100x with code %d", b.Output, b.Code, a.Output, a.Code)
	case (a.Err == nil) != (b.Err == nil) || a.Err != nil && a.Err.Error() != b.Err.Error():
		return fmt.Sprintf("error %v, at first %v", b.Err, a.Err)
	case a.Fuel != b.Fuel:
		return fmt.Sprintf("%d units, at first %d", b.Fuel, a.Fuel)
	}
	return ""
}

// presentable tells what is wrong with a message for people, "" when it is one
// line of text, not too long.
func presentable(message string) string {
	if len(message) == 0 || len(message) > maxPresentable || !utf8.ValidString(message) {
		return fmt.Sprintf("a message of %d bytes: %.200q", len(message), message)
	}
	for _, r := range message {
		if !unicode.IsPrint(r) {
			return fmt.Sprintf("%q in a message: %.200q", r, message)
		}
	}
	return ""
}

// answering is a host.Calls that gives one answer to everything, and counts.
type answering struct {
	answer         []byte
	calls, printed int
}

func (a *answering) Call(_ abi.Import, _ []byte, clock int64) ([]byte, abi.Status, int64, error) {
	a.calls++
	return a.answer, abi.StatusOK, clock + 1, nil
}

func (a *answering) Print(_ uint32, text []byte) { a.printed += len(text) }

// counter is a host.Token that is never taken away, and counts.
type counter struct{ total, most uint64 }

func (c *counter) Checkpoint(units uint64) error {
	c.total, c.most = c.total+units, max(c.most, units)
	return nil
}

// invoker makes invocations in a sandbox, with a token of their own, whose
// counts it checks.
func invoker(ctx context.Context, b bench) func(host.Invocation) (host.InvocationResult, error) {
	return func(inv host.Invocation) (host.InvocationResult, error) {
		token := &counter{}
		inv.Token = token
		res, err := b.Invoke(ctx, inv)
		if err == nil && (token.most > sliceUnits+callUnits || token.total > res.Fuel) {
			err = fmt.Errorf("checkpoints after %d units at most and %d in all, of %d", token.most, token.total, res.Fuel)
		}
		return res, err
	}
}

// corpusBench is a sandbox for the corpus, which builds in another process. Beside
// the race detector it builds here: there each process takes a second to exit.
func corpusBench(t *testing.T, edit func(*Config)) bench {
	t.Helper()
	if !raced {
		return elsewhere(t, edit)
	}
	return newBench(t, func(c *Config) {
		c.CacheDir = t.TempDir()
		edit(c)
	})
}

// wholeCorpus has the generated modules too, but beside the race detector: they
// are large, and most never run, and compiling them would take a minute.
func wholeCorpus(t *testing.T) []*specimen {
	t.Helper()
	all := readCorpus(t)
	if !raced {
		all = append(all, binarySpecimens()...)
	}
	return all
}

// Every hostile module is refused or stopped by name, by counted means, and
// again in the same way.
func TestCorpus(t *testing.T) {
	box, _ := corpusLimits()
	b := corpusBench(t, func(c *Config) { c.Limits = box })
	all := wholeCorpus(t)
	t.Logf("%d modules", len(all))
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			ctx := suite.Context(t)
			for _, fault := range s.examine(ctx, b, invoker(ctx, b)) {
				t.Error(fault)
			}
		})
	}
}

// A module that takes the compiler too long is refused by name, and no other
// has to wait for longer than that.
func TestCompileBombs(t *testing.T) {
	suite.NotShort(t, "has the compiler compute for long")
	box, _ := corpusLimits()
	box.CompileTime = time.Second
	b := elsewhere(t, func(c *Config) { c.Limits = box })
	for _, s := range compileBombs() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for _, fault := range s.examine(suite.Context(t), b, nil) {
				t.Error(fault)
			}
		})
	}
}

// What a trap costs the host is not in the guest's hands: the names of its
// functions are, of which the trace has as many as there are calls.
func TestCorpusTraces(t *testing.T) {
	const runs, most = 10, 256 << 10
	b := elsewhere(t, nil)
	for _, name := range []string{"deeper", strings.Repeat("x", 4<<20)} {
		digest := b.library.add(trapBelow(name).wasm())
		trap := func() {
			res, err := b.Invoke(t.Context(), b.invocation(digest, nil))
			if err != nil || res.Err == nil || res.Err.Code != codeTrap {
				t.Fatalf("Invoke = %+v, %v", res, err)
			}
		}
		trap() // builds the module
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			trap()
		}
		runtime.ReadMemStats(&after)
		if bytes := (after.TotalAlloc - before.TotalAlloc) / runs; bytes > most {
			t.Errorf("a trap below 100 functions with a name of %d bytes allocates %d bytes, want at most %d", len(name), bytes, most)
		}
	}
}

// A good module is refused wherever it is cut off, and with any byte changed it
// does nothing worse than a hostile one.
func TestCorpusDamaged(t *testing.T) {
	suite.NotShort(t, "plays thousands of damaged modules")
	box, limits := corpusLimits()
	b := newBench(t, func(c *Config) { c.Limits, c.CacheDir, c.Spares = box, "", -1 })
	ctx := suite.Context(t)
	good := forged{}.wasm()
	for n := range good {
		_, problems := b.Inspect(ctx, good[:n], host.Limits{})
		if len(problems) == 0 { // between two sections, the last of which is not its code
			d, err := b.Describe(ctx, digestOf(good[:n]), good[:n], host.Limits{})
			if problems = manifestProblems(d.Manifest); err != nil || len(problems) == 0 {
				t.Errorf("the first %d bytes of %d are taken for a plugin (%v)", n, len(good), err)
			}
		}
		for _, p := range problems {
			if wrong := presentable(p.Message); wrong != "" {
				t.Errorf("%d bytes: %s: %s", n, p.Code, wrong)
			}
		}
	}
	good = hostile(t, "good_neighbour")
	taken := 0
	run := invoker(ctx, b)
	for n := range good {
		for _, to := range []byte{good[n] ^ 1, good[n] ^ 0x80, 0xff} {
			damaged := bytes.Clone(good)
			damaged[n] = to
			s := &specimen{name: fmt.Sprintf("byte %d is %#x", n, to), wasm: damaged, at: atAny, limits: limits, runs: 2}
			for _, fault := range s.examine(ctx, b, func(inv host.Invocation) (host.InvocationResult, error) {
				taken++
				return run(inv)
			}) {
				t.Error(fault)
			}
		}
	}
	t.Logf("%d invocations of damaged modules", taken)
}
