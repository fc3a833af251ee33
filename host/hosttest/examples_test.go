package hosttest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// start returns the body of a request that runs a workflow with a start event.
func start(fields map[string]any) map[string]any { return map[string]any{"start_event": fields} }

// in is start in a named session.
func in(session string, fields map[string]any) map[string]any {
	return map[string]any{"start_event": fields, "session": session}
}

type fields = map[string]any

// Each example runs through the real server, as both compilers build it.
func TestExamples(t *testing.T) {
	for _, lang := range languages("tinygo", "go") {
		t.Run(lang, func(t *testing.T) {
			data := t.TempDir()
			p := hosttest.Serve(t, data)
			for _, name := range []string{"counter", "counter-race", "metadata", "history", "quiz", "accumulator", "wordcount",
				"concurrent", "branch", "loop", "chain", "human", "stream", "approval", "sleeper",
				"flaky", "rescue", "spin", "parent"} {
				put(t, p, name, hosttest.Plugin(t, name+"-"+lang))
			}
			h := &p.Host
			for name, test := range map[string]func(*testing.T, *hosttest.Host){
				"counter": counter, "counter-race": counterRace, "metadata": metadata, "history": history, "quiz": quiz,
				"accumulator": accumulator, "wordcount": wordcount, "small": small, "human": human, "stream": streamed,
				"approval": approval, "sleeper": sleeper, "flaky": flaky, "rescue": rescue, "spin": spin, "parent": parent,
				"bad start": badStart,
			} {
				t.Run(name, func(t *testing.T) { test(t, h) })
			}
			t.Run("states", func(t *testing.T) { statesAt(t, h) })
			clean(t, data)
		})
	}
}

// madeEdit is an edit in a journal.
type madeEdit struct {
	Path string
	New  json.RawMessage // nil: the value was deleted
}

// statesAt checks the state at each entry of each run that the examples made: an edit has
// left the value that it says, and the last entry of a session the state that the session has.
func statesAt(t *testing.T, h *hosttest.Host) {
	get := func(path string, to any) {
		t.Helper()
		h.Want(t, http.StatusOK, to, "", "GET", path, "")
	}
	var list struct {
		Handlers []struct {
			RunID     string `json:"run_id"`
			SessionID string `json:"session_id"`
		}
	}
	get("/handlers?limit=1000", &list)
	type last struct {
		seq   uint64
		state any
	}
	ends, entries := map[string]last{}, 0
	for _, r := range list.Handlers {
		var journal struct {
			Entries []struct {
				Seq   uint64
				Edits []madeEdit
			}
		}
		get("/handlers/"+r.RunID+"/journal", &journal)
		for _, e := range journal.Entries {
			var state map[string]any
			get(fmt.Sprintf("/runs/%s/state?at=%d", r.RunID, e.Seq), &state)
			for i, edit := range e.Edits {
				again := slices.ContainsFunc(e.Edits[i+1:], func(other madeEdit) bool {
					return strings.HasPrefix(other.Path+".", edit.Path+".") || other.Path == ""
				})
				if edit.Path == "" || strings.ContainsAny(edit.Path, `."`) || again {
					continue
				}
				value, there := state[edit.Path]
				var made any
				if edit.New != nil {
					if err := json.Unmarshal(edit.New, &made); err != nil {
						t.Fatal(err)
					}
				}
				if there != (edit.New != nil) || !reflect.DeepEqual(value, made) {
					t.Errorf("%s at %d: %s is %v", r.RunID, e.Seq, edit.Path, value)
				}
			}
			if entries++; e.Seq > ends[r.SessionID].seq {
				ends[r.SessionID] = last{e.Seq, state}
			}
		}
	}
	for session, end := range ends {
		var state any
		if get("/sessions/"+session+"/state", &state); !reflect.DeepEqual(state, end.state) {
			t.Errorf("session %s has %v, and had %v after its last entry", session, state, end.state)
		}
	}
	if entries < 100 {
		t.Errorf("the examples made %d entries", entries)
	}
}

