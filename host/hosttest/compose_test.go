package hosttest_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
)

// compose makes a workflow of the two parts and returns its digest.
func compose(t *testing.T, p *hosttest.Process, name string, want int, settings string) string {
	t.Helper()
	body := fmt.Sprintf(`{"plugins": ["greet-part", "shout-part"], "settings": %s}`, settings)
	status, out := p.Do(t, http.MethodPut, "/workflows/"+name, body)
	if status != want {
		t.Fatalf("compose: %d %s", status, out)
	}
	return digestOf(t, out)
}

func digestOf(t *testing.T, out []byte) string {
	t.Helper()
	var about struct{ SHA256 string }
	if err := json.Unmarshal(out, &about); err != nil || len(about.SHA256) != 64 {
		t.Fatalf("no digest: %s", out)
	}
	return about.SHA256
}

// A workflow of two plugins runs like a workflow of one, with its steps' configurations,
// over kills of the server and new versions of a part: existing runs keep the version
// with which they began.
func TestComposedWorkflow(t *testing.T) {
	data := t.TempDir()
	p := hosttest.Serve(t, data)
	put(t, p, "greet-part", hosttest.BuildPlugin(t, "greet-part"))
	put(t, p, "shout-part", hosttest.BuildPlugin(t, "shout-part"))
	if status, out := p.Do(t, http.MethodGet, "/workflows", nil); status != http.StatusOK || string(out) != `{"workflows":[]}` {
		t.Errorf("workflows: %d %s", status, out)
	}
	compose(t, p, "hello", http.StatusCreated, `{}`)
	expect(t, p.Result(t, "hello", start(fields{"name": "Ada"})), `"HELLO, ADA!"`)
	digest := compose(t, p, "hello", http.StatusCreated,
		`{"timeout": 0, "description": "greets", "config": {"greet": {"greeting": "Ahoy"}, "shout": {"mark": "?", "ask": true}}}`)
	shows(t, p, digest)

	// A run waits in the second part. The server is killed, and that part is updated.
	waiting := p.RunNoWait(t, "hello", start(fields{"name": "Ada"}))
	asksForNoise(t, p, waiting.HandlerID)
	p = kill(t, p, data)
	if status, out := p.Do(t, http.MethodGet, "/workflows/hello", nil); status != http.StatusOK || digestOf(t, out) != digest {
		t.Errorf("after the kill: %d %s", status, out)
	}
	put(t, p, "shout-part", hosttest.BuildPlugin(t, "shout-part", "second"))
	status, out := p.Do(t, http.MethodGet, "/workflows/hello", nil)
	renewed := digestOf(t, out)
	if status != http.StatusOK || renewed == digest {
		t.Errorf("after the new version: %d %s", status, out)
	}
	refusedVersion(t, p)
	p = kill(t, p, data)
	later := p.RunNoWait(t, "hello", start(fields{"name": "Bob"}))
	asksForNoise(t, p, later.HandlerID)
	for id, want := range map[string]string{waiting.HandlerID: `"AHOY, ADA?"`, later.HandlerID: `"AHOY, BOB? (second)"`} {
		respond(t, &p.Host, id, "neighbour", true)
		p.Events(t, id, "", nil)
		_, out := p.Do(t, http.MethodGet, "/handlers/"+id, nil)
		expect(t, string(record(t, out).Result.Value.Result), want)
	}
	removal(t, p)
}

// asksForNoise waits until the second part asks.
func asksForNoise(t *testing.T, p *hosttest.Process, handler string) {
	t.Helper()
	events := p.Events(t, handler, "", func(e hosttest.Event) bool { return e.Type == "InputRequiredEvent" })
	if n := len(events); n == 0 || events[n-1].Type != "InputRequiredEvent" {
		t.Fatalf("nobody is asked: %v", events)
	}
}

// shows checks how the routes describe a composed workflow.
func shows(t *testing.T, p *hosttest.Process, digest string) {
	t.Helper()
	for path, want := range map[string]string{
		"": `{"name":"hello","plugins":["greet-part","shout-part"],"settings":{"timeout":0,"description":"greets",` +
			`"config":{"greet":{"greeting":"Ahoy"},"shout":{"ask":true,"mark":"?"}}},"sha256":"` + digest + `","composed":true,"timeout":null}`,
		"/schema":         `"title":"StartEvent"`,
		"/events":         `"title":"GreetingEvent"`,
		"/representation": `{"source":"GreetingEvent","target":"shout","label":null}`,
	} {
		if status, out := p.Do(t, http.MethodGet, "/workflows/hello"+path, nil); status != http.StatusOK || !strings.Contains(string(out), want) {
			t.Errorf("%s: %d %s", path, status, out)
		}
	}
	if status, out := p.Do(t, http.MethodGet, "/plugins", nil); status != http.StatusOK || !strings.Contains(string(out), `"composed_in":["hello"]`) {
		t.Errorf("plugins: %d %s", status, out)
	}
}

// refusedVersion uploads a version of a part that would break the workflow.
func refusedVersion(t *testing.T, p *hosttest.Process) {
	t.Helper()
	status, out := p.Do(t, http.MethodPut, "/plugins/shout-part", hosttest.BuildPlugin(t, "shout-part", "broken"))
	var answer struct {
		Detail, Code string
		Problems     []struct{ Code, Message, Step, Event string }
	}
	if err := json.Unmarshal(out, &answer); err != nil || status != http.StatusUnprocessableEntity || answer.Code != "invalid_plugin" {
		t.Fatalf("a broken version: %d %s", status, out)
	}
	found := map[string]bool{}
	for _, problem := range answer.Problems {
		if !strings.HasPrefix(problem.Message, "in workflow hello: ") {
			t.Errorf("the workflow is not named: %+v", problem)
		}
		found[problem.Code+" "+problem.Step+" "+problem.Event] = true
	}
	for _, want := range []string{"never_accepted greet GreetingEvent", "never_produced shout SalutationEvent"} {
		if !found[want] {
			t.Errorf("no problem %q: %s", want, out)
		}
	}
}

// removal: a part cannot be removed while a composition uses it, nor a composition while
// it has runs.
func removal(t *testing.T, p *hosttest.Process) {
	t.Helper()
	held := p.RunNoWait(t, "hello", start(fields{"name": "Eve"}))
	for _, tt := range []struct {
		method, path string
		want         int
	}{
		{http.MethodDelete, "/plugins/greet-part", http.StatusConflict},
		{http.MethodDelete, "/workflows/hello", http.StatusConflict},
		{http.MethodPost, "/handlers/" + held.HandlerID + "/cancel", http.StatusOK},
		{http.MethodDelete, "/workflows/hello", http.StatusNoContent},
		{http.MethodDelete, "/workflows/hello", http.StatusNotFound},
		{http.MethodGet, "/workflows/hello", http.StatusNotFound},
		{http.MethodDelete, "/plugins/greet-part", http.StatusNoContent},
	} {
		if status, out := p.Do(t, tt.method, tt.path, nil); status != tt.want {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, status, out)
		}
	}
}
