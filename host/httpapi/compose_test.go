package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/weftrun/weft/host"
)

func TestCompose(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	const body = `{"plugins":["hello","human"],"settings":{"timeout":45.0,"description":"a \"b\"","config":{"first":{"n":1.5,"list":[null]},"a":{}}}}`
	const want = `{"name":"both","plugins":["hello","human"],"settings":{"timeout":45,"description":"a \"b\"","config":{"a":{},"first":{"n":1.5,"list":[null]}}},"sha256":"d","composed":true,"timeout":{"seconds":45,"set":false}}`
	for _, status := range []int{201, 200} {
		w := call(t, h, "PUT", "/workflows/both", body)
		if w.Code != status || w.Body.String() != want {
			t.Errorf("PUT = %d %s", w.Code, w.Body)
		}
	}
	if w := call(t, h, "GET", "/workflows/both", ""); w.Code != 200 || w.Body.String() != want {
		t.Errorf("GET = %d %s", w.Code, w.Body)
	}
	if got := call(t, h, "GET", "/workflows", "").Body.String(); !strings.Contains(got, `"both"`) {
		t.Errorf("workflows = %s", got)
	}
	if w := call(t, h, "DELETE", "/workflows/both", ""); w.Code != 204 || w.Body.Len() > 0 {
		t.Errorf("DELETE = %d %s", w.Code, w.Body)
	}
	for _, name := range []string{"both", "hello"} {
		wantError(t, call(t, h, "DELETE", "/workflows/"+name, ""), http.StatusNotFound, host.CodeNotFound)
	}
}

// Empty settings count as absent, and are omitted in the answer.
func TestComposeWithoutSettings(t *testing.T) {
	for _, body := range []string{"", "null", "{}", `{"name":"hello","timeout":null}`, `{"plugins":null,"settings":null}`, `{"settings":{}}`,
		`{"settings":{"timeout":null,"description":null,"config":null}}`, `{"settings":{"description":"","config":{}}}`} {
		h := newServer(t, newFake(t)).Handler()
		w := call(t, h, "PUT", "/workflows/hello", body)
		if want := `{"name":"hello","plugins":[],"settings":{},"sha256":"d","composed":true,"timeout":{"seconds":45,"set":false}}`; w.Code != 201 || w.Body.String() != want {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	for body, want := range map[string]string{"0": "0", "0.0": "0", "1e-9": "0.000000001", "86400.5": "86400.5", "9e9": "9000000000"} {
		h := newServer(t, newFake(t)).Handler()
		w := call(t, h, "PUT", "/workflows/hello", `{"settings":{"timeout":`+body+`}}`)
		if !strings.Contains(w.Body.String(), `"settings":{"timeout":`+want+`}`) {
			t.Errorf("timeout %s: %d %s", body, w.Code, w.Body)
		}
	}
}

func TestComposeRefusals(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	for body, say := range map[string]string{
		`[]`:                                          "object",
		`{"plugin":["a"]}`:                            "'plugin' is not known",
		`{"plugins":["a"],"Settings":{}}`:             "'Settings' is not known",
		`{"settings":{"retries":3}}`:                  "'settings.retries' is not known: use timeout, description, config",
		`{"plugins":[]}`:                              "'plugins' must be a list",
		`{"name":"other"}`:                            "'name' is \"other\", and the path says",
		`{"timeout":1,"settings":{"timeout":2}}`:      "'timeout' and 'settings.timeout' differ",
		`{"timeout":"1s"}`:                            "'timeout'",
		`{"plugins":"a"}`:                             "'plugins' must be a list",
		`{"plugins":["a",1]}`:                         "'plugins.1' must be a text",
		`{"settings":[]}`:                             "'settings' must be an object",
		`{"settings":{"timeout":-1}}`:                 "'settings.timeout' must be a number of seconds",
		`{"settings":{"timeout":"45s"}}`:              "'settings.timeout'",
		`{"settings":{"timeout":1e300}}`:              "'settings.timeout'",
		`{"settings":{"timeout":1e-10}}`:              "'settings.timeout'",
		`{"settings":{"description":3}}`:              "'settings.description' must be a text",
		`{"settings":{"config":3}}`:                   "'settings.config' must be an object",
		`{"settings":{"config":{"first":[]}}}`:        "'settings.config.first' must be an object",
		`{"settings":{"config":{"first":{}, "a":1}}}`: "'settings.config.a' must be an object",
	} {
		if got := wantError(t, call(t, h, "PUT", "/workflows/hello", body), 400, host.CodeInvalidArgument); !strings.Contains(got, say) {
			t.Errorf("%s: %q", body, got)
		}
	}
	for _, body := range []string{`{"plugins":["a"]`, `{"settings":{"timeout":1,"timeout":2}}`, `{"settings":{"config":{"a":{},"a":{}}}}`, `{"settings":{"config":{"a":{"x":1e999}}}}`} {
		wantError(t, call(t, h, "PUT", "/workflows/hello", body), 400, host.CodeInvalidMessage)
	}
	wantError(t, call(t, h, "PUT", "/workflows/Hello", "{}"), 400, host.CodeInvalidArgument)
	f.pluginErr = &host.Error{Code: host.CodeInvalidPlugin, Message: "2 problems", Problems: []host.Problem{{Code: "duplicate_step", Message: "m", Step: "s"}}}
	if w := call(t, h, "PUT", "/workflows/hello", "{}"); w.Code != 422 || !strings.Contains(w.Body.String(), `"problems":[{"code":"duplicate_step","message":"m","step":"s"}]`) {
		t.Errorf("problems: %d %s", w.Code, w.Body)
	}
}

// A part does not define a workflow.
func TestPartHasNoWorkflow(t *testing.T) {
	f := newFake(t)
	h := newServer(t, f).Handler()
	call(t, h, "PUT", "/plugins/p", "x")
	f.plugins["p"][0].Workflow, f.plugins["p"][0].ComposedIn = "", []string{"a", "b"}
	if got := call(t, h, "GET", "/plugins", "").Body.String(); !strings.Contains(got, `"workflow":null,`) || !strings.Contains(got, `"composed_in":["a","b"]`) {
		t.Errorf("plugins = %s", got)
	}
}
