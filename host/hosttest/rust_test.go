package hosttest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode"

	"github.com/weftrun/weft/host/hosttest"
)

// move is one request for a run, and its expected result.
type move struct {
	workflow string
	session  string
	fields   string // of the start event, as JSON
	// want is the result as JSON if the run completes, otherwise a part of the message
	// that refuses the request.
	want    string
	refused bool
	// newLetters reports that the text has characters next to the letters that Go knows. The
	// engine for TypeScript knows a later version of Unicode, in which some are letters.
	newLetters bool
}

// The examples that exist in several languages run on the real server. Each build gives
// the results written here, and all builds give identical results, including errors.
func TestLanguagesAgree(t *testing.T) {
	moves := slicesOf(countMoves, quizMoves, wordMoves, refusedMoves)
	first := make([]string, len(moves)) // results of the first build
	for _, lang := range languages("tinygo", "go", "rust", "ts") {
		t.Run(lang, func(t *testing.T) {
			p := hosttest.Serve(t, t.TempDir())
			for _, name := range []string{"counter", "quiz", "wordcount"} {
				put(t, p, name, hosttest.Plugin(t, name+"-"+lang))
			}
			for i, m := range moves {
				if lang == "ts" && m.newLetters {
					continue
				}
				got := m.make(t, &p.Host, lang)
				m.check(t, got)
				if first[i] == "" {
					first[i] = got
				} else if got != first[i] {
					t.Errorf("%s %.200s\ngives       %.2000s\nin the first %.2000s", m.workflow, m.fields, got, first[i])
				}
			}
		})
	}
}

func slicesOf(parts ...func() []move) (all []move) {
	for _, part := range parts {
		all = append(all, part()...)
	}
	return all
}

// make makes the move and returns its result: the result with sorted keys, or the status
// and the message, without the language's name.
func (m move) make(t *testing.T, h *hosttest.Host, lang string) string {
	t.Helper()
	name := inLanguage(m.workflow, lang)
	body := fmt.Sprintf(`{"start_event":%s,"session":%q}`, m.fields, m.session)
	if m.session == "" {
		body = fmt.Sprintf(`{"start_event":%s}`, m.fields)
	}
	status, out := h.Do(t, http.MethodPost, "/workflows/"+name+"/run", body)
	var r struct {
		hosttest.Record
		Detail string `json:"detail"`
	}
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%d %s: %v", status, out, err)
	}
	if r.Status == "completed" {
		return inOrder(t, string(r.Result.Value.Result))
	}
	return fmt.Sprintf("%d %s", status, strings.ReplaceAll(r.Detail+r.Error, name, m.workflow))
}

func (m move) check(t *testing.T, got string) {
	t.Helper()
	switch {
	case m.refused:
		if !strings.HasPrefix(got, "400 ") || !strings.Contains(got, m.want) {
			t.Errorf("%s %.200s: %.500s, want a 400 with %q", m.workflow, m.fields, got, m.want)
		}
	case m.want != "" && got != inOrder(t, m.want):
		t.Errorf("%s %.200s\ngot  %.1000s\nwant %.1000s", m.workflow, m.fields, got, m.want)
	}
}

// inOrder returns the JSON with sorted keys and unchanged numbers.
func inOrder(t *testing.T, text string) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func countMoves() (list []move) {
	for i := range 3 {
		list = append(list, move{workflow: "counter", session: "c", fields: `{}`, want: fmt.Sprint(i + 1)})
	}
	return append(list,
		move{workflow: "counter", session: "c", fields: `{"more":[1,{"a":null}]}`, want: "4"},
		move{workflow: "counter", session: "other", fields: `{}`, want: "1"},
		move{workflow: "counter", fields: `{}`, want: "1"})
}

