package hosttest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest"
)

// flowCase is one entry of testdata/flows: a flow and its runs in one session.
// testdata/flows/peer.py reads the same files.
type flowCase struct {
	Name string
	Flow json.RawMessage
	// Inner are the steps of a workflow called "inner".
	Inner json.RawMessage
	Runs  []flowRun
	// Ours says how the peer differs; "": not at all.
	Ours string
}

// flowRun is a start and its expected result.
type flowRun struct {
	Start   json.RawMessage
	Result  any
	Stopped bool
	Error   *struct{ Code, Message string }
	State   map[string]any
}

// flowCases reads the table.
func flowCases(t *testing.T) map[string][]flowCase {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(hosttest.Root(), "testdata", "flows", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no flows: %v", err)
	}
	out := map[string][]flowCase{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var cases []flowCase
		if err := json.Unmarshal(text, &cases); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out[strings.TrimSuffix(filepath.Base(file), ".json")] = cases
	}
	return out
}

// flowkit is the plugin of functions, built once.
var flowkit struct {
	mu   sync.Mutex // guards wasm
	wasm []byte
}

func builtFlowkit(t *testing.T) []byte {
	t.Helper()
	flowkit.mu.Lock()
	defer flowkit.mu.Unlock()
	if flowkit.wasm == nil {
		flowkit.wasm = hosttest.BuildPlugin(t, "flowkit")
	}
	return flowkit.wasm
}

// flowHost returns a host with the functions of testdata/plugins/flowkit, as plugin kit.
func flowHost(t *testing.T, cfg hosttest.Config) *hosttest.Host {
	t.Helper()
	h := hosttest.New(t, cfg)
	if _, _, err := h.Plugins.Put(t.Context(), host.DefaultTenant, "kit", builtFlowkit(t)); err != nil {
		t.Fatal(err)
	}
	return h
}

// putFlow puts a flow as a workflow.
func putFlow(t *testing.T, h *hosttest.Host, name string, flow json.RawMessage) {
	t.Helper()
	status, out := h.Do(t, http.MethodPut, "/workflows/"+name, fmt.Sprintf(`{"flow": %s}`, flow))
	if status != http.StatusCreated && status != http.StatusOK {
		t.Fatalf("put %s: %d %s", name, status, out)
	}
}

func TestFlows(t *testing.T) {
	h := flowHost(t, hosttest.Config{})
	n := 0
	for file, cases := range flowCases(t) {
		for i, c := range cases {
			n++
			workflow := fmt.Sprintf("%s-%d", file, i)
			t.Run(file+"/"+c.Name, func(t *testing.T) {
				if c.Inner != nil {
					putFlow(t, h, "inner", json.RawMessage(fmt.Sprintf(`{"steps": %s}`, c.Inner)))
				}
				putFlow(t, h, workflow, c.Flow)
				for _, run := range c.Runs {
					playFlow(t, h, workflow, run)
				}
			})
		}
	}
	if n < 40 {
		t.Errorf("%d cases, want 40 or more", n)
	}
}

// playFlow plays one run of a case, in the session named after the workflow.
func playFlow(t *testing.T, h *hosttest.Host, workflow string, run flowRun) {
	t.Helper()
	_, out := h.Do(t, http.MethodPost, "/workflows/"+workflow+"/run", fmt.Sprintf(`{"start_event": %s, "session": %q}`, run.Start, workflow))
	var rec struct {
		Status string
		Error  string
		Result struct{ Value map[string]any }
	}
	if err := json.Unmarshal(out, &rec); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if run.Error != nil {
		if !strings.Contains(string(out), run.Error.Message) {
			quoted, _ := json.Marshal(run.Error.Message)
			if !strings.Contains(string(out), strings.Trim(string(quoted), `"`)) {
				t.Errorf("run: %s\nwant the error %q", out, run.Error.Message)
			}
		}
	} else if rec.Status != "completed" || !reflect.DeepEqual(rec.Result.Value["result"], run.Result) || rec.Result.Value["stopped"] != run.Stopped {
		t.Errorf("run: %s\nwant %#v, stopped %v", out, run.Result, run.Stopped)
	}
	got := sessionState(t, h, workflow)
	if want := run.State; !reflect.DeepEqual(got, want) {
		t.Errorf("state %v, want %v", got, want)
	}
}

// sessionState returns a session's state as JSON.
func sessionState(t *testing.T, h *hosttest.Host, session string) map[string]any {
	t.Helper()
	status, text := h.Do(t, http.MethodGet, "/sessions/"+session+"/state", nil)
	if status != http.StatusOK {
		t.Fatalf("state: %d %s", status, text)
	}
	var v map[string]any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
