package js_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/sandbox"
	js "github.com/weftrun/weft/sdk-guest/js"
)

// prelude registers a workflow whose step "run" calls the script's function run.
const prelude = `const weft = globalThis.__weft;
class WeftError extends Error { constructor(m, o) { super(m); Object.assign(this, o); } get name() { return "WeftError"; } }
weft.WeftError = WeftError;
weft.describe = () => ({ abi: 1, workflow: "probe", steps: [{ name: "run", accepts: ["StartEvent"], emits: ["StopEvent"] }],
  events: { StartEvent: { kind: "start" }, StopEvent: { kind: "stop" } } });
weft.step = async ([step, [type, fields]]) => ["StopEvent", { result: await run(fields, run.length > 1 && weft.input()[2]) }];
`

// library holds the plugins of all tests: they share one sandbox.
type library struct {
	mu      sync.Mutex
	plugins map[string][]byte
}

// Wasm implements sandbox.Source.
func (l *library) Wasm(_ context.Context, digest string) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.plugins[digest], nil
}

var (
	plugins = &library{plugins: map[string][]byte{}}
	box     *sandbox.Sandbox
)

func TestMain(m *testing.M) {
	os.Exit(withSandbox(m.Run))
}

func withSandbox(run func() int) int {
	dir, err := os.MkdirTemp("", "weft-js-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	box, err = sandbox.New(context.Background(), sandbox.Config{CacheDir: dir, Source: plugins, Limits: suite.Limits()})
	if err != nil {
		panic(err)
	}
	defer func() { _ = box.Close(context.Background()) }()
	return run()
}

// plugin is a plugin of the library.
type plugin struct{ digest string }

// engine returns the engine's bytes: of the checked-in file, or of the file that
// WEFT_JS_ENGINE names.
func engine() []byte {
	if path := os.Getenv("WEFT_JS_ENGINE"); path != "" {
		b, err := os.ReadFile(path)
		if err != nil {
			panic(err)
		}
		return b
	}
	b, err := js.Engine()
	if err != nil {
		panic(err)
	}
	return b
}

// load puts a script into the engine and describes the plugin.
func load(script string, lines []byte) (plugin, host.Description, error) {
	wasm := inject(engine(), script, lines)
	sum := sha256.Sum256(wasm)
	p := plugin{hex.EncodeToString(sum[:])}
	plugins.mu.Lock()
	plugins.plugins[p.digest] = wasm
	plugins.mu.Unlock()
	d, err := box.Describe(context.Background(), p.digest, wasm, suite.Limits())
	return p, d, err
}

// start is load with the prelude, for scripts that load.
func start(tb testing.TB, script string) plugin {
	tb.Helper()
	p, _, err := load(prelude+script, nil)
	if err != nil {
		tb.Fatalf("describe: %v", problems(err))
	}
	return p
}

// problems is the text of an error with its problems.
func problems(err error) string {
	var e *host.Error
	if !errors.As(err, &e) || len(e.Problems) == 0 {
		return fmt.Sprint(err)
	}
	var all []string
	for _, p := range e.Problems {
		all = append(all, p.Code+": "+p.Message)
	}
	return strings.Join(all, "\n")
}

// calls answers host calls by a function.
type calls struct {
	answer  func(im abi.Import, req []byte) ([]byte, abi.Status)
	printed bytes.Buffer
	clock   int64
}

func (c *calls) Call(im abi.Import, req []byte, clock int64) ([]byte, abi.Status, int64, error) {
	c.clock = clock
	if c.answer == nil {
		return abi.Null, abi.StatusOK, clock, nil
	}
	resp, status := c.answer(im, req)
	return resp, status, clock, nil
}
func (c *calls) Print(_ uint32, text []byte) { c.printed.Write(text) }
func (c *calls) Checkpoint(uint64) error     { return nil }

// input is the input of the step "run"; fields is JSON.
func input(tb testing.TB, fields string) []byte {
	tb.Helper()
	body, err := abi.FromJSON([]byte(fields))
	if err != nil {
		tb.Fatal(err)
	}
	b, err := abi.StepInput{
		Step: "run", Trigger: []abi.Event{{Type: "StartEvent", Body: body}},
		Run: abi.RunInfo{Tenant: "t", Workflow: "probe", RunID: "r", SessionID: "s", Invocation: 1, Attempt: 1, Clock: clock},
	}.Encode()
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

const clock = 1_800_000_000_000_000_000

// invoke runs the step once.
func (p plugin) invoke(tb testing.TB, c *calls, fields string, edit func(*host.Invocation)) host.InvocationResult {
	tb.Helper()
	inv := host.Invocation{Digest: p.digest, Input: input(tb, fields), Clock: clock, Seed: [32]byte{1}, Limits: suite.Limits(), Calls: c, Token: c}
	if edit != nil {
		edit(&inv)
	}
	res, err := box.Invoke(suite.Context(tb), inv)
	if err != nil {
		tb.Fatal(err)
	}
	return res
}

// run runs the step once, and returns the field "result" of its event as JSON, or the
// error of the step or of the guest.
func (p plugin) run(tb testing.TB, c *calls, fields string) (result string, failed *abi.Error) {
	tb.Helper()
	res := p.invoke(tb, c, fields, nil)
	if res.Err != nil {
		return "", res.Err
	}
	out, err := abi.DecodeStepOutput(res.Output)
	if err != nil {
		tb.Fatalf("output % x: %v", res.Output, err)
	}
	if out.Err != nil {
		return "", out.Err
	}
	text, err := abi.ToJSON(out.Events[0].Body)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text), nil
}

// evaluator is a plugin whose step evaluates the script in its event. Tests share it,
// because the sandbox compiles the engine for each plugin.
var evaluator = sync.OnceValues(func() (plugin, error) {
	p, _, err := load(prelude+"const run = f => (0, eval)(f.script + '\\n;run()');", nil)
	return p, err
})

// scriptOf is the event for the evaluator.
func scriptOf(tb testing.TB, script string) string {
	tb.Helper()
	text, err := json.Marshal(map[string]string{"script": script})
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// evaluate runs a script's function run in a step.
func evaluate(t *testing.T, script string) (string, *abi.Error) {
	t.Helper()
	p, err := evaluator()
	if err != nil {
		t.Fatalf("describe: %v", problems(err))
	}
	return p.run(t, &calls{}, scriptOf(t, script))
}

// wantResult runs a script whose function run gives what the JSON text says.
func wantResult(t *testing.T, script, want string) {
	t.Helper()
	got, failed := evaluate(t, script)
	if failed != nil {
		t.Fatalf("failed: %v %s", failed, dataOf(failed))
	}
	if want = `{"result":` + want + "}"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func dataOf(e *abi.Error) string {
	if e.Data == nil {
		return ""
	}
	text, _ := abi.ToJSON(e.Data)
	return string(text)
}

func TestEngineRunsAStep(t *testing.T) {
	wantResult(t, `const run = () => [1, "a", typeof __weft, typeof fetch, typeof Atomics];`, `[1,"a","undefined","undefined","undefined"]`)
}
