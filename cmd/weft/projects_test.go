//go:build !race

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/cmd/weft/dev"
	"github.com/weftrun/weft/cmd/weft/guest"
	"github.com/weftrun/weft/cmd/weft/scaffold"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// projects makes projects with the built program and tries them. Compilers are slow and
// the race detector finds nothing in them, so these tests run once, without it.
type projects struct {
	weft   string
	root   string
	server string
	env    []string
	cargo  []string // runs the unit tests of a project in Rust
}

// TestProjects makes a project of each template in each language, and does with it what a
// newcomer does: unit tests, 'weft test', build, push, run. It uses no network.
func TestProjects(t *testing.T) {
	p := newProjects(t)
	for _, language := range scaffold.Languages {
		t.Run(language, func(t *testing.T) {
			if language == "py" {
				needPython(t)
			}
			templates := scaffold.Templates
			if !suite.Soak() && language != "ts" { // weft builds these in a second
				templates = templates[:1] // each takes seconds of a compiler
			}
			for _, template := range templates {
				p.try(t, language, template)
			}
		})
	}
}

// newProjects starts a server for projects. All Rust projects are made in the same
// folder, below the folder for builds, so that cargo can reuse earlier builds.
func newProjects(t *testing.T) *projects {
	t.Helper()
	suite.NotShort(t, "makes and builds projects")
	weft := os.Getenv("WEFT_BIN")
	if weft == "" {
		weft = filepath.Join(hosttest.Root(), "bin", "weft")
	}
	if _, err := os.Stat(weft); err != nil {
		suite.Missing(t, "needs the built program: make build")
	}
	p := &projects{weft: weft, root: filepath.Join(hosttest.Root(), "build", "projects")}
	p.env = append(append(os.Environ(), suite.Environ(t)...), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off", "CARGO_NET_OFFLINE=true",
		"CARGO_TARGET_DIR="+filepath.Join(p.root, "cargo"))
	if err := os.MkdirAll(p.root, 0o777); err != nil {
		t.Fatal(err)
	}
	p.cargo = nativeCargo(t)
	lines := p.spawn(t, p.root, "serve", "--addr", "127.0.0.1:0", "--data", ":memory:", "--log-level", "warn")
	p.server = lines.wait(t, `serves on (http://\S+),`)[1]
	return p
}

// nativeCargo returns the command that runs unit tests on this machine: with the
// toolchain's Rust, which must be given the target, or with the user's Rust.
func nativeCargo(t *testing.T) []string {
	t.Helper()
	args := []string{"test", "--quiet", "--locked"}
	if _, err := exec.LookPath("wasm32-cargo"); err != nil {
		return append([]string{"cargo"}, args...)
	}
	out, err := exec.Command("wasm32-rustc", "-vV").Output()
	machine := regexp.MustCompile(`(?m)^host: (\S+)$`).FindSubmatch(out)
	if err != nil || machine == nil {
		t.Fatalf("wasm32-rustc does not say which machine this is: %v\n%s", err, out)
	}
	return append(append([]string{"wasm32-cargo"}, args...), "--target", string(machine[1]))
}

// try makes a project and does everything with it.
func (p *projects) try(t *testing.T, language string, template scaffold.Template) {
	name := language + "-" + template.Name
	if language == "rust" {
		name = "rust"
	}
	if guest.Script(language) { // weft alone builds these
		machine := p.env
		p.env = []string{"PATH=", "HOME=" + t.TempDir()}
		defer func() { p.env = machine }()
	}
	dir, made := filepath.Join(p.root, name), filepath.Join(t.TempDir(), name)
	p.run(t, p.root, p.weft, "new", made, "--lang", language, "--template", template.Name)
	takeOver(t, made, dir)
	switch language { // TinyGo's sources are those of Go
	case "go":
		p.run(t, dir, "go", "vet", ".")
		p.run(t, dir, "go", "test", ".")
	case "rust":
		p.run(t, dir, p.cargo[0], p.cargo[1:]...)
	}
	said := p.run(t, dir, p.weft, "test", "--timeout", suite.Hang.String()) // a slow machine may reach the default
	if !strings.Contains(said, "cases passed\n") || strings.Contains(said, "FAIL") {
		t.Errorf("%s: weft test says\n%s", dir, said)
	}
	module := filepath.Join(dir, "build", name+".wasm")
	if template.Name == "minimal" { // build it again, and check it
		said = p.run(t, dir, p.weft, "build")
		for _, want := range []string{"built build/" + name + ".wasm in ", "  workflow  " + name, "  steps     compose, deliver\n"} {
			if !strings.Contains(said, want) {
				t.Errorf("%s: weft build does not say %q:\n%s", dir, want, said)
			}
		}
	}
	if language == "go" && template.Name != "minimal" {
		return // large modules, which 'weft test' has already uploaded to its own server and run
	}
	p.run(t, dir, p.weft, "push", module, "--server", p.server)
	p.start(t, dir, name, template)
}

