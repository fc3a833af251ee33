package hosttest_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
)

const llmSecret = "sk-nobody-may-ever-see-this-key"

// llm is a service that answers a chat with the number of messages. A message "hang" gets
// a part of its answer, and the rest after goOn.
type llm struct {
	*httptest.Server
	hung chan struct{}
	goOn chan struct{}

	mu   sync.Mutex // guards the fields below
	keys []string
	auth []string
}

func newLLM(t *testing.T) *llm {
	m := &llm{hung: make(chan struct{}, 10), goOn: make(chan struct{})}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

func (m *llm) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Messages []struct{ Content string } `json:"messages"`
		Stream   bool                       `json:"stream"`
	}
	body, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(body, &asked); err != nil || len(asked.Messages) == 0 {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	m.keys = append(m.keys, r.Header.Get("Idempotency-Key"))
	m.auth = append(m.auth, r.Header.Get("Authorization"))
	first := len(m.keys) == 1
	m.mu.Unlock()
	last := asked.Messages[len(asked.Messages)-1].Content
	parts := []string{"to ", last, fmt.Sprintf(", after %d messages", len(asked.Messages))}
	if !asked.Stream {
		_, _ = fmt.Fprintf(w, `{"choices": [{"message": {"content": %q}, "finish_reason": "stop"}]}`, strings.Join(parts, ""))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for i, p := range parts {
		_, _ = fmt.Fprintf(w, "data: {\"choices\": [{\"delta\": {\"content\": %q}}]}\n\n", p)
		w.(http.Flusher).Flush()
		if i == 0 && last == "hang" && first {
			m.hung <- struct{}{}
			select {
			case <-m.goOn:
			case <-r.Context().Done():
				return
			}
		}
	}
	_, _ = io.WriteString(w, "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 11, \"completion_tokens\": 5}}\n\ndata: [DONE]\n\n")
}

// define defines the resource on a server that has a key to seal it.
func (m *llm) define(t *testing.T, p *hosttest.Process, workflow string) {
	t.Helper()
	status, out := p.Do(t, http.MethodPut, "/resources/llm", map[string]any{
		"kind": "llm", "settings": map[string]any{"base_url": m.URL + "/v1/", "model": "m", "networks": []string{"127.0.0.1"}},
		"secrets": map[string]any{"key": map[string]any{"value": llmSecret, "header": "Authorization", "prefix": "Bearer "}},
		"grants":  []any{map[string]any{"workflow": workflow}},
	})
	if status != http.StatusCreated && status != http.StatusOK || bytes.Contains(out, []byte(llmSecret)) {
		t.Fatalf("%d %s", status, out)
	}
}

func keyFile(t *testing.T) (arg string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(strings.Repeat("5a", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--resource-key-file=" + file
}

// nowhere looks for the secret in all files of a folder.
func nowhere(t *testing.T, data string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(llmSecret)) {
			t.Errorf("the secret is in %s", path)
		}
		return err
	})
	if err != nil || files == 0 {
		t.Fatalf("%d files, %v", files, err)
	}
}

