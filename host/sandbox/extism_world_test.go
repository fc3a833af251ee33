package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	sdk "github.com/extism/go-sdk"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
)

// The tests of Extism's plugins run each of them in Extism's own host for Go and
// in this one, and compare: the bytes of the output, and the text of the error.

// sdkModules is the folder of plugins that Extism's host for Go is tested with:
// of the PDKs for Rust, Go and Haskell, and by hand.
var sdkModules = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/extism/go-sdk").Output()
	return filepath.Join(strings.TrimSpace(string(out)), "wasm"), err
})

// outside is what a plugin's host calls meet: a state, and the network.
type outside struct {
	state map[string]abi.Raw
	lines []string
	calls int
	edits int
}

func (o *outside) Print(uint32, []byte) {}

func (o *outside) Checkpoint(uint64) error { return nil }

func (o *outside) Call(im abi.Import, req []byte, clock int64) ([]byte, abi.Status, int64, error) {
	o.calls++
	answer, err := abi.Null, error(nil)
	switch im {
	case abi.ImportStateGet:
		m, _ := abi.DecodeStateGet(req)
		if answer = o.state[m.Path]; answer == nil {
			answer = m.Default
		}
	case abi.ImportStateEdit:
		edits, _ := abi.DecodeEdits(req)
		for _, e := range edits {
			o.edits++
			o.state[e.Path] = bytes.Clone(e.Value)
		}
	case abi.ImportLog:
		m, _ := abi.DecodeLog(req)
		o.lines = append(o.lines, m.Message)
	case abi.ImportResource:
		m, _ := abi.DecodeCallResource(req)
		answer, err = request(m.Payload)
	}
	if err != nil {
		answer, _ = (&abi.Error{Code: "permission_denied", Message: err.Error()}).Encode()
		return answer, abi.StatusPermissionDenied, clock, nil
	}
	return answer, abi.StatusOK, clock, nil
}

