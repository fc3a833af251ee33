package httpapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/httpapi"
)

// call sends one request to a handler. Headers are pairs of name and value.
func call(tb testing.TB, h http.Handler, method, target, body string, headers ...string) *httptest.ResponseRecorder {
	tb.Helper()
	req, w := request(h, method, target, body, headers...)
	hosttest.AsDescribed(tb, req, []byte(body), w.Code, w.Header(), w.Body.Bytes())
	return w
}

// request sends a request to a handler that need not be the API's.
func request(h http.Handler, method, target, body string, headers ...string) (*http.Request, *httptest.ResponseRecorder) {
	req := httptest.NewRequest(method, "http://localhost"+target, strings.NewReader(body))
	if body == "" {
		req.Body = http.NoBody
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return req, w
}

// wantError checks an error answer and returns its text.
func wantError(tb testing.TB, w *httptest.ResponseRecorder, status int, code host.Code) string {
	tb.Helper()
	var e struct {
		Detail string    `json:"detail"`
		Code   host.Code `json:"code"`
	}
	if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil {
		tb.Fatalf("status %d: %v: %s", w.Code, err, w.Body)
	}
	if w.Code != status || e.Code != code {
		tb.Fatalf("answer = %d %s, want %d %s: %s", w.Code, e.Code, status, code, e.Detail)
	}
	if got := w.Header().Get("Content-Type"); got != "application/json" {
		tb.Errorf("Content-Type = %q", got)
	}
	return e.Detail
}

func TestStartReadsTheEvent(t *testing.T) {
	deep := strings.Repeat(`{"a":`, abi.MaxValueDepth-1) + `{}` + strings.Repeat(`}`, abi.MaxValueDepth-1)
	tests := []struct {
		name, workflow, body string
		wantType, wantBody   string
	}{
		{"no body", "plain", ``, "", `{}`},
		{"white space", "plain", " \n", "", `{}`},
		{"null body", "plain", `null`, "", `{}`},
		{"empty text", "plain", `{"start_event":""}`, "", `{}`},
		{"empty object", "plain", `{"start_event":{ }}`, "", `{}`},
		{"plain fields", "plain", `{"start_event":{"b":1,"a":[1.0,null,true]}}`, "", `{"a":[1.0,null,true],"b":1}`},
		{"a text of JSON", "plain", `{"start_event":" {\"a\": \"\\u00e9\"} "}`, "", `{"a":"é"}`},
		{"fields under _data", "plain", `{"start_event":{"_data":{"a":1,"bb":2},"a":3}}`, "", `{"a":3,"bb":2}`},
		{"null under _data", "plain", `{"start_event":{"_data":null,"a":3}}`, "", `{"a":3}`},
		{"kwargs", "plain", `{"kwargs":{"a":1,"b":2},"start_event":{"b":3}}`, "", `{"a":1,"b":3}`},
		{"kwargs alone", "plain", `{"kwargs":{"a":1},"start_event":null}`, "", `{"a":1}`},
		{"envelope", "hello", `{"start_event":{"type":"Hello","value":{"name":"x"}}}`, "Hello", `{"name":"x"}`},
		{"envelope without a value", "plain", `{"start_event":{"type":"StartEvent","value":null}}`, "StartEvent", `{}`},
		{"envelope in a text", "hello", `{"start_event":"{\"type\":\"Hello\",\"value\":{\"name\":\"x\"}}"}`, "Hello", `{"name":"x"}`},
		{"envelope with _data", "plain", `{"start_event":{"type":"StartEvent","value":{"_data":{"a":1}},"qualified_name":null,"types":null}}`, "StartEvent", `{"a":1}`},
		{"base name", "plain", `{"start_event":{"qualified_name":"workflows.events.StartEvent","value":{}}}`, "StartEvent", `{}`},
		{"qualified name", "hello", `{"start_event":{"qualified_name":"hello.Hello","value":{"name":"x"}}}`, "Hello", `{"name":"x"}`},
		{"name of a module", "hello", `{"start_event":{"__is_pydantic":true,"qualified_name":"a.b.Hello","value":{"name":"x"}}}`, "Hello", `{"name":"x"}`},
		{"a type and a value that are none", "plain", `{"start_event":{"type":7,"value":1}}`, "", `{"type":7,"value":1}`},
		{"only a type", "plain", `{"start_event":{"type":"pizza"}}`, "", `{"type":"pizza"}`},
		{"only a value", "plain", `{"start_event":{"value":{"a":1}}}`, "", `{"value":{"a":1}}`},
		{"keys in escapes", "plain", `{"start\u005fevent":{"\u0061":1}}`, "", `{"a":1}`},
		{"as deep as events may be", "slow", `{"start_event":` + deep + `}`, "", deep},
		{"as deep in an envelope", "slow", `{"start_event":{"type":"StartEvent","value":` + deep + `}}`, "StartEvent", deep},
		{"bytes", "plain", `{"start_event":{"a":{"$bytes":"AQI="}}}`, "", `{"a":{"$bytes":"AQI="}}`},
	}
	f := newFake(t)
	h := newServer(t, f).Handler()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := call(t, h, "POST", "/workflows/"+tt.workflow+"/run-nowait", tt.body)
			if w.Code != http.StatusOK {
				t.Fatalf("status = %d: %s", w.Code, w.Body)
			}
			got, err := abi.ToJSON(f.lastStart.Event.Body)
			if err != nil {
				t.Fatal(err)
			}
			if f.lastStart.Event.Type != tt.wantType || string(got) != tt.wantBody {
				t.Errorf("event = %s %s, want %s %s", f.lastStart.Event.Type, got, tt.wantType, tt.wantBody)
			}
			if canonical, err := abi.Canonical(f.lastStart.Event.Body, abi.MaxValueDepth); err != nil || !bytes.Equal(canonical, f.lastStart.Event.Body) {
				t.Errorf("body is not canonical: %v", err)
			}
		})
	}
}

