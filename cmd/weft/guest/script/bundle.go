package script

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"

	"github.com/weftrun/weft/sdk-guest/js"
	"github.com/weftrun/weft/sdk-guest/js/sdk"
)

// Sizes of a bundle in bytes. The engine needs about 11 bytes of memory and 300 units of
// fuel for each byte of a bundle.
const (
	largeBundle = 1 << 20
	maxBundle   = 8 << 20
)

// Entries are the files that a project's script may begin with, in the order in which
// they are looked for.
var Entries = []string{"main.ts", "main.mts", "main.js", "main.mjs"}

// ErrSources is the error of sources that the bundler refuses. Its messages have been
// written to Options.Said.
var ErrSources = errors.New("the bundler refuses the sources")

// Options say how a script is built.
type Options struct {
	Language string    // "ts", "js" or "py"
	Version  string    // of the program that builds, for the module's description
	NoLines  bool      // leave out the table of lines: errors then have no files and lines
	Said     io.Writer // gets messages of the bundler, in its own format
}

// Build bundles the project in a folder and returns a module. Build does not change any
// file.
//
// # Errors
//
// ErrSources; [py.ErrNoEngine]; an error if the folder has no file to begin with, or if the
// bundle is too large.
func Build(dir string, o Options) ([]byte, error) {
	if o.Language == "py" {
		return buildPython(dir, o)
	}
	entry := Entry(dir)
	if entry == "" {
		return nil, fmt.Errorf("%s has none of the files %s", dir, strings.Join(Entries, ", "))
	}
	return build(dir, fmt.Sprintf("import \"./%s\";", entry), o)
}

// BuildTests bundles test files of a project, given relative to its folder, and returns a
// module. Its workflow has the given name: with a start event without fields its result is
// the list of the tests' names, and with the number of a test, in the field test, it is "" or
// what is wrong. A test asks for runs of the workflow under test by events in its stream:
// see session in the SDK's test.ts, or test.py.
//
// # Errors
//
// Those of [Build].
func BuildTests(dir string, files []string, workflow string, o Options) ([]byte, error) {
	if o.Language == "py" {
		return buildPythonWith(dir, files, workflow, o)
	}
	main := ""
	for _, name := range files {
		main += fmt.Sprintf("import %q; ", "./"+filepath.ToSlash(name))
	}
	return build(dir, main+fmt.Sprintf("import { serve } from \"weft/test\"; serve(%q);", workflow), o)
}

// build makes a module of the script main, which imports files of the folder.
func build(dir, main string, o Options) ([]byte, error) {
	b, err := bundle(dir, main, o.Said)
	if err != nil {
		return nil, err
	}
	if err := b.adviseZod(o.Said); err != nil {
		return nil, err
	}
	if err := b.checkSize(o.Said); err != nil {
		return nil, err
	}
	var lines []byte
	if !o.NoLines {
		if lines, err = LineMap(b.sourceMap, shownName); err != nil {
			return nil, err
		}
	}
	info, err := b.info(o)
	if err != nil {
		return nil, err
	}
	engine, err := js.Engine()
	if err != nil {
		return nil, err
	}
	return Inject(engine, b.source, lines, info)
}

// Entry returns the name of the file that the script in a folder begins with, in
// TypeScript, JavaScript or Python; "" if there is none.
func Entry(dir string) string {
	for _, name := range append(slices.Clone(Entries), PythonEntry) {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.Mode().IsRegular() {
			return name
		}
	}
	return ""
}

// bundled is what the bundler made.
type bundled struct {
	source, sourceMap []byte
	inputs            map[string]int // the bytes that each file takes in the bundle
	usesZod           []string       // the project's files that import zod
}

// Description describes the script of a module. The custom section [Section] holds it as
// JSON.
type Description struct {
	Language string   `json:"language"`
	Version  string   `json:"version,omitempty"` // of the weft that built the module
	Files    []string `json:"files"`
	SHA256   string   `json:"sha256"` // of the bundle
	Size     int      `json:"size"`   // of the bundle, in bytes
}

// Describe returns the description of a module's script; nil if the module has none.
func Describe(module []byte) *Description {
	var d Description
	if info := Info(module); info == nil || json.Unmarshal(info, &d) != nil {
		return nil
	}
	return &d
}