// takeOver makes a folder hold the same files as another folder. It does not touch files
// that are already the same, because cargo compares the times of files and would build
// the SDK again.
func takeOver(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(to, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && d.IsDir() {
			return nil
		}
		if _, wanted := os.Lstat(filepath.Join(from, strings.TrimPrefix(name, to))); err == nil && wanted != nil {
			err = os.Remove(name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file := filepath.Join(to, strings.TrimPrefix(name, from))
		if was, err := os.ReadFile(file); err == nil && bytes.Equal(was, text) {
			return nil
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return err
		}
		return os.WriteFile(file, text, 0o666)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// start runs the workflow as its README says.
func (p *projects) start(t *testing.T, dir, workflow string, template scaffold.Template) {
	t.Helper()
	args := []string{"run", workflow, "--server", p.server}
	if template.Name == "human-in-the-loop" {
		args = append(args, "--no-wait")
	}
	args = append(args, dev.SplitFields(template.Start)...)
	if said := p.run(t, dir, p.weft, args...); strings.TrimSpace(said) == "" || template.Name == "flow" && said != "\"Noted: milk is out\"\n" {
		t.Errorf("%s: the run gave %q", dir, said)
	}
}

// run runs a command, which must succeed.
func (p *projects) run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), suite.Hang)
	defer stop()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, p.env
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s, in %s: %v\n%s%s", strings.Join(cmd.Args, " "), dir, err, &stdout, &stderr)
	}
	return stdout.String()
}

// spokenLines are the lines that a program prints.
type spokenLines struct {
	cmd   *exec.Cmd
	lines chan string
	seen  strings.Builder
}

// spawn starts weft in the background. It is killed at the end of the test, unless it has
// ended.
func (p *projects) spawn(t *testing.T, dir string, args ...string) *spokenLines {
	t.Helper()
	s := &spokenLines{cmd: exec.Command(p.weft, args...), lines: make(chan string, 1000)}
	s.cmd.Dir, s.cmd.Env = dir, p.env
	out, in, err := os.Pipe() // of the system: it ends when the program ends, whoever waits for it
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stdout, s.cmd.Stderr = in, in
	err = s.cmd.Start()
	_ = in.Close()
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.lines)
		defer func() { _ = out.Close() }()
		for scan := bufio.NewScanner(out); scan.Scan(); {
			s.lines <- scan.Text()
		}
	}()
	t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			_ = s.cmd.Process.Signal(os.Interrupt)
			_ = s.cmd.Wait()
		}
	})
	return s
}

// wait reads until a line matches.
func (s *spokenLines) wait(t *testing.T, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	late := time.After(suite.Hang)
	for {
		select {
		case line, ok := <-s.lines:
			if !ok {
				t.Fatalf("it has ended without %q:\n%s", pattern, &s.seen)
			}
			s.seen.WriteString(line + "\n")
			if match := re.FindStringSubmatch(line); match != nil {
				return match
			}
		case <-late:
			t.Fatalf("it has not printed %q:\n%s", pattern, &s.seen)
		}
	}
}