func TestStartReadsTheRest(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	w := call(t, h, "POST", "/workflows/plain/run", `{"handler_id":"h/1","session":"s","on_busy":"queue","context":{}}`)
	if w.Code != http.StatusOK {
		t.Fatalf("status = %d: %s", w.Code, w.Body)
	}
	got := f.lastStart
	if got.Tenant != host.DefaultTenant || got.Workflow != "plain" || got.HandlerID != "h/1" || got.SessionID != "s" || got.OnBusy != host.OnBusyQueue || !got.Wait {
		t.Errorf("request = %+v", got)
	}
	w = call(t, h, "POST", "/workflows/plain/run-nowait", `{"handler_id":{},"session":null,"on_busy":"","context":""}`)
	if w.Code != http.StatusOK {
		t.Fatalf("status = %d: %s", w.Code, w.Body)
	}
	if got = f.lastStart; got.HandlerID != "" || got.SessionID != "" || got.OnBusy != "" || got.Wait {
		t.Errorf("request = %+v", got)
	}
	if w := call(t, h, "GET", "/handlers/h%2F1", ""); w.Code != http.StatusOK {
		t.Errorf("handler with a slash: %d %s", w.Code, w.Body)
	}
}

func TestStartRefuses(t *testing.T) {
	deep := strings.Repeat(`{"a":`, abi.MaxValueDepth) + `{}` + strings.Repeat(`}`, abi.MaxValueDepth)
	many := new(strings.Builder)
	for i := range 100 {
		many.WriteString(`"k` + strings.Repeat("x", i) + `":1,`)
	}
	tests := []struct {
		name, body, want string
		code             host.Code
	}{
		{"not JSON", `{nope`, "Invalid JSON body", host.CodeInvalidMessage},
		{"not JSON at all", `hello`, "Invalid JSON body", host.CodeInvalidMessage},
		{"unfinished", `{"start_event":{"a":1`, "unexpected end", host.CodeInvalidMessage},
		{"mismatched", `{"start_event":[}`, "Invalid JSON body", host.CodeInvalidMessage},
		{"trailing", `{"start_event":{}} {}`, "trailing data", host.CodeInvalidMessage},
		{"trailing comma", `{"kwargs":{},}`, "expected a key", host.CodeInvalidMessage},
		{"no colon", `{"kwargs" {}}`, "expected :", host.CodeInvalidMessage},
		{"no value", `{"kwargs":}`, "not a JSON value", host.CodeInvalidMessage},
		{"no comma", `{"kwargs":{} "a":1}`, "expected ,", host.CodeInvalidMessage},
		{"byte order mark", "\ufeff{}", "Invalid JSON body", host.CodeInvalidMessage},
		{"duplicate key", `{"start_event":{"a":1,"a":1}}`, "duplicate", host.CodeInvalidMessage},
		{"duplicate field", `{"start_event":{},"start_event":{}}`, "duplicate", host.CodeInvalidMessage},
		{"duplicate in an envelope", `{"start_event":{"type":"StartEvent","type":"StartEvent","value":{}}}`, "duplicate", host.CodeInvalidMessage},
		{"duplicate in what is ignored", `{"x":{"a":1,"a":1}}`, "x.a: ", host.CodeInvalidMessage},
		{"mistyped field", `{"start_evnt":{"a":1}}`, "Unknown field 'start_evnt': did you mean 'start_event'?", host.CodeInvalidArgument},
		{"mistyped field in capitals", `{"Session":"s"}`, "did you mean 'session'?", host.CodeInvalidArgument},
		{"unknown field", `{"future":[1,{}],"start_event":{"a":1}}`, "the fields are start_event, kwargs, handler_id, session, on_busy, context", host.CodeInvalidArgument},
		{"NaN", `{"start_event":{"a":NaN}}`, "start_event.a", host.CodeInvalidMessage},
		{"Infinity", `{"x":Infinity}`, "x: ", host.CodeInvalidMessage},
		{"1e999", `{"start_event":{"a":[1,1e999]}}`, "start_event.a.1", host.CodeInvalidMessage},
		{"lone surrogate", `{"start_event":{"a":"\ud800"}}`, "start_event.a", host.CodeInvalidMessage},
		{"lone surrogate in a key", `{"\ud800":1}`, "Invalid JSON body", host.CodeInvalidMessage},
		{"not UTF-8", "{\"start_event\":{\"a\":\"\xff\"}}", "start_event.a", host.CodeInvalidMessage},
		{"too deep", `{"start_event":` + deep + `}`, "nested too deep", host.CodeInvalidMessage},
		{"array", `[1]`, "must be an object", host.CodeInvalidArgument},
		{"number", `1`, "must be an object", host.CodeInvalidArgument},
		{"too many fields", `{` + many.String() + `"a":1}`, "more than 64 fields", host.CodeInvalidArgument},
		{"start event is a list", `{"start_event":[]}`, "'start_event' must be an object", host.CodeInvalidArgument},
		{"start event is a number", `{"start_event":0}`, "'start_event' must be an object", host.CodeInvalidArgument},
		{"start event is a text", `{"start_event":"hi"}`, "'start_event' must be an object", host.CodeInvalidArgument},
		{"start event is a text of null", `{"start_event":"null"}`, "'start_event' must be an object", host.CodeInvalidArgument},
		{"start event is a broken text", `{"start_event":"{\"a\":}"}`, "start_event", host.CodeInvalidMessage},
		{"start event is bytes", `{"start_event":{"$bytes":"AQI="}}`, "'start_event' must be an object", host.CodeInvalidArgument},
		{"value is not an object", `{"start_event":{"type":"StartEvent","value":3}}`, "'start_event.value' must be an object", host.CodeInvalidArgument},
		{"no value in an envelope", `{"start_event":{"type":"StartEvent","qualified_name":"x.StartEvent"}}`, "must have a value", host.CodeInvalidArgument},
		{"_data is not an object", `{"start_event":{"_data":1}}`, "'start_event._data' must be an object", host.CodeInvalidArgument},
		{"unknown type", `{"start_event":{"type":"Nope","value":{}}}`, "Invalid event type: Nope. Expected one of Progress, StartEvent, StopEvent", host.CodeInvalidArgument},
		{"other type", `{"start_event":{"type":"Progress","value":{}}}`, "Start event must be an instance of StartEvent", host.CodeInvalidArgument},
		{"long type", `{"start_event":{"type":"` + strings.Repeat("x", 300) + `","value":{}}}`, "too long", host.CodeInvalidArgument},
		{"kwargs is a list", `{"kwargs":[1]}`, "'kwargs' must be an object", host.CodeInvalidArgument},
		{"handler_id is a number", `{"handler_id":1}`, "'handler_id' must be a text", host.CodeInvalidArgument},
		{"handler_id is false", `{"handler_id":false}`, "'handler_id' must be a text", host.CodeInvalidArgument},
		{"session is a list", `{"session":[]}`, "'session' must be a text", host.CodeInvalidArgument},
		{"on_busy", `{"on_busy":"wait"}`, "'on_busy' must be", host.CodeInvalidArgument},
		{"a Python client's context", `{"context":{"state":{"state_data":{"_data":{}},"state_type":"DictState","state_module":"workflows.context.state_store"},"broker_log":[],"is_running":false}}`, "'context' is not a snapshot of weft", host.CodeInvalidArgument},
		{"context", `{"context":{"version":1}}`, "'context' is not a snapshot of weft", host.CodeInvalidArgument},
	}
	f := newFake(t)
	h := newServer(t, f).Handler()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f.lastStart = host.StartRequest{}
			detail := wantError(t, call(t, h, "POST", "/workflows/plain/run", tt.body), http.StatusBadRequest, tt.code)
			if !strings.Contains(detail, tt.want) {
				t.Errorf("detail = %q, want it to contain %q", detail, tt.want)
			}
			if f.lastStart.Workflow != "" {
				t.Error("a run was started")
			}
		})
	}
}

