package hosttest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// act is a run of the scenes plugin and its expected result. testdata/scenes.json lists
// the acts; tests without a host play the same acts.
type act struct {
	Name  string `json:"name"`
	Start fields `json:"start"`
	Post  []cue  `json:"post"`
	// Result is the expected result; Error is a part of the expected error.
	Result json.RawMessage `json:"result"`
	Error  string          `json:"error"`
	// Code is the expected error code, where each language has its own text.
	Code string `json:"code"`
	// Stream is the expected beginning of the stream.
	Stream []struct {
		Type  string          `json:"type"`
		Value json.RawMessage `json:"value"` // nil: any
	} `json:"stream"`
	// Outside reports that the act calls a resource, which only a server has.
	Outside bool `json:"outside"`
}

// cue is an event or a cancellation sent when the run waits for the named thing, or at
// once without a name.
type cue struct {
	Waiter string          `json:"waiter"`
	Type   string          `json:"type"`
	Event  json.RawMessage `json:"event"`
	Cancel bool            `json:"cancel"`
}

// acts reads the acts.
func acts(t *testing.T) []act {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(hosttest.Root(), "testdata", "scenes.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []act
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		t.Fatal(err)
	}
	return all
}

// made maps each host call to the act that makes the call first.
var made = map[abi.Import]string{
	abi.ImportStateGet:    "reads",
	abi.ImportStateEdit:   "edits",
	abi.ImportStateBegin:  "edits as if alone",
	abi.ImportStateCommit: "edits as if alone",
	abi.ImportStateAbort:  "edits as if alone",
	abi.ImportSendEvent:   "a pair that is collected",
	abi.ImportCollect:     "a pair that is collected",
	abi.ImportWait:        "two people",
	abi.ImportWriteStream: "logs",
	abi.ImportRunWorkflow: "children",
	abi.ImportResource:    "a call outside",
	abi.ImportSleep:       "a sleep",
	abi.ImportNow:         "reads",
	abi.ImportRandom:      "reads",
	abi.ImportLog:         "logs",
}

// Steps written for Go, TinyGo, Rust, TypeScript and Python behave identically: results, errors, streams, and
// the waits in records. Every host call has an act.
func TestScenes(t *testing.T) {
	p := hosttest.Serve(t, t.TempDir(), scenery(t))
	builds := map[string][]byte{"scenes": hosttest.BuildPlugin(t, "scenes"), "scenes-tinygo": tinyScenes(t), "scenes-rust": rustScenes(t),
		"scenes-ts": tsScenes(t), "scenes-py": pyScenes(t)}
	acts := acts(t)
	for name, wasm := range builds {
		put(t, p, name, wasm)
		for _, im := range abi.HostCalls {
			if !slices.ContainsFunc(acts, func(s act) bool { return s.Name == made[im] }) {
				t.Errorf("no act makes the call %s: add one, and to the scenes of each language", im)
			}
			if !bytes.Contains(wasm, fmt.Appendf(nil, "weft:v1%c%s", len(im), im)) {
				t.Errorf("%s does not import %s", name, im)
			}
		}
	}
	for _, s := range acts {
		t.Run(s.Name, func(t *testing.T) {
			first := s.play(t, p, "scenes")
			for _, other := range []string{"scenes-tinygo", "scenes-rust", "scenes-ts", "scenes-py"} {
				if again := s.play(t, p, other); again != first {
					t.Errorf("in Go %s\n%s %s", first, other, again)
				}
			}
		})
	}
}

