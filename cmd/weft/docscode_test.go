package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/plugins"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/extism"
	"github.com/weftrun/weft/host/flow"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/resource"
)

// testedElsewhere are the blocks that another test checks, by language and page.
var testedElsewhere = map[string]string{
	"rust sdk-guest/rust/README.md":     "TestRustReadme builds, tests, uploads and runs them",
	"toml sdk-guest/rust/README.md":     "TestRustReadme builds by them",
	"python docs/writing-steps.md":      "the tests of plugins/quiz-py and TestPythonTests are like it",
	"ts docs/writing-steps.md":          "the tests of plugins/wordcount-ts and approval-ts are like it; TestExampleCases runs them",
	"ts sdk-guest/js/sdk/README.md":     "TestPage of cmd/weft/guest/script builds them",
	"python sdk-guest/py/sdk/README.md": "TestPage of sdk-guest/py runs it",
	"ts sdk-guest/js/engine/README.md":  "an interface between the engine and the SDK: sdk-guest/js/sdk/engine.ts has its types",
	"console docs/tutorial/":            "TestTutorial enters them",
	"diff docs/tutorial/":               "TestTutorial makes these changes",
	"ts docs/tutorial/":                 "TestTutorial looks for them in the projects",
	"go docs/tutorial/":                 "TestTutorial looks for them in the projects",
	"rust docs/tutorial/":               "TestTutorial looks for them in the projects",
	"python docs/tutorial/":             "TestTutorial looks for them in the projects",
	"console docs/guides/python.md":     "TestPythonPage enters them",
	"python docs/guides/python.md":      "TestPythonPage runs it",
	"yaml docs/postgres.md":             "TestComposeFile reads it",
	"yaml docs/cluster.md":              "TestComposeFile and TestKubernetesManifest read it",
	"console docs/journal.md":           "TestLessons enters them",
	"console docs/sessions.md":          "TestLessons enters them",
	" docs/reference/sdk-rust.md":       "examples in comments of the sources, which cargo test compiles and plays",
	" README.md":                        "a go.mod: .ci/test builds the plugin of README.md by it, with Go and with TinyGo",
	" testdata/abi/README.md":           "how a line of a list of vectors is made",
}

// notRun are the languages that no test runs, with the reason.
var notRun = map[string]string{
	"mermaid":    "pictures: whoever shows the page draws them",
	"ini":        "a unit of systemd, which is not where tests run; its command is looked at by TestCodeInPages",
	"dockerfile": "a container, likewise; its command is looked at below",
	"nginx":      "a proxy's settings, likewise",
	"python":     "what a workflow looks like in LlamaIndex, and the imports that differ: TestLlamaIndexPrograms has whole programs",
}

// commandsOf says which test runs the commands of a page, or of all pages below a folder,
// or why no test runs them. TestCodeInPages always checks that commands and flags exist.
var commandsOf = map[string]string{
	"sdk-guest/js/sdk/README.md": "TestProjects, with other names",
	"sdk-guest/py/sdk/README.md": "TestProjects, with other names",
	"docs/tutorial/":             "TestTutorial",
	"docs/journal.md":            "TestLessons; snapshots and retries, which take another server and failed runs: testdata/script/data.txtar and retry.txtar",
	"docs/sessions.md":           "TestLessons, and testdata/script/sessions.txtar",
	"plugins/":                   "TestLessons",
	"README.md":                  "TestLessons and TestRecording; 'make run' and 'make test' are what runs the tests; the plugin greet is built by .ci/test",
	"docs/writing-steps.md":      "the same as in the tutorial, in short",
	"docs/composition.md":        "testdata/script/compose.txtar",
	"docs/flows.md":              "testdata/script/flow.txtar",
	"docs/resources.md":          "testdata/script/resources.txtar",
	"docs/limits.md":             "testdata/script/limits.txtar",
	"docs/reference/":            "made of the code; the scripts of testdata/script run each command",
	"docs/extism.md":             "orders.wasm is a reader's own; TestExtism of host/hosttest uploads such plugins",
	"docs/guides/python.md":      "TestPythonPage; the client is installed by .ci/python",
	"docs/guides/":               "the plugins are a reader's own; testdata/script/push.txtar and migrate.txtar",
	"docs/operations.md":         "they take a server's data, days of it, or root; testdata/script/keys.txtar, data.txtar, migrate.txtar, runs.txtar",
	"docs/security.md":           "testdata/script/keys.txtar",
	"docs/console.md":            "TestConsoleIsBuilt of host/hosttest builds it",
	"docs/postgres.md":           "they take an operator's PostgreSQL; TestServerOnPostgres of host/hosttest starts a server on one",
	"docs/cluster.md":            "they take an operator's PostgreSQL; TestCluster of host/hosttest starts nodes on one",
	"docs/performance.md":        "minutes of benchmarks; testdata/script/bench.txtar",
	"sdk-guest/go/README.md":     "the plugin is compiled by TestBlocksInPages",
	"sdk-guest/rust/README.md":   "TestRustReadme",
	"sdk-guest/c/README.md":      "make plugins-c builds by the same compiler, and TestLessons runs what comes out",
	"sdk-guest/zig/README.md":    "make plugins-zig, likewise",
}

