package hosttest_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
)

// Functions in Rust and in Go are nodes of one flow.
func TestRustFunctions(t *testing.T) {
	cargo(t, filepath.Join(hosttest.Root(), "sdk-guest", "rust", "testdata", "functions"), "build", "--quiet", "--release", "--locked")
	wasm, err := os.ReadFile(filepath.Join(targets(), "wasm32-unknown-unknown", "release", "functions_rust.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	h := flowHost(t, hosttest.Config{})
	if status, out := h.Do(t, http.MethodPut, "/plugins/rust", wasm); status != http.StatusCreated {
		t.Fatalf("upload: %d %s", status, out)
	}
	putFlow(t, h, "f", json.RawMessage(`{"steps": [
		{"name": "a", "function": "kit.a"}, {"name": "s", "function": "rust.shout"},
		{"name": "r", "type": "router", "selector": "rust.last", "choices": [{"name": "x", "function": "kit.fail"}, {"name": "y", "function": "kit.soft"}]},
		{"name": "n", "function": "rust.good"}, {"name": "z", "function": "kit.fail"}]}`))
	run := h.Run(t, "f", `{"start_event": {"input": "x"}, "session": "s"}`)
	if run.Status != "completed" || string(run.Result.Value.Result) != "2" {
		t.Errorf("the run: %+v", run)
	}
	if n := sessionState(t, h, "s")["rusty"]; n != float64(1) {
		t.Errorf("rusty = %v", n)
	}
}
