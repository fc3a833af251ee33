package httpapi

import (
	"bytes"
	"encoding/json"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// fuzzInfo is the workflow that fuzzed starts are for.
var fuzzInfo = host.WorkflowInfo{
	Name: "hello", StartType: "Hello",
	Events: []host.EventInfo{{Type: "Hello"}, {Type: "Mid"}},
}

// seeds are request bodies of all shapes.
var seeds = []string{
	``, `{}`, `null`, ` { } `, `[1,2]`, `{nope`, `{"a":1}x`, `{"start_event":{"name":"Ann"},"handler_id":"h1"}`,
	`{"start_event":{"type":"Hello","value":{"name":"Ann","times":2}}}`,
	`{"start_event":{"__is_pydantic":true,"qualified_name":"m.Hello","value":{"_data":{"a":[1,2.5,"\u00e9\ud83d\ude00"]},"b":null}}}`,
	`{"start_event":"{\"name\":\"Ann\"}","kwargs":{"x":{"$bytes":"AQI="}},"on_busy":"queue","session":"s","context":{}}`,
	`{"event":{"type":"Answer","data":{"text":"a"}},"step":"s"}`, `{"event":"{\"qualified_name\":\"a.B\",\"value\":{}}"}`,
	`{"event":{"type":"A","value":{"a":1,"a":2}}}`, `{"start_event":{"a":"\\\"}","b":{"c":"]"}}}`, `{"\u0065vent":{"type":"A\n","value":{}}}`,
	"\xa1kstart_event\xa1dname\xc3Ann", "\xa1eevent\xa2dtypeaAevalue\xa1e_data\xa1ax\x01", "\xa2aa\x01aa\x01",
}

// FuzzRequests checks the decoders of starts and posted events: they never panic, they
// accept only strict JSON or CBOR as defined by abi, and the bodies that they return are
// canonical maps.
func FuzzRequests(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, isCBOR bool) {
		v, err := parseBody(body, isCBOR, nil)
		if err != nil || !v.object() {
			return
		}
		if req, err := parseStart(v, &fuzzInfo); err == nil {
			checkAccepted(t, body, isCBOR, req.Event.Body)
		} else {
			checkRefused(t, err)
		}
		if event, _, err := parseSend(v, "hello"); err == nil {
			checkAccepted(t, body, isCBOR, event.Body)
			if event.Type == "" && !bytes.Contains(body, []byte("qualified_name")) && !bytes.ContainsRune(body, '\\') {
				t.Errorf("event without a type from %q", body)
			}
		} else {
			checkRefused(t, err)
		}
	})
}

func checkAccepted(t *testing.T, body []byte, isCBOR bool, got abi.Raw) {
	t.Helper()
	canonical, err := abi.Canonical(got, abi.MaxValueDepth)
	if err != nil || !bytes.Equal(canonical, got) || cbor.Major(got[0]) != cbor.Map {
		t.Fatalf("body %x of %q is no canonical map: %v", got, body, err)
	}
	if isCBOR {
		return
	}
	if !json.Valid(body) {
		t.Fatalf("%q was accepted", body)
	}
	if _, err := abi.FromJSON(body); err != nil && !strings.Contains(err.Error(), "nested too deep") {
		t.Fatalf("%q was accepted: %v", body, err)
	}
}

func checkRefused(t *testing.T, err error) {
	t.Helper()
	if code := host.CodeOf(err); code.HTTPStatus() != 400 {
		t.Fatalf("refused with %s: %v", code, err)
	}
	if text := apiwire.AppendString(nil, host.MessageOf(err)); !json.Valid(text) {
		t.Fatalf("error text is not JSON: %q", text)
	}
}

