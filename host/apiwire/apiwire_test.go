package apiwire

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/usage"
)

// value encodes JSON.
func value(tb testing.TB, text string) abi.Raw {
	tb.Helper()
	raw, err := abi.FromJSON([]byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

// text is an object as the server writes it.
func text[T any](tb testing.TB, v *T) string {
	tb.Helper()
	b, err := Append(nil, v)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

// fullRun is a run whose record has all fields.
func fullRun(tb testing.TB) host.Run {
	return host.Run{
		HandlerID: "h", RunID: "r", SessionID: "s", Workflow: "w", Version: "v", Status: host.StatusFailed,
		Error: "it <broke>\u2028", ErrorCode: "trap", ErrorStep: "a", ErrorAttempt: 2, Started: 1e9, Updated: 2e9 + 5000, Completed: 3e9,
		Paused: true, Blocked: &host.Blocked{Code: "host_crash", Message: "m"}, Steps: 7,
		WaitingFor: []host.Waiting{
			{Step: "a", Type: "Answer", WaiterID: "w1", Since: 1e9, Requirements: `{"n":1}`},
			{Step: "b", Child: "c1", Since: 2e9}, {Step: "c", Resource: "db", Since: 3e9},
			{Step: "d", Until: 9e9, Reason: host.WaitsForRetry, Since: 4e9}, {Reason: host.WaitsForTurn, Since: 5e9},
		},
		Kept:   []host.Kept{{Type: "Later"}, {Type: "Later", Step: "a"}},
		Result: &host.StreamEvent{Type: "Done", Types: []string{"StopEvent"}, Workflow: "w", RunID: "r", Terminal: true, Body: value(tb, `{"n":[1,2.5,null]}`)},
	}
}

func recordOf(run *host.Run) *Record {
	var r Record
	if r.Show(run); run.Result != nil {
		r.Result = &Envelope{}
		r.Result.Show(run.Result, true)
	}
	return &r
}

// TestRecordBothWays: the client reads the server's record of a run as the same run.
func TestRecordBothWays(t *testing.T) {
	for name, run := range map[string]host.Run{"full": fullRun(t), "small": {HandlerID: "h", RunID: "r", Status: host.StatusRunning, Started: 1e9, Updated: 1e9}} {
		var back Record
		if err := json.Unmarshal([]byte(text(t, recordOf(&run))), &back); err != nil {
			t.Fatal(name, err)
		}
		if got, err := Run(&back); err != nil || !reflect.DeepEqual(got, run) {
			t.Errorf("%s:\n got %+v\nwant %+v", name, got, run)
		}
	}
}

// TestFieldIsOneLine plays the recipe of CONTRIBUTING.md: a struct with one additional
// field is written, read and described with it, and filled from a run that has the field,
// without another line of code.
func TestFieldIsOneLine(t *testing.T) {
	type run = struct {
		host.Run
		Weather string
	}
	type record struct {
		Record
		Weather string `json:"weather,omitempty" doc:"How the weather was."`
	}
	from := run{fullRun(t), "fine"}
	var shown record
	shown.Show(&from.Run)
	Fill(&shown, &from)
	answered := text(t, &shown)
	if !strings.HasSuffix(answered, `,"weather":"fine"}`) {
		t.Fatalf("the answer is %s", answered)
	}
	var read record
	var back run
	if err := json.Unmarshal([]byte(answered), &read); err != nil {
		t.Fatal(err)
	}
	if Fill(&back, &read); back.Weather != "fine" || back.HandlerID != "h" || len(back.WaitingFor) != 5 {
		t.Errorf("the client reads %+v", back)
	}
	fields := Fields(reflect.TypeFor[record]())
	if last := fields[len(fields)-1]; last.Name != "weather" || last.Doc != "How the weather was." || !last.Optional || fields[0].Name != "handler_id" {
		t.Errorf("the description has %+v", last)
	}
}

// TestFillWantsASource: a field without a source is detected.
func TestFillWantsASource(t *testing.T) {
	defer func() {
		if p, _ := recover().(string); !strings.Contains(p, "HandlerID has no source") {
			t.Errorf("panic = %v", p)
		}
	}()
	var r Record
	Fill(&r, &host.Kept{})
}

// TestAppendIsJSON compares Append with encoding/json, which also reads its output.
func TestAppendIsJSON(t *testing.T) {
	run := fullRun(t)
	var used Usage
	used.Show("acme", &host.TenantUsage{Runs: map[host.Status]int{host.StatusFailed: 2}, Months: []usage.MonthSpent{{Month: usage.MonthOf(0), Spent: usage.Spent{Runs: 3}}}})
	var file, own Resource
	file.Show(&host.ResourceInfo{Name: "f", File: true, Problem: "hidden"})
	own.Show(&host.ResourceInfo{Name: "o", Definition: []byte(`{"a":1}`), Uses: []host.ResourceUse{{Workflow: "w", Calls: 1}}})
	timeout := Seconds(1500 * 1e6)
	workflow := Workflow{Settings: Settings{Timeout: &timeout, Config: map[string]Value{"b": Value(value(t, `1`)), "a": Value(value(t, `{}`))}}}
	for name, tt := range map[string]struct{ got, want string }{
		"family": {text(t, &Envelope{Type: "E", Family: &Family{HandlerID: "h", Seq: 3}}),
			`{"value":null,"qualified_name":null,"type":"E","types":null,"handler_id":"h","parent_handler_id":null,"sequence":3}`},
		"no family": {text(t, &Envelope{Type: "E", Types: []string{}}), `{"value":null,"qualified_name":null,"type":"E","types":[]}`},
		"waiting":   {text(t, &recordOf(&run).WaitingFor[1]), `{"step":"b","child":"c1","since":"1970-01-01T00:00:02.000000+00:00"}`},
		"usage":     {text(t, &used)[:83], `{"tenant":"acme","runs":{"running":0,"completed":0,"failed":2,"cancelled":0},"steps"`[:83]},
		"file":      {text(t, &file), `{"name":"f","kind":"","source":"file","usage":[]}`},
		"own": {text(t, &own), `{"name":"o","kind":"","source":"api","definition":{"a":1},"key_id":null,"problem":null,` +
			`"created_at":"1970-01-01T00:00:00.000000+00:00","updated_at":"1970-01-01T00:00:00.000000+00:00",` +
			`"usage":[{"workflow":"w","calls":1,"failed":0,"sent_bytes":0,"received_bytes":0,"input_tokens":0,"output_tokens":0}]}`},
		"workflow": {text(t, &workflow), `{"name":"","plugins":[],"settings":{"timeout":1.5,"config":{"a":{},"b":1}},"sha256":"","composed":false,"timeout":null}`},
		"bytes":    {text(t, &Snapshot{Format: SnapshotFormat, Session: []byte{1, 2}}), `{"format":"weft run","version":0,"workflow_name":"","modules":[],"session":"AQI=","held":""}`},
		"journal": {text(t, &Entry{Seq: 1, At: 1, Duration: 5e8, Wait: &Wait{Answered: true}, Logs: []Log{{Level: -4}}}),
			`{"seq":1,"time":"1970-01-01T00:00:00.000000001Z","kind":"","forkable":false,"duration_seconds":0.5,"wait":{"answered":true},"logs":[{"level":-4,"message":""}]}`},
	} {
		if tt.got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", name, tt.got, tt.want)
		}
	}
	for i, e := range []Envelope{
		{}, {Type: "E", Types: []string{}}, {Body: Value(value(t, `{"a":"\u0085"}`)), QualifiedName: "w.E", Type: "E", Types: []string{"A", "B"}},
		{Type: "E", Types: []string{"A"}, Family: &Family{HandlerID: "h", RunID: "r", ParentID: "p", Seq: 3, Position: "3/h/p=4"}},
	} {
		if got, err := AppendEnvelope([]byte("data: "), &e); err != nil || string(got) != "data: "+text(t, &e) {
			t.Errorf("envelope %d: AppendEnvelope gives %s, %v, and Append %s", i, got, err, text(t, &e))
		}
	}
	var plain bytes.Buffer
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(recordOf(&run)); err != nil || plain.String() != text(t, recordOf(&run))+"\n" {
		t.Errorf("encoding/json gives %s, %v,\nand Append %s", plain.Bytes(), err, text(t, recordOf(&run)))
	}
	if full := text(t, recordOf(&run)); !json.Valid([]byte(full)) || strings.ContainsRune(full, '\u2028') || !strings.Contains(full, "<broke>") {
		t.Errorf("the record is %s", full)
	}
}

// TestEnumsAreThoseOfTheHost compares the values in tags with the constants.
func TestEnumsAreThoseOfTheHost(t *testing.T) {
	for field, want := range map[string][]string{
		"Waiting reason": {host.WaitsForRetry, host.WaitsForTurn},
		"Sent delivery":  {host.DeliveredWaiter, host.DeliveredSteps, host.DeliveredKept, host.DeliveredNobody},
	} {
		of, name, _ := strings.Cut(field, " ")
		for _, f := range Fields(map[string]reflect.Type{"Waiting": reflect.TypeFor[Waiting](), "Sent": reflect.TypeFor[Sent]()}[of]) {
			if f.Name == name && f.Options["enum"] != strings.Join(want, "|") {
				t.Errorf("%s has %s, and the host %s", field, f.Options["enum"], want)
			}
		}
	}
}

// FuzzString compares AppendString with abi's encoding of texts.
func FuzzString(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\\n\r\t\x00\x1f\x7f", "é\u0085\u2028\u2029😀", "\xff\xc3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := AppendString(nil, s)
		var back string
		// A conversion to runes replaces each invalid byte.
		if err := json.Unmarshal(got, &back); err != nil || back != string([]rune(s)) {
			t.Fatalf("%q became %s: %v", s, got, err)
		}
		if bytes.ContainsAny(got, "\u2028\u2029\u0085\n\r") {
			t.Fatalf("%q became %q", s, got)
		}
	})
}

