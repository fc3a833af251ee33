package extism

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
)

const emptyModule = "\x00asm\x01\x00\x00\x00"

// importing is a module that imports nothing but extism:host/env.alloc.
func importing() []byte {
	entry := "\x0f" + HostModule + "\x05alloc\x00\x00"
	payload := "\x01" + entry
	return []byte(emptyModule + "\x02" + string(rune(len(payload))) + payload)
}

var someFunctions = []Function{
	{"count", "", "\x7f"}, {"double", "", ""}, {"takes", "\x7f", "\x7f"}, {"malloc", "\x7f", "\x7f"}, {"_initialize", "", ""},
	{"asyncify_stop_unwind", "", ""},
}

func read(t *testing.T, manifest string, functions []Function, imported ...string) (*Plugin, string) {
	t.Helper()
	wasm := []byte(emptyModule)
	if manifest != "" {
		wasm = abi.WithManifest(wasm, []byte(manifest))
	}
	p, problems := Read(Complete(wasm, "plug"), functions, imported)
	var text []string
	for _, problem := range problems {
		text = append(text, problem.Code+" "+problem.Step+": "+problem.Message)
	}
	return p, strings.Join(text, "\n")
}

func TestTheShortestManifest(t *testing.T) {
	one := []Function{{"count", "", "\x7f"}, {"malloc", "\x7f", "\x7f"}, {"_initialize", "", ""}}
	p, problems := read(t, "{}", one, "var_get", "var_set", "http_request")
	if problems != "" {
		t.Fatal(problems)
	}
	m, err := abi.DecodeManifest(p.Manifest)
	if err != nil || m.Workflow != "plug" || len(m.Steps) != 1 || m.Steps[0].Atomic {
		t.Fatalf("manifest = %+v, %v", m, err)
	}
	if s := m.Steps[0]; s.Name != "count" || s.Accepts[0].Types[0] != abi.TypeStart || s.Emits[0].Types[0] != abi.TypeStop {
		t.Errorf("step = %+v", s)
	}
	if len(m.Resources) != 1 || m.Resources[0].Name != "http" || m.Resources[0].Kind != "http" || m.Resources[0].Optional {
		t.Errorf("resources = %+v", m.Resources)
	}
	if p.Vars != DefaultVars || !slices.Equal(p.Start, []string{"_initialize"}) {
		t.Errorf("plugin = %+v", p)
	}
	p, _ = read(t, "{}", one, "var_get", "var_set")
	if m, _ := abi.DecodeManifest(p.Manifest); !m.Steps[0].Atomic {
		t.Error("a step with variables is not atomic")
	}
}

func TestManifest(t *testing.T) {
	p, problems := read(t, `{"workflow": "w", "vars": "counter.vars", "http": "crm", "config": {"a": "b"}, "log_level": "off", "timeout": "1m",
		"resources": [{"name": "crm", "kind": "http", "optional": true}],
		"steps": [
			{"name": "first", "export": "count", "input": "field:text", "output": "text", "into": "n", "emits": ["Counted"], "timeout": "30s",
			 "retry": {"when": {"code": ["5s"]}, "wait": {"exponential": ["1s", 2.0, "1m"]}, "stop": {"any": [{"attempts": 5}, {"delay": "1h"}]}}},
			{"export": "double", "accepts": ["Counted"], "output": "events", "emits": ["StopEvent", ["list", ["More"]]]}]}`, someFunctions, "http_request")
	if problems != "" {
		t.Fatal(problems)
	}
	m, err := abi.DecodeManifest(p.Manifest)
	if err != nil {
		t.Fatal(err)
	}
	if r := m.Steps[0].Retry; m.Steps[0].Timeout.String() != "30s" || r.When.Codes[0] != "5s" || r.Wait.Exponential.Max.String() != "1m0s" ||
		r.Stop.Any[1].Delay.String() != "1h0m0s" || m.Timeout.String() != "1m0s" {
		t.Errorf("times = %+v", m.Steps[0])
	}
	if _, ok := m.Events["Counted"]; !ok || len(m.Events) != 2 || len(m.Resources) != 1 {
		t.Errorf("events = %+v, resources = %+v", m.Events, m.Resources)
	}
	if s := p.Steps["first"]; s != (Step{"count", "field:text", FormText, "Counted", "n"}) || p.HostLevel() < 1000 || p.Config["a"] != "b" {
		t.Errorf("plugin = %+v", p)
	}
}

