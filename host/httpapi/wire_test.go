package httpapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/httpapi"
)

// difference says how an exchange differs from the recorded one on purpose.
type difference struct {
	why string
	// status replaces the recorded one; 0: no difference.
	status int
	// detail is contained in the error's text, which is else the recorded one.
	detail string
	// like changes both bodies before they are compared.
	like func(v any) any
	// follows: the event ids follow those of the handler's earlier runs.
	follows bool
	// drain names a handler whose stream is read to its end first, as the
	// recording was made some time after the exchange before.
	drain string
}

// wireDifferences are the differences that are meant. Beside them hold:
// records have our fields after the recorded ones, errors have a code,
// listings a next_cursor, and types are qualified by the workflow.
var wireDifferences = map[string]difference{
	"002-workflows":                      {why: "names are sorted", like: unordered("workflows")},
	"004-events-hello":                   {why: "events are in order of name", like: unordered("events")},
	"005-representation-hello":           {why: "nodes are in order, the graph has the workflow's name", like: anyGraph},
	"006-schema-human":                   {why: "base types have no description", like: noDescription},
	"007-events-human":                   {why: "events are in order of name", like: unordered("events")},
	"008-representation-human":           {why: "nodes are in order, the graph has the workflow's name", like: anyGraph},
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
	"093-human-send-400-invalid-json":    {why: "own text", detail: "Invalid JSON body"},
	"094-human-send-400-unknown-type":    {why: "events are in order of name", detail: "Invalid event type: Nope. Expected one of "},
	"095-human-send-400-missing-field":   {why: "own text", detail: "text"},
	"096-human-send-wrong-step":          {why: "a wrong step is the client's fault", status: 400, detail: "nope"},
	"105-human2-result":                  {why: "the run goes on after the send", drain: "q2"},
	"116-idle-handler-done":              {why: "the run goes on after the send", drain: "i1"},
}

func TestWireReplay(t *testing.T) {
	f := newFake(t)
	s := newServer(t, f, func(c *httpapi.Config) { c.CORSOrigins = []string{"http://example.test"} })
	replayWire(t, s.Handler(), wireDifferences)
}

// replayWire sends the recorded requests in their order and compares the
// answers. The handler has to serve the workflows of testdata/wire and nothing
// else, and has to allow the origin http://example.test.
func replayWire(t *testing.T, h http.Handler, differences map[string]difference) {
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
	p := &player{server: httptest.NewServer(h), given: givenIDs(all)}
	defer p.server.Close()
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
	length int64 // as the header tells it, -1 if it does not
	body   []byte
}

// readReply reads an answer; closing it is the caller's.
func readReply(resp *http.Response) (reply, error) {
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, resp.ContentLength, body}, err
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

// givenIDs are the handler ids that requests give; all others are made up by
// the server.
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

// player sends recorded requests to a server.
type player struct {
	server *httptest.Server
	given  map[string]bool
}

