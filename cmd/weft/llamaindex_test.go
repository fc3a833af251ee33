//go:build !race

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/sdk-guest/py"
)

// everyProgram are the programs of testdata/llamaindex that a short suite plays. A module
// of Python takes seconds to compile.
var everyProgram = map[string]bool{"approval": true, "typed_state": true}

// TestLlamaIndexPrograms plays programs written for LlamaIndex Workflows by LlamaIndex
// itself, and by weft with other imports. weft gives the same results and streams.
func TestLlamaIndexPrograms(t *testing.T) {
	p := newProjects(t)
	p.env = []string{"PATH=", "HOME=" + t.TempDir()} // weft alone builds them
	needPython(t)
	python := hosttest.Python(t, "client")
	folder := filepath.Join(hosttest.Root(), "testdata", "llamaindex")
	programs, err := filepath.Glob(filepath.Join(folder, "*", "llamaindex.py"))
	if err != nil || len(programs) < 8 {
		t.Fatalf("%d programs: %v", len(programs), err)
	}
	for _, program := range programs {
		from := filepath.Dir(program)
		name := filepath.Base(from)
		t.Run(name, func(t *testing.T) {
			main := read(t, filepath.Join(from, "main.py"))
			onlyImportsDiffer(t, read(t, program), main)
			if !everyProgram[name] {
				suite.OnlySoak(t)
			}
			cmd := exec.Command(python, "run.py", name)
			cmd.Dir, cmd.Stderr = folder, t.Output()
			cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
			cases, err := cmd.Output()
			if err != nil {
				t.Fatalf("LlamaIndex: %v", err)
			}
			dir := t.TempDir()
			for file, text := range map[string][]byte{"main.py": []byte(main), "cases.json": cases,
				"weft.json": []byte(`{"name": "program", "language": "py"}`)} {
				if err := os.WriteFile(filepath.Join(dir, file), text, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			said := p.run(t, dir, p.weft, "test", "--timeout", suite.Hang.String())
			if !strings.Contains(said, "cases passed\n") && !strings.Contains(said, "case passed\n") {
				t.Errorf("weft test says\n%s\nof\n%s", said, cases)
			}
		})
	}
}

// needPython skips the test if the program under test has no engine for Python.
func needPython(t *testing.T) {
	t.Helper()
	if _, err := py.Engine(); err != nil {
		suite.Missing(t, "needs the engine for Python: %v", err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// onlyImportsDiffer checks that two programs differ only in the module that an import
// names.
func onlyImportsDiffer(t *testing.T, was, is string) {
	t.Helper()
	before, after := strings.Split(was, "\n"), strings.Split(is, "\n")
	if len(before) != len(after) {
		t.Fatalf("%d lines became %d", len(before), len(after))
	}
	changed := 0
	for i, line := range before {
		if line == after[i] {
			continue
		}
		changed++
		from, names, _ := strings.Cut(line, " import ")
		to, same, _ := strings.Cut(after[i], " import ")
		want := strings.NewReplacer("from workflows", "from weft", "from pydantic", "from weft").Replace(from)
		if names == "" || names != same || to != want {
			t.Errorf("line %d: %q became %q", i+1, line, after[i])
		}
	}
	if changed == 0 || strings.Contains(is, "workflows import") {
		t.Errorf("%d lines differ", changed)
	}
}