// languages returns the languages in which the examples are tested. Compiling a module
// built by standard Go takes seconds, so only "make soak" tests most of these.
func languages(all ...string) []string {
	if suite.Soak() {
		return all
	}
	return slices.DeleteFunc(all, func(lang string) bool { return lang == "go" })
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func counter(t *testing.T, h *hosttest.Host) {
	for i := 1; i <= 3; i++ {
		expect(t, h.Result(t, "counter", in("counting", nil)), fmt.Sprint(i))
	}
	first := h.Run(t, "counter", fields{})
	expect(t, h.Result(t, "counter", fields{"handler_id": first.HandlerID}), "2")
	if second := h.Run(t, "counter", fields{"handler_id": first.HandlerID}); second.RunID == first.RunID {
		t.Error("a handler's second run has the first one's run_id")
	}
}

func counterRace(t *testing.T, h *hosttest.Host) {
	expect(t, h.Result(t, "counter-race", start(fields{"n": 200, "mode": "edit"})), `{"count":200}`)
	expect(t, h.Result(t, "counter-race", start(fields{"n": 0, "mode": "edit"})), `{"count":0}`)
	var r struct{ Count int }
	if err := json.Unmarshal([]byte(h.Result(t, "counter-race", start(fields{"n": 50, "mode": "get-set"}))), &r); err != nil {
		t.Fatal(err)
	}
	if r.Count < 1 || r.Count > 50 {
		t.Errorf("get-set counts %d", r.Count)
	}
}

func metadata(t *testing.T, h *hosttest.Host) {
	var r struct {
		Output   string
		Metadata struct {
			StartTime     json.Number `json:"start_time"`
			EndTime       json.Number `json:"end_time"`
			TotalTime     json.Number `json:"total_time"`
			StepsExecuted []string    `json:"steps_executed"`
			TokenCount    int         `json:"token_count"`
		}
	}
	out := h.Result(t, "metadata", start(fields{"query": "one two  three"}))
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	expect(t, r.Output, "Processed: one two  three")
	expect(t, strings.Join(r.Metadata.StepsExecuted, ","), "process,finalize")
	if r.Metadata.TokenCount != 3 || !strings.ContainsAny(r.Metadata.TotalTime.String(), ".e") || !strings.Contains(r.Metadata.StartTime.String(), ".") {
		t.Errorf("metadata %s", out)
	}
}

func history(t *testing.T, h *hosttest.Host) {
	for i := 1; i <= 3; i++ {
		expect(t, h.Result(t, "history", in("past", fields{"query": fmt.Sprint("q", i)})),
			fmt.Sprintf(`{"response":"Processed: q%d","total_interactions":%d}`, i, i))
	}
}

func quiz(t *testing.T, h *hosttest.Host) {
	play := func(fields fields) string { return h.Result(t, "quiz", in("game", fields)) }
	expectJSON(t, play(fields{"action": "status"}), `{"action":"status","current_index":0,"score":0,"total":3}`)
	expectJSON(t, play(fields{"action": "start"}), `{"action":"question","question":"Capital of France?","question_number":1,"total_questions":3}`)
	expectJSON(t, play(fields{"action": "answer", "answer": "pArIs"}),
		`{"action":"question","feedback":"Correct!","question":"Capital of Germany?","question_number":2,"current_score":1}`)
	expectJSON(t, play(fields{"action": "answer"}),
		`{"action":"question","feedback":"Wrong! Answer: Berlin","question":"Capital of Japan?","question_number":3,"current_score":1}`)
	expectJSON(t, play(fields{"action": "answer", "answer": " Tokyo"}), `{"action":"complete","score":1,"total":3,"percentage":33.333333333333336}`)
	expectJSON(t, play(fields{"action": "answer", "answer": "Tokyo"}), `{"action":"complete","score":1,"total":3,"percentage":33.333333333333336}`)
	expectJSON(t, play(fields{"action": "status"}), `{"action":"status","current_index":3,"score":1,"total":3}`)
}

// expectJSON compares JSON regardless of the order of keys.
func expectJSON(t *testing.T, got, want string) {
	t.Helper()
	var g, w any
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatal(err)
	}
	gs, _ := json.Marshal(g)
	ws, _ := json.Marshal(w)
	expect(t, string(gs), string(ws))
}

func accumulator(t *testing.T, h *hosttest.Host) {
	expect(t, h.Result(t, "accumulator", start(fields{"items": []string{}})), `[]`)
	var items []string
	var want []map[string]any
	for i := range 30 {
		item := fmt.Sprint("item ", i)
		items = append(items, item)
		want = append(want, map[string]any{"index": i, "original": item, "processed": "Processed: " + item})
	}
	w, _ := json.Marshal(want)
	expectJSON(t, h.Result(t, "accumulator", start(fields{"items": items})), string(w))
}

func wordcount(t *testing.T, h *hosttest.Host) {
	text := strings.Repeat("The cat's hat. THE 'quoted' dog!\n", 1000) + "été Ünï-9x '' end"
	expectJSON(t, h.Result(t, "wordcount", start(fields{"text": text, "chunk_lines": 7, "top": 4})),
		`{"lines":1001,"words":6004,"distinct":9,"top":[["the",2000],["'quoted'",1000],["cat's",1000],["dog",1000]]}`)
	expectJSON(t, h.Result(t, "wordcount", start(fields{"text": "", "top": 0})), `{"lines":0,"words":0,"distinct":0,"top":[]}`)
}

