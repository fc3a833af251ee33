package httpapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/httpapi"
)

// difference says how an exchange intentionally differs from the recorded one.
type difference struct {
	why string
	// status replaces the recorded status; 0: no difference.
	status int
	// detail is contained in the error's text; otherwise the text equals the recorded
	// one.
	detail string
	// like changes both bodies before they are compared.
	like func(v any) any
	// follows: the event ids follow those of the handler's earlier runs.
	follows bool
	// first says what to read from a handler's stream before the exchange, because the
	// recording was made some time after the previous exchange: "ID" to its end, "ID
	// TYPE" up to an event of that type.
	first string
	// without removes events from both streams; their ids are then not compared.
	without func(e map[string]any) bool
}

// wireDifferences are the intended differences. In addition, records have our fields
// after the recorded ones, errors have a code, listings a next_cursor, and types are
// qualified by the workflow.
var wireDifferences = map[string]difference{
	"002-workflows":                      {why: "names are sorted", like: unordered("workflows")},
	"004-events-hello":                   {why: "events are in order of name", like: unordered("events")},
	"005-representation-hello":           {why: "nodes are in order, the graph has the workflow's name", like: anyGraph},
	"006-schema-human":                   {why: "base types have no description", like: noDescription},
	"007-events-human":                   {why: "events are in order of name", like: unordered("events")},
	"008-representation-human":           {why: "nodes are in order, the graph has the workflow's name", like: anyGraph},
	"012-unknown-path":                   {why: "the path is named, too", detail: "Not Found: GET /nope"},
	"015-trailing-slash":                 {why: "the path is named, too", detail: "Not Found: GET /workflows/"},
	"014-run-get-405":                    {why: "a method that a route does not have is a 405", status: 405, detail: "Method Not Allowed"},
	"030-run-400-no-body":                {why: "no body counts as {}", detail: "name"},
	"031-run-400-invalid-json":           {why: "own text", detail: "Invalid JSON body"},
	"032-run-400-array-body":             {why: "own text", detail: "must be an object"},
	"033-run-400-missing-field":          {why: "own text", detail: "name"},
	"034-run-400-wrong-type-of-field":    {why: "own text", detail: "times"},
	"035-run-400-constraint":             {why: "own text", detail: "times"},
	"036-run-400-wrong-event":            {why: "types are not classes", detail: "Start event must be an instance of Hello"},
	"037-run-400-unknown-event":          {why: "events are in order of name", detail: "Validation error for 'start_event': Invalid event type: Nope. Expected one of "},
	"038-run-400-context-disabled":       {why: "own text", detail: "context"},
	"048-nowait-400":                     {why: "own text", detail: "name"},
	"059-handlers-running":               {why: "newest first", like: unordered("handlers")},
	"060-handlers-two-statuses":          {why: "newest first", like: unordered("handlers")},
	"061-handlers-by-workflow":           {why: "newest first", like: unordered("handlers")},
	"064-sse-from-start":                 {why: "ids go on over a handler's runs", follows: true},
	"065-sse-internal":                   {why: "ids go on over a handler's runs", follows: true},
	"066-sse-no-qualified-name":          {why: "ids go on over a handler's runs", follows: true},
	"067-sse-after-sequence":             {why: "ids go on over a handler's runs", follows: true},
	"068-sse-last-event-id":              {why: "ids go on over a handler's runs", follows: true},
	"069-sse-last-event-id-not-a-number": {why: "ids go on over a handler's runs", follows: true},
	"079-cancel":                         {why: "the step has begun", first: "s1 Progress"},
	"091-human-handler-waiting":          {why: "the run is idle", first: "q1 WorkflowIdleEvent"},
	"093-human-send-400-invalid-json":    {why: "own text", detail: "Invalid JSON body"},
	"094-human-send-400-unknown-type":    {why: "events are in order of name", detail: "Invalid event type: Nope. Expected one of "},
	"095-human-send-400-missing-field":   {why: "own text", detail: "text"},
	"096-human-send-wrong-step":          {why: "a wrong step is the client's fault", status: 400, detail: "nope"},
	"105-human2-result":                  {why: "the run goes on after the send", first: "q2"},
	"107-human3-send-qualified":          {why: "the run is idle", first: "q3 WorkflowIdleEvent"},
	"110-waiter-send":                    {why: "the run is idle", first: "w1 WorkflowIdleEvent"},
	"113-idle-handler-after-release":     {why: "the run is idle", first: "i1 WorkflowIdleEvent"},
	"116-idle-handler-done":              {why: "the run goes on after the send", first: "i1"},
}

func TestWireReplay(t *testing.T) {
	f := newFake(t)
	s := newServer(t, f, func(c *httpapi.Config) { c.CORSOrigins = []string{"http://example.test"} })
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	replayWire(t, []string{server.URL}, wireDifferences)
}

// replayWire sends the recorded requests in order, each to the next of the servers, and
// compares the answers. The servers act as one. They must serve exactly the workflows of
// testdata/wire and allow the origin http://example.test.
func replayWire(t *testing.T, urls []string, differences map[string]difference) {
	files, err := filepath.Glob("../../testdata/wire/*.http")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recorded exchanges (%v)", err)
	}
	slices.Sort(files)
	var all []exchange
	names := map[string]bool{}
	for _, file := range files {
		x := readExchange(t, file)
		all = append(all, x)
		names[x.name] = true
	}
	for name := range differences {
		if !names[name] {
			t.Errorf("difference for %s, which was not recorded", name)
		}
	}
	p := &player{urls: urls, given: givenIDs(all)}
	defer p.client.CloseIdleConnections()
	for _, x := range all {
		t.Run(x.name, func(t *testing.T) { p.play(t, x, differences[x.name]) })
	}
}

