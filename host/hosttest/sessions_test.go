package hosttest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
)

// asks sends a request with headers, and returns the answer with its tag.
func asks(t *testing.T, h *hosttest.Host, method, path, body string, headers ...string) (status int, answer, tag string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, h.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(out), res.Header.Get("ETag")
}

// What clients were told about edited states and deleted sessions still holds after a
// kill.
func TestSessionsOverKills(t *testing.T) {
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	put(t, p, "counter", hosttest.Plugin(t, "counter-tinygo"))
	const edits, bump = "application/vnd.weft.edits+json", `[["increment","count",40]]`
	want := func(status int, answer string, method, path, body string, headers ...string) (tag string) {
		t.Helper()
		got, out, tag := asks(t, &p.Host, method, path, body, headers...)
		if got != status || answer != "" && out != answer {
			t.Fatalf("%s %s %s: %d %s, want %d %s", method, path, body, got, out, status, answer)
		}
		return tag
	}
	want(http.StatusCreated, "", "PUT", "/sessions/s", `{"state":{"count":1}}`)
	before := want(http.StatusOK, `{"count":41}`, "PATCH", "/sessions/s/state", bump, "Content-Type", edits, "Idempotency-Key", "k")
	p = kill(t, p, data)
	after := want(http.StatusOK, `{"count":41}`, "GET", "/sessions/s/state", "")
	if before != after || before == "" {
		t.Errorf("the tag of one state is %s, and after a kill %s", before, after)
	}
	want(http.StatusNotModified, "", "GET", "/sessions/s/state", "", "If-None-Match", before)
	want(http.StatusOK, `{"count":41}`, "PATCH", "/sessions/s/state", bump, "Content-Type", edits, "Idempotency-Key", "k")
	if status, out := once(t, &p.Host, "/workflows/counter/run", `{"session": "s", "handler_id": "h"}`, "run"); status != http.StatusOK || !strings.Contains(out, `"result":42}`) {
		t.Fatalf("%d %s", status, out)
	}
	want(http.StatusPreconditionFailed, "", "PATCH", "/sessions/s/state", `{}`, "If-Match", before)
	want(http.StatusUnprocessableEntity, "", "PATCH", "/sessions/s/state", `{"count":"many"}`)
	want(http.StatusOK, `42`, "GET", "/sessions/s/state?path=count", "")
	p = kill(t, p, data)
	want(http.StatusUnprocessableEntity, "", "PATCH", "/sessions/s/state", `{"count":"many"}`)
	want(http.StatusNoContent, "", "DELETE", "/sessions/s", "")
	p = kill(t, p, data)
	for _, path := range []string{"/sessions/s", "/sessions/s/state", "/handlers/h"} {
		want(http.StatusNotFound, "", "GET", path, "")
	}
	want(http.StatusOK, `{"sessions":[],"next_cursor":null}`, "GET", "/sessions", "")
	want(http.StatusCreated, "", "PUT", "/sessions/s", `{"state":{"count":"many"}}`)
}

// A state keeps the schema of a workflow whose plugin was deleted and whose run was cut
// from the journal: what is needed to check the state stays stored.
func TestSchemaOfADeletedPlugin(t *testing.T) {
	data, args := t.TempDir(), []string{"--snapshot-every", "2", "--keep-journal", "1"}
	p := hosttest.Serve(t, data, args...)
	put(t, p, "counter", hosttest.Plugin(t, "counter-tinygo"))
	if status, out := once(t, &p.Host, "/workflows/counter/run", `{"session": "s"}`, "run"); status != http.StatusOK {
		t.Fatalf("%d %s", status, out)
	}
	if status, out := p.Do(t, http.MethodDelete, "/plugins/counter", nil); status != http.StatusNoContent {
		t.Fatalf("%d %s", status, out)
	}
	for range 3 {
		for range 10 { // so that snapshots are written and older entries are cut
			if status, out, _ := asks(t, &p.Host, "PATCH", "/sessions/s/state", `[["increment","count",1]]`, "Content-Type", "application/vnd.weft.edits+json"); status != http.StatusOK {
				t.Fatalf("%d %s", status, out)
			}
		}
		if status, out, _ := asks(t, &p.Host, "PATCH", "/sessions/s/state", `{"count":"many"}`); status != http.StatusUnprocessableEntity || !strings.Contains(out, "workflow counter") {
			t.Fatalf("%d %s", status, out)
		}
		p = kill(t, p, data, args...)
	}
	if status, out, _ := asks(t, &p.Host, "GET", "/sessions/s/state", ""); out != `{"count":31}` {
		t.Errorf("%d %s", status, out)
	}
}
