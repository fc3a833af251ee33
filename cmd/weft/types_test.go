//go:build !race

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/cmd/weft/scaffold"
	"github.com/weftrun/weft/host/hosttest"
)

// TestTypes checks the types of the SDK for TypeScript with the TypeScript compiler: what
// testdata/types says that they accept and refuse, and the examples.
func TestTypes(t *testing.T) {
	compiler := filepath.Join(hosttest.NodeModules(t), ".bin", "tsc")
	cmd := exec.Command(compiler, "-p", "plugins", "--pretty", "false")
	cmd.Dir = hosttest.Root()
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("tsc: %v\n%s", err, said)
	}
}

// TestTypesOfProjects builds a project with all templates in TypeScript and JavaScript.
// 'weft build' checks their types, because the project has the TypeScript compiler.
func TestTypesOfProjects(t *testing.T) {
	modules := hosttest.NodeModules(t)
	dir := filepath.Join(t.TempDir(), "typed")
	for _, language := range []string{"ts", "js"} {
		for _, template := range scaffold.Templates {
			files, err := scaffold.Project{Name: "typed", Language: language, Template: template.Name}.Files()
			if err != nil {
				t.Fatal(err)
			}
			if template.Name != "minimal" || language == "js" {
				main := "main." + language
				files = map[string][]byte{"src/" + template.Name + "." + language: files[main]}
			}
			for name, text := range files {
				file := filepath.Join(dir, filepath.FromSlash(name))
				if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, text, 0o666); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	weft := hosttest.Binary(t)
	build := func(args ...string) (string, error) {
		out, err := exec.Command(weft, append([]string{"build", dir}, args...)...).CombinedOutput()
		return string(out), err
	}
	if said, err := build(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	wrong := "import { event, t } from \"weft\";\n\nexport const ev = event(\"Next\", { text: t.string() })({ txet: \"x\" });\n"
	if err := os.WriteFile(filepath.Join(dir, "src", "wrong.ts"), []byte(wrong), 0o666); err != nil {
		t.Fatal(err)
	}
	said, err := build()
	if err == nil || !strings.Contains(said, "src/wrong.ts(3,57): error TS2353: ") || !strings.Contains(said, "weft: typed: it does not compile; what the compiler says is above") {
		t.Errorf("%v\n%s", err, said)
	}
	if said, err := build("--no-types"); err != nil {
		t.Errorf("without types: %v\n%s", err, said)
	}
}