// knownCommands reports whether commandsOf has a page, or a folder above it.
func knownCommands(path string) bool {
	for {
		if commandsOf[path] != "" {
			return true
		}
		parent := strings.LastIndexByte(strings.TrimSuffix(path, "/"), '/')
		if parent < 0 {
			return false
		}
		path = path[:parent+1]
	}
}

// Each block of code in a page is compiled, validated or run, unless the tables above say
// why not. TestCodeInPages checks commands.
func TestBlocksInPages(t *testing.T) {
	sources := map[string]string{
		"go":   sourceLines(t, ".go", "plugins", "testdata/plugins", "sdk-guest/go"),
		"rust": sourceLines(t, ".rs", "plugins", "sdk-guest/rust/weft"),
		"zig":  sourceLines(t, ".zig", "plugins"),
	}
	programs, seen := map[string]string{}, map[string]int{}
	for _, p := range docPages(t) {
		fenced, _ := p.blocks()
		for _, b := range fenced {
			kind, _, _ := strings.Cut(b.lang, " ")
			dir, _ := filepath.Split(p.path)
			seen[kind]++
			if command, ok := strings.CutPrefix(lastLine(b.text), "ENTRYPOINT "); ok {
				var words []string
				if err := json.Unmarshal([]byte(command), &words); err != nil || checkCommand(t, p.path, b.line, strings.Join(words, " ")) != 1 {
					t.Errorf("%s:%d: %s: %v", p.path, b.line, command, err)
				}
			}
			switch {
			case testedElsewhere[kind+" "+p.path] != "" || testedElsewhere[kind+" "+dir] != "" || notRun[kind] != "":
			case kind == "go" && strings.HasPrefix(b.text, "package "):
				programs[p.path] = b.text
			case sources[kind] != "":
				if !strings.Contains(sources[kind], "\n"+strings.TrimSuffix(flat(b.text), "\n")) {
					t.Errorf("%s:%d: these lines are in no file that is compiled: put them into one of testdata/plugins/pages or sdk-guest/rust/weft/tests/pages.rs",
						p.path, b.line)
				}
			case kind == "json" || kind == "yaml":
				if err := checkData(t, b.text); err != nil {
					t.Errorf("%s:%d: %v", p.path, b.line, err)
				}
			default:
				t.Errorf("%s:%d: nothing tests a block of %q here: see testedElsewhere and notRun in docscode_test.go", p.path, b.line, kind)
			}
		}
	}
	for kind, least := range map[string]int{"go": 20, "rust": 8, "json": 5, "yaml": 1, "zig": 1} {
		if seen[kind] < least {
			t.Errorf("only %d blocks of %s were found", seen[kind], kind)
		}
	}
	vetPrograms(t, programs)
}

func lastLine(text string) string {
	text = strings.TrimSuffix(text, "\n")
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// flat removes differences between editors and pages from a text: indentation, and the
// alignment of comments.
func flat(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if words := strings.Join(strings.Fields(line), " "); words != "" {
			b.WriteString(words + "\n")
		}
	}
	return b.String()
}

