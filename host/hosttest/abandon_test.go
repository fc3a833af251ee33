package hosttest_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
)

const everyCallManifest = `{"abi": 1, "workflow": "every", "timeout": 0,
  "events": {"Job": {}, "Note": {}, "Ask": {"kind": "input_required"}, "Answer": {"kind": "human_response"}},
  "steps": [
    {"name": "all", "accepts": ["StartEvent"], "emits": ["Job", "StopEvent"], "waits": ["Answer"]},
    {"name": "job", "accepts": ["Job"]}]}`

// everyCall is a step that makes every kind of call, and returns all answers.
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

// everyCallPlay is the result of one play of the step.
type everyCallPlay struct {
	result  string
	state   string
	stream  []string
	entries string // by kind
}

// playEveryCall plays the step. It calls interrupt when the n-th call has its answer, and
// when the step waits in that call.
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
		s.until(fmt.Sprintf("call %d", n), func() bool { return g.made >= n && s.store.settled() >= entriesBy(n, false) })
		interrupt(s, n, false)
	}
	s.mu.Lock()
	g.finished = true
	s.changed.Broadcast()
	s.mu.Unlock()
	s.until("the end", func() bool { return strings.Contains(strings.Join(s.store.stream, "\n"), " terminal") })
	return s.came(t)
}

// entriesBy returns how many entries the journal has when the n-th call has its answer,
// or waits for it. A crash undoes only what was not durable and what nobody has seen: a
// step that begins again before its first entry draws different random bytes.
func entriesBy(n int, waits bool) uint64 {
	entries := uint64(1) // the start
	for i, call := range everyCall[:n] {
		name, _, _ := strings.Cut(strings.TrimPrefix(call, `["`), `"`)
		switch name {
		case "state_edit", "commit_plus", "write_event_to_stream", "collect_events":
			entries++
		case "send_event":
			if !strings.Contains(call, "Nobody") {
				entries += 3 // plus the job's edit and end
			}
		case "wait_for_event", "sleep":
			if entries++; i < n-1 || !waits {
				entries++ // plus the event that ended it
			}
		}
	}
	return entries
}

// drawn matches random bytes, which differ in each play. The stage checks that a replay
// draws the same bytes.
var drawn = regexp.MustCompile(`h'[0-9a-f]{16}'|"\$bytes":"[^"]*"`)

// waitsBefore returns the number of calls up to and including the n-th wait.
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
	for _, line := range s.store.stream { // the job runs concurrently: its place in the order varies
		if !strings.Contains(line, " step job ") {
			_, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
			_, rest, _ = strings.Cut(rest, " ")
			play.stream = append(play.stream, drawn.ReplaceAllString(rest, "drawn"))
		}
	}
	return play
}

// An end or a crash of the host abandons a step that makes every kind of call, after each
// of its calls and while each of them waits. The step ends like an undisturbed one: with
// the same answers, and each effect once.
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
