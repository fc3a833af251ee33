package httpapi_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/turns"
)

// TestUploadDryRun: a dry run answers how the module differs from the newest version, and
// is not an act.
func TestUploadDryRun(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	put := func(query, wasm string, status int) string {
		t.Helper()
		w := call(t, h, "PUT", "/plugins/p"+query, wasm, "Content-Type", "application/wasm")
		if w.Code != status {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		return w.Body.String()
	}
	old := `{"abi": 1, "workflow": "p", "steps": [{"name": "a", "accepts": ["S"]}, {"name": "b"}], "events": {"S": {}}}`
	if got := put("?dry_run=true", old, 200); !strings.Contains(got, `"dry_run":true`) || strings.Contains(got, `"changes"`) || !strings.Contains(got, `"steps":[`) {
		t.Error(got)
	}
	wantError(t, call(t, h, "GET", "/plugins/p", ""), http.StatusNotFound, host.CodeNotFound)
	put("", old, 201)
	if got := put("?dry_run=true", old, 200); !strings.Contains(got, `"unchanged":true,"changes":[]`) || !strings.Contains(got, `"version":1,`) {
		t.Error(got)
	}
	got := put("?dry_run=true", `{"abi": 2, "workflow": "p", "steps": [{"name": "c"}, {"name": "a", "accepts": ["S", "T"], "workers": 2}], "events": {"S": {}, "T": {}}}`, 200)
	want := `"changes":[{"part":"abi","change":"changed"},{"part":"events","name":"T","change":"added"},` +
		`{"part":"steps","name":"a","change":"changed","members":["accepts","workers"]},{"part":"steps","name":"b","change":"removed"},{"part":"steps","name":"c","change":"added"}]`
	if !strings.Contains(got, want) || !strings.Contains(got, `"version":2,`) {
		t.Errorf("%s, want %s in it", got, want)
	}
	wantError(t, call(t, h, "PUT", "/plugins/p?dry_run=true&check=true", "x", "Content-Type", "application/wasm"), http.StatusBadRequest, host.CodeInvalidArgument)
	wantError(t, call(t, h, "PUT", "/plugins/p?dry_run=perhaps", "x", "Content-Type", "application/wasm"), http.StatusBadRequest, host.CodeInvalidArgument)
}

func TestPlugins(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	for _, step := range []struct {
		body, contentType string
		want              int
	}{
		{"one", "", 201}, {"one", "application/wasm", 200}, {"\x00asm2", "application/octet-stream", 201},
		{"\x00asm2", "application/x-www-form-urlencoded", 200}, {"three", "Application/WASM; x=y", 201},
		{"asm\x01\x02", "application/x-www-form-urlencoded", 400}, // curl -d leaves out zeros
		{"\x01`\x00", "application/x-www-form-urlencoded", 400},   // some versions also leave out what follows on the line
		{"four", "application/json", 415}, {"four", "text/plain", 415},
	} {
		w := call(t, h, "PUT", "/plugins/p.1_a-b", step.body, "Content-Type", step.contentType)
		if w.Code != step.want {
			t.Errorf("%s as %q: %d %s", step.body, step.contentType, w.Code, w.Body)
		}
	}
	w := call(t, h, "GET", "/plugins/p.1_a-b", "")
	var info map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &info); err != nil {
		t.Fatal(err)
	}
	for _, field := range []string{"name", "workflow", "version", "sha256", "rewritten_sha256", "size", "manifest", "imports", "created_at", "runs", "composed_in"} {
		if info[field] == nil {
			t.Errorf("no %s in %s", field, w.Body)
		}
	}
	if info["size"] != 5.0 || info["manifest"].(map[string]any)["workflow"] != "p.1_a-b" {
		t.Errorf("plugin = %v", info)
	}
	var lists struct{ Plugins, Versions []map[string]any }
	for _, path := range []string{"/plugins", "/plugins/p.1_a-b/versions"} {
		if err := json.Unmarshal(call(t, h, "GET", path, "").Body.Bytes(), &lists); err != nil {
			t.Fatal(err)
		}
	}
	if len(lists.Plugins) != 1 || len(lists.Versions) != 3 || lists.Versions[0]["version"] != 1.0 {
		t.Errorf("lists = %+v", lists)
	}
	for text, want := range map[string]int{"": 400, "0": 400, "-1": 400, "x": 400, "9": 404, "3": 409, "1": 204} {
		if w := call(t, h, "DELETE", "/plugins/p.1_a-b?version="+text, ""); w.Code != want {
			t.Errorf("delete version %q = %d %s, want %d", text, w.Code, w.Body, want)
		}
	}
	if w := call(t, h, "DELETE", "/plugins/p.1_a-b", ""); w.Code != 204 || w.Body.Len() > 0 {
		t.Errorf("delete = %d %s", w.Code, w.Body)
	}
	for _, r := range [][2]string{{"DELETE", "/plugins/p.1_a-b"}, {"GET", "/plugins/p.1_a-b"}, {"GET", "/plugins/p.1_a-b/versions"}} {
		wantError(t, call(t, h, r[0], r[1], ""), http.StatusNotFound, host.CodeNotFound)
	}
	if w := call(t, h, "GET", "/plugins", ""); w.Body.String() != `{"plugins":[]}` {
		t.Errorf("no plugins = %s", w.Body)
	}
}

func TestPluginNames(t *testing.T) {
	h := newServer(t, newFake(t)).Handler()
	for _, good := range []string{"a", "0", "a.b_c-d", strings.Repeat("a", 128)} {
		if w := call(t, h, "PUT", "/plugins/"+good, "x"); w.Code != 201 {
			t.Errorf("%s: %d", good, w.Code)
		}
	}
	for _, bad := range []string{"A", ".a", "-a", "_a", "a%2Fb", "a%20", "a%0A", "%C3%A4", strings.Repeat("a", 129)} {
		wantError(t, call(t, h, "PUT", "/plugins/"+bad, "x"), 400, host.CodeInvalidArgument)
	}
}