func quizMoves() (list []move) {
	play := func(fields, want string) {
		list = append(list, move{workflow: "quiz", session: "q", fields: fields, want: want})
	}
	next := func(feedback, country string, number, score int) string {
		return fmt.Sprintf(`{"action":"question","feedback":%q,"question":"Capital of %s?","question_number":%d,"current_score":%d}`, feedback, country, number, score)
	}
	const (
		first   = `{"action":"question","question":"Capital of France?","question_number":1,"total_questions":3}`
		nothing = `{"action":"complete","score":0,"total":3,"percentage":0.0}`
		all     = `{"action":"complete","score":3,"total":3,"percentage":100.0}`
		two     = `{"action":"complete","score":2,"total":3,"percentage":66.66666666666667}`
	)
	// An answer before any start counts.
	play(`{"action":"status"}`, `{"action":"status","current_index":0,"score":0,"total":3}`)
	play(`{"action":"answer","answer":"PARIS"}`, next("Correct!", "Germany", 2, 1))
	play(`{"action":"status"}`, `{"action":"status","current_index":1,"score":1,"total":3}`)
	play(`{"action":"start","answer":"Berlin"}`, first)
	play(`{"action":"answer"}`, next("Wrong! Answer: Paris", "Germany", 2, 0))
	play(`{"action":"answer","answer":null}`, next("Wrong! Answer: Berlin", "Japan", 3, 0))
	play(`{"action":"answer","answer":"Tokyo "}`, nothing)
	play(`{"action":"answer","answer":"Tokyo"}`, nothing)
	play(`{"action":"status"}`, `{"action":"status","current_index":3,"score":0,"total":3}`)
	// Letters that differ from these only in case, and others that differ more.
	play(`{"action":"start"}`, first)
	play(`{"action":"answer","answer":"pari\u017f"}`, next("Correct!", "Germany", 2, 1))
	play(`{"action":"answer","answer":"berl\u0131n"}`, next("Wrong! Answer: Berlin", "Japan", 3, 1))
	play(`{"action":"answer","answer":"to\u212ayo","more":"kept"}`, two)
	play(`{"action":"start"}`, first)
	for i, answer := range []string{"paris", "bErLiN"} {
		play(fmt.Sprintf(`{"action":"answer","answer":%q}`, answer), next("Correct!", []string{"Germany", "Japan"}[i], i+2, i+1))
	}
	play(`{"action":"answer","answer":"TOKYO"}`, all)
	return append(list, move{workflow: "quiz", fields: `{"action":"answer","answer":""}`, want: next("Wrong! Answer: Paris", "Germany", 2, 0)})
}