func (b *bundled) info(o Options) ([]byte, error) {
	sum := sha256.Sum256(b.source)
	d := Description{Language: o.Language, Version: o.Version, SHA256: hex.EncodeToString(sum[:]), Size: len(b.source)}
	for name := range b.inputs {
		if shown, isSDK := shownName(name); !isSDK {
			d.Files = append(d.Files, shown)
		}
	}
	slices.Sort(d.Files)
	return json.Marshal(d)
}

// checkSize refuses a bundle that is too large, and warns of a large one.
func (b *bundled) checkSize(said io.Writer) error {
	switch size := len(b.source); {
	case size > maxBundle:
		return fmt.Errorf("the bundle has %d bytes, and at most %d are allowed; the largest files are:\n%s", size, maxBundle, b.largest())
	case size > largeBundle:
		_, err := fmt.Fprintf(said, "warning: the bundle has %d bytes, so the module needs much memory; the largest files are:\n%s", size, b.largest())
		return err
	}
	return nil
}

// largest lists the files that take most of a bundle.
func (b *bundled) largest() string {
	names := []string{}
	for name := range b.inputs {
		names = append(names, name)
	}
	slices.SortFunc(names, func(x, y string) int { return cmp.Or(b.inputs[y]-b.inputs[x], strings.Compare(x, y)) })
	text := ""
	for _, name := range names[:min(5, len(names))] {
		text += fmt.Sprintf("  %9d %s\n", b.inputs[name], name)
	}
	return text
}

const (
	namespace = "weft-sdk" // of files of the SDK in this program
	wrapper   = "<weft>"   // the file that imports the globals, then the entry
)

// shownName gives the name of a file as messages show it, and whether the file is of the
// SDK.
func shownName(source string) (shown string, isSDK bool) {
	name, inNamespace := strings.CutPrefix(source, namespace+":")
	return name, inNamespace || source == wrapper || strings.HasPrefix(source, sdkFolder+"/")
}

// A globalModule is a module of the SDK that defines globals.
type globalModule struct {
	name    string
	globals *regexp.Regexp // what names one of the globals
}

// globals are the modules for the globals that neither the engine nor globals.ts defines.
var globals = []globalModule{
	{"text", regexp.MustCompile(`\bText(En|De)coder\b`)},
	{"crypto", regexp.MustCompile(`\bcrypto\b`)},
	{"clone", regexp.MustCompile(`\bstructuredClone\b`)},
	{"url", regexp.MustCompile(`\bURL(SearchParams)?\b`)},
	{"abort", regexp.MustCompile(`\b((Custom)?Event|EventTarget|Abort(Controller|Signal))\b`)},
}

// bundle makes one script of the script main, which imports files of the folder, and of all
// that these import, with the modules of those
// globals that the script names.
func bundle(dir, main string, said io.Writer) (*bundled, error) {
	var messages bytes.Buffer
	b, err := bundleWith(dir, main, nil, &messages)
	if err == nil {
		modules := []string{}
		for _, g := range globals {
			if g.globals.Match(b.source) {
				modules = append(modules, g.name)
			}
		}
		if len(modules) > 0 {
			messages.Reset()
			b, err = bundleWith(dir, main, modules, &messages)
		}
	}
	if messages.Len() > 0 {
		if _, err := messages.WriteTo(said); err != nil {
			return nil, err
		}
	}
	return b, err
}

