package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weftrun/weft/host"
)

// An idempotency key belongs to its route and the digest of its body.
func TestIdempotencyKey(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	const path, body = "/workflows/hello/run-nowait", `{"start_event": {"name": "Ada"}}`
	if w := call(t, h, "POST", path, body); w.Code != http.StatusOK || f.lastStart.Once != (host.Once{}) {
		t.Fatalf("without a key: %d %s, %+v", w.Code, w.Body, f.lastStart.Once)
	}
	if w := call(t, h, "POST", path, body, "Idempotency-Key", "k-1"); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	first := f.lastStart.Once
	if first.Route != "POST "+path || first.Key != "k-1" || len(first.Hash) != 64 {
		t.Errorf("%+v", first)
	}
	call(t, h, "POST", path, body+" ", "Idempotency-Key", "k-1")
	if got := f.lastStart.Once; got.Hash == first.Hash || got.Key != first.Key {
		t.Errorf("another body: %+v", got)
	}
	call(t, h, "POST", "/workflows/hello/run", body, "Idempotency-Key", "k-1")
	if got := f.lastStart.Once; got.Route != "POST /workflows/hello/run" || got.Hash != first.Hash {
		t.Errorf("another route: %+v", got)
	}
	for _, bad := range [][]string{{""}, {strings.Repeat("k", 256)}, {"a b"}, {"\u00fc"}, {"a", "b"}} {
		headers := []string{}
		for _, v := range bad {
			headers = append(headers, "Idempotency-Key", v)
		}
		if got := wantError(t, call(t, h, "POST", path, body, headers...), http.StatusBadRequest, host.CodeInvalidArgument); !strings.Contains(got, "Idempotency-Key") {
			t.Errorf("%q: %s", bad, got)
		}
	}
}
