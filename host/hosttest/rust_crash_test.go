package hosttest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
)

// A game continues after the server was killed, between moves and during moves. Each
// acknowledged move counts exactly once.
func TestRustQuizSurvivesKills(t *testing.T) {
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	put(t, p, "quiz-rust", hosttest.Plugin(t, "quiz-rust"))
	put(t, p, "counter-rust", hosttest.Plugin(t, "counter-rust"))
	moves := []struct{ fields, want string }{
		{`{"action":"start"}`, `{"action":"question","question":"Capital of France?","question_number":1,"total_questions":3}`},
		{`{"action":"answer","answer":"paris"}`, `{"action":"question","feedback":"Correct!","question":"Capital of Germany?","question_number":2,"current_score":1}`},
		{`{"action":"answer","answer":"Bonn"}`, `{"action":"question","feedback":"Wrong! Answer: Berlin","question":"Capital of Japan?","question_number":3,"current_score":1}`},
		{`{"action":"answer","answer":"Tokyo"}`, `{"action":"complete","score":2,"total":3,"percentage":66.66666666666667}`},
		{`{"action":"status"}`, `{"action":"status","current_index":3,"score":2,"total":3}`},
	}
	for i, m := range moves {
		expectJSON(t, p.Result(t, "quiz-rust", `{"session":"game","start_event":`+m.fields+`}`), m.want)
		expect(t, p.Result(t, "counter-rust", in("counting", nil)), fmt.Sprint(i+1))
		p = kill(t, p, data)
	}
}

// A run that waits for a person still waits after kills. The answer is applied to the
// session's state exactly once.
func TestRustWaitingRunSurvivesKills(t *testing.T) {
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	put(t, p, "probe-rust", probe(t))
	for round := 1; round <= 2; round++ {
		r := p.RunNoWait(t, "probe-rust", in("s", fields{"what": "ask", "text": "who? "}))
		want := fmt.Sprintf(`{"asked":%d,"prefix":"who? "}`, round)
		asked := func(e hosttest.Event) bool {
			if e.Type != "InputRequiredEvent" {
				t.Errorf("first event is %s", e.Type)
			}
			expectJSON(t, string(e.Value), want)
			return true
		}
		for range 2 {
			p.Events(t, r.HandlerID, "", asked)
			p = kill(t, p, data)
		}
		answer := fmt.Sprintf(`{"event":{"type":"HumanResponseEvent","value":{"response":"\u00e4 %d"}}}`, round)
		if status, out := p.Do(t, http.MethodPost, "/events/"+r.HandlerID, `{"event":{"type":"HumanResponseEvent","value":{"response":1}}}`); status != http.StatusBadRequest {
			t.Errorf("an answer that is not a text: %d %s", status, out)
		}
		if status, out := p.Do(t, http.MethodPost, "/events/"+r.HandlerID, answer); status != http.StatusOK {
			t.Fatalf("answer: %d %s", status, out)
		}
		if events := p.Events(t, r.HandlerID, "", nil); len(events) != 2 || events[1].Type != "StopEvent" {
			t.Errorf("events %v", events)
		}
		_, out := p.Do(t, http.MethodGet, "/handlers/"+r.HandlerID, nil)
		answers := []string{"\u00e4 1", "\u00e4 2"}[:round]
		list, err := json.Marshal([]any{round, answers})
		if err != nil {
			t.Fatal(err)
		}
		expectJSON(t, string(record(t, out).Result.Value.Result), string(list))
	}
}

// Concurrent runs of one session lose no edit, and make no edit twice.
func TestRustEditsExactlyOnce(t *testing.T) {
	h := hosttest.New(t, hosttest.Config{})
	h.Load(t, "rust", "counter")
	const n = 40
	results := make([]string, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			_, out := h.Do(t, http.MethodPost, "/workflows/counter-rust/run", in("s", nil))
			results[i] = string(out)
		})
	}
	all.Wait()
	seen := map[string]bool{}
	for _, out := range results {
		r := record(t, []byte(out))
		if r.Result == nil || seen[string(r.Result.Value.Result)] {
			t.Errorf("failed, or counted twice: %s", out)
			continue
		}
		seen[string(r.Result.Value.Result)] = true
	}
	expect(t, h.Result(t, "counter-rust", in("s", nil)), fmt.Sprint(n+1))
}
