package hosttest_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/codes"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/missing"
)

func hostile(t *testing.T, name string) []byte {
	t.Helper()
	wasm, err := os.ReadFile(filepath.Join(hosttest.Root(), "testdata", "hostile", name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// remedyOf finds the explanation of a code of failed runs.
func remedyOf(code string) int {
	return slices.IndexFunc(codes.Explain(code), func(e codes.Explanation) bool { return e.Where == codes.InRun })
}

// A step that misbehaves fails its own run, by name, and affects no other run.
func TestHostileStepsFailAlone(t *testing.T) {
	// Only the plugin slow has a time limit, which it exceeds on any machine.
	limits, err := limit.Parse([]byte(`{"defaults": {"wall_time": "24h", "region_time": "10m", "host_calls": 1000, "log_lines": 100},
		"plugins": {"slow": {"wall_time": "1ms"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	h := hosttest.New(t, hosttest.Config{Limits: limits})
	h.Load(t, "tinygo", "counter")
	runs := 0
	for _, c := range []struct{ name, code, text string }{
		{"unreachable", "trap", "unreachable"},
		{"divide", "trap", "divide by zero"},
		{"wasi_exit", "trap", "called proc_exit(0), as os.Exit and process::exit do: return from the step"},
		{"loop_little_fuel", "fuel_exhausted", "limit fuel"},
		{"recursion", "limit_exceeded", "call_depth"},
		{"input_address", "trap", "out of range"},
		{"output_range", "trap", "out of range"},
		{"request_range", "trap", "out of range"},
		{"loop", "deadline_exceeded", "held a core"},
		{"output_none", "invalid_output", "without calling output"},
		{"output_twice", "invalid_output", "twice"},
		{"output_garbage", "invalid_output", "output"},
		{"code_wrong", "invalid_output", "weft_step returned 1"},
		{"call_flood", "limit_exceeded", "host calls"},
		{"log_flood", "limit_exceeded", "log"},
		{"region_flood", "limit_exceeded", "limit host_calls"},
		{"region_loop", "limit_exceeded", "limit region_fuel"},
	} {
		t.Run(c.name, func(t *testing.T) {
			plugin := "hostile"
			if c.code == "deadline_exceeded" {
				plugin = "slow"
			}
			if status, out := h.Do(t, http.MethodPut, "/plugins/"+plugin, hostile(t, c.name)); status != http.StatusCreated {
				t.Fatalf("upload: %d %s", status, out)
			}
			defer h.Do(t, http.MethodDelete, "/plugins/"+plugin, nil) // two plugins cannot hold one workflow
			r := h.RunNoWait(t, "hostile", `{}`)
			runs++
			expect(t, h.Result(t, "counter", in("beside", nil)), jsonInt(runs))
			events := h.Events(t, r.HandlerID, "", nil)
			last := events[len(events)-1]
			var failed struct {
				StepName  string `json:"step_name"`
				Exception struct {
					Type    string `json:"exception_type"`
					Message string `json:"exception_message"`
				}
			}
			if err := json.Unmarshal(last.Value, &failed); err != nil || last.Type != "WorkflowFailedEvent" {
				t.Fatalf("the stream ends with %s %s", last.Type, last.Value)
			}
			if failed.Exception.Type != c.code || !strings.Contains(failed.Exception.Message, c.text) || failed.StepName == "" {
				t.Errorf("failed with %s", last.Value)
			}
			status, out := h.Do(t, http.MethodGet, "/handlers/"+r.HandlerID, nil)
			if status != http.StatusInternalServerError || record(t, out).Error != failed.Exception.Message {
				t.Errorf("record: %d %s", status, out)
			}
			var told struct {
				Step    string `json:"error_step"`
				Attempt uint64 `json:"error_attempt"`
				Remedy  string `json:"error_remedy"`
			}
			if err := json.Unmarshal(out, &told); err != nil || told.Step != failed.StepName || told.Attempt != 1 || told.Remedy != codes.Explain(c.code)[remedyOf(c.code)].Do {
				t.Errorf("the record says where and what to do by %+v: %s", told, out)
			}
		})
	}
}

func jsonInt(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}

// One answer reports every problem of an upload, and nothing is stored.
func TestRefusedUploadsTellAllProblems(t *testing.T) {
	h := hosttest.New(t, hosttest.Config{})
	counter := hosttest.Plugin(t, "counter-tinygo")
	for name, c := range map[string]struct {
		wasm  []byte
		words []string // each must occur in some problem
	}{
		"text":             {[]byte("hello, I am no module"), []string{"wasm"}},
		"nothing":          {[]byte{}, []string{"not a WebAssembly binary"}},
		"truncated":        {counter[:len(counter)/2], []string{"end"}},
		"component":        {append([]byte("\x00asm\x0d\x00\x01\x00"), counter[8:]...), []string{"component"}},
		"command":          {hostile(t, "command"), []string{"_start", "weft_describe", "weft_step"}},
		"empty module":     {hostile(t, "empty"), []string{"memory", "weft_describe", "weft_step"}},
		"forbidden import": {hostile(t, "forbidden_import"), []string{"env.system"}},
		"wrong signatures": {hostile(t, "wrong_signatures"), []string{"state_get", "must be (i32, i32) -> (i64)"}},
		"garbage manifest": {hostile(t, "describe_garbage"), []string{"manifest"}},
	} {
		t.Run(name, func(t *testing.T) {
			status, out := h.Do(t, http.MethodPut, "/plugins/bad", c.wasm)
			var body struct {
				Detail, Code string
				Problems     []struct{ Code, Message string }
			}
			if err := json.Unmarshal(out, &body); err != nil {
				t.Fatalf("%d %s", status, out)
			}
			if status != http.StatusUnprocessableEntity || body.Code != "invalid_plugin" || len(body.Problems) == 0 {
				t.Fatalf("%d %s", status, out)
			}
			all := string(out)
			for _, w := range c.words {
				if !strings.Contains(all, w) {
					t.Errorf("no problem speaks of %q: %s", w, all)
				}
			}
			if status, _ := h.Do(t, http.MethodGet, "/plugins/bad", nil); status != http.StatusNotFound {
				t.Errorf("a refused plugin is there: %d", status)
			}
		})
	}
}

// A step that tries a file, a socket or its language's own sleep gets a log line that
// says what to use instead: once an attempt, however often it tries.
func TestStepsAreToldWhatToUseInstead(t *testing.T) {
	h := hosttest.New(t, hosttest.Config{})
	for name, want := range map[string][]missing.Thing{
		"wasi_files": {missing.Files, missing.Network}, "wasi_poll_far": {missing.Sleep}, "good": nil,
	} {
		if status, out := h.Do(t, http.MethodPut, "/plugins/hostile", hostile(t, name)); status != http.StatusCreated {
			t.Fatalf("upload: %d %s", status, out)
		}
		r := h.RunNoWait(t, "hostile", `{}`)
		h.Events(t, r.HandlerID, "", nil)
		_, out := h.Do(t, http.MethodGet, "/handlers/"+r.HandlerID+"/journal", nil)
		var journal struct {
			Entries []struct {
				Logs []struct {
					Level   int
					Message string
					Attrs   struct{ Source string }
				}
			}
		}
		if err := json.Unmarshal(out, &journal); err != nil {
			t.Fatal(err)
		}
		var told, wanted []string
		for _, e := range journal.Entries {
			for _, l := range e.Logs {
				if l.Attrs.Source == "host" && l.Level == int(slog.LevelWarn) {
					told = append(told, l.Message)
				}
			}
		}
		for _, m := range want {
			wanted = append(wanted, m.Instead())
		}
		if !slices.Equal(told, wanted) {
			t.Errorf("%s: the log has %q, want %q", name, told, wanted)
		}
		h.Do(t, http.MethodDelete, "/plugins/hostile", nil)
	}
}
