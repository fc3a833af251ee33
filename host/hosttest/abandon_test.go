package hosttest_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/hosttest"
)

const everyCallManifest = `{"abi": 1, "workflow": "every", "timeout": 0,
  "events": {"Job": {}, "Note": {}, "Ask": {"kind": "input_required"}, "Answer": {"kind": "human_response"}},
  "steps": [
    {"name": "all", "accepts": ["StartEvent"], "emits": ["Job", "StopEvent"], "waits": ["Answer"]},
    {"name": "job", "accepts": ["Job"]}]}`

// everyCall is a step that makes every kind of call, and gives back what each
// was answered.
var everyCall = []string{
	`["now", []]`,
	`["state_edit", [["set", "n", 1], ["append", "log", "first"]]]`,
	`["random", [8]]`,
	`["state_get", ["n"]]`,
	`["now", []]`,
	`["log", [0, "before the edit"]]`,
	`["state_begin", ["n"]]`,
	`["state_get", ["log"]]`,
	`["commit_plus", 41]`,
	`["write_event_to_stream", [["Note", {"n": 1}]]]`,
	`["send_event", [["Job", {"n": 1}]]]`,
	`["collect_events", [["Note", {"n": 2}], ["Note", "Note"], "pairs"]]`,
	`["state_get", ["nothing"]]`,
	`["collect_events", [["Note", {"n": 3}], ["Note", "Note"], "pairs"]]`,
	`["wait_for_event", {"type": "Answer", "waiter_id": "who", "waiter_event": ["Ask", {"q": "who?"}], "requirements": {"to": "who"}}]`,
	`["state_edit", [["append", "log", "after the wait"], ["increment", "n", 1]]]`,
	`["sleep", [1000000000]]`,
	`["now", []]`,
	`["wait_for_event", {"type": "Answer", "waiter_id": "late", "timeout": 1000000000}]`,
	`["state_begin", ["log"]]`,
	`["state_abort", []]`,
	`["send_event", [["Nobody", {}]]]`,
	`["state_edit", [["append", "log", "last"]]]`,
	`["now", []]`,
}

