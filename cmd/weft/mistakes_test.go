//go:build !race

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/weftrun/weft/cmd/weft/scaffold"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// TestMistakes checks the texts that users read after common mistakes. Each file of
// testdata/mistakes has a step and, under "want", the text. The text names the mistake
// and what to do instead. TinyGo builds the step, or the compilers that "language" names.
// Without "cases.json" a run is started without fields.
func TestMistakes(t *testing.T) {
	p := newProjects(t)
	dirs := map[string]string{}
	languages := scaffold.Languages
	if !suite.Soak() {
		languages = []string{"tinygo", "ts", "py"} // only "make soak" checks the other compilers' texts
	}
	needPython(t)
	for _, language := range languages {
		name := "mistake"
		if language == "rust" {
			name = "rust" // the folder in which cargo builds the SDK for TestProjects
		}
		made := filepath.Join(t.TempDir(), name)
		p.run(t, p.root, p.weft, "new", made, "--lang", language, "--template", "minimal")
		dirs[language] = filepath.Join(p.root, name)
		if language != "tinygo" && language != "rust" {
			dirs[language] += "-" + language
		}
		takeOver(t, made, dirs[language])
	}
	files, err := filepath.Glob(filepath.Join(hosttest.Root(), "testdata", "mistakes", "*.txtar"))
	if err != nil || len(files) < 9 {
		t.Fatalf("%d mistakes: %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			parts := map[string]string{"cases.json": `{"cases": [{"name": "a", "start": {"n": 0}}]}`, "language": "tinygo\n"}
			for _, f := range a.Files {
				parts[f.Name] = string(f.Data)
			}
			dir, source := dirs[strings.TrimSpace(parts["language"])], "main.go"
			if dir == "" {
				suite.OnlySoak(t)
			}
			if parts["main.ts"] != "" {
				source = "main.ts"
			}
			if parts["main.py"] != "" {
				source = "main.py"
			}
			if parts["src/lib.rs"] != "" {
				source = "src/lib.rs"
			}
			for _, name := range []string{source, "cases.json"} {
				if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(parts[name]), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			got := p.mistake(t, dir)
			if *update {
				setPart(t, file, a, got)
			} else if got != parts["want"] {
				t.Errorf("weft says\n%s\nwant\n%s", got, parts["want"])
			}
		})
	}
}

// changing matches parts of an output that differ each time. placing matches parts that
// differ between compilers. logged matches lines of the server's log.
var (
	logged   = regexp.MustCompile(`(?m)^time=.* (level=ERROR msg="panic: |level=WARN msg="the language's own sleep ).*\n`)
	changing = regexp.MustCompile(`\d+(\.\d+)?(ms|s|µs)\b|go\d\.\S+`)
	placing  = regexp.MustCompile(`\(/\S+:\d+\)|function \d+`)
)

// mistake runs weft test in a project. The test must fail; mistake returns its output.
func (p *projects) mistake(t *testing.T, dir string) string {
	t.Helper()
	cmd := exec.Command(p.weft, "test", "--timeout", suite.Hang.String()) // a slow machine may reach the default
	cmd.Dir, cmd.Env = dir, append(slices.Clip(p.env), "CARGO_TERM_QUIET=true")
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if !errors.As(err, &failed) {
		t.Fatalf("weft test: %v\n%s", err, out)
	}
	return placing.ReplaceAllString(changing.ReplaceAllString(logged.ReplaceAllString(string(out), ""), "TIME"), "PLACE")
}

// setPart writes a file with a new expected text.
func setPart(t *testing.T, file string, a *txtar.Archive, want string) {
	t.Helper()
	kept := a.Files[:0]
	for _, f := range a.Files {
		if f.Name != "want" {
			kept = append(kept, f)
		}
	}
	kept = append(kept, txtar.File{Name: "want", Data: []byte(want)})
	a.Files = kept
	if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}
