package hosttest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
)

func respond(t *testing.T, h *hosttest.Host, handler, role string, approved bool) {
	t.Helper()
	body := fmt.Sprintf(`{"event":{"type":"HumanResponseEvent","value":{"role":%q,"approved":%t}}}`, role, approved)
	if status, out := h.Do(t, http.MethodPost, "/events/"+handler, body); status != http.StatusOK {
		t.Fatalf("answer of %s: %d %s", role, status, out)
	}
}

// asked waits until a question is on the stream.
func asked(t *testing.T, h *hosttest.Host, handler, role string) {
	t.Helper()
	found := false
	h.Events(t, handler, "", func(e hosttest.Event) bool {
		found = e.Type == "InputRequiredEvent" && strings.HasPrefix(string(e.Value), fmt.Sprintf(`{"prefix":"%s, approve a desk?"}`, role))
		return found
	})
	if !found {
		t.Fatalf("%s is not asked", role)
	}
}

func approval(t *testing.T, h *hosttest.Host) {
	waits := func(id, what string) {
		t.Helper()
		_, out := h.Do(t, http.MethodGet, "/handlers/"+id, nil)
		if !strings.Contains(string(out), what) {
			t.Errorf("the record has no %s: %s", what, out)
		}
	}
	for name, tt := range map[string]struct {
		answer func(handler string)
		want   bool
	}{
		"in order": {func(id string) {
			asked(t, h, id, "manager")
			waits(id, `"waiting_for":[{"step":"approve","type":"HumanResponseEvent","waiter_id":"manager","since":"`)
			respond(t, h, id, "manager", true)
			asked(t, h, id, "finance")
			waits(id, `"waiter_id":"finance"`)
			respond(t, h, id, "finance", true)
		}, true},
		"the second first": {func(id string) {
			respond(t, h, id, "finance", true)
			respond(t, h, id, "manager", true)
		}, true},
		"one refuses": {func(id string) {
			respond(t, h, id, "manager", false)
			asked(t, h, id, "finance")
			respond(t, h, id, "finance", true)
		}, false},
		"others have a say": {func(id string) {
			respond(t, h, id, "janitor", false)
			respond(t, h, id, "manager", true)
			respond(t, h, id, "manager", false) // kept, because nothing waits for it yet
			respond(t, h, id, "finance", true)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := h.RunNoWait(t, "approval", start(fields{"item": "a desk"}))
			tt.answer(r.HandlerID)
			events := h.Events(t, r.HandlerID, "", nil)
			if len(events) != 3 || events[2].Type != "StopEvent" {
				t.Errorf("events: %v", events)
			}
			_, out := h.Do(t, http.MethodGet, "/handlers/"+r.HandlerID, nil)
			expect(t, string(record(t, out).Result.Value.Result), fmt.Sprintf(`{"by":["manager","finance"],"calls":1,"approved":%t}`, tt.want))
		})
	}
}

func sleeper(t *testing.T, h *hosttest.Host) {
	for _, seconds := range []float64{0, 0.05} {
		expect(t, h.Result(t, "sleeper", start(fields{"seconds": seconds})), `"slept"`)
	}
	r := h.RunNoWait(t, "sleeper", start(fields{"seconds": 3600}))
	if status, out := h.Do(t, http.MethodPost, "/handlers/"+r.HandlerID+"/cancel", ""); status != http.StatusOK {
		t.Errorf("cancel: %d %s", status, out)
	}
	events := h.Events(t, r.HandlerID, "", nil)
	if len(events) != 1 || events[0].Type != "WorkflowCancelledEvent" {
		t.Errorf("events: %v", events)
	}
}