// tinyScenes builds the plugin with TinyGo, under its own name.
func tinyScenes(t *testing.T) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "scenes.wasm")
	cmd := exec.Command(suite.Tool(t, "tinygo"), "build", "-target=wasip1", "-buildmode=c-shared", "-scheduler=none", "-gc=leaking", "-no-debug",
		"-tags=named", "-o", out, ".")
	cmd.Dir = filepath.Join(hosttest.Root(), "testdata", "plugins", "scenes")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if msg, err := suite.Build(cmd, out, cmd.Dir, suite.GuestSDK()); err != nil {
		t.Fatalf("build scenes with TinyGo: %v\n%s", err, msg)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// A Rust plugin's wait and sleep survive kills of the server.
func TestRustKilledWhileWaiting(t *testing.T) { killedWhileWaiting(t, "scenes-rust", rustScenes(t)) }

// So do those of a TypeScript plugin.
func TestScriptKilledWhileWaiting(t *testing.T) { killedWhileWaiting(t, "scenes-ts", tsScenes(t)) }

// And those of a Python plugin.
func TestPythonKilledWhileWaiting(t *testing.T) { killedWhileWaiting(t, "scenes-py", pyScenes(t)) }

// killedWhileWaiting kills the server while a step of a plugin waits and sleeps.
func killedWhileWaiting(t *testing.T, workflow string, wasm []byte) {
	data, arg := t.TempDir(), scenery(t)
	p := hosttest.Serve(t, data, arg)
	put(t, p, workflow, wasm)
	sleeping := p.RunNoWait(t, workflow, start(fields{"what": "nap", "n": 300_000_000}))
	asking := p.RunNoWait(t, workflow, start(fields{"what": "approve", "text": "a desk"}))
	for _, role := range []string{"manager", "finance"} {
		p = kill(t, p, data, arg)
		answer := fmt.Sprintf(`{"type":"HumanResponseEvent","value":{"role":%q,"approved":true}}`, role)
		cue{Waiter: role, Event: json.RawMessage(answer)}.send(t, p, asking.HandlerID)
	}
	p = kill(t, p, data, arg)
	for id, want := range map[string]string{asking.HandlerID: `[true,1]`, sleeping.HandlerID: `true`} {
		p.Events(t, id, "", nil) // reads to the end
		_, out := p.Do(t, http.MethodGet, "/handlers/"+id, nil)
		expect(t, string(record(t, out).Result.Value.Result), want)
	}
}

// tsScenes builds the plugin in TypeScript.
func tsScenes(t *testing.T) []byte { return builtByWeft(t, "testdata/plugins/scenes-ts") }

// pyScenes builds the plugin in Python.
func pyScenes(t *testing.T) []byte { return builtByWeft(t, "testdata/plugins/scenes-py") }

// builtByWeft builds a project in TypeScript or Python, of which it gives the folder below
// the project's top.
func builtByWeft(t *testing.T, project string) []byte {
	t.Helper()
	dir := filepath.Join(t.TempDir(), filepath.Base(project))
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(hosttest.Root(), filepath.FromSlash(project)))); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command(hosttest.Binary(t), "build", dir).CombinedOutput(); err != nil {
		if strings.Contains(string(said), "without the engine for Python") {
			suite.Missing(t, "needs the engine for Python: make engines build")
		}
		t.Fatalf("build %s: %v\n%s", project, err, said)
	}
	wasm, err := os.ReadFile(filepath.Join(dir, "build", filepath.Base(project)+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// rustScenes builds the plugin.
func rustScenes(t *testing.T) []byte {
	t.Helper()
	cargo(t, filepath.Join(hosttest.Root(), "sdk-guest", "rust", "testdata", "scenes"), "build", "--quiet", "--release", "--locked")
	wasm, err := os.ReadFile(filepath.Join(targets(), "wasm32-unknown-unknown", "release", "scenes_rust.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// scenery grants a service to the plugins.
func scenery(t *testing.T) (arg string) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/echo" {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, "no")
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Answer", "yes")
		_, _ = fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL, r.Header.Get("X-Scene"), body)
	}))
	t.Cleanup(service.Close)
	file := filepath.Join(t.TempDir(), "resources.json")
	write(t, file, fmt.Sprintf(`{"resources": {"web": {"kind": "http",
	  "settings": {"base_url": "%s/api/", "networks": ["127.0.0.1"], "allow": [{"url": "%[1]s/api/", "methods": ["POST"]}]},
	  "grants": [{"tenant": "default", "workflow": "scenes"}, {"tenant": "default", "workflow": "scenes-rust"}, {"tenant": "default", "workflow": "scenes-tinygo"},
	    {"tenant": "default", "workflow": "scenes-ts"}, {"tenant": "default", "workflow": "scenes-py"}]},
	  "shelf": {"kind": "kv", "grants": [{"tenant": "*", "workflow": "*"}]}}}`, service.URL))
	return "--resources=" + file
}