// sourceLines returns the lines of all files below some folders.
func sourceLines(t *testing.T, ext string, dirs ...string) string {
	t.Helper()
	var all strings.Builder
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join(hosttest.Root(), dir), func(name string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "target":
				return filepath.SkipDir
			case filepath.Ext(name) != ext:
				return nil
			}
			text, err := os.ReadFile(name)
			all.WriteString("\n" + flat(string(text)))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

// vetPrograms type-checks whole programs.
func vetPrograms(t *testing.T, programs map[string]string) {
	t.Helper()
	dir := t.TempDir()
	const sdk = "github.com/weftrun/weft/sdk-guest/go"
	files := map[string]string{"go.mod": "module pages\n\ngo 1.24\n\nrequire " + sdk + " v0.0.0\n\nreplace " + sdk + " => " +
		filepath.Join(hosttest.Root(), "sdk-guest", "go") + "\n"}
	for name, text := range programs {
		files[strings.NewReplacer("/", "_", ".", "_").Replace(name)+"/main.go"] = text
	}
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "vet", "./...")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWORK=off", "GOFLAGS=", "GOPROXY=off")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("programs in pages: %v\n%s", err, said)
	}
}

// checkData parses a block of JSON or YAML with the code that parses it in the server.
func checkData(t *testing.T, text string) error {
	t.Helper()
	var v map[string]json.RawMessage
	_ = json.Unmarshal([]byte(text), &v)
	has := func(names ...string) bool {
		for _, name := range names {
			if _, ok := v[name]; !ok {
				return false
			}
		}
		return true
	}
	switch {
	case has("detail", "code"):
		var answer struct {
			Detail, Code string
			Limit        struct {
				Name        string
				Value, Used int64
			}
		}
		return strictly(text, &answer)
	case has("resources"):
		table, err := resource.ParseFile([]byte(text), resource.Sources{
			Env:      func(string) (string, bool) { return "a secret", true },
			ReadFile: os.ReadFile,
		})
		if err == nil {
			table.Close()
		}
		return err
	case has("kind", "grants"): // a resource for the API: in the file, grants name their tenants
		text = strings.ReplaceAll(text, `{"workflow":`, `{"tenant": "default", "workflow":`)
		return checkData(t, `{"resources": {"cache": `+text+`}}`)
	case has("defaults"):
		_, err := limit.Parse([]byte(text))
		return err
	case has("plugins", "settings"): // TestLessons sends it to a server
		return nil
	case has("workflow", "steps"):
		module := abi.WithManifest([]byte("\x00asm\x01\x00\x00\x00"), []byte(text))
		_, problems := extism.Read(module, []extism.Function{{Name: "price_of"}, {Name: "make_bill"}}, nil)
		return problemsError(problems)
	}
	file := filepath.Join(t.TempDir(), "flow.yaml")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		return err
	}
	raw, err := plugins.ReadFlow(file)
	if err != nil {
		return err
	}
	_, problems := flow.Parse(nil, raw)
	return problemsError(problems)
}

func strictly(text string, to any) error {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

func problemsError(problems []host.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return &host.Error{Code: host.CodeInvalidPlugin, Message: fmt.Sprint(problems), Problems: problems}
}

// Each concept has a picture in a format that the common viewers of pages support.
func TestConceptsHavePictures(t *testing.T) {
	for _, p := range docPages(t) {
		fenced, _ := p.blocks()
		drawn := map[int]bool{} // by line
		for _, b := range fenced {
			if b.lang != "mermaid" {
				continue
			}
			drawn[b.line] = true
			if kind, _, _ := strings.Cut(strings.TrimSpace(b.text), "\n"); kind != "flowchart LR" && kind != "sequenceDiagram" {
				t.Errorf("%s:%d: a picture of the kind %q", p.path, b.line, kind)
			}
		}
		if p.path != "docs/concepts.md" {
			continue
		}
		title, pictures, concepts := "", 0, 0
		for i, line := range append(p.lines, "## ") {
			if next, ok := strings.CutPrefix(line, "## "); ok {
				if title != "" && pictures == 0 {
					t.Errorf("%s: %q has no picture", p.path, title)
				}
				title, pictures = next, 0
				concepts++
			}
			if drawn[i+1] {
				pictures++
			}
		}
		if concepts < 10 {
			t.Errorf("%s has only %d concepts", p.path, concepts)
		}
	}
}
