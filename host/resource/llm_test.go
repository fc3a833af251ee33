package resource

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// model is a service of chat completions that does in turn what the test says.
type model struct {
	*httptest.Server
	mu     sync.Mutex
	turns  []http.HandlerFunc // the last one stays
	bodies []string
	keys   []string
}

func newModel(t *testing.T, turns ...http.HandlerFunc) *model {
	m := &model{turns: turns}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

func (m *model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m.mu.Lock()
	turn := m.turns[0]
	if len(m.turns) > 1 {
		m.turns = m.turns[1:]
	}
	m.bodies = append(m.bodies, string(body))
	m.keys = append(m.keys, r.Header.Get("Idempotency-Key"))
	m.mu.Unlock()
	turn(w, r)
}

func says(content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, `{"model": "m1", "choices": [{"message": {"role": "assistant", "content": %q}, "finish_reason": "stop"}],
		  "usage": {"prompt_tokens": 7, "completion_tokens": 3}}`, content)
	}
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		_, _ = io.WriteString(w, `{"error": {"message": "as the test says"}}`)
	}
}

// streams answers parts; done: it says that they are all.
func streams(done bool, parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, p := range parts {
			_, _ = fmt.Fprintf(w, "data: {\"choices\": [{\"delta\": {\"content\": %q}}]}\n\n", p)
			w.(http.Flusher).Flush()
		}
		if done {
			_, _ = io.WriteString(w, "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 4, \"completion_tokens\": 2}}\n\ndata: [DONE]\n\n")
		}
	}
}

// chatWith asks the service by a definition with more settings.
func (m *model) chatWith(t *testing.T, settings string, payload map[string]any, how func(*host.ResourceCall)) (map[string]any, *abi.Error) {
	t.Helper()
	text := fmt.Sprintf(`{"kind": "llm", "settings": {"base_url": "%s/v1/", "networks": ["127.0.0.1"], "model": "m1"%s},
	  "secrets": {"key": {"value": %q, "header": "Authorization", "prefix": "Bearer "}},
	  "grants": [{"tenant": "*", "workflow": "*"}]}`, m.URL, settings, theSecret)
	d, err := Parse("llm", []byte(text), Sources{})
	if err != nil {
		t.Fatal(err)
	}
	r := newInstalled(d)
	defer r.kind.close()
	if payload["messages"] == nil {
		payload["messages"] = []any{map[string]any{"role": "user", "content": "hello"}}
	}
	raw, err := abi.EncodeValue(payload)
	if err != nil {
		t.Fatal(err)
	}
	call := host.ResourceCall{Resource: "llm", Method: MethodChat, Payload: raw, Mode: host.ResourceRepeat, Key: "the key"}
	if how != nil {
		how(&call)
	}
	value, fail := r.make(t.Context(), call)
	if fail != nil {
		return nil, fail
	}
	v, err := abi.DecodeValue(value)
	if err != nil {
		t.Fatal(err)
	}
	return v.(map[string]any), nil
}

func TestChat(t *testing.T) {
	m := newModel(t, says("hi, "+theSecret))
	got, fail := m.chatWith(t, "", map[string]any{"temperature": 0.5}, nil)
	if fail != nil || got["content"] != "hi, [secret]" || got["finish_reason"] != "stop" || fmt.Sprint(got["usage"]) != "map[input_tokens:7 output_tokens:3]" {
		t.Fatalf("%v, %v", got, fail)
	}
	if want := `{"messages":[{"content":"hello","role":"user"}],"model":"m1","temperature":0.5}`; m.bodies[0] != want {
		t.Errorf("asked %s, want %s", m.bodies[0], want)
	}
	m = newModel(t, says(`{"age": 7}`))
	got, fail = m.chatWith(t, "", map[string]any{"schema": map[string]any{"type": "object"}}, nil)
	if fail != nil || fmt.Sprint(got["value"]) != "map[age:7]" || !strings.Contains(m.bodies[0], `"response_format":{"json_schema":`) {
		t.Errorf("%v, %v, asked %s", got, fail, m.bodies[0])
	}
}

