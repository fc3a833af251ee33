package hosttest_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
)

// once sends a request under an idempotency key.
func once(t *testing.T, h *hosttest.Host, path, body, key string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Idempotency-Key", key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(out)
}

// A client that repeats its requests after the server was killed has each request
// processed once.
func TestIdempotencyKeyOverKills(t *testing.T) {
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	for _, name := range []string{"counter", "human"} {
		put(t, p, name, hosttest.Plugin(t, name+"-tinygo"))
	}
	const count = `{"session": "s"}`
	status, first := once(t, &p.Host, "/workflows/counter/run", count, "k")
	if status != http.StatusOK || !strings.Contains(first, `"result":1}`) {
		t.Fatalf("%d %s", status, first)
	}
	_, asking := once(t, &p.Host, "/workflows/human/run-nowait", `{"handler_id": "h"}`, "k")
	until(t, &p.Host, "h", "InputRequiredEvent") // an answer that comes before the question ends the run
	const answer = `{"event":{"type":"HumanResponseEvent","value":{"response":"yes"}}}`
	if status, out := once(t, &p.Host, "/events/h", answer, "e"); status != http.StatusOK {
		t.Fatalf("%d %s", status, out)
	}
	expect(t, streamOf(t, &p.Host, "h"), "InputRequiredEvent StopEvent")

	p = kill(t, p, data)
	if status, again := once(t, &p.Host, "/workflows/counter/run", count, "k"); status != http.StatusOK || again != first {
		t.Errorf("again: %d %s, want %s", status, again, first)
	}
	if status, out := once(t, &p.Host, "/events/h", answer, "e"); status != http.StatusOK {
		t.Errorf("the event again, after the run's end: %d %s", status, out)
	}
	if status, out := once(t, &p.Host, "/events/h", answer, "another"); status != http.StatusConflict {
		t.Errorf("another event after the run's end: %d %s", status, out)
	}
	status, out := once(t, &p.Host, "/workflows/human/run-nowait", `{"handler_id": "h"}`, "k")
	if run := runID(t, asking); status != http.StatusOK || !strings.Contains(out, run) || !strings.Contains(out, `"completed"`) {
		t.Errorf("the start again: %d %s, want run %s", status, out, run)
	}
	if status, out := once(t, &p.Host, "/workflows/counter/run", `{"session": "t"}`, "k"); status != http.StatusUnprocessableEntity || !strings.Contains(out, "idempotency_mismatch") {
		t.Errorf("another body: %d %s", status, out)
	}
	expect(t, p.Result(t, "counter", in("s", fields{})), "2")
}

func runID(t *testing.T, rec string) string {
	t.Helper()
	_, rest, ok := strings.Cut(rec, `"run_id":"`)
	if !ok {
		t.Fatal(rec)
	}
	id, _, _ := strings.Cut(rest, `"`)
	return id
}
