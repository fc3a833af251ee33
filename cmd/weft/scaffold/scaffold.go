// Package scaffold writes the files of a new project: a plugin that builds without
// changes and without a network, because the project contains the SDK.
//
// It does not depend on how a plugin is compiled, and does not talk to people or servers.
package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	jssdk "github.com/weftrun/weft/sdk-guest/js/sdk"
	pysdk "github.com/weftrun/weft/sdk-guest/py/sdk"
	rustsdk "github.com/weftrun/weft/sdk-guest/rust"
)

//go:embed templates
var templates embed.FS

// Languages are the languages of a project. Go and TinyGo are two compilers of the same
// sources.
var Languages = []string{"go", "tinygo", "rust", "ts", "js", "py"}

// languageNames are the languages' names for people.
var languageNames = map[string]string{"go": "Go", "tinygo": "Go (compiled by TinyGo)", "rust": "Rust", "ts": "TypeScript", "js": "JavaScript", "py": "Python"}

// Template is a workflow to begin with.
type Template struct {
	Name    string
	Summary string // a sentence without a full stop
	Start   string // the fields of a start event, in the form of the command line
}

// Templates lists the templates, simplest first.
var Templates = []Template{
	{"minimal", "two steps that make a greeting, and a state that counts", "name=Ada"},
	{"fan-out", "a list whose items are processed concurrently and combined", `items='["milk", "bread"]'`},
	{"human-in-the-loop", "a step that asks a person and waits for the answer", "item=desk"},
	{"chat", "a conversation that the session keeps, with a streamed reply", "--session mine message=hello"},
	{"retry", "a call that sometimes fails, its retries, and a fallback", "fail_times=2"},
	{"flow", "functions, and a flow in YAML that calls them: a router, a condition, a state", "--session mine input='milk is out'"},
}

// Project describes a project to write.
type Project struct {
	Name     string // also the name of the workflow; see [CheckName]
	Language string // one of Languages
	Template string // the name of one of Templates
	Version  string // of the program that writes the project; "": dev
}

// MaxName is the largest length of a project's name, in bytes.
const MaxName = 60

// reserved are names that a compiler does not accept, or that have another meaning.
var reserved = strings.Fields(`
	alloc cmd core internal main proc-macro proc-macro2 quote sdk serde std syn test testdata unicode-ident
	vendor weft weft-macros
	as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod
	move mut pub ref return self static struct super trait true type unsafe use where while
	abstract become box do final gen macro override priv try typeof unsized virtual yield`)

// CheckName says what is wrong with the name of a project, or returns nil. The name also
// becomes the name of a workflow, a module, a crate and a file: letters from a to z,
// digits and '-', beginning with a letter.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("a project needs a name")
	case len(name) > MaxName:
		return fmt.Errorf("the name is longer than %d characters", MaxName)
	case slices.Contains(reserved, name):
		return fmt.Errorf("%q has another meaning for a compiler: choose another name, such as my-%s", name, name)
	}
	for i, r := range name {
		letter := r >= 'a' && r <= 'z'
		if !letter && (i == 0 || (r < '0' || r > '9') && r != '-') || r == '-' && i == len(name)-1 {
			return fmt.Errorf("%q is not a valid name for a project: use small letters, digits and '-', beginning with a letter%s", name, better(name))
		}
	}
	return nil
}

// better returns a valid name that is similar to an invalid one.
func better(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z', b.Len() > 0 && r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	if text := strings.Trim(b.String(), "-"); text != "" && CheckName(text) == nil {
		return ", as in " + text
	}
	return ""
}

// Files returns the files of a project by their slash-separated paths.
//
// # Errors
//
// Those of [CheckName], and an error for an unknown language or template.
func (p Project) Files() (map[string][]byte, error) {
	if err := CheckName(p.Name); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(Templates, func(t Template) bool { return t.Name == p.Template })
	if i < 0 || !slices.Contains(Languages, p.Language) {
		return nil, fmt.Errorf("there is no template %q in %q", p.Template, p.Language)
	}
	files := map[string][]byte{}
	for to, from := range p.sources() {
		text, err := templates.ReadFile(path.Join("templates", from))
		if err != nil {
			return nil, err
		}
		files[to] = text
	}
	if p.Language == "rust" {
		files["Cargo.lock"] = []byte(lockWith(string(files["Cargo.lock"]), p.Name))
	}
	values := p.values(Templates[i])
	for name, text := range files {
		files[name] = []byte(values.Replace(string(text)))
	}
	if err := p.addSDK(files); err != nil {
		return nil, err
	}
	addSums(files, p.Version)
	return files, nil
}

