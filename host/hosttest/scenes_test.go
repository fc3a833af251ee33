package hosttest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/hosttest"
)

// act is a run of the scenes plugin, and what must come of it.
type act struct {
	name   string
	fields fields // of the start event
	// post are events that are sent one after the other, each when the run waits
	// for what stands before it; "" is at once. CANCEL instead of an event cancels.
	post [][2]string
	// want is the result as JSON, or a part of what the run failed with.
	want string
	fail bool
	// stream is what was written to the stream.
	stream string
	// code is what the run fails with, where the text is each language's own.
	code string
}

const cancelIt = "CANCEL"

var acts = []act{
	{name: "two people", fields: fields{"what": "approve", "text": "a desk"},
		post: [][2]string{
			{`"waiter_id":"manager"`, `{"type":"HumanResponseEvent","value":{"role":"finance","approved":true}}`},
			{``, `{"type":"HumanResponseEvent","value":{"role":"manager","approved":true}}`}},
		want:   `[true,1]`,
		stream: `InputRequiredEvent {"prefix":"manager, approve a desk?"} InputRequiredEvent {"prefix":"finance, approve a desk?"} StopEvent {"result":[true,1]}`},
	{name: "one refuses", fields: fields{"what": "approve", "text": "x"},
		post: [][2]string{
			{`"waiter_id":"manager"`, `{"type":"HumanResponseEvent","value":{"role":"manager","approved":false}}`},
			{`"waiter_id":"finance"`, `{"type":"HumanResponseEvent","value":{"role":"finance","approved":true}}`}},
		want: `[false,1]`},
	{name: "waits without a name", fields: fields{"what": "ticks", "n": 3},
		post: [][2]string{
			{`"type":"TickEvent"`, `{"type":"TickEvent","value":{"n":7}}`},
			{``, `{"type":"TickEvent","value":{"n":8}}`},
			{``, `{"type":"TickEvent","value":{"n":9}}`}},
		want: `[7,8,9]`},
	{name: "no wait", fields: fields{"what": "ticks"}, want: `[]`},
	{name: "a wait that is over", fields: fields{"what": "patience", "n": 20_000_000}, want: `"timeout"`},
	{name: "a wait in time", fields: fields{"what": "patience", "n": int64(3600e9)},
		post: [][2]string{{`"type":"TickEvent"`, `{"type":"TickEvent","value":{"n":7}}`}}, want: `""`},
	{name: "a sleep", fields: fields{"what": "nap", "n": 30_000_000}, want: `true`},
	{name: "no sleep", fields: fields{"what": "nap"}, want: `true`},
	{name: "a child of its own over retries", fields: fields{"what": "once"}, want: `[5,3]`},
	{name: "children", fields: fields{"what": "children"},
		want:   `[1,1,1,2,1,"asked","not_found","invalid_argument"]`,
		stream: `ShownEvent {"text":"shown by a child"} StopEvent {"result":[1,1,1,2,1,"asked","not_found","invalid_argument"]}`},
	{name: "a call outside", fields: fields{"what": "fetch", "text": "echo"}, want: `[200,"yes","POST /api/echo?q=a+b fetch tea"]`},
	{name: "a status", fields: fields{"what": "fetch", "text": "500"}, want: `[500,"","no"]`},
	{name: "a status that is an error", fields: fields{"what": "fetch", "text": "500", "n": 1}, fail: true, want: `call "web": `},
	{name: "a call that is not allowed", fields: fields{"what": "fetch", "text": "../x"}, fail: true, want: `has a part that is ..`},
	{name: "values that all runs share", fields: fields{"what": "keep"},
		want: `[0,true,true,"conflict","conflict",[true,2,"again"],5,3,"failed_precondition",13,"limit_exceeded","invalid_message",` +
			`["a/n",13,"a/n"],["a/note",true,""],"conflict",null,true,false]`},
	{name: "tried again", fields: fields{"what": "flaky", "n": 3}, want: `4`},
	{name: "tried too often", fields: fields{"what": "flaky", "n": 9, "text": "busy"}, fail: true, want: `busy at attempt 4`},
	{name: "not tried again", fields: fields{"what": "flaky", "n": 9, "text": "final"}, fail: true, want: `final at attempt 1`},
	{name: "a failure", fields: fields{"what": "fail", "text": "asked to"}, fail: true, want: `asked to`},
	{name: "a failure that is caught", fields: fields{"what": "fragile", "text": "it broke"},
		want: `{"attempts":2,"code":"fragile","input":{"type":"FragileEvent","value":{"text":"it broke"}},"message":"it broke","state":{"count":0,"log":[]},"step":"fragile"}`},
	{name: "an atomic step", fields: fields{"what": "work"}, want: `{"count":10,"log":["worked"]}`,
		stream: `ShownEvent {"text":"worked"} StopEvent {"result":{"log":["worked"],"count":10}}`},
	{name: "an atomic step that fails", fields: fields{"what": "work", "n": 1},
		want:   `{"attempts":1,"code":"undone","input":{"type":"WorkEvent","value":{"fail":true}},"message":"a sleep is refused by failed_precondition","state":{"count":0,"log":[]},"step":"work"}`,
		stream: `StopEvent `},
	{name: "a subtype", fields: fields{"what": "box", "text": "crate", "n": 4}, want: `5`},
	{name: "a wait for a subtype", fields: fields{"what": "listen"},
		post: [][2]string{{`"type":"TickEvent"`, `{"type":"LoudTickEvent","value":{"n":7,"text":"tock"}}`}}, want: `7`},
	{name: "a pair that is collected", fields: fields{"what": "pair", "n": 3, "text": "right"}, want: `[3,"right"]`},
	{name: "edits", fields: fields{"what": "edits"},
		want: `[null,"not_found","schema_violation",1,1,"failed_precondition",5,"failed_precondition",0.5,null,null,"conflict",true,false,` +
			`[null,null,-1,2,true,null,0.25],"conflict",null,{"count":-1,"log":["one","two"],"m":{"a":7,"f":0.25,"list":[],"z":1}},null,{"count":0,"log":[]}]`},
	{name: "edits as if alone", fields: fields{"what": "regions"},
		want: `["failed_precondition",null,0,null,"error",null,"not_found",{"count":3,"log":["kept","at a path"]}]`},
	{name: "reads", fields: fields{"what": "read"}, want: `["not_found",null,[1],null,0,16,"invalid_message",1,2,"default",true,true,null,"none"]`},
	{name: "logs", fields: fields{"what": "print", "n": 7, "text": "sa\u00ef"}, want: `null`, stream: `ShownEvent {"text":"saï7"} StopEvent `},
	{name: "a panic", fields: fields{"what": "panic", "text": "boom"}, fail: true, code: "panic", want: "boom"},
	{name: "a map that is not there", fields: fields{"what": "panic", "text": "map"}, fail: true, code: "panic", want: "map"},
	{name: "an index out of range", fields: fields{"what": "panic", "text": "index"}, fail: true, code: "panic", want: "index out of "},
	{name: "a division by zero", fields: fields{"what": "panic", "text": "zero"}, fail: true, code: "panic", want: "divide by zero"},
	{name: "an error around another", fields: fields{"what": "panic", "text": "wrapped"}, fail: true, code: "inside", want: "the cause"},
	{name: "cancelled", fields: fields{"what": "ticks", "n": 1},
		post:   [][2]string{{`"type":"TickEvent"`, cancelIt}},
		stream: `ShownEvent {"text":"cleaned: cancelled"} WorkflowCancelledEvent `},
}