func TestProblemsOfManifests(t *testing.T) {
	for manifest, wants := range map[string][]string{
		"":   {"missing_manifest : the module exports count, double: declare"},
		"[]": {"must be a JSON object"},
		"{":  {"not JSON"},
		`{"steps": [{"export": "nope"}, {"export": "takes"}, {"name": "x", "export": "count", "input": "xml", "output": "yaml"}], "log_level": "loud", "vars": "a..b", "config": {"n": 1}}`: {
			"unknown_export nope: the module exports no function nope; it has count, double",
			"wrong_signature takes: the function takes has 1 parameters and 1 results", `input cannot be "xml"`, `output cannot be "yaml"`,
			`log_level must be one of`, "vars must be a path", `config "n" must be a text`,
		},
		`{"steps": [{"export": "count", "emits": ["A", "B"]}]}`:               {"emits has more than one"},
		`{"steps": [{"export": "count"}, {"export": "count"}]}`:               {"two steps"},
		`{"steps": [{"export": "count", "tiemout": 3}]}`:                      {"tiemout"},
		`{"steps": [{"export": "count", "timeout": "soon"}]}`:                 {"must be a time such as 30s"},
		`{"steps": [{"export": "count", "retry": {"wait": {"fixed": "x"}}}]}`: {"must be a time such as 30s"},
		`{"steps": {}}`:   {"steps must be a list"},
		`{"steps": [1]}`:  {"step 1 must be an object"},
		`{"steps": [{}]}`: {"needs an export"},
		`{"steps": [{"export": "count"}], "resources": 1}`:  {"resources"},
		`{"steps": [{"export": "count"}], "events": []}`:    {"events"},
		`{"a": "` + strings.Repeat("x", MaxManifest) + `"}`: {"at most 262144 are allowed"},
	} {
		p, problems := read(t, manifest, someFunctions)
		if p != nil {
			t.Errorf("%.80s: no problem", manifest)
		}
		for _, want := range wants {
			if !strings.Contains(problems, want) {
				t.Errorf("%.80s:\n%s\nwants %s", manifest, problems, want)
			}
		}
	}
	if _, problems := read(t, "{}", []Function{{abi.ExportDescribe, "", ""}}); !strings.Contains(problems, "describes itself") {
		t.Errorf("a module of ours: %s", problems)
	}
	if _, problems := read(t, "{}", []Function{{"takes", "\x7f", ""}}); !strings.Contains(problems, "no export can be a step") {
		t.Errorf("nothing to choose from: %s", problems)
	}
}

func TestSections(t *testing.T) {
	plain, ours := []byte(emptyModule), importing()
	if Is(plain) || !Is(ours) || !Is(abi.WithManifest(plain, []byte("{}"))) {
		t.Error("what is Extism's is not known")
	}
	once := Complete(ours, "plug")
	if again := Complete(once, "other"); string(again) != string(once) {
		t.Error("a manifest that names its workflow is changed")
	}
	if given := Complete(abi.WithManifest(ours, []byte(`{ "workflow" : "plug" }`)), "other"); string(given) != string(once) {
		t.Errorf("equal manifests make different modules: %q, %q", given, once)
	}
	if twice := abi.WithManifest(once, []byte(`{"workflow":"plug"}`)); string(twice) != string(once) {
		t.Error("the same manifest is there twice")
	}
	other := abi.WithManifest(once, []byte(`{"workflow":"x"}`))
	if _, problems := Read(Complete(other, "p"), someFunctions, nil); len(problems) != 1 || !strings.Contains(problems[0].Message, "has a manifest already") {
		t.Errorf("two manifests: %v", problems)
	}
	for n := range once { // nothing that is cut off does harm
		_ = Complete(once[:n], "p")
		_, _ = Read(once[:n], someFunctions, nil)
	}
}