// sources names the template of each file.
func (p Project) sources() map[string]string {
	files := map[string]string{
		"README.md":  "common/README.md.tmpl",
		"Makefile":   "common/Makefile.tmpl",
		".gitignore": "common/gitignore.tmpl",
		"weft.json":  "common/weft.json.tmpl",
		"cases.json": "cases/" + p.Template + ".json",
	}
	if p.Template == "flow" {
		files["flow.yaml"] = "common/flow.yaml.tmpl"
	}
	if p.Language == "rust" {
		files["src/lib.rs"] = "rust/" + p.Template + "/lib.rs.tmpl"
		files["Cargo.toml"] = "rust/Cargo.toml.tmpl"
		files["Cargo.lock"] = "rust/Cargo.lock.tmpl"
		files[".cargo/config.toml"] = "rust/config.toml.tmpl"
		return files
	}
	if p.script() {
		files["main."+p.Language] = p.Language + "/" + p.Template + "/main." + p.Language + ".tmpl"
		if p.Language == "py" {
			files["pyproject.toml"] = "py/pyproject.toml.tmpl"
		} else {
			files["tsconfig.json"] = "script/tsconfig.json.tmpl"
			files["package.json"] = "script/package.json.tmpl"
		}
		delete(files, "Makefile") // there is nothing beside weft to call
		return files
	}
	files["main.go"] = "go/" + p.Template + "/main.go.tmpl"
	files["main_test.go"] = "go/" + p.Template + "/main_test.go.tmpl"
	return files
}

// values replaces the placeholders of templates.
func (p Project) values(t Template) *strings.Replacer {
	source, unit, readme := "main.go", "go test", "sdk/go/README.md"
	byHand := map[string]string{
		"go":     "GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -ldflags='-s -w' -o build/" + p.Name + ".wasm .",
		"tinygo": "tinygo build -target=wasip1 -buildmode=c-shared -scheduler=none -gc=leaking -no-debug -o build/" + p.Name + ".wasm .",
		"rust":   "cargo build --release --target wasm32-unknown-unknown   # to target/wasm32-unknown-unknown/release",
	}
	if p.Language == "rust" {
		source, unit, readme = "src/lib.rs", "cargo test", "sdk/README.md"
	}
	if p.script() {
		source, unit, readme = "main."+p.Language, "", "sdk/README.md"
	}
	unitLine := fmt.Sprintf("    %-32s# the unit tests, in a process of this machine\n", unit)
	without := "Without `weft`, the plugin is built by:\n\n    " + byHand[p.Language] + "\n"
	if p.script() {
		unitLine, without = "", "`weft` builds the plugin by itself: Node, npm and compilers are not needed. `npm install` adds packages\n"+
			"that are written in JavaScript, and `npm install typescript` lets `weft build` check types.\n"
	}
	if p.Language == "py" {
		without = "`weft` builds the plugin by itself: Python and compilers are not needed. `pip install --target vendor PACKAGE`, or a\n" +
			"wheel in `vendor/`, adds packages that are written in Python.\n"
	}
	flow := ""
	if t.Name == "flow" {
		flow = "| `flow.yaml` | what calls the functions, and when: the workflow " + p.Name + ". `weft build` checks it, `weft push` puts it in place |\n"
	}
	return strings.NewReplacer("{{flow_row}}", flow,
		"{{name}}", p.Name, "{{language}}", p.Language, "{{Language}}", languageNames[p.Language],
		"{{summary}}", t.Summary, "{{start}}", t.Start, "{{source}}", source, "{{sdk_readme}}", readme,
		"{{unit_line}}", unitLine, "{{unit}}", unit, "{{by_hand}}\n", without,
	)
}

// script reports whether weft bundles the project itself.
func (p Project) script() bool { return p.Language == "ts" || p.Language == "js" || p.Language == "py" }

// lockWith adds the project to the lock file of its dependencies, at the place where
// cargo would put it: the packages are sorted by name.
func lockWith(lock, name string) string {
	const mark = "[[package]]\n"
	parts := strings.Split(lock, mark)
	own := fmt.Sprintf("name = %q\nversion = \"0.1.0\"\ndependencies = [\n \"weft\",\n]\n\n", name)
	at := 1
	for at < len(parts) && parts[at] < own {
		at++
	}
	if at == len(parts) { // the last package is not followed by an empty line
		parts[at-1] += "\n"
		own = strings.TrimSuffix(own, "\n")
	}
	return strings.Join(slices.Insert(parts, at, own), mark)
}

// addSDK adds the SDK's sources.
func (p Project) addSDK(files map[string][]byte) error {
	var sources embed.FS
	switch {
	case p.Language == "py":
		sources = pysdk.Source
	case p.script():
		sources = jssdk.Source
	case p.Language == "rust":
		sources = rustsdk.Source
	default:
		return addPacked(p.Name, files)
	}
	return fs.WalkDir(sources, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := sources.ReadFile(name)
		files[SDKFolder+"/"+name] = text
		return err
	})
}

// ErrNotEmpty is returned for a directory that is not empty.
var ErrNotEmpty = errors.New("already exists and is not empty")

// Write creates the directory and writes the files. It writes nothing if the directory is
// not empty.
func Write(dir string, files map[string][]byte) error {
	switch entries, err := os.ReadDir(dir); {
	case err == nil && len(entries) > 0:
		return fmt.Errorf("%s %w", dir, ErrNotEmpty)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(file, text, 0o666); err != nil {
			return err
		}
	}
	return nil
}
