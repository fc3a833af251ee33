package py_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/guest/script"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/sandbox"
	"github.com/weftrun/weft/sdk-guest/py"
)

// probe is a plugin whose step runs the script in its event. Tests share it, because the
// sandbox compiles the engine for each plugin.
const probe = `import asyncio
import inspect

import helper
import weft
from weft import Context, StartEvent, StopEvent, Workflow, step

count = 0


class Probe(Workflow, name="probe"):
    @step
    async def run(self, ctx: Context, ev: StartEvent) -> StopEvent:
        scope = {"ctx": ctx, "ev": ev, "weft": weft, "helper": helper, "asyncio": asyncio}
        exec(compile(ev.script, "script.py", "exec"), scope)
        result = scope["run"]()
        return StopEvent(result=await result if inspect.isawaitable(result) else result)

    @step
    async def counter(self, ctx: Context, ev: weft.HumanResponseEvent) -> StopEvent:
        async with ctx.store.edit_state() as state:
            state.count += 1
        return StopEvent(result=state.count)
`

// helper is a second file of the plugin.
const helper = `count = 0


def fail(x):
    return x.missing


def add():
    global count
    count += 1
    return count


import random, secrets, uuid
from typing import Literal, Optional
import weft

drawn = [random.random(), random.Random().random()]
generator = random.Random(1)
names = {"a", "b", "c", "d"}

class Node(weft.BaseModel):
    left: Optional["Node"] = None
    kind: Literal["a", "b"] | None = None
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
	dir, err := os.MkdirTemp("", "weft-py-")
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

// build builds a plugin of files.
func build(tb testing.TB, files map[string]string) []byte {
	tb.Helper()
	if _, err := py.Engine(); err != nil {
		suite.Missing(tb, "needs the engine for Python ('make engines build'): %v", err)
	}
	dir := tb.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			tb.Fatal(err)
		}
	}
	wasm, err := script.Build(dir, script.Options{Language: "py", Version: "v1", Said: tb.Output()})
	if err != nil {
		tb.Fatal(err)
	}
	return wasm
}

// plugin is a plugin of the library.
type plugin struct{ digest string }

// load describes a plugin.
func load(wasm []byte) (plugin, host.Description, error) {
	sum := sha256.Sum256(wasm)
	p := plugin{hex.EncodeToString(sum[:])}
	plugins.mu.Lock()
	plugins.plugins[p.digest] = wasm
	plugins.mu.Unlock()
	d, err := box.Describe(context.Background(), p.digest, wasm, suite.Limits())
	return p, d, err
}

var shared struct {
	sync.Once
	plugin
	err error
}

// evaluator returns the plugin of probe.
func evaluator(tb testing.TB) plugin {
	tb.Helper()
	suite.NotShort(tb, "compiles an interpreter")
	wasm := build(tb, map[string]string{"main.py": probe, "helper.py": helper, "notes.txt": "read me\n", "vendor/pure/__init__.py": "answer = 42\n"})
	shared.Do(func() { shared.plugin, _, shared.err = load(wasm) })
	if shared.err != nil {
		tb.Fatalf("describe: %s", problems(shared.err))
	}
	return shared.plugin
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
}

func (c *calls) Call(im abi.Import, req []byte, clock int64) ([]byte, abi.Status, int64, error) {
	if c.answer == nil {
		return abi.Null, abi.StatusOK, clock, nil
	}
	resp, status := c.answer(im, req)
	return resp, status, clock, nil
}
func (c *calls) Print(_ uint32, text []byte) { c.printed.Write(text) }
func (c *calls) Checkpoint(uint64) error     { return nil }

const clock = 1_800_000_000_000_000_000

// invoke runs a step of the plugin once; fields is JSON.
func (p plugin) invoke(tb testing.TB, c *calls, step, event, fields string, edit func(*host.Invocation)) host.InvocationResult {
	tb.Helper()
	body, err := abi.FromJSON([]byte(fields))
	if err != nil {
		tb.Fatal(err)
	}
	in, err := abi.StepInput{
		Step: step, Trigger: []abi.Event{{Type: event, Body: body}},
		Run: abi.RunInfo{Tenant: "t", Workflow: "probe", RunID: "r", SessionID: "s", Invocation: 1, Attempt: 1, Clock: clock},
	}.Encode()
	if err != nil {
		tb.Fatal(err)
	}
	inv := host.Invocation{Digest: p.digest, Input: in, Clock: clock, Seed: [32]byte{1}, Limits: suite.Limits(), Calls: c, Token: c}
	if edit != nil {
		edit(&inv)
	}
	res, err := box.Invoke(suite.Context(tb), inv)
	if err != nil {
		tb.Fatal(err)
	}
	return res
}

// result returns the field "result" of a step's event as JSON, or the error of the step or
// of the guest.
func result(tb testing.TB, res host.InvocationResult) (string, *abi.Error) {
	tb.Helper()
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
	return strings.TrimSuffix(strings.TrimPrefix(string(text), `{"result":`), "}"), nil
}

// evaluate runs a script's function run in a step.
func evaluate(tb testing.TB, c *calls, script string, edit func(*host.Invocation)) (string, *abi.Error) {
	tb.Helper()
	fields, err := json.Marshal(map[string]string{"script": script})
	if err != nil {
		tb.Fatal(err)
	}
	return result(tb, evaluator(tb).invoke(tb, c, "run", "StartEvent", string(fields), edit))
}

// wantResult runs a script whose function run gives what the JSON text says.
func wantResult(t *testing.T, script, want string) {
	t.Helper()
	got, failed := evaluate(t, &calls{}, script, nil)
	if failed != nil {
		t.Fatalf("%s\nfailed: %v %s", script, failed, dataOf(failed))
	}
	if got != want {
		t.Errorf("%s\ngot  %s\nwant %s", script, got, want)
	}
}

// wantError runs a script that fails with a code and a message.
func wantError(t *testing.T, script, code string, parts ...string) {
	t.Helper()
	got, failed := evaluate(t, &calls{}, script, nil)
	if failed == nil {
		t.Errorf("%s\nsucceeds with %s", script, got)
		return
	}
	if failed.Code != code {
		t.Errorf("%s\ncode = %s (%s), want %s", script, failed.Code, failed.Message, code)
	}
	for _, part := range parts {
		if !strings.Contains(failed.Message+"\n"+dataOf(failed), part) {
			t.Errorf("%s\nerror = %q %s, want %q in it", script, failed.Message, dataOf(failed), part)
		}
	}
}

func dataOf(e *abi.Error) string {
	if e.Data == nil {
		return ""
	}
	text, _ := abi.ToJSON(e.Data)
	return string(text)
}
