package hosttest_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/hosttest"
)

// extismPlugin reads a plugin with which Extism's Go host is tested.
func extismPlugin(t *testing.T, file string) []byte {
	t.Helper()
	cmd := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/extism/go-sdk")
	cmd.Dir = hosttest.Root()
	dir, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	wasm, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "wasm", file))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// A plugin of Extism's Rust PDK counts in the session's state. Neither concurrent runs
// nor a kill lose a count.
func TestExtismPluginKeepsItsVariables(t *testing.T) {
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	put(t, p, "count-vowels", extismPlugin(t, "count_vowels.wasm"))
	const runs = 20
	var all sync.WaitGroup
	for range runs {
		all.Go(func() { p.Result(t, "count-vowels", in("one", fields{"input": "aaa"})) })
	}
	all.Wait()
	p = kill(t, p, data)
	expect(t, p.Result(t, "count-vowels", in("one", fields{"input": "Hello"})), `{"count":2,"total":62,"vowels":"aeiouAEIOU"}`)
	expect(t, p.Result(t, "count-vowels", start(fields{"input": "Hello"})), `{"count":2,"total":2,"vowels":"aeiouAEIOU"}`)
}

// The header and the custom section are equivalent.
func TestExtismManifestByHeader(t *testing.T) {
	p := hosttest.Serve(t, t.TempDir())
	wasm := extismPlugin(t, "count_vowels.wasm")
	upload := func(manifest string, wasm []byte) (int, string) {
		req, err := http.NewRequest(http.MethodPut, p.URL+"/plugins/vowels", strings.NewReader(string(wasm)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Weft-Manifest", manifest)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		var answer struct{ Detail, SHA256 string }
		if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, answer.Detail + answer.SHA256
	}
	const manifest = `{"workflow": "v", "steps": [{"export": "count_vowels", "output": "text"}], "config": {"vowels": "H"}}`
	status, digest := upload(manifest, wasm)
	if status != http.StatusCreated {
		t.Fatalf("%d %s", status, digest)
	}
	expect(t, p.Result(t, "v", start(fields{"input": "HHe"})), `"{\"count\":2,\"total\":2,\"vowels\":\"H\"}"`)
	if status, again := upload("eyJ3b3JrZmxvdyI6InYiLCJzdGVwcyI6W3siZXhwb3J0IjoiY291bnRfdm93ZWxzIiwib3V0cHV0IjoidGV4dCJ9XSwiY29uZmlnIjp7InZvd2VscyI6IkgifX0=", wasm); status != http.StatusOK || again != digest {
		t.Errorf("the same in base64: %d %s, not %s", status, again, digest)
	}
	if status, again := upload("", abi.WithManifest(wasm, []byte(manifest))); status != http.StatusOK || again != digest {
		t.Errorf("the same as a section: %d %s, not %s", status, again, digest)
	}
	for given, want := range map[string]string{"nonsense!": "neither a JSON object nor base64", "{": "is not JSON", `{"steps": 1}`: "steps must be a list"} {
		if status, detail := upload(given, wasm); status/100 != 4 || !strings.Contains(detail, want) {
			t.Errorf("%s: %d %s", given, status, detail)
		}
	}
}

// The operator decides what http_request may reach, at every redirect. A request in
// progress at a kill is made again, under the same key.
func TestExtismPluginAsksAResource(t *testing.T) {
	s := newService(t)
	arg := s.resources(t, "")
	data := t.TempDir()
	p := hosttest.Serve(t, data, arg)
	wasm := extismPlugin(t, "http_headers.wasm")
	put(t, p, "fetch", abi.WithManifest(wasm, []byte(`{"workflow": "fetch", "http": "web"}`)))
	at := func(path string) map[string]any { return in("one", fields{"url": s.URL + "/api/" + path}) }
	if got := p.Result(t, "fetch", at("page")); !strings.Contains(got, `"content-length":"12"`) {
		t.Errorf("headers %s", got)
	}
	for path, want := range map[string]string{
		"private": "is link-local: the resource may not reach it", "huge": "more than 1048576 bytes (response_bytes)", "../x": "has a part that is ..",
	} {
		if r := p.Run(t, "fetch", at(path)); r.Status != "failed" || !strings.Contains(r.Error, want) {
			t.Errorf("%s: %s %q, want %q", path, r.Status, r.Error, want)
		}
	}
	put(t, p, "other", abi.WithManifest(wasm, []byte(`{"workflow": "other"}`)))
	if status, out := p.Do(t, http.MethodPost, "/workflows/other/run", at("page")); status != http.StatusForbidden || !strings.Contains(string(out), "'http'") {
		t.Errorf("a workflow without the resource: %d %s", status, out)
	}
	for len(s.came) > 0 {
		next(t, s.came)
	}
	s.mu.Lock()
	s.keys = nil
	s.mu.Unlock()
	r := p.RunNoWait(t, "fetch", at("first-hangs"))
	expect(t, next(t, s.came), "GET /api/first-hangs")
	p = kill(t, p, data, arg)
	next(t, s.gone)
	if events := p.Events(t, r.HandlerID, "", nil); len(events) != 1 || events[0].Type != "StopEvent" {
		t.Errorf("events %v", events)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.keys) != 2 || s.keys[0] != s.keys[1] {
		t.Errorf("keys %q", s.keys)
	}
}