// made says which act makes a host call first of all: each has one.
var made = map[abi.Import]string{
	abi.ImportStateGet:    "reads",
	abi.ImportStateEdit:   "edits",
	abi.ImportStateBegin:  "edits as if alone",
	abi.ImportStateCommit: "edits as if alone",
	abi.ImportStateAbort:  "edits as if alone",
	abi.ImportSendEvent:   "a pair that is collected",
	abi.ImportCollect:     "a pair that is collected",
	abi.ImportWait:        "two people",
	abi.ImportWriteStream: "logs",
	abi.ImportRunWorkflow: "children",
	abi.ImportResource:    "a call outside",
	abi.ImportSleep:       "a sleep",
	abi.ImportNow:         "reads",
	abi.ImportRandom:      "reads",
	abi.ImportLog:         "logs",
}

// Steps do the same from Go, TinyGo and Rust, to the letter: results, errors,
// streams, and what records say of waits. Every call that there is has its act.
func TestScenes(t *testing.T) {
	p := hosttest.Serve(t, t.TempDir(), scenery(t))
	builds := map[string][]byte{"scenes": hosttest.BuildPlugin(t, "scenes"), "scenes-tinygo": tinyScenes(t), "scenes-rust": rustScenes(t)}
	for name, wasm := range builds {
		put(t, p, name, wasm)
		for _, im := range abi.HostCalls {
			if !slices.ContainsFunc(acts, func(s act) bool { return s.name == made[im] }) {
				t.Errorf("no act makes the call %s: add one, and to the scenes of each language", im)
			}
			if !bytes.Contains(wasm, []byte(fmt.Sprintf("weft:v1%c%s", len(im), im))) {
				t.Errorf("%s does not import %s", name, im)
			}
		}
	}
	for _, s := range acts {
		t.Run(s.name, func(t *testing.T) {
			first := s.play(t, p, "scenes")
			for _, other := range []string{"scenes-tinygo", "scenes-rust"} {
				if again := s.play(t, p, other); again != first {
					t.Errorf("in Go %s\n%s %s", first, other, again)
				}
			}
		})
	}
}