func TestStartErrorsOfTheHost(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	for _, code := range []host.Code{host.CodeConflict, host.CodeSchemaViolation, host.CodeLimitExceeded, host.CodeUnavailable} {
		f.startErr = host.Errorf(code, "the reason")
		if got := wantError(t, call(t, h, "POST", "/workflows/plain/run", "{}"), code.HTTPStatus(), code); got != "the reason" {
			t.Errorf("%s: detail = %q", code, got)
		}
	}
	f.startErr = &host.Error{Code: host.CodeLimitExceeded, Message: "slow down", RetryAfter: 1500e6}
	if got := call(t, h, "POST", "/workflows/plain/run", "{}").Header().Get("Retry-After"); got != "2" {
		t.Errorf("Retry-After = %q", got)
	}
	f.startErr = &host.Error{Code: host.CodeUnavailable, Message: "the store does not work"}
	if got := call(t, h, "POST", "/workflows/plain/run", "{}").Header().Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After when nothing is known = %q", got)
	}
	f.startErr = io.ErrUnexpectedEOF
	if got := wantError(t, call(t, h, "POST", "/workflows/plain/run", "{}"), 500, host.CodeInternal); got != "internal error" {
		t.Errorf("detail = %q", got)
	}
	wantError(t, call(t, h, "POST", "/workflows/nope/run", "{nope"), 404, host.CodeNotFound)
}

