package hosttest_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest"
)

// Settings of a plugin hold for the runs of its workflow, and for no other's.
func TestLimitsByPlugin(t *testing.T) {
	limits, err := host.ParseLimits([]byte(`{"plugins": {"tight": {"host_calls": 17}},
		"tenants": {"default": {"plugins": {"counter": {"module_bytes": "1KiB"}, "metadata": {"host_calls": 1}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	h := hosttest.New(t, hosttest.Config{Limits: limits})
	if status, out := h.Do(t, http.MethodPut, "/plugins/tight", hostile(t, "call_flood")); status != http.StatusCreated {
		t.Fatalf("upload: %d %s", status, out)
	}
	for _, c := range []struct{ name, start, fails string }{
		{"chain", `{"n": 3}`, ""}, {"tight", `{}`, "more than 17 host calls"}, {"metadata", `{"query": "a b"}`, "more than 1 host calls"},
	} {
		workflow := c.name
		if c.name == "tight" {
			workflow = "hostile"
		} else {
			h.Load(t, "tinygo", c.name)
		}
		r := h.RunNoWait(t, workflow, `{"start_event": `+c.start+`}`)
		h.Events(t, r.HandlerID, "", nil) // to its end
		_, out := h.Do(t, http.MethodGet, "/handlers/"+r.HandlerID, nil)
		got := record(t, out)
		if (got.Error == "") != (c.fails == "") || !strings.Contains(got.Error, c.fails) {
			t.Errorf("%s: error %q, want %q", c.name, got.Error, c.fails)
		}
	}
	status, out := h.Do(t, http.MethodPut, "/plugins/counter", hosttest.Plugin(t, "counter-tinygo"))
	if status != http.StatusRequestEntityTooLarge || !strings.Contains(string(out), "module_bytes") {
		t.Errorf("upload: %d %s", status, out)
	}
}
