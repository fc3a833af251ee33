package extism

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/weftrun/weft/abi"
)

// FuzzManifest reads manifests that anybody may have sent. One that is taken says
// what can be run: its steps are exports that can be called, and it is a module's
// own manifest too, with the same steps.
func FuzzManifest(f *testing.F) {
	for _, manifest := range []string{
		``, `{}`, `[]`, `{`, `null`, `{"workflow": null}`, `{"a": 1, "a": 2}`, `{"steps": [{"export": "count"}]}`,
		`{"workflow": "w", "config": {"a": "b"}, "vars": "a.b", "http": "crm", "log_level": "off", "timeout": "1m"}`,
		`{"steps": [{"name": "first", "export": "count", "input": "field:text", "output": "events", "emits": ["A", ["list", ["B"]]]}]}`,
		`{"steps": [{"export": "count", "retry": {"when": {"code": ["5s"]}, "wait": {"exponential": ["1s", 2.0, "1m"]}, "stop": {"any": [{"attempts": 5}, {"delay": "1h"}]}}}]}`,
		`{"steps": [{"export": "double", "into": "x", "accepts": [["list", ["More"]], "StartEvent"], "timeout": -1e400}], "events": {"More": null}}`,
		`{"steps": [{"export": "takes"}, {"name": "\ud800"}, 1], "vars": "a..b", "resources": [{"name": "http"}, 1], "events": []}`,
	} {
		f.Add([]byte(manifest), true)
	}
	f.Fuzz(func(t *testing.T, manifest []byte, asks bool) {
		imported := []string{"alloc", "var_get", "var_set"}
		if asks {
			imported = append(imported, "http_request")
		}
		wasm := Complete(abi.WithManifest(importing(), manifest), "plug")
		if again := Complete(bytes.Clone(wasm), "other"); !bytes.Equal(wasm, again) && json.Valid(manifest) {
			t.Errorf("completed twice it is %q, once %q", again, wasm)
		}
		p, problems := Read(wasm, someFunctions, imported)
		if (p == nil) != (len(problems) > 0) {
			t.Fatalf("plugin %+v, problems %+v", p, problems)
		}
		for _, problem := range problems {
			if problem.Code == "" || problem.Message == "" || len(problem.Message) > 2000 {
				t.Errorf("problem %.3000q", problem)
			}
		}
		if p != nil {
			checkPlugin(t, p)
		}
	})
}

func checkPlugin(t *testing.T, p *Plugin) {
	m, err := abi.DecodeManifest(p.Manifest)
	if err != nil {
		t.Fatalf("its manifest: %v", err)
	}
	if m.Workflow == "" || len(m.Steps) != len(p.Steps) || p.Level < 0 || p.VarPath("x") == "" {
		t.Errorf("plugin %+v of %+v", p, m)
	}
	for _, decl := range m.Steps {
		s, ok := p.Steps[decl.Name]
		if !ok {
			t.Fatalf("there is no step %q in %+v", decl.Name, p.Steps)
		}
		callable := false
		for i := range someFunctions {
			callable = callable || someFunctions[i].Name == s.Export && someFunctions[i].callable()
		}
		if !callable {
			t.Errorf("step %q calls %q", decl.Name, s.Export)
		}
		if _, err := s.Bytes([]abi.Event{{Type: abi.TypeStart, Body: abi.EmptyMap}}, false); err != nil && s.Input[:1] != "f" {
			t.Errorf("step %q: the bytes of an event: %v", decl.Name, err)
		}
		if out, err := s.Events([]byte("{}")); err == nil && s.Output != FormEvents {
			if _, err := out.Encode(); err != nil {
				t.Errorf("step %q: its output: %v", decl.Name, err)
			}
		}
	}
	text, err := json.Marshal(p) // as it is kept
	var again Plugin
	if err == nil {
		err = json.Unmarshal(text, &again)
	}
	if err != nil || len(again.Steps) != len(p.Steps) || !bytes.Equal(again.Manifest, p.Manifest) {
		t.Errorf("kept as %s: %v", text, err)
	}
}

// FuzzModule looks for manifests in modules that anybody may have sent.
func FuzzModule(f *testing.F) {
	for _, wasm := range [][]byte{
		nil, []byte(emptyModule), importing(), abi.WithManifest(importing(), []byte(`{"workflow":"w"}`)),
		abi.WithManifest(abi.WithManifest(importing(), []byte(`{}`)), []byte(`{ }`)),
		append(abi.WithManifest([]byte(emptyModule), []byte(`{}`)), 1, 0x80), append(importing(), 0, 0xff, 0xff, 0xff, 0xff, 0x7f),
	} {
		f.Add(wasm)
	}
	f.Fuzz(func(t *testing.T, wasm []byte) {
		before := bytes.Clone(wasm)
		completed := Complete(wasm, "plug")
		if !bytes.Equal(wasm, before) {
			t.Fatal("the module was changed in place")
		}
		if !Is(wasm) && !bytes.Equal(completed, wasm) {
			t.Error("a module that is none of Extism's was changed")
		}
		if Is(wasm) && !Is(completed) {
			t.Error("completed it is not a plugin any more")
		}
		if !bytes.Equal(Complete(completed, "other"), completed) {
			t.Error("completed twice it is another one")
		}
		Read(completed, someFunctions, []string{"alloc"})
	})
}