// play plays the act in one of the plugins. It returns everything observable, without the
// plugin's name.
func (s act) play(t *testing.T, p *hosttest.Process, workflow string) string {
	t.Helper()
	r := p.RunNoWait(t, workflow, start(s.Start))
	var seen []string
	for _, c := range s.Post {
		seen = append(seen, c.send(t, p, r.HandlerID))
	}
	stream, code := "", ""
	for _, e := range p.Events(t, r.HandlerID, "", nil) {
		value := string(e.Value)
		if e.Type == "WorkflowFailedEvent" {
			_, value, _ = strings.Cut(value, `"exception_type":"`)
			code, _, _ = strings.Cut(value, `"`)
			value = "" // contains times
		}
		stream += e.Type + " " + value + " "
	}
	_, out := p.Do(t, http.MethodGet, "/handlers/"+r.HandlerID, nil)
	end := record(t, out)
	result := ""
	if end.Result != nil {
		result = inOrder(t, string(end.Result.Value.Result))
	}
	want := ""
	if s.Result != nil {
		want = inOrder(t, string(s.Result))
	}
	switch {
	case s.Error != "":
		if end.Status != "failed" || !strings.Contains(end.Error, s.Error) || s.Code != "" && code != s.Code {
			t.Errorf("%s: %s %s %q, want an error with %q", workflow, end.Status, code, end.Error, s.Error)
		}
		if s.Code != "" {
			end.Error = code
		}
	case result != want:
		t.Errorf("%s gives %s (%s %s), want %s", workflow, result, end.Status, end.Error, want)
	}
	if begin := s.stream(); !strings.HasPrefix(stream, begin) {
		t.Errorf("%s streams %s, want %s", workflow, stream, begin)
	}
	seen = append(seen, end.Status, end.Error, result, stream)
	return strings.NewReplacer("scenes-rust", "scenes", "scenes-tinygo", "scenes", "scenes-ts", "scenes", "scenes-py", "scenes").Replace(strings.Join(seen, "\n"))
}

// stream returns the expected beginning of the stream.
func (s act) stream() string {
	text := ""
	for _, e := range s.Stream {
		if text += e.Type + " "; e.Value != nil {
			text += string(e.Value) + " "
		}
	}
	return text
}

// send posts an event, or cancels, when the run waits for something. It returns the
// record's description of the wait.
func (c cue) send(t *testing.T, p *hosttest.Process, handler string) string {
	t.Helper()
	var waiting struct {
		For []map[string]any `json:"waiting_for"`
	}
	waits := ""
	switch {
	case c.Waiter != "":
		waits = fmt.Sprintf(`"waiter_id":%q`, c.Waiter)
	case c.Type != "":
		waits = fmt.Sprintf(`"type":%q`, c.Type)
	}
	if waits != "" {
		eventually(t, "the run waits for "+waits, func() bool {
			_, out := p.Do(t, http.MethodGet, "/handlers/"+handler, nil)
			if err := json.Unmarshal(out, &waiting); err != nil {
				t.Fatal(err)
			}
			return strings.Contains(string(out), waits)
		})
	}
	path, body := "/events/"+handler, fmt.Sprintf(`{"event":%s}`, c.Event)
	if c.Cancel {
		path, body = "/handlers/"+handler+"/cancel", ""
	}
	if status, out := p.Do(t, http.MethodPost, path, body); status != http.StatusOK {
		t.Fatalf("%s: %d %s", c.Event, status, out)
	}
	for _, w := range waiting.For {
		delete(w, "since")
		delete(w, "until")
	}
	return fmt.Sprint(waiting.For)
}