// What services do wrong is a named error in bounded time, or made good by asking
// again under the same key.
func TestChatFaults(t *testing.T) {
	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = w.Write(make([]byte, 1<<16))
		}
	}
	hangs := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	stream := map[string]any{"stream": true}
	for name, c := range map[string]struct {
		settings string
		payload  map[string]any
		turns    []http.HandlerFunc
		fail     string // "": there is an answer
		asked    int
	}{
		"429 with a hint":   {turns: []http.HandlerFunc{status(429, "Retry-After", "0.01"), status(503, "Retry-After-Ms", "5"), says("x")}, asked: 3},
		"429 for ever":      {turns: []http.HandlerFunc{status(429, "Retry-After", "0.01")}, fail: "429 Too Many Requests: as the test says", asked: 3},
		"a hint too long":   {turns: []http.HandlerFunc{status(429, "Retry-After", "3600")}, fail: "may be asked again after 1h0m0s, which is beyond", asked: 1},
		"500":               {settings: `, "retries": 0`, turns: []http.HandlerFunc{status(500)}, fail: "500 Internal", asked: 1},
		"400 is final":      {turns: []http.HandlerFunc{status(400)}, fail: "400 Bad Request", asked: 1},
		"a redirect":        {turns: []http.HandlerFunc{status(302, "Location", "http://169.254.169.254/")}, fail: "302 Found", asked: 1},
		"wrong JSON":        {settings: `, "retries": 1`, turns: []http.HandlerFunc{status(200), says("x")}, asked: 2},
		"garbage":           {settings: `, "retries": 0`, turns: []http.HandlerFunc{func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }}, fail: "not a chat completion", asked: 1},
		"slow":              {settings: `, "timeout": "50ms"`, turns: []http.HandlerFunc{hangs}, fail: "no answer within 50ms", asked: 1},
		"endless":           {settings: `, "response_bytes": 100000`, turns: []http.HandlerFunc{endless}, fail: "more than 100000 bytes", asked: 1},
		"an endless stream": {settings: `, "response_bytes": 1000`, payload: stream, turns: []http.HandlerFunc{streams(true, strings.Repeat("x", 900), strings.Repeat("y", 900))}, fail: "more than 1000 bytes", asked: 1},
		"a cut stream":      {settings: `, "retries": 1`, payload: stream, turns: []http.HandlerFunc{streams(false, "a"), streams(true, "a", "b")}, asked: 2},
		"cut for ever":      {settings: `, "retries": 0`, payload: stream, turns: []http.HandlerFunc{streams(false, "a")}, fail: "ended the connection", asked: 1},
		"another model":     {payload: map[string]any{"model": "m2"}, turns: []http.HandlerFunc{says("x")}, fail: `the model "m2" is not granted`},
		"an unknown field":  {payload: map[string]any{"mesages": 1}, turns: []http.HandlerFunc{says("x")}, fail: `unknown name "mesages"`},
		"no JSON":           {payload: map[string]any{"schema": map[string]any{}}, turns: []http.HandlerFunc{says("words")}, fail: "answers something else: words", asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, c.turns...)
			payload := map[string]any{}
			maps.Copy(payload, c.payload)
			_, fail := m.chatWith(t, c.settings, payload, nil)
			if (fail == nil) != (c.fail == "") || fail != nil && !strings.Contains(fail.Message, c.fail) {
				t.Errorf("%v, want %q", fail, c.fail)
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			if len(m.bodies) != c.asked {
				t.Errorf("asked %d times, want %d", len(m.bodies), c.asked)
			}
			for _, k := range m.keys {
				if k != "the key" {
					t.Errorf("asked under the key %q", k)
				}
			}
		})
	}
}

// In mode fail only what was surely refused is asked again.
func TestChatOnce(t *testing.T) {
	for first, asked := range map[int]int{429: 2, 500: 1} {
		m := newModel(t, status(first, "Retry-After", "0.01"), says("x"))
		_, fail := m.chatWith(t, "", map[string]any{}, func(c *host.ResourceCall) { c.Mode = host.ResourceFail })
		if (fail == nil) != (asked == 2) || len(m.bodies) != asked {
			t.Errorf("after %d: %v, asked %d times", first, fail, len(m.bodies))
		}
	}
}

// shown is the stream of a run.
type shown struct {
	text  string
	parts []host.ResourceDelta
}

func (s *shown) stream(c *host.ResourceCall) {
	c.Stream = &host.ResourceStream{Publish: func(_ context.Context, d host.ResourceDelta) error {
		s.text = s.text[:d.Offset] + d.Text
		s.parts = append(s.parts, d)
		return nil
	}}
	if len(s.parts) > 0 {
		c.Stream.Published, c.Stream.Hash = len(s.text), s.parts[len(s.parts)-1].Hash
	}
}

// A text that was shown in part is gone on with if it comes again, and shown from its
// beginning if another one comes.
func TestChatStreamsOnce(t *testing.T) {
	stream := map[string]any{"stream": true}
	m := newModel(t, streams(false, "Once ", "upon "), streams(true, "Once upon ", "a time"), streams(true, "Twice"))
	s := &shown{}
	if _, fail := m.chatWith(t, `, "retries": 0`, stream, s.stream); fail == nil || s.text == "" {
		t.Fatalf("%v, shown %q", fail, s.text)
	}
	had := len(s.text)
	got, fail := m.chatWith(t, "", stream, s.stream)
	if fail != nil || got["content"] != "Once upon a time" || s.text != "Once upon a time" || fmt.Sprint(got["usage"]) != "map[input_tokens:4 output_tokens:2]" {
		t.Errorf("%v, %v, shown %q", got, fail, s.text)
	}
	for _, p := range s.parts[1:] {
		if p.Offset < had || p.Reset {
			t.Errorf("shown again: %+v", p)
		}
	}
	if _, fail := m.chatWith(t, "", stream, s.stream); fail != nil || s.text != "Twice" || !s.parts[len(s.parts)-1].Reset {
		t.Errorf("%v, shown %q", fail, s.text)
	}
}

func TestTurns(t *testing.T) {
	k := newLLM(nil, llmSettings{perMinute: 60})
	now := time.Unix(1000, 0)
	var last time.Duration
	for range 10 {
		last = k.turn(host.ResourceUser{Workflow: "w"}, now)
	}
	if last != 3*time.Second {
		t.Errorf("the tenth of 60 calls a minute waits %s, want 3s", last)
	}
	if wait := k.turn(host.ResourceUser{Workflow: "v"}, now); wait != 0 {
		t.Errorf("another workflow waits %s", wait)
	}
}
