package hosttest_test

import (
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/limit"
)

// Settings of a plugin apply to the runs of its workflow, and to no other's.
func TestLimitsByPlugin(t *testing.T) {
	limits, err := limit.Parse([]byte(`{"plugins": {"tight": {"host_calls": 17}, "spin": {"fuel": 1000000}},
		"tenants": {"default": {"plugins": {"counter": {"module_bytes": "1KiB"}, "metadata": {"host_calls": 1}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	h := hosttest.New(t, hosttest.Config{Limits: limits})
	for _, c := range []struct{ name, start, fails string }{
		{"chain", `{"n": 3}`, ""}, {"tight", `{}`, "17 host calls"}, {"spin", `{}`, "fuel"}, {"metadata", `{"query": "a b"}`, "1 host calls"},
	} {
		workflow := c.name
		if module, bad := map[string]string{"tight": "call_flood", "spin": "loop"}[c.name]; bad {
			workflow = "hostile"
			if status, out := h.Do(t, http.MethodPut, "/plugins/"+c.name, hostile(t, module)); status != http.StatusCreated {
				t.Fatalf("upload: %d %s", status, out)
			}
		} else {
			h.Load(t, "tinygo", c.name)
		}
		r := h.RunNoWait(t, workflow, `{"start_event": `+c.start+`}`)
		h.Events(t, r.HandlerID, "", nil) // reads to the end of the run
		_, out := h.Do(t, http.MethodGet, "/handlers/"+r.HandlerID, nil)
		got := record(t, out)
		if (got.Error == "") != (c.fails == "") || !strings.Contains(got.Error, c.fails) {
			t.Errorf("%s: error %q, want %q", c.name, got.Error, c.fails)
		}
		if workflow == "hostile" { // the next plugin has a workflow of the same name
			if status, out := h.Do(t, http.MethodDelete, "/plugins/"+c.name, nil); status >= http.StatusMultipleChoices {
				t.Fatalf("%d %s", status, out)
			}
		}
	}
	status, out := h.Do(t, http.MethodPut, "/plugins/counter", hosttest.Plugin(t, "counter-tinygo"))
	if status != http.StatusRequestEntityTooLarge || !strings.Contains(string(out), "module_bytes") {
		t.Errorf("upload: %d %s", status, out)
	}
}

// An edit that computes for too long ends its run by name, at the same unit in each run,
// and changes nothing.
func TestEditThatComputesForTooLong(t *testing.T) {
	h := hosttest.New(t, hosttest.Config{})
	if status, out := h.Do(t, http.MethodPut, "/plugins/crash", hosttest.BuildPlugin(t, "crash")); status != http.StatusCreated {
		t.Fatalf("%d %s", status, out)
	}
	var ends []string
	for _, session := range []string{"a", "b"} { // the same run twice, except for its ids
		r := h.RunNoWait(t, "crash", in(session, fields{"key": "k", "spins": spins, "region": true}))
		h.Events(t, r.HandlerID, "", nil)
		_, out := h.Do(t, http.MethodGet, "/handlers/"+r.HandlerID, nil)
		got := record(t, out)
		if got.Status != "failed" || !strings.Contains(got.Error, "more than 30000000 (limit region_fuel)") {
			t.Errorf("%s", out)
		}
		ends = append(ends, got.Error)
	}
	if ends[0] != ends[1] {
		t.Errorf("%s; and %s", ends[0], ends[1])
	}
}

// A step of one tenant that loops for ever holds the only core. Another tenant's run gets
// the core at the next checkpoint, and ends long before the loop does.
func TestLoopGivesWayToAnotherTenant(t *testing.T) {
	limits, err := limit.Parse([]byte(`{"plugins": {"spin": {"fuel": 1e15, "wall_time": "1h"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	h := hosttest.New(t, hosttest.Config{Limits: limits, Tokens: 1})
	for tenant, wasm := range map[string][]byte{"loops": hostile(t, "loop"), "works": hosttest.Plugin(t, "counter-tinygo")} {
		name := map[string]string{"loops": "spin", "works": "counter"}[tenant]
		if _, _, err := h.Plugins.Put(t.Context(), tenant, name, wasm); err != nil {
			t.Fatal(err)
		}
	}
	loop, err := h.Runs.Start(t.Context(), host.StartRequest{Tenant: "loops", Workflow: "hostile"})
	if err != nil {
		t.Fatal(err)
	}
	for h.Runs.Usage("loops").Fuel == 0 { // it holds the core, and has finished one turn
		runtime.Gosched()
	}
	for range 3 {
		run, err := h.Runs.Start(t.Context(), host.StartRequest{Tenant: "works", Workflow: "counter", Wait: true})
		if err != nil || run.Status != host.StatusCompleted {
			t.Fatalf("%+v, %v", run, err)
		}
	}
	if run, err := h.Runs.Get(t.Context(), "loops", loop.RunID); err != nil || run.Status != host.StatusRunning {
		t.Errorf("the loop: %+v, %v", run, err)
	}
	if c := h.Runs.Counters(); c.Yields == 0 {
		t.Errorf("the loop gave nothing up: %+v", c)
	}
	if _, err := h.Runs.Cancel(t.Context(), "loops", loop.RunID, false); err != nil {
		t.Error(err)
	}
}