func TestInvalidPlugin(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	f.pluginErr = &host.Error{Code: host.CodeInvalidPlugin, Message: "2 problems", Problems: []host.Problem{
		{Code: "no_stop", Message: `no "stop"`}, {Code: "unreachable", Message: "m", Step: "s", Event: "E"},
	}}
	const want = `{"detail":"2 problems","code":"invalid_plugin","problems":[{"code":"no_stop","message":"no \"stop\""},` +
		`{"code":"unreachable","message":"m","step":"s","event":"E"}]}`
	if w := call(t, h, "PUT", "/plugins/p", "x"); w.Code != 422 || w.Body.String() != want {
		t.Errorf("answer = %d %s", w.Code, w.Body)
	}
}

func TestWorkflow(t *testing.T) {
	h := newServer(t, newFake(t)).Handler()
	if got := call(t, h, "GET", "/workflows/hello", "").Body.String(); got != `{"name":"hello","plugins":["hello"],"settings":{},"sha256":"","composed":false,"timeout":{"seconds":45,"set":false}}` {
		t.Errorf("workflow = %s", got)
	}
	// Every schema has a title, declared or not.
	got := call(t, h, "GET", "/workflows/hello/events", "").Body.String()
	for _, want := range []string{`"title":"Hello"`, `"title":"Mid"`} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if !json.Valid([]byte(got)) {
		t.Errorf("not JSON: %s", got)
	}
	for _, path := range []string{"", "/schema", "/representation"} {
		if got := wantError(t, call(t, h, "GET", "/workflows/nope"+path, ""), 404, host.CodeNotFound); got != "Workflow not found" {
			t.Errorf("%s: %q", path, got)
		}
	}
}

// A client that asks for it gets an interim answer at each stage of an upload, and then
// the answer; other clients get only the answer.
func TestUploadsTellTheirStages(t *testing.T) {
	f := newFake(t)
	told := make(chan string, 1)
	asks := true
	f.onPut = func(ctx context.Context) {
		for _, step := range []struct {
			stage turns.Stage
			want  string
		}{
			{turns.Stage{Name: turns.StageWaiting, Ahead: 2}, "waiting; ahead=2"},
			{turns.Stage{Name: turns.StageWaiting}, "waiting; ahead=0"},
			{turns.Stage{Name: turns.StageCompiling}, "compiling"},
		} {
			turns.Of(ctx).Set(func() turns.Stage { return step.stage })
			if !asks {
				continue
			}
			if got := <-told; got != step.want {
				t.Errorf("told %q, want %q", got, step.want)
			}
		}
	}
	s := httptest.NewServer(newServer(t, f).Handler())
	defer s.Close()
	for _, asks = range []bool{true, false} {
		trace := &httptrace.ClientTrace{Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
			if !asks || code != http.StatusProcessing {
				t.Errorf("interim answer %d", code)
				return nil
			}
			told <- header.Get("X-Weft-Progress")
			return nil
		}}
		req, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), "PUT", s.URL+"/plugins/p", strings.NewReader("wasm"))
		if err != nil {
			t.Fatal(err)
		}
		want := http.StatusOK
		if asks {
			want = http.StatusCreated
			req.Header.Set("X-Weft-Progress", "true")
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != want || resp.Header.Get("X-Weft-Progress") != "" {
			t.Errorf("answer %d with %v", resp.StatusCode, resp.Header)
		}
		_ = resp.Body.Close()
	}
}

// curl -d sends a POST, which no route of plugins accepts: the answer says how to upload.
func TestPostOfAPluginSaysHowToUpload(t *testing.T) {
	h := newServer(t, newFake(t)).Handler()
	for path, want := range map[string]bool{"/plugins/p": true, "/health": false} {
		got := wantError(t, call(t, h, "POST", path, "asm"), 405, host.CodeMethodNotAllowed)
		if !strings.HasPrefix(got, "Method Not Allowed") || strings.Contains(got, "--data-binary") != want {
			t.Errorf("%s: %q", path, got)
		}
	}
}

// The module of a version comes back, the newest by default.
func TestModule(t *testing.T) {
	h := newServer(t, newFake(t)).Handler()
	for _, body := range []string{"one", "two"} {
		if w := call(t, h, "PUT", "/plugins/p", body, "Content-Type", "application/wasm"); w.Code != 201 {
			t.Fatalf("upload = %d %s", w.Code, w.Body)
		}
	}
	sum := func(s string) string {
		digest := sha256.Sum256([]byte(s))
		return hex.EncodeToString(digest[:])
	}
	for query, want := range map[string]string{"": "two", "?sha256=" + sum("one"): "one", "?sha256=" + strings.ToUpper(sum("two")): "two"} {
		w := call(t, h, "GET", "/plugins/p/module"+query, "")
		version := map[string]string{"one": "1", "two": "2"}[want]
		if w.Code != 200 || w.Body.String() != "module "+sum(want) || w.Header().Get("Content-Type") != "application/wasm" ||
			w.Header().Get("Content-Disposition") != `attachment; filename="p-`+version+`.wasm"` {
			t.Errorf("%q = %d %v %s", query, w.Code, w.Header(), w.Body)
		}
	}
	for path, status := range map[string]int{"/plugins/q/module": 404, "/plugins/p/module?sha256=" + sum("three"): 404, "/plugins/p/module?sha256=0f": 400} {
		if w := call(t, h, "GET", path, ""); w.Code != status {
			t.Errorf("%s = %d %s", path, w.Code, w.Body)
		}
	}
}