// bundleWith makes one script of modules of the SDK, the script main, and all that they
// import.
func bundleWith(dir, main string, modules []string, said io.Writer) (*bundled, error) {
	imports := ""
	for _, name := range append([]string{"globals"}, modules...) {
		imports += fmt.Sprintf("import \"weft/%s\"; ", name)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // the bundler shows real paths
		return nil, err
	}
	r := api.Build(api.BuildOptions{
		AbsWorkingDir: dir,
		Stdin:         &api.StdinOptions{Contents: imports + main, ResolveDir: dir, Sourcefile: wrapper},
		Outfile:       filepath.Join(dir, "bundle.js"), // not written; names in the source map are relative to its folder
		Bundle:        true, Format: api.FormatIIFE, Platform: api.PlatformNeutral, Target: api.ES2023,
		MainFields: []string{"module", "main"}, Conditions: []string{"weft", "import"},
		MinifySyntax: true, MinifyWhitespace: true, Charset: api.CharsetUTF8, LegalComments: api.LegalCommentsNone,
		Sourcemap: api.SourceMapExternal, SourcesContent: api.SourcesContentExclude, Metafile: true,
		Define:   map[string]string{"process.env.NODE_ENV": `"production"`},
		Loader:   map[string]api.Loader{".txt": api.LoaderText, ".md": api.LoaderText, ".sql": api.LoaderText},
		Plugins:  []api.Plugin{resolver(dir)},
		LogLevel: api.LogLevelSilent,
	})
	if err := say(said, r.Errors, r.Warnings); err != nil {
		return nil, err
	}
	if len(r.Errors) > 0 {
		return nil, ErrSources
	}
	b := &bundled{inputs: map[string]int{}}
	for _, f := range r.OutputFiles {
		if strings.HasSuffix(f.Path, ".map") {
			b.sourceMap = f.Contents
		} else {
			b.source = f.Contents
		}
	}
	var meta struct {
		Inputs map[string]struct {
			Imports []struct{ Path, Original string }
		}
		Outputs map[string]struct {
			Inputs map[string]struct{ BytesInOutput int }
		}
	}
	if err := json.Unmarshal([]byte(r.Metafile), &meta); err != nil {
		return nil, fmt.Errorf("read the bundler's list of files: %w", err)
	}
	for _, out := range meta.Outputs {
		for name, in := range out.Inputs {
			b.inputs[name] = in.BytesInOutput
			for _, i := range meta.Inputs[name].Imports {
				if i.Original == "zod" && !strings.Contains(name, "node_modules/") {
					b.usesZod = append(b.usesZod, name)
				}
			}
		}
	}
	slices.Sort(b.usesZod)
	return b, nil
}

// adviseZod says how a bundle loses zod's languages, if they are more than a quarter of it.
func (b *bundled) adviseZod(said io.Writer) error {
	languages := 0
	for name, size := range b.inputs {
		if strings.Contains(name, "node_modules/zod/") && strings.Contains(name, "/locales/") {
			languages += size
		}
	}
	if languages*4 <= len(b.source) || len(b.usesZod) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(said, "warning: %d of the bundle's %d bytes are zod's messages in other languages: write import * as z from \"zod\" in %s, which leaves them out\n",
		languages, len(b.source), strings.Join(b.usesZod, " and "))
	return err
}

// unresolved matches the bundler's message of a package that it has not found.
var unresolved = regexp.MustCompile(`^Could not resolve "([^./"][^"]*)"$`)

// say writes messages in the bundler's own format.
func say(said io.Writer, faults, warnings []api.Message) error {
	for i := range faults {
		if name := unresolved.FindStringSubmatch(faults[i].Text); name != nil {
			faults[i].Notes = []api.Note{{Text: fmt.Sprintf("There is no package %q in node_modules: install it, or import a file of the project as %q.", name[1], "./"+name[1])}}
		}
	}
	text := strings.Join(api.FormatMessages(warnings, api.FormatMessagesOptions{Kind: api.WarningMessage}), "") +
		strings.Join(api.FormatMessages(faults, api.FormatMessagesOptions{Kind: api.ErrorMessage}), "")
	if text == "" {
		return nil
	}
	_, err := io.WriteString(said, text)
	return err
}

// sdkFolder is where a project has the SDK, if it has its own.
const sdkFolder = "sdk"