// small tests the examples whose whole behavior fits in one line.
func small(t *testing.T, h *hosttest.Host) {
	expect(t, h.Result(t, "concurrent", start(fields{"query": "q"})), `["C:q","A:q","B:q"]`)
	expect(t, h.Result(t, "branch", start(fields{"branch": "A"})), `"Branch A complete."`)
	expect(t, h.Result(t, "branch", start(fields{"branch": "B"})), `"Branch B complete."`)
	for _, n := range []int{0, 1, 25} {
		expect(t, h.Result(t, "loop", start(fields{"n": n})), fmt.Sprintf(`{"iterations":%d}`, n))
		expect(t, h.Result(t, "chain", start(fields{"n": n, "payload": "x"})), fmt.Sprintf(`{"hops":%d}`, n))
	}
}

func human(t *testing.T, h *hosttest.Host) {
	for _, answer := range []string{`"42"`, `null`, `{"a":[1,2.5]}`} {
		r := h.RunNoWait(t, "human", fields{})
		h.Events(t, r.HandlerID, "", func(e hosttest.Event) bool {
			if e.Type != "InputRequiredEvent" {
				t.Errorf("first event is %s", e.Type)
			}
			expect(t, string(e.Value), `{"prefix":"Enter a number: "}`)
			return true
		})
		if _, out := h.Do(t, http.MethodGet, "/handlers/"+r.HandlerID, nil); !strings.Contains(string(out), `"waiting_for":[{"step":"answer","type":"HumanResponseEvent","since":"`) {
			t.Errorf("the record does not say what it waits for: %s", out)
		}
		status, out := h.Do(t, http.MethodPost, "/events/"+r.HandlerID, `{"event":{"type":"HumanResponseEvent","value":{}}}`)
		if status != http.StatusBadRequest || !strings.Contains(string(out), "response") {
			t.Errorf("an answer without response: %d %s", status, out)
		}
		status, out = h.Do(t, http.MethodPost, "/events/"+r.HandlerID, `{"event":{"type":"HumanResponseEvent","value":{"response":`+answer+`}}}`)
		if status != http.StatusOK {
			t.Fatalf("answer: %d %s", status, out)
		}
		events := h.Events(t, r.HandlerID, "", nil)
		if len(events) != 2 || events[1].Type != "StopEvent" {
			t.Errorf("events %v", events)
		}
		_, out = h.Do(t, http.MethodGet, "/handlers/"+r.HandlerID, nil)
		done := record(t, out)
		expect(t, string(done.Result.Value.Result), answer)
	}
}

func record(t *testing.T, out []byte) (r hosttest.Record) {
	t.Helper()
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	return r
}

func streamed(t *testing.T, h *hosttest.Host) {
	for _, n := range []int{0, 20} {
		r := h.RunNoWait(t, "stream", start(fields{"n": n}))
		events := h.Events(t, r.HandlerID, "", nil)
		if len(events) != n+1 || events[n].Type != "StopEvent" {
			t.Fatalf("%d events of %d", len(events), n)
		}
		for i, e := range events[:n] {
			expect(t, string(e.Value), fmt.Sprintf(`{"i":%d}`, i))
		}
		if again := h.Events(t, r.HandlerID, "", nil); len(again) != n+1 {
			t.Errorf("a second reader gets %d events", len(again))
		}
	}
}

func badStart(t *testing.T, h *hosttest.Host) {
	for _, c := range []struct {
		workflow, body, want string
		status               int
	}{
		{"loop", `{"start_event":{}}`, "n", 400},
		{"loop", `{"start_event":{"n":"3"}}`, "n", 400},
		{"loop", `{"start_event":{"n":1.5}}`, "n", 400},
		{"loop", `{"start_event":{"n":true}}`, "n", 400},
		{"loop", `{"start_event":{"n":-1}}`, "n", 400},
		{"wordcount", `{"start_event":{"text":"x","chunk_lines":0}}`, "chunk_lines", 400},
		{"accumulator", `{"start_event":{"items":["a",1]}}`, "items", 400},
		{"loop", `{"start_event":{"n":1},"n":1`, "JSON", 400},
		{"loop", `{"start_event":{"n":1,"n":2}}`, "n", 400},
		{"loop", `{"start_event":{"type":"Nope","value":{}}}`, "Nope", 400},
		{"nope", `{}`, "Workflow not found", 404},
	} {
		status, out := h.Do(t, http.MethodPost, "/workflows/"+c.workflow+"/run", c.body)
		if status != c.status || !strings.Contains(string(out), c.want) {
			t.Errorf("%s %s: %d %s", c.workflow, c.body, status, out)
		}
	}
	expect(t, h.Result(t, "loop", `{"start_event":{"n":3.0}}`), `{"iterations":3}`)
	expectJSON(t, h.Result(t, "wordcount", `{"start_event":{"text":"a b a","top":null,"more":1}}`), `{"lines":1,"words":3,"distinct":2,"top":[["a",2],["b",1]]}`)
}
