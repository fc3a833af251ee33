package hosttest_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
)

// gossip is a service that echoes everything it receives, including the secret: in its
// answers and in its errors.
func gossip(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		auth := r.Header.Get("Authorization")
		w.Header().Set("X-Your-Key", auth)
		switch {
		case bytes.Contains(body, []byte("fail")):
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprintf(w, `{"error": {"message": "the key %s is no good"}}`, auth)
		case bytes.Contains(body, []byte("garbage")):
			_, _ = fmt.Fprintf(w, "%s <html>", auth)
		case bytes.Contains(body, []byte("stream")):
			w.Header().Set("Content-Type", "text/event-stream")
			for _, part := range []string{"your key is ", auth[:12], auth[12:], "!"} {
				_, _ = fmt.Fprintf(w, "data: {\"choices\": [{\"delta\": {\"content\": %q}}]}\n\n", part)
				w.(http.Flusher).Flush()
			}
			_, _ = io.WriteString(w, "data: [DONE]\n\n")
		default:
			_, _ = fmt.Fprintf(w, `{"choices": [{"message": {"content": "your key is %s"}}]}`, auth)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// eavesdropper records everything it receives, in place of the collector of traces.
type eavesdropper struct {
	*httptest.Server
	mu    sync.Mutex // guards heard
	heard bytes.Buffer
}

func newEavesdropper(t *testing.T) *eavesdropper {
	e := &eavesdropper{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.heard.Write(body)
	}))
	t.Cleanup(e.Close)
	return e
}

// A secret appears in nothing that the server says, keeps or sends, except the requests
// that it is meant for: after runs that used it successfully and unsuccessfully, with a
// service that echoes it everywhere.
func TestSecretsAreNowhere(t *testing.T) {
	service, traces := gossip(t), newEavesdropper(t)
	data := t.TempDir()
	p := hosttest.Serve(t, data, keyFile(t), "--log-level=debug", "--otlp-endpoint="+traces.URL)
	put(t, p, "conversation", hosttest.Plugin(t, "conversation-tinygo"))
	(&llm{Server: service}).define(t, p, "conversation")
	var runs []string
	for message, want := range map[string]string{"hello": "completed", "fail": "failed", "garbage": "failed"} {
		run := p.Run(t, "conversation", in("chat", fields{"message": message}))
		if run.Status != want {
			t.Errorf("%s: %+v", message, run)
		}
		runs = append(runs, run.HandlerID)
	}
	paths := []string{"/resources", "/resources/llm", "/workflows", "/workflows/conversation", "/plugins/conversation", "/audit", "/metrics", "/openapi.json",
		"/handlers", "/handlers?q=key", "/handlers?q=" + llmSecret[:9], "/sessions/chat", "/sessions/chat/state", "/tenants/default/usage"}
	for _, id := range runs {
		for _, of := range []string{"", "/journal", "/snapshot"} {
			paths = append(paths, "/handlers/"+id+of)
		}
		paths = append(paths, "/events/"+id+"?sse=false&after_sequence=-1&include_internal=true")
	}
	said := 0
	for _, path := range paths {
		status, out := p.Do(t, http.MethodGet, path, nil)
		if status != http.StatusOK && !strings.HasPrefix(path, "/handlers/") { // the result of a failed run is 500
			t.Errorf("%s: %d", path, status)
		}
		said += bytes.Count(out, []byte("[secret]"))
		silent(t, path, out)
	}
	if said == 0 {
		t.Error("the service was to tell the secret, and nothing stands where it was")
	}
	file := filepath.Join(t.TempDir(), "backup.db")
	if out, err := exec.Command(hosttest.Binary(t), "backup", file, "--data", data).CombinedOutput(); err != nil {
		t.Fatalf("backup: %v\n%s", err, out)
	}
	copied, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	silent(t, "the backup", copied)
	nowhere(t, data) // includes the write-ahead log: the server still runs
	p.Interrupt(t)
	nowhere(t, data)
	silent(t, "the log", []byte(p.Log()))
	traces.mu.Lock()
	defer traces.mu.Unlock()
	if traces.heard.Len() == 0 {
		t.Error("there are no traces")
	}
	silent(t, "the traces", traces.heard.Bytes())
}

// silent wants neither any form of the secret in a text, nor the part that a stream alone
// has revealed.
func silent(t *testing.T, what string, text []byte) {
	t.Helper()
	for _, form := range []string{llmSecret, llmSecret[5:], strings.ReplaceAll(llmSecret, "-", `\u002d`)} {
		if bytes.Contains(text, []byte(form)) {
			t.Errorf("%s has the secret", what)
		}
	}
}

// A missing or different key is reported with the resource and at each start; the right
// key makes the resource usable again.
func TestSecretsUnderAnotherKey(t *testing.T) {
	m := newLLM(t)
	data, right, wrong := t.TempDir(), keyFile(t), filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(wrong, []byte(strings.Repeat("6b", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	p := hosttest.Serve(t, data, right)
	put(t, p, "conversation", hosttest.Plugin(t, "conversation-tinygo"))
	m.define(t, p, "conversation")
	for _, tt := range []struct{ arg, problem string }{
		{"--resource-key-file=" + wrong, "which the server does not have"},
		{"--log-level=info", "and the server has no key"},
	} {
		p = kill(t, p, data, tt.arg)
		if _, out := p.Do(t, http.MethodGet, "/resources/llm", nil); !strings.Contains(string(out), tt.problem) {
			t.Errorf("%s: %s", tt.arg, out)
		}
		status, out := p.Do(t, http.MethodPost, "/workflows/conversation/run", start(fields{"message": "x"}))
		if status != http.StatusForbidden || !strings.Contains(string(out), tt.problem) {
			t.Errorf("%s: a start is answered %d %s", tt.arg, status, out)
		}
	}
	p = kill(t, p, data, right)
	expect(t, p.Result(t, "conversation", start(fields{"message": "x"})), `{"response":"to x, after 2 messages","turn_count":1,"message_count":2}`)
}