func (p *player) play(t *testing.T, x exchange, d difference) {
	shift := 0
	if d.follows {
		shift = p.firstID(t, strings.TrimPrefix(x.req.URL.Path, "/events/"))
	}
	if d.drain != "" {
		p.get(t, "/events/"+d.drain+"?after_sequence=-1")
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
	if want.length >= 0 && got.length < 0 {
		t.Error("no Content-Length")
	}
	switch want.header.Get("Content-Type") {
	case "text/event-stream; charset=utf-8":
		p.compareEvents(t, readSSE(t, got.body, true), readSSE(t, want.body, false), shift)
	case "application/x-ndjson":
		p.compareEvents(t, readNDJSON(got.body), readNDJSON(want.body), 0)
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
	req, err := http.NewRequest(x.req.Method, p.server.URL+target, bytes.NewReader(x.reqBody))
	if err != nil {
		t.Fatal(err)
	}
	req.Header, req.Host, req.Close = header, x.req.Host, true
	return p.do(t, req)
}

func (p *player) do(t *testing.T, req *http.Request) reply {
	t.Helper()
	resp, err := p.server.Client().Do(req)
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
	req, err := http.NewRequest(http.MethodGet, p.server.URL+target, nil)
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

// shifted adds to a number, and leaves what is none.
func shifted(text string, by int) string {
	if n, err := strconv.Atoi(text); err == nil {
		return strconv.Itoa(n + by)
	}
	return text
}

// streamed is an event of a stream; NDJSON has no ids.
type streamed struct {
	id   int
	data []byte
}

var sseFrame = regexp.MustCompile(`^id: (\d+)\ndata: ([^\n]*)\n\n`)

// readSSE takes a stream apart. Ours is held to the exact framing, too.
func readSSE(t *testing.T, b []byte, strict bool) []streamed {
	t.Helper()
	var events []streamed
	for len(b) > 0 {
		if rest, ok := bytes.CutPrefix(b, []byte(": heartbeat\n\n")); ok {
			b = rest
			continue
		}
		frame := sseFrame.FindSubmatch(b)
		if frame == nil {
			if strict {
				t.Fatalf("not a frame: %q", b)
			}
			t.Fatalf("recorded frame not understood: %q", b)
		}
		id, _ := strconv.Atoi(string(frame[1]))
		events = append(events, streamed{id, frame[2]})
		b = b[len(frame[0]):]
	}
	return events
}

func readNDJSON(b []byte) []streamed {
	var events []streamed
	for line := range bytes.Lines(b) {
		events = append(events, streamed{data: bytes.TrimSuffix(line, []byte("\n"))})
	}
	return events
}

func (p *player) compareEvents(t *testing.T, got, want []streamed, shift int) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d: %v", len(got), len(want), got)
	}
	for i := range got {
		if want[i].id += shift; got[i].id != want[i].id {
			t.Errorf("event %d: id %d, want %d", i, got[i].id, want[i].id)
		}
		if g, w := keyOrder(t, got[i].data), keyOrder(t, want[i].data); !slices.Equal(g, w) {
			t.Errorf("event %d: keys %v, want %v", i, g, w)
		}
		g, w := p.normal(t, got[i].data), p.normal(t, want[i].data)
		if !reflect.DeepEqual(g, w) {
			t.Errorf("event %d:\n got %v\nwant %v", i, g, w)
		}
	}
}

func (p *player) compareJSON(t *testing.T, got, want []byte, d difference) {
	t.Helper()
	if g, w := keyOrder(t, got), keyOrder(t, want); len(g) < len(w) || !slices.Equal(g[:len(w)], w) {
		t.Errorf("keys %v, want %v first", g, w)
	}
	g, w := p.normal(t, got), p.normal(t, want)
	if e, ok := g.(map[string]any); ok && e["detail"] != nil {
		if e["code"] == "" || e["code"] == nil {
			t.Errorf("error without a code: %s", got)
		}
		delete(e, "code")
		if d.detail != "" {
			if !strings.Contains(fmt.Sprint(e["detail"]), d.detail) {
				t.Errorf("detail = %q, want it to contain %q", e["detail"], d.detail)
			}
			return
		}
	}
	if d.like != nil {
		g, w = d.like(g), d.like(w)
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("\n got %v\nwant %v", g, w)
	}
}

// keyOrder gives the keys of a JSON object in their order.
func keyOrder(t *testing.T, b []byte) []string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	if tok, err := d.Token(); err != nil || tok != json.Delim('{') {
		return nil
	}
	var keys []string
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key.(string))
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			t.Fatal(err)
		}
	}
	return keys
}

// normal decodes JSON without what differs from run to run and in names.
func (p *player) normal(t *testing.T, b []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return p.normalize(t, v)
}

var (
	stampForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00$`)
	className = regexp.MustCompile(`^<class '(?:.*\.)?([^.']+)'>$`)
)

func (p *player) normalize(t *testing.T, v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = p.normalize(t, v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = p.normalize(t, v[k])
		}
		if _, ok := v["handler_id"]; ok {
			p.normalizeRecord(t, v)
		}
		delete(v, "next_cursor")
		delete(v, "elapsed_seconds")
		delete(v, "exception_type")
		if name, ok := v["qualified_name"].(string); ok && !strings.HasPrefix(name, "workflows.events.") {
			v["qualified_name"] = name[strings.LastIndexByte(name, '.')+1:]
		}
	case string:
		if m := className.FindStringSubmatch(v); m != nil {
			return m[1]
		}
	}
	return v
}

func (p *player) normalizeRecord(t *testing.T, r map[string]any) {
	for _, k := range []string{"started_at", "updated_at", "completed_at"} {
		if s, ok := r[k].(string); ok {
			if !stampForm.MatchString(s) {
				t.Errorf("%s = %q", k, s)
			}
			r[k] = "(time)"
		}
	}
	if id, ok := r["run_id"].(string); !ok || id == "" {
		t.Errorf("run_id = %v", r["run_id"])
	}
	r["run_id"] = "(run)"
	if id, _ := r["handler_id"].(string); !p.given[id] {
		r["handler_id"] = "(made)"
	}
	for _, ours := range []string{"session_id", "paused", "steps", "error_code"} {
		delete(r, ours)
	}
}

// unordered sorts the list under a key.
func unordered(key string) func(any) any {
	return func(v any) any {
		m := noDescription(v).(map[string]any)
		list := slices.Clone(m[key].([]any))
		slices.SortFunc(list, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		m[key] = list
		return m
	}
}

// noDescription drops the descriptions of schemas.
func noDescription(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = noDescription(v[i])
		}
	case map[string]any:
		v = maps.Clone(v)
		delete(v, "description")
		for k := range v {
			v[k] = noDescription(v[k])
		}
		return v
	}
	return v
}

// anyGraph ignores the order of nodes and edges and the texts of a graph.
func anyGraph(v any) any {
	g := noDescription(v).(map[string]any)["graph"].(map[string]any)
	delete(g, "name")
	for _, key := range []string{"nodes", "edges"} {
		g = unordered(key)(g).(map[string]any)
	}
	return g
}
