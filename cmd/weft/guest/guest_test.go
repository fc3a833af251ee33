package guest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	for _, tt := range []struct {
		name     string
		files    map[string]string
		language string
		want     string // language and name, or a part of the error
	}{
		{"Go", map[string]string{"go.mod": ""}, "", "go hello"},
		{"Rust", map[string]string{"Cargo.toml": "", "go.mod": ""}, "", "rust hello"},
		{"as it says", map[string]string{"go.mod": "", Config: `{"language": "tinygo", "name": "x"}`}, "", "tinygo x"},
		{"as it is told", map[string]string{"go.mod": "", Config: `{"language": "tinygo"}`}, "go", "go hello"},
		{"two flows", map[string]string{"go.mod": "", "flow.yaml": "", "flow.json": ""}, "", "flow.json: a project has one flow"},
		{"TypeScript", map[string]string{"main.ts": ""}, "", "ts hello"},
		{"JavaScript", map[string]string{"main.mjs": "", "package.json": ""}, "", "js hello"},
		{"a script with flags", map[string]string{"main.ts": "", Config: `{"language": "ts", "flags": ["-x"]}`}, "", "takes no flags"},
		{"a script without an entry", map[string]string{"index.ts": "", Config: `{"language": "ts"}`}, "", "there is no main.ts or main.js"},
		{"nothing", map[string]string{"main.go": ""}, "", "there is no go.mod, Cargo.toml, main.ts, main.js or main.py"},
		{"sources of another", map[string]string{"go.mod": ""}, "rust", "there is no Cargo.toml"},
		{"a key that there is not", map[string]string{"go.mod": "", Config: `{"lang": "go"}`}, "", `unknown field "lang"`},
		{"a name that leads elsewhere", map[string]string{"go.mod": "", Config: `{"name": "../x"}`}, "", "is not a valid name"},
	} {
		dir := filepath.Join(t.TempDir(), "hello")
		for name, text := range tt.files {
			write(t, filepath.Join(dir, name), text)
		}
		p, err := Find(dir, tt.language)
		got := p.Language + " " + p.Name
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if _, err := Find(t.TempDir(), ""); !errors.Is(err, ErrNoProject) {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestVersionsOfGo(t *testing.T) {
	for version, want := range map[string]int{"go1.26.8": 26, "go1.24": 24, "go1.27rc1": 27, "devel go1.28-abc": 28} {
		if got, ok := goMinor(version); !ok || got != want {
			t.Errorf("%s: %d, %t", version, got, ok)
		}
	}
	if _, ok := goMinor("devel +abc"); ok {
		t.Error("a version without a number")
	}
}

func TestChanged(t *testing.T) {
	dir := t.TempDir()
	p := Project{Dir: dir}
	write(t, filepath.Join(dir, "main.go"), "1")
	before, err := p.Look()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"build/x.wasm", ".weft/data/weft.db", "target/a/b", "main.go~", "a.swp"} { // ignored files
		write(t, filepath.Join(dir, name), "1")
	}
	if now, err := p.Look(); err != nil || now.difference(before) != "" {
		t.Errorf("%s differs, %v", now.difference(before), err)
	}
	write(t, filepath.Join(dir, "words", "split.go"), "1")
	now, file, err := p.Changed(t.Context(), before)
	if err != nil || file != filepath.Join("words", "split.go") {
		t.Fatalf("%q, %v", file, err)
	}
	if err := os.Remove(filepath.Join(dir, "main.go")); err != nil {
		t.Fatal(err)
	}
	if _, file, err = p.Changed(t.Context(), now); err != nil || file != "main.go" {
		t.Errorf("removed: %q, %v", file, err)
	}
}