func wordMoves() (list []move) {
	add := func(fields, want string) {
		list = append(list, move{workflow: "wordcount", fields: fields, want: want})
	}
	text := func(text string, top int) string {
		raw, _ := json.Marshal(fields{"text": text, "top": top})
		return string(raw)
	}
	add(`{"text":""}`, `{"lines":0,"words":0,"distinct":0,"top":[]}`)
	add(`{"text":"\n"}`, `{"lines":1,"words":0,"distinct":0,"top":[]}`)
	add(`{"text":"a\n\nb\r\nc"}`, `{"lines":4,"words":3,"distinct":3,"top":[["a",1],["b",1],["c",1]]}`)
	add(text("don't 'tis '' ' rock'n'roll' l\u2019eau 9a9b", 9),
		`{"lines":1,"words":7,"distinct":7,"top":[["'tis",1],["a",1],["b",1],["don't",1],["eau",1],["l",1],["rock'n'roll'",1]]}`)
	add(text("Stra\u00dfe \u1e9e \u03a3\u03c3\u03c2 \u0130I\u0131 \u01c5 \u02b0 \u2167 a\u0301b \U0001d400 \U00010400", 20),
		`{"lines":1,"words":10,"distinct":10,"top":[`+ones("a", "b", "ii\u0131", "stra\u00dfe", "\u00df", "\u01c6", "\u02b0", "\u03c3\u03c3\u03c2", "\U00010428", "\U0001d400")+`]}`)
	add(`{"text":"b a\u0000b A","chunk_lines":1}`, `{"lines":1,"words":4,"distinct":2,"top":[["a",2],["b",2]]}`)
	add(`{"text":"x y x","top":0}`, `{"lines":1,"words":3,"distinct":2,"top":[]}`)
	add(`{"text":"x y x","top":1.0,"chunk_lines":2e2}`, `{"lines":1,"words":3,"distinct":2,"top":[["x",2]]}`)
	add(`{"text":"x y x","top":null,"chunk_lines":null}`, `{"lines":1,"words":3,"distinct":2,"top":[["x",2],["y",1]]}`)
	add(`{"text":"x y x","top":2147483647,"chunk_lines":2147483647}`, `{"lines":1,"words":3,"distinct":2,"top":[["x",2],["y",1]]}`)
	// Many chunks, and one chunk of a single long line.
	lines := strings.Repeat("The cat's hat. THE 'quoted' dog!\n", 500)
	for _, n := range []int{1, 7, 499, 500, 501} {
		add(fmt.Sprintf(`{"text":%q,"chunk_lines":%d,"top":2}`, lines, n), `{"lines":500,"words":3000,"distinct":5,"top":[["the",1000],["'quoted'",500]]}`)
	}
	add(text(strings.Repeat("word Wort ", 20_000), 5), `{"lines":1,"words":40000,"distinct":2,"top":[["word",20000],["wort",20000]]}`)
	// The boundaries of letters in all of Unicode.
	return append(list, move{workflow: "wordcount", fields: text(letterEdges(), 1_000_000), newLetters: true})
}

// ones returns the words with a count of one each.
func ones(words ...string) string {
	for i, word := range words {
		words[i] = fmt.Sprintf(`["%s",1]`, word)
	}
	return strings.Join(words, ",")
}

// letterEdges returns the first and last letter of each range of letters, and their
// neighbors, separated from each other.
func letterEdges() string {
	var b strings.Builder
	add := func(lo, hi rune) {
		for _, r := range []rune{lo - 1, lo, hi, hi + 1} {
			b.WriteRune(r)
			b.WriteByte(' ')
		}
	}
	for _, r := range unicode.L.R16 {
		add(rune(r.Lo), rune(r.Hi))
	}
	for _, r := range unicode.L.R32 {
		add(rune(r.Lo), rune(r.Hi))
	}
	return b.String()
}

func refusedMoves() (list []move) {
	for _, c := range [][3]string{
		{"quiz", `{}`, "action"},
		{"quiz", `{"action":null}`, "action"},
		{"quiz", `{"action":"begin"}`, "action"},
		{"quiz", `{"action":"Start"}`, "action"},
		{"quiz", `{"action":1}`, "action"},
		{"quiz", `{"action":["start"]}`, "action"},
		{"quiz", `{"action":"answer","answer":1}`, "answer"},
		{"quiz", `{"action":"answer","answer":["Paris"]}`, "answer"},
		{"wordcount", `{}`, "text"},
		{"wordcount", `{"text":null}`, "text"},
		{"wordcount", `{"text":["a"]}`, "text"},
		{"wordcount", `{"text":3}`, "text"},
		{"wordcount", `{"text":"a","top":-1}`, "top"},
		{"wordcount", `{"text":"a","top":1.5}`, "top"},
		{"wordcount", `{"text":"a","top":"3"}`, "top"},
		{"wordcount", `{"text":"a","top":true}`, "top"},
		{"wordcount", `{"text":"a","top":99999999999999999999}`, "top"},
		{"wordcount", `{"text":"a","chunk_lines":0}`, "chunk_lines"},
		{"wordcount", `{"text":"a","chunk_lines":{}}`, "chunk_lines"},
		{"counter", `[]`, ""},
		{"counter", `{"type":"Nope","value":{}}`, "Nope"},
	} {
		list = append(list, move{workflow: c[0], fields: c[1], want: c[2], refused: true})
	}
	return list
}