// tinyScenes builds the plugin with TinyGo, under a name of its own.
func tinyScenes(t *testing.T) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "scenes.wasm")
	cmd := exec.Command("tinygo", "build", "-target=wasip1", "-buildmode=c-shared", "-scheduler=none", "-gc=leaking", "-no-debug",
		"-tags=named", "-o", out, ".")
	cmd.Dir = filepath.Join(hosttest.Root(), "testdata", "plugins", "scenes")
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build scenes with TinyGo: %v\n%s", err, msg)
	}
	wasm, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// A Rust plugin's wait and sleep are there after kills of
// the server.
func TestRustKilledWhileWaiting(t *testing.T) {
	data, arg := t.TempDir(), scenery(t)
	p := hosttest.Serve(t, data, arg)
	put(t, p, "scenes-rust", rustScenes(t))
	sleeping := p.RunNoWait(t, "scenes-rust", start(fields{"what": "nap", "n": 300_000_000}))
	asking := p.RunNoWait(t, "scenes-rust", start(fields{"what": "approve", "text": "a desk"}))
	for _, role := range []string{"manager", "finance"} {
		p = kill(t, p, data, arg)
		act{}.send(t, p, asking.HandlerID, fmt.Sprintf(`"waiter_id":%q`, role),
			fmt.Sprintf(`{"type":"HumanResponseEvent","value":{"role":%q,"approved":true}}`, role))
	}
	p = kill(t, p, data, arg)
	for id, want := range map[string]string{asking.HandlerID: `[true,1]`, sleeping.HandlerID: `true`} {
		p.Events(t, id, "", nil) // to its end
		_, out := p.Do(t, http.MethodGet, "/handlers/"+id, nil)
		expect(t, string(record(t, out).Result.Value.Result), want)
	}
}