// A conversation of three turns, over a restart. The secret appears nowhere.
func TestConversation(t *testing.T) {
	for _, lang := range languages("tinygo", "go", "rust", "ts", "py") {
		t.Run(lang, func(t *testing.T) {
			workflow := inLanguage("conversation", lang)
			m := newLLM(t)
			arg, data := keyFile(t), t.TempDir()
			p := hosttest.Serve(t, data, arg)
			put(t, p, workflow, hosttest.Plugin(t, "conversation-"+lang))
			status, out := p.Do(t, http.MethodPost, "/workflows/"+workflow+"/run", start(fields{"message": "x"}))
			if status != http.StatusForbidden || !strings.Contains(string(out), "'llm'") {
				t.Errorf("without the resource: %d %s", status, out)
			}
			m.define(t, p, workflow)
			for i := range 3 {
				if i == 2 {
					nowhere(t, data)
					p = kill(t, p, data, arg)
				}
				expect(t, p.Result(t, workflow, in("chat", fields{"message": fmt.Sprint("turn ", i)})),
					fmt.Sprintf(`{"response":"to turn %d, after %d messages","turn_count":%d,"message_count":%d}`, i, 2*i+2, i+1, 2*i+2))
			}
			for _, a := range m.auth {
				if a != "Bearer "+llmSecret {
					t.Errorf("the service was sent %q", a)
				}
			}
			for _, path := range []string{"/resources", "/resources/llm", "/audit", "/handlers", "/sessions/chat/state"} {
				if _, out := p.Do(t, http.MethodGet, path, nil); bytes.Contains(out, []byte(llmSecret)) {
					t.Errorf("%s shows the secret: %s", path, out)
				} else if path == "/resources" && !strings.Contains(string(out), `"output_tokens":`) {
					t.Errorf("no usage: %s", out)
				}
			}
			if status, out := p.Do(t, http.MethodDelete, "/resources/llm", nil); status != http.StatusNoContent {
				t.Errorf("delete: %d %s", status, out)
			}
			if status, _ := p.Do(t, http.MethodPost, "/workflows/"+workflow+"/run", start(fields{"message": "x"})); status != http.StatusForbidden {
				t.Errorf("without the resource: %d", status)
			}
			p.Interrupt(t)
			nowhere(t, data)
		})
	}
}

// inLanguage returns an example's name in a language: builds of Rust, TypeScript and
// Python have their own names.
func inLanguage(example, lang string) string {
	if lang == "rust" || lang == "ts" || lang == "py" {
		return example + "-" + lang
	}
	return example
}

// A joke, and the model's judgement; the stream contains the joke.
func TestJoke(t *testing.T) {
	m := newLLM(t)
	p := hosttest.Serve(t, t.TempDir(), keyFile(t))
	for _, lang := range []string{"tinygo", "rust", "ts", "py"} {
		workflow := inLanguage("joke", lang)
		put(t, p, workflow, hosttest.Plugin(t, "joke-"+lang))
		m.define(t, p, workflow)
		run := p.Run(t, workflow, start(fields{"topic": "tea"}))
		const joke = "to Write your best joke about tea., after 1 messages"
		expect(t, string(run.Result.Value.Result), `"to Give a thorough analysis and critique of the following joke: `+joke+`, after 1 messages"`)
		told := ""
		for _, e := range p.Events(t, run.HandlerID, "", nil) {
			if e.Type == "JokeEvent" {
				told += string(e.Value)
			}
		}
		if told != fmt.Sprintf(`{"joke":%q}`, joke) {
			t.Errorf("%s: the stream has %s", lang, told)
		}
	}
}

// A server that is killed while an answer arrives publishes each part of the answer once.
func TestKilledWhileAnAnswerComes(t *testing.T) {
	m := newLLM(t)
	arg, data := keyFile(t), t.TempDir()
	p := hosttest.Serve(t, data, arg)
	put(t, p, "conversation", hosttest.Plugin(t, "conversation-go"))
	m.define(t, p, "conversation")
	r := p.RunNoWait(t, "conversation", in("chat", fields{"message": "hang"}))
	next(t, m.hung)
	p.Events(t, r.HandlerID, "", func(e hosttest.Event) bool { return e.Type == "AnswerPartEvent" }) // the first part is published
	p = kill(t, p, data, arg)
	text, parts := "", 0
	for _, e := range p.Events(t, r.HandlerID, "", nil) {
		if e.Type != "AnswerPartEvent" {
			continue
		}
		var part struct {
			Offset int    `json:"offset"`
			Text   string `json:"text"`
		}
		if err := json.Unmarshal(e.Value, &part); err != nil {
			t.Fatal(err)
		}
		if part.Offset != len(text) {
			t.Errorf("a part at %d, after %q", part.Offset, text)
		}
		text += part.Text
		parts++
	}
	if text != "to hang, after 2 messages" || parts < 2 {
		t.Errorf("the stream shows %q in %d parts", text, parts)
	}
	if len(m.keys) != 2 || m.keys[0] != m.keys[1] {
		t.Errorf("asked under the keys %q", m.keys)
	}
	expect(t, p.Result(t, "conversation", in("chat", fields{"message": "next"})), `{"response":"to next, after 4 messages","turn_count":2,"message_count":4}`)
}
