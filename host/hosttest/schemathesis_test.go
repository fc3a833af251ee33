package hosttest_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// Existing ids, by the first segment of the paths that contain them.
var schemathesisIDs = map[string]string{
	"plugins": "hello", "workflows": "hello", "handlers": "known", "results": "known", "events": "known",
	"sessions": "kept", "tenants": "default",
}

// Valid bodies by operation, which random generation would hardly find.
var schemathesisBodies = map[string]string{
	"run":         `{"start_event":{"name":"Ada"}}`,
	"runNoWait":   `{"start_event":{"name":"Ada"},"session":"kept"}`,
	"forkHandler": `{"at":1}`,
	"patchState":  `{"a":{"b":[1,2]}}`,
	"putWorkflow": `{"settings":{"timeout":1.5}}`,
}

// TestSchemathesis sends the server generated requests, valid and invalid, based on its
// description. No answer may be a server error, and each must match the description.
// WEFT_SCHEMATHESIS_EXAMPLES sets the number of examples, by default few; the log
// contains the seed.
func TestSchemathesis(t *testing.T) {
	python := hosttest.Python(t, "schemathesis")
	h := hosttest.New(t, hosttest.Config{Timeout: 2 * time.Second})
	if _, _, err := h.Plugins.Put(t.Context(), "default", "hello", hosttest.BuildPlugin(t, "recorded", "hello")); err != nil {
		t.Fatal(err)
	}
	for _, start := range []string{`{"handler_id":"known","start_event":{"name":"Ada"}}`, `{"session":"kept","start_event":{"name":"Ada"}}`} {
		if status, body := h.Do(t, "POST", "/workflows/hello/run", start); status != 200 {
			t.Fatalf("start = %d %s", status, body)
		}
	}
	examples := os.Getenv("WEFT_SCHEMATHESIS_EXAMPLES")
	if examples == "" {
		examples = "8"
	}
	ctx, cancel := context.WithTimeout(t.Context(), suite.Hang)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(python), "schemathesis"), "run", knownDescription(t, h),
		"--url", h.URL, "--phases", "examples,coverage,fuzzing", "--mode", "all", "--max-examples", examples,
		"--checks", "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance",
		"--request-timeout", "20", "--suppress-health-check", "all", "--warnings", "off", "--generation-database", "none", "--no-color", "--continue-on-failure")
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "NO_PROXY=*")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// knownDescription writes the server's description with existing ids as examples of path
// parameters, where they delete nothing, and with examples of bodies.
func knownDescription(t *testing.T, h *hosttest.Host) string {
	t.Helper()
	_, text := h.Do(t, "GET", "/openapi.json", nil)
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	for path, methods := range doc["paths"].(map[string]any) {
		first, _, _ := strings.Cut(path[1:], "/")
		for method, op := range methods.(map[string]any) {
			op, _ := op.(map[string]any)
			if body, ok := schemathesisBodies[op["operationId"].(string)]; ok {
				content := op["requestBody"].(map[string]any)["content"].(map[string]any)["application/json"].(map[string]any)
				content["example"] = json.RawMessage(body)
			}
			params, _ := op["parameters"].([]any)
			for _, p := range params {
				p, _ := p.(map[string]any)
				if id := schemathesisIDs[first]; p["in"] == "path" && id != "" && method != "delete" && !strings.HasSuffix(path, "/cancel") {
					p["schema"] = map[string]any{"anyOf": []any{map[string]any{"enum": []string{id}}, p["schema"]}}
				}
			}
		}
	}
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