// request makes a request as a resource of kind http does, but for the policy.
func request(payload abi.Raw) (abi.Raw, error) {
	v, err := abi.DecodeValue(payload)
	if err != nil {
		return nil, err
	}
	m := v.(map[string]any)
	body, _ := m["body"].([]byte)
	req, err := http.NewRequest(m["method"].(string), m["url"].(string), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	headers, _ := m["headers"].(map[string]any)
	for name, value := range headers {
		req.Header.Set(name, value.(string))
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	if body, err = io.ReadAll(res.Body); err != nil {
		return nil, err
	}
	got := map[string]any{}
	for name, values := range res.Header {
		list := make([]any, len(values))
		for i := range values {
			list[i] = values[i]
		}
		got[strings.ToLower(name)] = list
	}
	return abi.EncodeValue(map[string]any{"status": res.StatusCode, "headers": got, "body": body})
}

// pair is one plugin in both hosts.
type pair struct {
	t       testing.TB
	bench   bench
	digest  string
	theirs  *sdk.CompiledPlugin
	ours    *outside
	limits  host.Limits
	version map[string]string // configuration of the step
	panics  string            // what is told of one
}

// inBoth loads a plugin in both hosts; its exports named are steps of ours.
func inBoth(t testing.TB, b bench, wasm []byte, config map[string]string, exports ...string) *pair {
	t.Helper()
	whole := asSteps(t, wasm, config, exports...)
	if _, problems := b.Inspect(t.Context(), whole, host.Limits{}); len(problems) > 0 {
		t.Fatalf("problems: %+v", problems)
	}
	m := sdk.Manifest{Wasm: []sdk.Wasm{sdk.WasmData{Data: wasm}}, Config: config, AllowedHosts: []string{"127.0.0.1"}}
	m.Memory = &sdk.ManifestMemory{MaxHttpResponseBytes: -1, MaxVarBytes: -1}
	theirs, err := sdk.NewCompiledPlugin(t.Context(), m, sdk.PluginConfig{EnableWasi: true, EnableHttpResponseHeaders: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := theirs.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return &pair{t: t, bench: b, digest: b.library.add(whole), theirs: theirs, ours: &outside{state: map[string]abi.Raw{}}, limits: limit.Default()}
}

// asSteps is a plugin whose exports named are steps.
func asSteps(t testing.TB, wasm []byte, config map[string]string, exports ...string) []byte {
	t.Helper()
	steps := make([]any, len(exports))
	for i, name := range exports {
		steps[i] = map[string]any{"export": name, "input": "field:in", "output": "bytes"}
	}
	manifest, err := json.Marshal(map[string]any{"workflow": "w", "steps": steps, "config": config})
	if err != nil {
		t.Fatal(err)
	}
	return abi.WithManifest(wasm, manifest)
}

// anew is the same pair, with nothing left of what ran before.
func (p *pair) anew(t testing.TB, panics string) *pair {
	return &pair{t: t, panics: panics, bench: p.bench, digest: p.digest, theirs: p.theirs, ours: &outside{state: map[string]abi.Raw{}}, limits: limit.Default()}
}

// instance is a new one in Extism's host.
func (p *pair) instance() *sdk.Plugin {
	p.t.Helper()
	i, err := p.theirs.Instance(p.t.Context(), sdk.PluginInstanceConfig{})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if err := i.Close(context.Background()); err != nil {
			p.t.Error(err)
		}
	})
	return i
}

// invocation is that of a step.
func (p *pair) invocation(export string, input []byte) host.Invocation {
	p.t.Helper()
	var config abi.Raw
	if p.version != nil {
		var err error
		if config, err = abi.EncodeValue(p.version); err != nil {
			p.t.Fatal(err)
		}
	}
	inv := extismInvocation(p.t, p.bench, p.digest, export, input, config)
	inv.Calls, inv.Token, inv.Limits = p.ours, p.ours, p.limits
	return inv
}

// extismInvocation is that of a step of a plugin that asSteps made.
func extismInvocation(t testing.TB, b bench, digest, export string, input []byte, config abi.Raw) host.Invocation {
	t.Helper()
	body, err := abi.EncodeValue(map[string]any{"in": input})
	if err != nil {
		t.Fatal(err)
	}
	inv := b.invocation(digest, nil)
	in := abi.StepInput{
		Step: export, Trigger: []abi.Event{{Type: abi.TypeStart, Body: body, ID: 1}}, Config: config,
		Run: abi.RunInfo{Tenant: "default", Workflow: "w", RunID: "r", SessionID: "s", Invocation: 1, Attempt: 1, Clock: inv.Clock},
	}
	if inv.Input, err = in.Encode(); err != nil {
		t.Fatal(err)
	}
	return inv
}

// run runs a step in this host.
func (p *pair) run(export string, input []byte) (output []byte, fail *abi.Error) {
	p.t.Helper()
	res, err := p.bench.Invoke(p.t.Context(), p.invocation(export, input))
	if err != nil {
		p.t.Fatal(err)
	}
	if res.Err != nil {
		return nil, res.Err
	}
	out, err := abi.DecodeStepOutput(res.Output)
	if err != nil {
		p.t.Fatal(err)
	}
	if out.Err != nil {
		return nil, out.Err
	}
	body, err := abi.DecodeValue(out.Events[0].Body)
	if err != nil {
		p.t.Fatal(err)
	}
	output, _ = body.(map[string]any)["result"].([]byte)
	return output, nil
}

// same runs an export in both hosts and wants the same of them.
func (p *pair) same(theirs *sdk.Plugin, export string, input []byte) []byte {
	p.t.Helper()
	_, want, wantErr := theirs.Call(export, input)
	got, fail := p.run(export, input)
	switch {
	case wantErr != nil && fail == nil:
		p.t.Errorf("%s: Extism's error is %q, here there is none", export, wantErr)
	case wantErr == nil && fail != nil:
		p.t.Errorf("%s: the error is %v, Extism has none", export, fail)
	case wantErr != nil && strings.ToValidUTF8(wantErr.Error(), "\ufffd") != fail.Message && fail.Code == codePlugin:
		p.t.Errorf("%s: the error is %q, Extism's %q", export, fail.Message, wantErr)
	case wantErr == nil && !bytes.Equal(got, want):
		p.t.Errorf("%s: the output is %.200q, Extism's %.200q", export, got, want)
	}
	return got
}