// resolver finds the SDK, and says what to use instead of the modules of Node.
func resolver(dir string) api.Plugin {
	return api.Plugin{Name: "weft", Setup: func(b api.PluginBuild) {
		b.OnResolve(api.OnResolveOptions{Filter: `^weft(/.*)?$`}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
			return findSDK(dir, strings.TrimPrefix(strings.TrimPrefix(a.Path, "weft"), "/"))
		})
		b.OnResolve(api.OnResolveOptions{Filter: `^\./`, Namespace: namespace}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
			return api.OnResolveResult{Path: path.Clean(a.Path) + ".ts", Namespace: namespace}, nil
		})
		b.OnLoad(api.OnLoadOptions{Filter: `.*`, Namespace: namespace}, func(a api.OnLoadArgs) (api.OnLoadResult, error) {
			text, err := sdk.Source.ReadFile(a.Path)
			contents := string(text)
			return api.OnLoadResult{Contents: &contents, Loader: api.LoaderTS}, err
		})
		b.OnResolve(api.OnResolveOptions{Filter: `^(node:.*|[a-z_]+(/promises)?)$`}, func(a api.OnResolveArgs) (api.OnResolveResult, error) {
			name, prefixed := strings.CutPrefix(a.Path, "node:")
			base, _, _ := strings.Cut(name, "/")
			instead, known := nodeModules[base]
			if !prefixed && (!known || installed(a.ResolveDir, name)) {
				return api.OnResolveResult{}, nil
			}
			if !known {
				instead = "use what JavaScript itself has, or a package without it"
			}
			text := fmt.Sprintf("%q is a module of Node, which steps do not have: %s", a.Path, instead)
			return api.OnResolveResult{Errors: []api.Message{{Text: text}}}, nil
		})
	}}
}

// findSDK finds a file of the SDK: "" is the SDK itself. A project's own SDK goes before
// the SDK in this program.
func findSDK(dir, name string) (api.OnResolveResult, error) {
	file := cmp.Or(name, "weft") + ".ts"
	module := slices.ContainsFunc(globals, func(g globalModule) bool { return g.name == name })
	if name == "" || name == "globals" || name == "test" || module {
		if _, err := os.Stat(filepath.Join(dir, sdkFolder, "weft.ts")); err == nil {
			own := filepath.Join(dir, sdkFolder, file)
			if _, err := os.Stat(own); err != nil && module { // an SDK of before has all globals in one file
				own = filepath.Join(dir, sdkFolder, "globals.ts")
			}
			return api.OnResolveResult{Path: own}, nil
		}
		if _, err := fs.Stat(sdk.Source, file); err != nil {
			return api.OnResolveResult{}, err
		}
		return api.OnResolveResult{Path: file, Namespace: namespace}, nil
	}
	return api.OnResolveResult{Errors: []api.Message{{Text: fmt.Sprintf("the SDK has no module %q: import from \"weft\"", "weft/"+name)}}}, nil
}

// installed reports whether a package is in a folder node_modules at dir or above.
func installed(dir, name string) bool {
	for {
		if _, err := os.Stat(filepath.Join(dir, "node_modules", filepath.FromSlash(name))); err == nil {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}

// nodeModules says of modules of Node what to use instead.
var nodeModules = map[string]string{
	"fs":             "a step has no files; import a .json, .txt, .md or .sql file, or keep data in the state or a resource of the kind \"kv\"",
	"path":           "a step has no files; take texts apart by split and join",
	"os":             "a step does not see the machine",
	"process":        "settings of a step are in ctx.config()",
	"http":           "use ctx.http(name) with a resource of the kind \"http\"",
	"https":          "use ctx.http(name) with a resource of the kind \"http\"",
	"http2":          "use ctx.http(name) with a resource of the kind \"http\"",
	"net":            "use ctx.http(name) with a resource of the kind \"http\"",
	"tls":            "use ctx.http(name) with a resource of the kind \"http\"",
	"dns":            "use ctx.http(name) with a resource of the kind \"http\"",
	"crypto":         "use the global crypto: crypto.subtle.digest, crypto.getRandomValues, crypto.randomUUID",
	"buffer":         "use Uint8Array, which has toBase64 and toHex",
	"util":           "use TextEncoder, TextDecoder and structuredClone",
	"url":            "use the globals URL and URLSearchParams",
	"events":         "steps give events to each other by returning them; within a step, use the global EventTarget",
	"stream":         "use arrays and generators; ctx.stream(event) writes to the run's stream",
	"timers":         "use setTimeout, or ctx.sleep for longer times",
	"child_process":  "return a list of events: the steps that take them run side by side",
	"worker_threads": "return a list of events: the steps that take them run side by side",
	"assert":         "throw an error, such as new WeftError(message, { code })",
	"zlib":           "use a package written in JavaScript",
	"querystring":    "use the global URLSearchParams",
	"test":           "cases.json has the cases of 'weft test'",
}