func rawJSON(tb testing.TB, text string) abi.Raw {
	tb.Helper()
	raw, err := abi.FromJSON([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

// everyCallPlay is what one play of the step came to.
type everyCallPlay struct {
	result  string
	state   string
	stream  []string
	entries string // by kind
}

// playEveryCall plays the step. interrupt is called when the n-th call has its
// answer, and when the step waits in it.
func playEveryCall(t *testing.T, interrupt func(s *stage, call int, waits bool)) everyCallPlay {
	t.Helper()
	s := newStage(t, host.Limits{})
	if _, _, err := s.host.Plugins.Put(t.Context(), host.DefaultTenant, "every", puppet(t, everyCallManifest)); err != nil {
		t.Fatal(err)
	}
	me, job := attemptID{1, 1}, attemptID{2, 1}
	for _, op := range append(slices.Clone(everyCall), `["answers"]`) {
		s.told[me] = append(s.told[me], rawJSON(t, op))
	}
	s.told[job] = []abi.Raw{rawJSON(t, `["state_edit", [["increment", "jobs", 1]]]`)}
	*s.guest(job) = puppetState{calls: 1, finished: true, answers: map[int]answered{}}
	g := s.guest(me)
	if _, err := s.host.Runs.Start(t.Context(), host.StartRequest{Tenant: host.DefaultTenant, Workflow: "every", HandlerID: "h", SessionID: "s"}); err != nil {
		t.Fatal(err)
	}
	jobDone := func() bool { return strings.Contains(strings.Join(s.store.stream, "\n"), "step job not_running") }
	for n := 1; n <= len(everyCall); n++ {
		s.mu.Lock()
		g.calls = n
		s.changed.Broadcast()
		s.mu.Unlock()
		name, _, _ := strings.Cut(strings.TrimPrefix(everyCall[n-1], `["`), `"`)
		if name == "wait_for_event" || name == "sleep" {
			s.until(fmt.Sprintf("call %d to wait", n), func() bool {
				return g.waits >= n && strings.Count(strings.Join(s.store.stream, "\n"), "step all not_running") >= waitsBefore(n)
			})
			interrupt(s, n, true)
			if strings.Contains(everyCall[n-1], "who") {
				answer := abi.Event{Type: "Answer", Body: rawJSON(t, `{"to": "who"}`)}
				if err := s.host.Runs.Send(t.Context(), host.DefaultTenant, "h", answer, ""); err != nil {
					t.Fatal(err)
				}
			} else {
				s.mu.Lock()
				s.now = s.now.Add(time.Second)
				s.mu.Unlock()
				s.host.Runs.Nudge()
			}
		}
		s.until(fmt.Sprintf("call %d", n), func() bool { return g.made >= n && (name != "send_event" || jobDone()) })
		interrupt(s, n, false)
	}
	s.mu.Lock()
	g.finished = true
	s.changed.Broadcast()
	s.mu.Unlock()
	s.until("the end", func() bool { return strings.Contains(strings.Join(s.store.stream, "\n"), " terminal") })
	return s.came(t)
}

// drawn are random bytes: each play draws others. That a replay draws the same
// the stage sees.
var drawn = regexp.MustCompile(`h'[0-9a-f]{16}'|"\$bytes":"[^"]*"`)

// waitsBefore is how many calls up to and with the n-th wait.
func waitsBefore(n int) int {
	waits := 0
	for _, call := range everyCall[:n] {
		if strings.HasPrefix(call, `["wait`) || strings.HasPrefix(call, `["sleep`) {
			waits++
		}
	}
	return waits
}

func (s *stage) came(t *testing.T) everyCallPlay {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var play everyCallPlay
	for _, r := range s.store.runs {
		if r.Result != nil {
			play.result = drawn.ReplaceAllString(abi.Diag(r.Result.Body), "drawn")
		}
	}
	raw := rawJSON(t, everyCallManifest)
	m, err := abi.DecodeManifest(raw)
	if err != nil {
		t.Fatal(err)
	}
	graph, _ := engine.Compile(&m)
	folded := engine.New(host.SessionKey{}, func(string) (*engine.Graph, error) { return graph, nil })
	kinds := map[engine.EntryKind]int{}
	for _, e := range s.store.entries(t) {
		if _, err := folded.Fold(e); err != nil {
			t.Fatal(err)
		}
		if e.Kind != engine.EntryShift {
			kinds[e.Kind]++
		}
	}
	play.state = abi.Diag(folded.State().Encode())
	play.entries = fmt.Sprint(kinds)
	for _, line := range s.store.stream { // the job runs beside: its place in the order is its own
		if !strings.Contains(line, " step job ") {
			_, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			_, rest, _ = strings.Cut(rest, " ")
			play.stream = append(play.stream, drawn.ReplaceAllString(rest, "drawn"))
		}
	}
	return play
}

// A step that makes every kind of call is abandoned by an end or a crash of the
// host after each of its calls, and while each of them waits. It ends as one that
// ran through: with the same answers, and each effect once.
func TestAbandonedByTheHostAnywhere(t *testing.T) {
	want := playEveryCall(t, func(*stage, int, bool) {})
	if wantState := `{"n": 43, "log": ["first", "after the wait", "last"], "jobs": 1}`; want.state != wantState {
		t.Fatalf("a straight run leaves %s, want %s; its answers are %s", want.state, wantState, want.result)
	}
	t.Logf("a straight run is answered %s, by %s", want.result, want.entries)
	for n := 1; n <= len(everyCall); n++ {
		for _, waits := range []bool{true, false} {
			if waits && waitsBefore(n) == waitsBefore(n-1) {
				continue
			}
			for _, crash := range []bool{false, true} {
				t.Run(fmt.Sprintf("call %d, waits %t, crash %t", n, waits, crash), func(t *testing.T) {
					t.Parallel()
					done := 0
					got := playEveryCall(t, func(s *stage, call int, waiting bool) {
						if call == n && waiting == waits {
							s.restart(crash)
							done++
						}
					})
					if done != 1 {
						t.Errorf("%d restarts", done)
					}
					if got.result != want.result {
						t.Errorf("the answers are %s,\nin a straight run %s", got.result, want.result)
					}
					if got.state != want.state || got.entries != want.entries {
						t.Errorf("the state is %s by %s, in a straight run %s by %s", got.state, got.entries, want.state, want.entries)
					}
					sameLines(t, "the stream", got.stream, want.stream)
				})
			}
		}
	}
}

const contentionManifest = `{"abi": 1, "workflow": "contention", "timeout": 0, "events": {"Item": {}, "Done": {}},
  "steps": [
    {"name": "start", "accepts": ["StartEvent"], "emits": [["list", ["Item"]]]},
    {"name": "add", "accepts": ["Item"], "emits": ["Done"], "workers": 16},
    {"name": "end", "accepts": [["list", ["Done"]]], "emits": ["StopEvent"]}]}`

// Many steps edit one path at once, each by reading, computing and writing: none
// is lost, whoever gets the write ticket, and all come to their end.
func TestWriteTicketUnderContention(t *testing.T) {
	const steps, edits = 48, 5
	h := hosttest.New(t, hosttest.Config{Tokens: 16})
	if _, _, err := h.Plugins.Put(t.Context(), host.DefaultTenant, "contention", puppet(t, contentionManifest)); err != nil {
		t.Fatal(err)
	}
	item := `["Item", {"ops": [` + strings.Repeat(`["state_begin", ["n"]], ["burn", 200000], ["commit_plus", 1], `, edits) + `["output", [0, ["Done", {}]]]]}]`
	body := fmt.Sprintf(`{"session_id": "s", "start_event": {"type": "StartEvent", "value": {"ops": [["state_edit", [["set", "n", 0]]], ["output", [0, [%s]]]]}}}`,
		strings.TrimSuffix(strings.Repeat(item+", ", steps), ", "))
	// The end has no operations of its own: it takes those of its first event.
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

// Time in which no server runs is none of a step's timeout; a sleep is over
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
				// An event is a tick like any other: what was due comes before it.
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