// Waiting and sleeping runs survive kills of the server: questions are asked once, counts
// are counted once, and a sleep ends at its time.
func TestKilledWhileWaiting(t *testing.T) {
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	for _, name := range []string{"approval", "sleeper"} {
		put(t, p, name, hosttest.Plugin(t, name+"-tinygo"))
	}
	asking := p.RunNoWait(t, "approval", start(fields{"item": "a desk"}))
	sleeping := p.RunNoWait(t, "sleeper", start(fields{"seconds": 1}))
	asked(t, &p.Host, asking.HandlerID, "manager")
	eventually(t, "the run sleeps", func() bool { // otherwise the kills may come before the sleep, and the third blocks the run
		_, out := p.Do(t, http.MethodGet, "/handlers/"+sleeping.HandlerID, nil)
		return strings.Contains(string(out), `"until":`)
	})
	p = kill(t, p, data)
	respond(t, &p.Host, asking.HandlerID, "manager", true)
	p = kill(t, p, data)
	asked(t, &p.Host, asking.HandlerID, "finance")
	p = kill(t, p, data)
	respond(t, &p.Host, asking.HandlerID, "finance", true)
	for id, want := range map[string]string{
		asking.HandlerID:   `{"by":["manager","finance"],"calls":1,"approved":true}`,
		sleeping.HandlerID: `"slept"`,
	} {
		events := p.Events(t, id, "", nil)
		_, out := p.Do(t, http.MethodGet, "/handlers/"+id, nil)
		expect(t, string(record(t, out).Result.Value.Result), want)
		if id == asking.HandlerID && len(events) != 3 {
			t.Errorf("events: %v", events)
		}
	}
}

func flaky(t *testing.T, h *hosttest.Host) {
	expect(t, h.Result(t, "flaky", start(fields{"fail_times": 2})), `{"attempts":3}`)
	expect(t, h.Result(t, "flaky", start(fields{"fail_times": 5, "max_attempts": 6})), `{"attempts":6}`)
	for _, most := range []int{1, 4} {
		status, out := h.Do(t, http.MethodPost, "/workflows/flaky/run", start(fields{"fail_times": 9, "max_attempts": most}))
		failed := record(t, out)
		if status != http.StatusInternalServerError || !strings.Contains(string(out), `"flaky"`) {
			t.Errorf("max_attempts %d: %d %s", most, status, out)
		}
		events := h.Events(t, failed.HandlerID, "", nil)
		if last := events[len(events)-1]; last.Type != "WorkflowFailedEvent" || !strings.Contains(string(last.Value), fmt.Sprintf(`"attempts":%d`, most)) {
			t.Errorf("max_attempts %d: %s %s", most, last.Type, last.Value)
		}
	}
}

func rescue(t *testing.T, h *hosttest.Host) {
	expect(t, h.Result(t, "rescue", start(fields{"fail": false})), `"ok"`)
	expect(t, h.Result(t, "rescue", start(fields{"fail": true})), `"recovered: asked to fail"`)
}

func spin(t *testing.T, h *hosttest.Host) {
	r := h.RunNoWait(t, "spin", fields{})
	if status, out := h.Do(t, http.MethodPost, "/handlers/"+r.HandlerID+"/cancel", ""); status != http.StatusOK {
		t.Errorf("cancel: %d %s", status, out)
	}
	events := h.Events(t, r.HandlerID, "", nil)
	if len(events) != 1 || events[0].Type != "WorkflowCancelledEvent" {
		t.Errorf("events: %v", events)
	}
}

// A paused run keeps incoming events, over a kill of the server too, and continues when
// it is resumed.
func TestPausedRun(t *testing.T) {
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	put(t, p, "approval", hosttest.Plugin(t, "approval-tinygo"))
	r := p.RunNoWait(t, "approval", start(fields{"item": "a desk"}))
	asked(t, &p.Host, r.HandlerID, "manager")
	steer := func(verb string, status int, has string) {
		t.Helper()
		if got, out := p.Do(t, http.MethodPost, "/handlers/"+r.HandlerID+"/"+verb, ""); got != status || !strings.Contains(string(out), has) {
			t.Errorf("%s: %d %s", verb, got, out)
		}
	}
	steer("resume", http.StatusConflict, "neither paused nor blocked")
	steer("pause", http.StatusOK, `"paused":true`)
	steer("pause", http.StatusOK, `"paused":true`)
	respond(t, &p.Host, r.HandlerID, "manager", true)
	respond(t, &p.Host, r.HandlerID, "finance", true)
	p = kill(t, p, data)
	if _, out := p.Do(t, http.MethodGet, "/handlers/"+r.HandlerID, nil); !strings.Contains(string(out), `"status":"running"`) || !strings.Contains(string(out), `"paused":true`) {
		t.Errorf("paused: %s", out)
	}
	steer("resume", http.StatusOK, `"paused":false`)
	p.Events(t, r.HandlerID, "", nil)
	_, out := p.Do(t, http.MethodGet, "/handlers/"+r.HandlerID, nil)
	expect(t, string(record(t, out).Result.Value.Result), `{"by":["manager","finance"],"calls":1,"approved":true}`)
	steer("pause", http.StatusConflict, "completed")
	steer("resume", http.StatusConflict, "completed")
}