func TestForms(t *testing.T) {
	event := func(v any) []abi.Event {
		body, err := abi.EncodeValue(v)
		if err != nil {
			t.Fatal(err)
		}
		return []abi.Event{{Type: "E", Body: body}}
	}
	for _, c := range []struct {
		form Form
		body map[string]any
		want string
	}{
		{FormAuto, map[string]any{"input": "text"}, "text"},
		{FormAuto, map[string]any{"input": []byte{1, 2}}, "\x01\x02"},
		{FormAuto, map[string]any{"input": map[string]any{"a": 1}}, `{"a":1}`},
		{FormAuto, map[string]any{"input": "x", "more": 1}, `{"more":1,"input":"x"}`},
		{FormAuto, map[string]any{}, `{}`},
		{FormBody, map[string]any{"input": "text"}, `{"input":"text"}`},
		{"field:n", map[string]any{"n": 1.5}, "1.5"},
		{"field:n", map[string]any{"m": 1.5}, "error: the event E has no field n"},
		{FormEvent, map[string]any{"n": 1}, `{"type":"E","value":{"n":1}}`},
	} {
		s := Step{Input: c.form}
		got, err := s.Bytes(event(c.body), false)
		if err != nil {
			got = fmt.Appendf(nil, "error: %v", err)
		}
		if !strings.HasPrefix(string(got), c.want) {
			t.Errorf("%s of %v = %s, want %s", c.form, c.body, got, c.want)
		}
	}
	for _, c := range []struct {
		step   Step
		output string
		want   string
	}{
		{Step{Output: FormAuto, Emits: "StopEvent"}, `{"a":1}`, `{"result":{"a":1}}`},
		{Step{Output: FormAuto, Emits: "E"}, `{"a":1}`, `{"a":1}`},
		{Step{Output: FormAuto, Emits: "E"}, `[1]`, `{"result":[1]}`},
		{Step{Output: FormAuto, Emits: "E"}, `a text`, `{"result":"a text"}`},
		{Step{Output: FormAuto, Emits: "E"}, "\xff", `{"result":{"$bytes":"/w=="}}`},
		{Step{Output: FormText, Emits: "E", Into: "n"}, "1", `{"n":"1"}`},
		{Step{Output: FormText, Emits: "E"}, "\xff", "error: the output of  is not UTF-8"},
		{Step{Output: FormBytes, Emits: "E"}, "1", `{"result":{"$bytes":"MQ=="}}`},
		{Step{Output: FormJSON, Emits: "E"}, "a", "error: the output of  is not JSON"},
		{Step{Output: FormEvents}, `{"type":"E","value":{"a":1}}`, `{"a":1}`},
		{Step{Output: FormEvents}, `[{"type":"E"}]`, `{}`},
		{Step{Output: FormEvents}, `null`, `nothing`},
		{Step{Output: FormEvents}, `[1]`, `error: an event`},
		{Step{Output: FormEvents}, `{"type":"E","value":1}`, `error: the value of the event E`},
		{Step{Output: FormAuto}, `ignored`, `nothing`},
	} {
		out, err := c.step.Events([]byte(c.output))
		got := "nothing"
		if err != nil {
			got = "error: " + err.Error()
		} else if len(out.Events) > 0 {
			text, err := abi.ToJSON(out.Events[0].Body)
			if err != nil {
				t.Fatal(err)
			}
			got = string(text)
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%+v of %q = %s, want %s", c.step, c.output, got, c.want)
		}
	}
}

func TestVariableNames(t *testing.T) {
	p := Plugin{Vars: DefaultVars}
	seen := map[string]string{}
	for name, want := range map[string]string{
		"a": "extism.vars.a", "a.b": `extism.vars.a\.b`, "0": "extism.vars.0", `a\`: `extism.vars.a\\`, "%": "extism.vars.%25", "": "extism.vars.%",
	} {
		if got := p.VarPath(name); got != want {
			t.Errorf("%q is at %s, want %s", name, got, want)
		}
	}
	for name, want := range map[string]string{"ab": "", "a": "extism.vars.%61", "a.b": "extism.vars.a%2Eb", "0": "extism.vars.%30", "-1": "extism.vars.%2D1", "%": ""} {
		if got := p.OldVarPath(name); got != want {
			t.Errorf("%q was at %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"", "a", "a.b", "a%2Eb", "%", "0", "-1", "%30", "1a", "\xff", "\u00e4", "\ufffd", "."} {
		path := p.VarPath(name)
		if other, twice := seen[path]; twice {
			t.Errorf("%q and %q are both at %s", name, other, path)
		}
		seen[path] = name
		if strings.Count(strings.ReplaceAll(path, `\.`, ""), ".") != 2 {
			t.Errorf("%q is at %s", name, path)
		}
	}
}