// rustScenes builds the plugin.
func rustScenes(t *testing.T) []byte {
	t.Helper()
	cargo(t, filepath.Join(hosttest.Root(), "sdk-guest", "rust", "testdata", "scenes"), "build", "--quiet", "--release", "--locked")
	wasm, err := os.ReadFile(filepath.Join(targets(), "wasm32-unknown-unknown", "release", "scenes_rust.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// scenery grants a service to the plugins.
func scenery(t *testing.T) (arg string) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/echo" {
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(w, "no")
			return
		}
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("X-Answer", "yes")
		_, _ = fmt.Fprintf(w, "%s %s %s %s", r.Method, r.URL, r.Header.Get("X-Scene"), body)
	}))
	t.Cleanup(service.Close)
	file := filepath.Join(t.TempDir(), "resources.json")
	write(t, file, fmt.Sprintf(`{"resources": {"web": {"kind": "http",
	  "settings": {"base_url": "%s/api/", "networks": ["127.0.0.1"], "allow": [{"url": "%[1]s/api/", "methods": ["POST"]}]},
	  "grants": [{"tenant": "default", "workflow": "scenes"}, {"tenant": "default", "workflow": "scenes-rust"}, {"tenant": "default", "workflow": "scenes-tinygo"}]},
	  "shelf": {"kind": "kv", "grants": [{"tenant": "*", "workflow": "*"}]}}}`, service.URL))
	return "--resources=" + file
}

// play plays the act in one of the plugins; it gives all that is seen of it,
// without the plugin's name.
func (s act) play(t *testing.T, p *hosttest.Process, workflow string) string {
	t.Helper()
	r := p.RunNoWait(t, workflow, start(s.fields))
	var seen []string
	for _, post := range s.post {
		seen = append(seen, s.send(t, p, r.HandlerID, post[0], post[1]))
	}
	stream, code := "", ""
	for _, e := range p.Events(t, r.HandlerID, "", nil) {
		value := string(e.Value)
		if e.Type == "WorkflowFailedEvent" {
			_, value, _ = strings.Cut(value, `"exception_type":"`)
			code, _, _ = strings.Cut(value, `"`)
			value = "" // with its times
		}
		stream += e.Type + " " + value + " "
	}
	_, out := p.Do(t, http.MethodGet, "/handlers/"+r.HandlerID, nil)
	end := record(t, out)
	result := ""
	if end.Result != nil {
		result = inOrder(t, string(end.Result.Value.Result))
	}
	switch {
	case s.fail:
		if end.Status != "failed" || !strings.Contains(end.Error, s.want) || s.code != "" && code != s.code {
			t.Errorf("%s: %s %s %q, want an error with %q", workflow, end.Status, code, end.Error, s.want)
		}
		if s.code != "" {
			end.Error = code
		}
	case s.want != "" && result != s.want:
		t.Errorf("%s gives %s (%s %s), want %s", workflow, result, end.Status, end.Error, s.want)
	}
	if !strings.HasPrefix(stream, s.stream) {
		t.Errorf("%s streams %s, want %s", workflow, stream, s.stream)
	}
	seen = append(seen, end.Status, end.Error, result, stream)
	return strings.NewReplacer("scenes-rust", "scenes", "scenes-tinygo", "scenes").Replace(strings.Join(seen, "\n"))
}

// send posts an event, or cancels, when the run waits for something; it gives what
// the record said of that.
func (act) send(t *testing.T, p *hosttest.Process, handler, waits, event string) string {
	t.Helper()
	var waiting struct {
		For []map[string]any `json:"waiting_for"`
	}
	if waits != "" {
		eventually(t, "the run waits for "+waits, func() bool {
			_, out := p.Do(t, http.MethodGet, "/handlers/"+handler, nil)
			if err := json.Unmarshal(out, &waiting); err != nil {
				t.Fatal(err)
			}
			return strings.Contains(string(out), waits)
		})
	}
	path, body := "/events/"+handler, fmt.Sprintf(`{"event":%s}`, event)
	if event == cancelIt {
		path, body = "/handlers/"+handler+"/cancel", ""
	}
	if status, out := p.Do(t, http.MethodPost, path, body); status != http.StatusOK {
		t.Fatalf("%s: %d %s", event, status, out)
	}
	for _, w := range waiting.For {
		delete(w, "since")
		delete(w, "until")
	}
	return fmt.Sprint(waiting.For)
}