// exchange is a recorded request and its answer.
type exchange struct {
	name    string
	req     *http.Request
	reqBody []byte
	answer  reply
}

// reply is an answer that was read to its end.
type reply struct {
	status int
	header http.Header
	length int64 // from the header; -1 if it has none
	body   []byte
	// unpacked is set if the transport has decompressed the body and removed its length.
	unpacked bool
}

// readReply reads an answer; the caller closes it.
func readReply(resp *http.Response) (reply, error) {
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, resp.ContentLength, body, resp.Uncompressed}, err
}

func readExchange(t *testing.T, file string) exchange {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if text[0] == '#' {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	ruler := regexp.MustCompile(`\n-{64}\n`).FindIndex(text)
	if ruler == nil {
		t.Fatalf("%s: no ruler", file)
	}
	x := exchange{name: strings.TrimSuffix(filepath.Base(file), ".http")}
	if x.req, err = http.ReadRequest(bufio.NewReader(bytes.NewReader(text[:ruler[0]]))); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if x.reqBody, err = io.ReadAll(x.req.Body); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(text[ruler[1]:])), x.req)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if x.answer, err = readReply(resp); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return x
}

// givenIDs are the handler ids in requests; the server generated all other ids.
func givenIDs(all []exchange) map[string]bool {
	ids := map[string]bool{}
	for _, x := range all {
		var body struct {
			HandlerID string `json:"handler_id"`
		}
		if json.Unmarshal(x.reqBody, &body) == nil && body.HandlerID != "" {
			ids[body.HandlerID] = true
		}
	}
	return ids
}

// player sends recorded requests to servers in turn.
type player struct {
	urls   []string
	sent   int
	client http.Client
	given  map[string]bool
}

func (p *player) play(t *testing.T, x exchange, d difference) {
	shift := 0
	if d.follows {
		shift = p.firstID(t, strings.TrimPrefix(x.req.URL.Path, "/events/"))
	}
	if d.first != "" {
		p.readUntil(t, d.first)
	}
	got, want := p.send(t, x, shift), x.answer
	if d.status != 0 {
		want.status = d.status
	}
	if got.status != want.status {
		t.Fatalf("status = %d, want %d: %s", got.status, want.status, got.body)
	}
	for _, name := range []string{"Content-Type", "Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "Access-Control-Max-Age", "Access-Control-Allow-Headers"} {
		if g, w := got.header.Get(name), want.header.Get(name); g != w {
			t.Errorf("%s = %q, want %q", name, g, w)
		}
	}
	if want.length >= 0 && got.length < 0 && !got.unpacked {
		t.Error("no Content-Length")
	}
	switch want.header.Get("Content-Type") {
	case "text/event-stream; charset=utf-8":
		p.compareEvents(t, readSSE(t, got.body, true), readSSE(t, want.body, false), shift, d)
	case "application/x-ndjson":
		p.compareEvents(t, readNDJSON(got.body), readNDJSON(want.body), 0, d)
	case "application/json":
		if len(want.body) > 0 {
			p.compareJSON(t, got.body, want.body, d)
		} else if len(got.body) > 0 {
			t.Errorf("body = %q, want none", got.body)
		}
	default:
		if !bytes.Equal(got.body, want.body) {
			t.Errorf("body = %q, want %q", got.body, want.body)
		}
	}
}

// send sends a request as it was recorded, on a connection of its own.
func (p *player) send(t *testing.T, x exchange, shift int) reply {
	t.Helper()
	target := x.req.URL.RequestURI()
	header := x.req.Header.Clone()
	if shift != 0 {
		target = regexp.MustCompile(`after_sequence=\d+`).ReplaceAllStringFunc(target, func(m string) string {
			return "after_sequence=" + shifted(strings.TrimPrefix(m, "after_sequence="), shift)
		})
		if id := header.Get("Last-Event-ID"); id != "" {
			header.Set("Last-Event-ID", shifted(id, shift))
		}
	}
	req, err := http.NewRequest(x.req.Method, p.next()+target, bytes.NewReader(x.reqBody))
	if err != nil {
		t.Fatal(err)
	}
	req.Header, req.Host, req.Close = header, x.req.Host, true
	return p.do(t, req)
}

// next returns the server of the next request.
func (p *player) next() string {
	p.sent++
	return p.urls[p.sent%len(p.urls)]
}

func (p *player) do(t *testing.T, req *http.Request) reply {
	t.Helper()
	resp, err := p.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	r, err := readReply(resp)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (p *player) get(t *testing.T, target string) []byte {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, p.next()+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p.do(t, req).body
}

// firstID is the id of the first event of a handler's latest run.
func (p *player) firstID(t *testing.T, handler string) int {
	t.Helper()
	events := readSSE(t, p.get(t, "/events/"+handler+"?after_sequence=-1&include_internal=true"), true)
	if len(events) == 0 {
		t.Fatalf("no events of %s", handler)
	}
	return events[0].id
}

// shifted adds to a number, and returns other texts unchanged.
func shifted(text string, by int) string {
	if n, err := strconv.Atoi(text); err == nil {
		return strconv.Itoa(n + by)
	}
	return text
}