// BenchmarkRecord writes the record of a small run, by Append and by encoding/json.
func BenchmarkRecord(b *testing.B) {
	run := host.Run{HandlerID: "h", RunID: "r", SessionID: "h", Workflow: "w", Version: strings.Repeat("0", 64), Status: host.StatusCompleted,
		Started: 1e18, Updated: 1e18, Completed: 1e18, Steps: 2,
		Result: &host.StreamEvent{Type: "StopEvent", Base: true, Body: value(b, `{"result":{"n":1,"text":"some text"}}`)}}
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		var dst []byte
		for b.Loop() {
			r := recordOf(&run)
			dst, _ = Append(dst[:0], r)
		}
		b.SetBytes(int64(len(dst)))
	})
	b.Run("encoding-json", func(b *testing.B) {
		b.ReportAllocs()
		var dst bytes.Buffer
		enc := json.NewEncoder(&dst)
		enc.SetEscapeHTML(false)
		for b.Loop() {
			r := recordOf(&run)
			dst.Reset()
			if err := enc.Encode(r); err != nil {
				b.Fatal(err)
			}
		}
		b.SetBytes(int64(dst.Len()))
	})
}

// BenchmarkEnvelope writes an event of a stream, by AppendEnvelope and by Append.
func BenchmarkEnvelope(b *testing.B) {
	var e Envelope
	e.Show(&host.StreamEvent{Type: "ProgressEvent", Types: []string{"Event"}, Workflow: "stream", Body: value(b, `{"i":7,"text":"half a sentence of text","f":0.5}`)}, true)
	for name, write := range map[string]func([]byte, *Envelope) ([]byte, error){"envelope": AppendEnvelope, "append": Append[Envelope]} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var dst []byte
			for b.Loop() {
				dst, _ = write(dst[:0], &e)
			}
			b.SetBytes(int64(len(dst)))
		})
	}
}