// TestDev changes a project under 'weft dev': a good version, one that does not
// compile, one that panics, and a good one again.
func TestDev(t *testing.T) {
	p := newProjects(t)
	dir := filepath.Join(p.root, "dev")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	p.run(t, p.root, p.weft, "new", "dev")
	file := filepath.Join(dir, "main.go")
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const line = `ctx.Info("delivering " + ev.Text)`
	change := func(to string) {
		t.Helper()
		text := strings.Replace(string(good), line, to, 1)
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	dev := p.spawn(t, dir, "dev", "--addr", "127.0.0.1:0", "name=Grace")
	dev.wait(t, `^run dev \{"name":"Grace"\}$`)
	dev.wait(t, `^result "Hello, Grace!" \(`)
	dev.wait(t, `^watching for changes$`)

	change(`ctx.Info(7)`)
	dev.wait(t, `^main.go has changed$`)
	dev.wait(t, `^./main.go:[0-9]+:[0-9]+: cannot use 7 `)
	dev.wait(t, `^error: dev: it does not compile; what the compiler says is above$`)
	dev.wait(t, `^version 1 is served on$`)

	change(`_ = []int{}[len(ev.Text)]`)
	dev.wait(t, `^failed: .*index out of range`)

	change(`ctx.Info("again " + ev.Text)`)
	dev.wait(t, `^result "Hello, Grace!" \(`)
	if err := dev.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	dev.wait(t, `^stopped$`)
	if err := dev.cmd.Wait(); err != nil {
		t.Error(err)
	}
	said := dev.seen.String()
	for _, want := range []string{"  step deliver: again Hello, Grace!\n", "in deliver\n", "  step deliver: delivering Hello, Grace!\n"} {
		if !strings.Contains(said, want) {
			t.Errorf("it has not said %q:\n%s", want, said)
		}
	}
}

// TestDevScript changes a project in TypeScript or JavaScript under 'weft dev', on a machine
// with weft alone: a good version, one that does not parse, one that throws, and a good one
// again.
func TestDevScript(t *testing.T) {
	p := newProjects(t)
	p.env = []string{"PATH=", "HOME=" + t.TempDir()}
	for _, language := range []string{"ts", "js"} {
		t.Run(language, func(t *testing.T) {
			name := "dev-" + language
			dir := filepath.Join(t.TempDir(), name)
			p.run(t, p.root, p.weft, "new", dir, "--lang", language)
			file := filepath.Join(dir, "main."+language)
			good, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			const line = "`Hello, ${ev.name}!`"
			before, after, found := strings.Cut(string(good), line)
			if !found {
				t.Fatal("the template is another one")
			}
			change := func(to string) {
				t.Helper()
				if err := os.WriteFile(file, []byte(before+to+after), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			at := strings.Count(before, "\n") + 1
			dev := p.spawn(t, dir, "dev", "--addr", "127.0.0.1:0", "name=Grace")
			dev.wait(t, `^result "Hello, Grace!" \(`)
			dev.wait(t, `^watching for changes$`)

			change("`Hello, ${")
			dev.wait(t, `^main\.`+language+` has changed$`)
			dev.wait(t, fmt.Sprintf(`^    main\.%s:%d:\d+:$`, language, at))
			dev.wait(t, `^error: `+name+`: it does not compile; what the compiler says is above$`)
			dev.wait(t, `^version 1 is served on$`)

			change("null.name")
			dev.wait(t, fmt.Sprintf(`^failed: TypeError: cannot read property 'name' of null \(main\.%s:%d:\d+\)`, language, at))

			change("`Good day, ${ev.name}!`")
			dev.wait(t, `^result "Good day, Grace!" \(`)
			if err := dev.cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			dev.wait(t, `^stopped$`)
			if err := dev.cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestPythonTests runs 'weft test' in a project in Python whose tests pass and fail in several
// ways, and ask for runs that ask.
func TestPythonTests(t *testing.T) {
	p := newProjects(t)
	needPython(t)
	p.env = []string{"PATH=", "HOME=" + t.TempDir()}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"main.py": `import weft
from weft import StartEvent, StopEvent, Workflow, step


class Ask(weft.InputRequiredEvent):
    n: int


class Answer(weft.HumanResponseEvent):
    n: int


class Asking(Workflow, name="asking", timeout=None):
    @step
    async def ask(self, ctx: weft.Context, ev: StartEvent) -> StopEvent:
        got = []
        for n in range(ev.get("times", 1)):
            got.append((await ctx.wait_for_event(Answer, waiter_event=Ask(n=n), timeout=None)).n)
        return StopEvent(result=got)
`,
		"lib/helper.py": "def name_of(x):\n    return x.name\n",
		"tests/test_helper.py": `from lib.helper import name_of
from weft.test import raises


def test_values():
    assert [1, 2] == [1, 1 + 2]


def test_truth():
    assert not [1]


def test_texts():
    assert 1 in [2], "one is there"


def test_errors():
    with raises(AttributeError, match="has no attribute 'name'"):
        name_of(1)


def test_other_errors():
    name_of(1)


def test_no_errors():
    with raises(ValueError):
        pass
`,
		"test_main.py": `from main import Answer, Ask
from weft.test import session


async def test_questions():
    assert await session().run(times=2, answers=[Answer(n=3), Answer(n=4)]) == [3, 4]
    seen = []

    def answer(question):
        seen.append(question)
        return Answer(n=question.n * 10)

    assert await session().run({"times": 3}, answers=answer) == [0, 10, 20]
    assert seen == [Ask(n=0), Ask(n=1), Ask(n=2)]


async def test_no_answer():
    await session().run(times=2, answers=[Answer(n=1)])
`,
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(p.weft, "test", "--timeout", suite.Hang.String())
	cmd.Dir, cmd.Env = dir, p.env
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("tests fail, and the command succeeds")
	}
	const want = `ok    questions (TIME)
FAIL  no answer (TIME)
  the run asks Ask(n=1), and has no answer: run(..., answers=[...]) (test_main.py:18)
FAIL  values (TIME)
  AssertionError: [1, 2] == [1, 1 + 2], have [1, 2] and [1, 3] (tests/test_helper.py:6)
FAIL  truth (TIME)
  AssertionError: not [1] (tests/test_helper.py:10)
FAIL  texts (TIME)
  AssertionError: one is there (tests/test_helper.py:14)
ok    errors (TIME)
FAIL  other errors (TIME)
  AttributeError: 'int' object has no attribute 'name' (lib/helper.py:2)
FAIL  no errors (TIME)
  AssertionError: no exception, want ValueError (tests/test_helper.py:27)
weft: 6 failed, of 8 tests
`
	if got := changing.ReplaceAllString(string(out), "TIME"); got != want {
		t.Errorf("weft says\n%s\nwant\n%s", got, want)
	}
}

// TestScriptTests runs 'weft test' in a project with tests that fail in several ways, and
// without cases.
func TestScriptTests(t *testing.T) {
	p := newProjects(t)
	p.env = []string{"PATH=", "HOME=" + t.TempDir()}
	dir := filepath.Join(t.TempDir(), "tested")
	p.run(t, p.root, p.weft, "new", dir, "--lang", "ts")
	if err := os.Mkdir(filepath.Join(dir, "lib"), 0o777); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"lib/helper.ts": "export function nameOf(of: any) {\n  return of.name.toUpperCase();\n}\n",
		"lib/helper.test.ts": `import { describe, expect, it } from "weft/test";
import { nameOf } from "./helper";

describe("nameOf", () => {
  it("shouts", () => expect(nameOf({ name: "ada" })).toBe("ADA"));
  it("fails", () => { nameOf({}); });
  it("is expected to fail", () => expect(() => nameOf({})).toThrow(TypeError));
});
`,
		"main.test.js": `import "./main";
import { expect, session, test } from "weft/test";

test("a number", () => {
  expect(1 + 1).toBe(3);
});
test("a promise", async () => {
  await expect(Promise.resolve(1)).rejects.toThrow("x");
});
test("runs", async () => {
  const mine = session();
  expect(await mine.run({ name: "Ada" })).toEqual("Hello, Ada!");
});
test("a run that is refused", async () => {
  await session().run({});
});
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	test := func(want string, args ...string) {
		t.Helper()
		cmd := exec.Command(p.weft, append([]string{"test", "--timeout", suite.Hang.String()}, args...)...)
		cmd.Dir, cmd.Env = dir, p.env
		out, err := cmd.CombinedOutput()
		if (err == nil) != strings.HasSuffix(want, "passed\n") {
			t.Error(err)
		}
		if got := changing.ReplaceAllString(string(out), "TIME"); got != want {
			t.Errorf("%q says\n%s\nwant\n%s", args, got, want)
		}
	}
	test("ok    nameOf shouts (TIME)\nok    runs (TIME)\n2 tests passed\n", "--run", "nameOf shouts|^runs")
	if err := os.Remove(filepath.Join(dir, "cases.json")); err != nil {
		t.Fatal(err)
	}
	test(`ok    nameOf shouts (TIME)
FAIL  nameOf fails (TIME)
  TypeError: cannot read property 'toUpperCase' of undefined (lib/helper.ts:2:10)
ok    nameOf is expected to fail (TIME)
FAIL  a number (TIME)
  Expected: toBe(3), have 2 (main.test.js:5:17)
FAIL  a promise (TIME)
  Expected: a rejected promise, have 1 (main.test.js:8:44)
ok    runs (TIME)
FAIL  a run that is refused (TIME)
  start_event.name: is required (main.test.js:15:19)
weft: 4 failed, of 7 tests
`)
}

// TestDevFlow changes a flow under 'weft dev': to an invalid flow, and to a flow that
// fits only after the functions have changed, too.
func TestDevFlow(t *testing.T) {
	p := newProjects(t)
	dir := filepath.Join(p.root, "dev-flow")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	p.run(t, p.root, p.weft, "new", "dev-flow", "--template", "flow")
	change := func(name, from, to string) {
		t.Helper()
		file := filepath.Join(dir, name)
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, bytes.ReplaceAll(text, []byte(from), []byte(to)), 0o666)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	dev := p.spawn(t, dir, "dev", "--addr", "127.0.0.1:0", "input=tea?")
	dev.wait(t, `^run dev-flow \{"input":"tea\?"\}$`)
	dev.wait(t, `^result "You have told me nothing yet." \(`)

	change("flow.yaml", "dev-flow.nothing", "dev-flow.nil")
	dev.wait(t, `^flow.yaml has changed$`)
	dev.wait(t, `^error: .*flow.yaml is refused for 1 problem, and nothing has changed:$`)
	dev.wait(t, `dev-flow does not have that function: it has kind, note, recall, nothing$`)
	dev.wait(t, `^version 1 is served on$`)

	change("main.go", `weft.Function("nothing", nothing)`, `weft.Function("nil", nothing)`) // both names have changed now
	dev.wait(t, `^built in .*: version 2$`)
	dev.wait(t, `^result "You have told me nothing yet." \(`)
	if err := dev.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	dev.wait(t, `^stopped$`)
	if err := dev.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestDevLines makes a TinyGo project panic and trap under 'weft dev', which names the
// line.
func TestDevLines(t *testing.T) {
	p := newProjects(t)
	dir := filepath.Join(p.root, "lines")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	p.run(t, p.root, p.weft, "new", "lines", "--lang", "tinygo")
	file := filepath.Join(dir, "main.go")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, after, found := strings.Cut(string(text), `ctx.Info("delivering " + ev.Text)`)
	if !found {
		t.Fatal("the template is another one")
	}
	if err := os.WriteFile(file, []byte(before+`panic("out of order")`+after), 0o666); err != nil {
		t.Fatal(err)
	}
	dev := p.spawn(t, dir, "dev", "--addr", "127.0.0.1:0", "name=Grace")
	dev.wait(t, fmt.Sprintf(`^failed: out of order \(main.go:%d\)$`, strings.Count(before, "\n")+1))
	if err := dev.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	dev.wait(t, `^stopped$`)
	if err := dev.cmd.Wait(); err != nil {
		t.Error(err)
	}
}