func TestCBOR(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	body, err := abi.EncodeValue(map[string]any{
		"handler_id": "c1", "start_event": map[string]any{"type": "Hello", "value": map[string]any{"name": "Ann", "raw": []byte{1}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	w := call(t, h, "POST", "/workflows/hello/run", string(body), "Content-Type", "application/cbor", "Accept", "application/cbor, application/json")
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/cbor" {
		t.Fatalf("answer = %d %s: %q", w.Code, w.Header().Get("Content-Type"), w.Body)
	}
	got, err := abi.DecodeValue(w.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	record := got.(map[string]any)
	if record["handler_id"] != "c1" || record["result"].(map[string]any)["value"].(map[string]any)["text"] != "hello Ann" {
		t.Errorf("record = %v", record)
	}
	w = call(t, h, "GET", "/handlers", "", "Accept", "application/cbor")
	if got, err := abi.DecodeValue(w.Body.Bytes()); err != nil || len(got.(map[string]any)["handlers"].([]any)) != 1 {
		t.Errorf("list = %v, %v", got, err)
	}
	for name, bad := range map[string]string{"broken": "\xa1", "trailing": "\xa0\xa0", "tag": "\xc1\x00", "array": "\x80", "duplicate": "\xa2\x61a\x01\x61a\x02"} {
		w := call(t, h, "POST", "/workflows/hello/run", bad, "Content-Type", "application/cbor")
		if w.Code != http.StatusBadRequest {
			t.Errorf("%s: status = %d: %s", name, w.Code, w.Body)
		}
	}
	// An empty body is {} here, too, and other types are read as JSON.
	if w := call(t, h, "POST", "/workflows/plain/run", "", "Content-Type", "application/cbor"); w.Code != http.StatusOK {
		t.Errorf("empty body: %d %s", w.Code, w.Body)
	}
	if w := call(t, h, "POST", "/workflows/plain/run", `{}`, "Content-Type", "text/plain;charset=UTF-8"); w.Code != http.StatusOK {
		t.Errorf("text/plain: %d %s", w.Code, w.Body)
	}
}

func TestSend(t *testing.T) {
	tests := []struct {
		name, body, wantType, wantBody, wantStep string
	}{
		{"value", `{"event":{"type":"Answer","value":{"text":"a"}}}`, "Answer", `{"text":"a"}`, ""},
		{"data", `{"event":{"type":"Answer","data":{"text":"a"}},"step":""}`, "Answer", `{"text":"a"}`, ""},
		{"value before data", `{"event":{"type":"Answer","data":{},"value":{"text":"a"}},"step":"answered"}`, "Answer", `{"text":"a"}`, "answered"},
		{"text", `{"event":"{\"type\":\"Answer\",\"value\":{\"_data\":{\"text\":\"a\"}}}","step":null}`, "Answer", `{"text":"a"}`, ""},
		{"qualified", `{"event":{"qualified_name":"human.Answer","value":{"text":"a"}}}`, "Answer", `{"text":"a"}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t)
			h := newServer(t, f).Handler()
			call(t, h, "POST", "/workflows/human/run-nowait", `{"handler_id":"q"}`)
			w := call(t, h, "POST", "/events/q", tt.body)
			if w.Code != http.StatusOK || w.Body.String() != `{"status":"sent"}` {
				t.Fatalf("answer = %d %s", w.Code, w.Body)
			}
			got, err := abi.ToJSON(f.lastSend.Body)
			if err != nil {
				t.Fatal(err)
			}
			if f.lastSend.Type != tt.wantType || string(got) != tt.wantBody || f.lastStep != tt.wantStep {
				t.Errorf("sent = %s %s to %q", f.lastSend.Type, got, f.lastStep)
			}
		})
	}
}

func TestSendRefuses(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	call(t, h, "POST", "/workflows/human/run-nowait", `{"handler_id":"q"}`)
	call(t, h, "POST", "/workflows/plain/run", `{"handler_id":"done"}`)
	tests := []struct {
		name, id, body, want string
		status               int
		code                 host.Code
	}{
		{"no event", "q", `{}`, "Event data is required", 400, host.CodeInvalidArgument},
		{"empty event", "q", `{"event":{}}`, "Event data is required", 400, host.CodeInvalidArgument},
		{"no type", "q", `{"event":{"value":{}}}`, "must have a type", 400, host.CodeInvalidArgument},
		{"type is a number", "q", `{"event":{"type":1,"value":{}}}`, "'event.type' must be a text", 400, host.CodeInvalidArgument},
		{"no value", "q", `{"event":{"type":"Answer","text":"a"}}`, "must have a value", 400, host.CodeInvalidArgument},
		{"event is a list", "q", `{"event":[1]}`, "'event' must be an object", 400, host.CodeInvalidArgument},
		{"broken data beside a value", "q", `{"event":{"type":"Answer","value":{"text":"a"},"data":1e999}}`, "event.data", 400, host.CodeInvalidMessage},
		{"step is a number", "q", `{"event":{"type":"Answer","value":{"text":"a"}},"step":1}`, "'step' must be a text", 400, host.CodeInvalidArgument},
		{"ended first", "done", `{nope`, "Workflow already completed", 409, host.CodeConflict},
		{"unknown first", "nope", `{nope`, "Handler not found", 404, host.CodeNotFound},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := wantError(t, call(t, h, "POST", "/events/"+tt.id, tt.body), tt.status, tt.code); !strings.Contains(got, tt.want) {
				t.Errorf("detail = %q, want it to contain %q", got, tt.want)
			}
		})
	}
}

func TestBodyLimits(t *testing.T) {
	f := newFake(t)
	s := httptest.NewServer(newServer(t, f, func(c *httpapi.Config) { c.MaxBody, c.MaxPlugin = 1000, 2000 }).Handler())
	defer s.Close()
	post := func(method, path string, body io.Reader, encoding string) (status int) {
		req, err := http.NewRequest(method, s.URL+path, body)
		if err != nil {
			t.Fatal(err)
		}
		if encoding != "" {
			req.Header.Set("Content-Encoding", encoding)
		}
		resp, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	pad := func(n int) string {
		return `{"kwargs":{"a":"` + strings.Repeat("x", n-len(`{"kwargs":{"a":""}}`)) + `"}}`
	}
	chunked := func(s string) io.Reader { return io.MultiReader(strings.NewReader(s)) } // no known length
	tests := []struct {
		name, method, path string
		body               io.Reader
		encoding           string
		want               int
	}{
		{"at the limit", "POST", "/workflows/plain/run", strings.NewReader(pad(1000)), "", 200},
		{"beyond it", "POST", "/workflows/plain/run", strings.NewReader(pad(1001)), "", 413},
		{"chunked at the limit", "POST", "/workflows/plain/run", chunked(pad(1000)), "", 200},
		{"chunked beyond it", "POST", "/workflows/plain/run", chunked(pad(1001)), "", 413},
		{"plugin", "PUT", "/plugins/p", strings.NewReader(strings.Repeat("x", 2000)), "", 201},
		{"long plugin", "PUT", "/plugins/p", strings.NewReader(strings.Repeat("x", 2001)), "", 413},
		{"gzip", "POST", "/workflows/plain/run", strings.NewReader("{}"), "gzip", 415},
		{"identity", "POST", "/workflows/plain/run", strings.NewReader("{}"), "identity", 200},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := post(tt.method, tt.path, tt.body, tt.encoding); got != tt.want {
				t.Errorf("status = %d, want %d", got, tt.want)
			}
		})
	}
}

// TestRefusedBodyIsTakenIn plays a client that sends everything before it reads: it gets
// the answer, not a broken connection.
func TestRefusedBodyIsTakenIn(t *testing.T) {
	f := newFake(t)
	s := httptest.NewServer(newServer(t, f, func(c *httpapi.Config) { c.MaxBody = 1000 }).Handler())
	defer s.Close()
	const size = 8 << 20 // larger than the buffers between the two
	body := bytes.Repeat([]byte("x"), size)
	for name, request := range map[string][]byte{
		"announced": append(fmt.Appendf(nil, "POST /workflows/plain/run HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", size), body...),
		"chunked": append(append(fmt.Appendf(nil, "POST /workflows/plain/run HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n", size),
			body...), "\r\n0\r\n\r\n"...),
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", s.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			if _, err := conn.Write(request); err != nil {
				t.Fatalf("send the body: %v", err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			if resp.StatusCode != http.StatusRequestEntityTooLarge {
				t.Errorf("status = %d, want 413", resp.StatusCode)
			}
		})
	}
}

// TestFlowTakesTheBaseStartEvent: clients that do not know the flow's own type start with
// the base type; a workflow with its own type still requires that type.
func TestFlowTakesTheBaseStartEvent(t *testing.T) {
	f := newFake(t)
	plain := f.workflows["plain"]
	flow := *plain
	flow.info.Name, flow.info.StartType, flow.info.Flow = "flow", "FlowStartEvent", abi.EmptyMap
	i := slices.IndexFunc(plain.info.Events, func(e host.EventInfo) bool { return e.Type == plain.info.StartType })
	flow.info.Events = append(slices.Clone(plain.info.Events), host.EventInfo{Type: "FlowStartEvent", Kind: abi.KindStart, Schema: plain.info.Events[i].Schema})
	own := flow
	own.info.Name, own.info.Flow = "own", nil
	f.workflows["flow"], f.workflows["own"] = &flow, &own
	h := newServer(t, f).Handler()
	for _, body := range []string{
		`{"start_event":{"type":"StartEvent","value":{"input":"add milk"}}}`,
		`{"start_event":{"qualified_name":"workflows.events.StartEvent","value":{"_data":{"input":"add milk"}}}}`,
	} {
		if w := call(t, h, "POST", "/workflows/flow/run-nowait", body); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
		if got := f.lastStart.Event; got.Type != "" || !bytes.Contains(got.Body, []byte("add milk")) {
			t.Errorf("%s: event %+v", body, got)
		}
		wantError(t, call(t, h, "POST", "/workflows/own/run-nowait", body), http.StatusBadRequest, host.CodeInvalidArgument)
	}
}