// FuzzList checks the parameters of a listing: no panic, and a cursor can be read back.
func FuzzList(f *testing.F) {
	f.Add("status=running&limit=3", int64(5), "h1")
	f.Add("cursor=AAAA&since=2026-11-21T02:47:31Z", int64(-1), "")
	f.Fuzz(func(t *testing.T, query string, started int64, handler string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		q, err := parseList(host.DefaultTenant, values)
		if err != nil || handler == "" {
			return
		}
		values.Set("cursor", makeCursor(&q, started, handler))
		again, err := parseList(host.DefaultTenant, values)
		if err != nil || again.AfterStarted != started || again.AfterHandler != handler {
			t.Errorf("cursor of %q: %+v, %v", query, again, err)
		}
		if _, err := parseStream(values, handler); err != nil && host.CodeOf(err) != host.CodeInvalidArgument {
			t.Error(err)
		}
	})
}

// TestBigStartCostsFewCopies asserts that a body of many megabytes is not decoded into Go
// values.
func TestBigStartCostsFewCopies(t *testing.T) {
	suite.NotShort(t, "moves 12 MiB many times")
	const size = 12 << 20
	plain := []byte(`{"handler_id":"h","start_event":{"type":"Hello","value":{"text":"` + strings.Repeat("word ", size/5) + `","n":1}}}`)
	for name, most := range map[string]uint64{"plain": 4, "quoted": 7} {
		body := plain
		if name == "quoted" {
			quoted, err := json.Marshal(`{"text":"` + strings.Repeat("word ", size/5) + `"}`)
			if err != nil {
				t.Fatal(err)
			}
			body = append(append([]byte(`{"start_event":`), quoted...), '}')
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		v, err := parseBody(body, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		req, err := parseStart(v, &fuzzInfo)
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if len(req.Event.Body) < size/5*5 {
			t.Errorf("%s: body of %d bytes", name, len(req.Event.Body))
		}
		if got := after.TotalAlloc - before.TotalAlloc; got > most*size {
			t.Errorf("%s: %d bytes allocated for %d, want at most %d times that", name, got, size, most)
		}
	}
}

// event returns an event like those of a stream.
func event(tb testing.TB) host.StreamEvent {
	raw, err := abi.FromJSON([]byte(`{"i":7,"text":"half a sentence of text","f":0.5}`))
	if err != nil {
		tb.Fatal(err)
	}
	return host.StreamEvent{Seq: 12345, Type: "ProgressEvent", Types: []string{"Event"}, Workflow: "stream", Body: raw}
}

func TestAllocations(t *testing.T) {
	e := event(t)
	w := eventWriter{o: streamOptions{sse: true, qualified: true}}
	buf := make([]byte, 0, 4096)
	// One allocation is the qualified name.
	if n := testing.AllocsPerRun(100, func() { buf, _ = w.append(buf[:0], &e, nil) }); n > 1 {
		t.Errorf("an event costs %v allocations", n)
	}
	// Two allocations are the result's envelope and its name.
	run := host.Run{HandlerID: "h", RunID: "r", Workflow: "w", SessionID: "s", Status: host.StatusCompleted, Result: &e, Started: 1, Updated: 2, Completed: 3}
	var rec apiwire.Record
	if n := testing.AllocsPerRun(100, func() { showRun(&rec, &run); buf, _ = apiwire.Append(buf[:0], &rec) }); n > 2 {
		t.Errorf("a record costs %v allocations", n)
	}
	body := []byte(`{"handler_id":"h","start_event":{"text":"x"}}`)
	v, err := parseBody(body, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { _, err = parseStart(v, &fuzzInfo) }); n > 16 || err != nil {
		t.Errorf("a start costs %v allocations (%v)", n, err)
	}
}

func BenchmarkStreamEvent(b *testing.B) {
	e := event(b)
	w := eventWriter{o: streamOptions{sse: true, qualified: true}}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = w.append(buf[:0], &e, nil)
	}
	b.SetBytes(int64(len(buf)))
}

func BenchmarkParseStart(b *testing.B) {
	body := []byte(`{"handler_id":"h","start_event":{"text":"some text","n":3}}`)
	b.ReportAllocs()
	for b.Loop() {
		v, err := parseBody(body, false, nil)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := parseStart(v, &fuzzInfo); err != nil {
			b.Fatal(err)
		}
	}
}
