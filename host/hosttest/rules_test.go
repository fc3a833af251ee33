package hosttest_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/limit"
)

const contentionManifest = `{"abi": 1, "workflow": "contention", "timeout": 0, "events": {"Item": {}, "Done": {}},
  "steps": [
    {"name": "start", "accepts": ["StartEvent"], "emits": [["list", ["Item"]]]},
    {"name": "add", "accepts": ["Item"], "emits": ["Done"], "workers": 16},
    {"name": "end", "accepts": [["list", ["Done"]]], "emits": ["StopEvent"]}]}`

// Many steps edit one path concurrently, each by reading, computing and writing. No edit
// is lost, whatever the order of write tickets, and all steps end.
func TestWriteTicketUnderContention(t *testing.T) {
	const steps, edits = 48, 5
	h := hosttest.New(t, hosttest.Config{Tokens: 16})
	if _, _, err := h.Plugins.Put(t.Context(), host.DefaultTenant, "contention", puppet(t, contentionManifest)); err != nil {
		t.Fatal(err)
	}
	item := `["Item", {"ops": [` + strings.Repeat(`["state_begin", ["n"]], ["burn", 200000], ["commit_plus", 1], `, edits) + `["output", [0, ["Done", {}]]]]}]`
	body := fmt.Sprintf(`{"session": "s", "start_event": {"type": "StartEvent", "value": {"ops": [["state_edit", [["set", "n", 0]]], ["output", [0, [%s]]]]}}}`,
		strings.TrimSuffix(strings.Repeat(item+", ", steps), ", "))
	// The last step has no operations of its own: it takes those of its first event.
	body = strings.ReplaceAll(body, `["Done", {}]`, `["Done", {"ops": [["state_get", ["n"]], ["answers"]]}]`)
	status, out := h.Do(t, http.MethodPost, "/workflows/contention/run", body)
	if want := fmt.Sprintf(`[[0,%d]]`, steps*edits); status != http.StatusOK || !strings.Contains(string(out), want) {
		t.Fatalf("%d %s: want %s", status, out, want)
	}
	c := h.Runs.Counters()
	t.Logf("%d conflicts, %d parks", c.Conflicts, c.Parks)
	if c.Conflicts == 0 {
		t.Error("nobody got into the way of another: the test does not test what it is to test")
	}
}

const downManifest = `{"abi": 1, "workflow": "down", "timeout": 30000000000, "events": {"A": {}, "Nudge": {}},
  "steps": [
    {"name": "start", "accepts": ["StartEvent"], "emits": ["A", "StopEvent"]},
    {"name": "a", "accepts": ["A"], "timeout": 10000000000}]}`

// Time without a server does not count toward a step's timeout, but a sleep ends
// meanwhile.
func TestTimeDownIsNoServingTime(t *testing.T) {
	for _, crash := range []bool{false, true} {
		t.Run(fmt.Sprintf("crash %t", crash), func(t *testing.T) {
			s := newStage(t, host.Limits{})
			if _, _, err := s.host.Plugins.Put(t.Context(), host.DefaultTenant, "down", puppet(t, downManifest)); err != nil {
				t.Fatal(err)
			}
			s.told[attemptID{1, 1}] = []abi.Raw{rawJSON(t, `["send_event", [["A", {}]]]`)}
			s.told[attemptID{2, 1}] = []abi.Raw{rawJSON(t, `["sleep", [5000000000]]`)}
			first, second := s.guest(attemptID{1, 1}), s.guest(attemptID{2, 1})
			first.calls, second.calls = 1, 1
			if _, err := s.host.Runs.Start(t.Context(), host.StartRequest{Tenant: host.DefaultTenant, Workflow: "down", HandlerID: "h"}); err != nil {
				t.Fatal(err)
			}
			s.until("the sleep", func() bool { return second.waits == 1 && s.store.last >= 3 })
			at := func(d time.Duration) {
				s.mu.Lock()
				s.now = time.Unix(0, int64(d))
				s.mu.Unlock()
				s.host.Runs.Nudge()
			}
			running := func(want bool) {
				t.Helper()
				// An event is a tick like any other: due timers come before it.
				err := s.host.Runs.Send(t.Context(), host.DefaultTenant, "h", abi.Event{Type: "Nudge", Body: abi.EmptyMap}, "")
				if (err == nil) != want {
					t.Errorf("the run goes on: %v", err)
				}
			}
			at(2 * time.Second)
			running(true)
			s.restartAt(crash, time.Hour+2*time.Second)
			s.until("the end of the sleep", func() bool { return second.made == 1 })
			at(time.Hour + 10*time.Second - 1)
			running(true)
			at(time.Hour + 10*time.Second)
			s.until("the step's timeout", func() bool {
				return strings.Contains(strings.Join(s.store.stream, "\n"), "step a timed out after 10.0s")
			})
			running(false)
		})
	}
}

const inboxManifest = `{"abi": 1, "workflow": "inbox", "timeout": 0, "events": {"News": {}, "Go": {"kind": "human_response"}},
  "steps": [
    {"name": "start", "accepts": ["StartEvent"], "emits": ["StopEvent"]},
    {"name": "read", "accepts": ["Go"], "emits": ["StopEvent"], "waits": ["News"]}]}`

// The number of events kept for later waits is bounded. At the bound, a client is told to
// retry later; after a wait there is room again.
func TestInboxBoundIs429(t *testing.T) {
	h := hosttest.New(t, hosttest.Config{Limits: limit.NewTable(host.Limits{InboxEvents: 2})})
	if _, _, err := h.Plugins.Put(t.Context(), host.DefaultTenant, "inbox", puppet(t, inboxManifest)); err != nil {
		t.Fatal(err)
	}
	if status, out := h.Do(t, http.MethodPost, "/workflows/inbox/run-nowait", `{"handler_id": "h", "start_event": {}}`); status != http.StatusOK && status != http.StatusAccepted {
		t.Fatalf("start: %d %s", status, out)
	}
	post := func(event string, want int) {
		t.Helper()
		if status, out := h.Do(t, http.MethodPost, "/events/h", `{"event": `+event+`}`); status != want {
			t.Fatalf("post %s: %d %s, want %d", event, status, out, want)
		}
	}
	news := `{"type": "News", "value": {}}`
	post(news, http.StatusOK)
	post(news, http.StatusOK)
	post(news, http.StatusTooManyRequests)
	post(`{"type": "Go", "value": {"ops": [["wait_for_event", {"type": "News", "waiter_id": "a"}], ["write_event_to_stream", [["News", {"read": true}]]], ["output", [0, null]]]}}`, http.StatusOK)
	h.Events(t, "h", "", func(e hosttest.Event) bool { return e.Type == "News" })
	post(news, http.StatusOK)
	post(news, http.StatusTooManyRequests)
}
