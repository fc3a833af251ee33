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

// newScript makes a project in TypeScript with files of a folder of the checkout, and returns
// its folder. The project has the npm packages of .ci/node.
func newScript(t *testing.T, weft, from string, names ...string) string {
	t.Helper()
	modules := hosttest.NodeModules(t)
	dir := filepath.Join(t.TempDir(), "project")
	if said, err := exec.Command(weft, "new", dir, "--lang", "ts").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	packages, err := os.ReadDir(modules)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "node_modules"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, p := range packages {
		if err := os.Symlink(filepath.Join(modules, p.Name()), filepath.Join(dir, "node_modules", p.Name())); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(hosttest.Root(), filepath.FromSlash(from), name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestLibrariesOfSchemas builds and plays testdata/schemas, whose events and state have
// schemas of zod and of TypeBox. 'weft build' checks the types that follow from them.
func TestLibrariesOfSchemas(t *testing.T) {
	weft := hosttest.Binary(t)
	dir := newScript(t, weft, "testdata/schemas", "main.ts", "cases.json")
	for _, command := range []string{"build", "test"} {
		said, err := exec.Command(weft, command, dir).CombinedOutput()
		if err != nil || !strings.Contains(string(said), map[string]string{"build": "workflow  orders\n", "test": "\n5 cases passed\n"}[command]) {
			t.Errorf("%s: %v\n%s", command, err, said)
		}
	}
}

// TestVitest runs a project's tests of functions in Node. The package of the SDK is then in
// node_modules, as 'npm install ./sdk' puts it there.
func TestVitest(t *testing.T) {
	weft := hosttest.Binary(t)
	dir := newScript(t, weft, "plugins/wordcount-ts", "main.ts", "words.ts", "words.test.ts")
	if err := os.Symlink("../sdk", filepath.Join(dir, "node_modules", "weft")); err != nil {
		t.Fatal(err)
	}
	more := `import { codeOf, event, float, result, t, WeftError } from "weft";
import { expect, session, test } from "weft/test";
import main from "./main";

test("events, errors and workflows without the engine", () => {
  const A = event("A", { n: t.integer().default(3), all: t.array(t.number()).optional() });
  expect(A()).toEqual({ n: 3 });
  expect(A.is(A({ n: 1 }))).toBe(true);
  expect([result(2).result, float(2), codeOf(new WeftError("x", { code: "busy" })), main.name]).toEqual([2, 2, "busy", "wordcount-ts"]);
});
test("the workflow runs in weft alone", () => {
  expect(() => session()).toThrow("works only within a test that 'weft test' runs");
});
`
	if err := os.WriteFile(filepath.Join(dir, "more.test.ts"), []byte(more), 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("node", filepath.Join("node_modules", "vitest", "vitest.mjs"), "run", "--no-color")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "CI=1")
	said, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(said), "Tests  6 passed (6)") {
		t.Errorf("%v\n%s", err, said)
	}
}
