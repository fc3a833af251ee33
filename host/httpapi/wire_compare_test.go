package httpapi_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// streamed is an event of a stream; NDJSON has no ids.
type streamed struct {
	id   int
	data []byte
}

var sseFrame = regexp.MustCompile(`^id: (\d+)\ndata: ([^\n]*)\n\n`)

// readSSE parses a stream. strict also checks the exact framing of our streams.
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

// less removes events, and the ids of the others.
func (d difference) less(t *testing.T, events []streamed) []streamed {
	t.Helper()
	var kept []streamed
	for _, e := range events {
		var fields map[string]any
		if err := json.Unmarshal(e.data, &fields); err != nil {
			t.Fatal(err)
		}
		if !d.without(fields) {
			kept = append(kept, streamed{data: e.data})
		}
	}
	return kept
}

// shown is a stream for a message.
func shown(events []streamed) []byte {
	var b []byte
	for _, e := range events {
		b = fmt.Appendf(b, "%d %s\n", e.id, e.data)
	}
	return b
}

// readUntil reads the stream as difference.first says.
func (p *player) readUntil(t *testing.T, first string) {
	t.Helper()
	id, typ, _ := strings.Cut(first, " ")
	resp, err := p.client.Get(p.next() + "/events/" + id + "?sse=false&after_sequence=-1&include_internal=true")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		if typ != "" && bytes.Contains(lines.Bytes(), []byte(`"type":"`+typ+`"`)) {
			return
		}
	}
	if err := lines.Err(); err != nil || typ != "" {
		t.Fatalf("the stream of %s ended without %s: %v", id, typ, err)
	}
}

func (p *player) compareEvents(t *testing.T, got, want []streamed, shift int, d difference) {
	t.Helper()
	if d.without != nil {
		got, want, shift = d.less(t, got), d.less(t, want), 0
	}
	if len(got) != len(want) {
		t.Fatalf("%d events, want %d:\n%s\nwant\n%s", len(got), len(want), shown(got), shown(want))
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
	if m, ok := g.(map[string]any); ok && m["status"] == "sent" {
		delete(m, "delivery")
		delete(m, "delivered_to")
	}
	if d.like != nil {
		g, w = d.like(g), d.like(w)
	}
	if !reflect.DeepEqual(g, w) {
		t.Errorf("\n got %v\nwant %v", g, w)
	}
}

// keyOrder returns the keys of a JSON object in order.
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

// normal decodes JSON and removes what differs from run to run and in names.
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
	for _, ours := range []string{"session_id", "version", "paused", "waiting_for", "kept", "steps", "error_code", "error_step", "error_attempt", "error_remedy"} {
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

// noDescription removes the descriptions of schemas.
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
