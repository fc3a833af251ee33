package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// wasmMagic begins every WebAssembly module.
const wasmMagic = "\x00asm"

func newPush() *cobra.Command {
	var o pushOptions
	cmd := &cobra.Command{
		Use:   "push [FILE.wasm]",
		Short: "Upload a plugin",
		Long: `Upload a plugin: its workflow becomes available, or gets a new version.

The server checks the module as a whole before anything changes. If it finds problems,
such as an event that no step takes or a step that nothing reaches, it lists all of them
and keeps the version before. Runs in progress finish with the version with which they
began. Uploading the same bytes again changes nothing.

Without FILE, upload the module that 'weft build' has made of the project in this
folder. The plugin's name is the file's name, without .wasm and without -go or -tinygo.
The plugin itself names its workflow; a part makes no workflow before 'weft compose'.
Workflows that are composed of the plugin take the new version; the server refuses a
version that would break one of them. It also refuses a version whose workflow has
another name, unless --replace-workflow is given, which removes the old workflow.

If a flow lies beside the module as NAME.flow.json, where 'weft build' writes it, it
becomes the workflow NAME.

A plugin made for Extism does not describe itself. If it has one function, that function
becomes the only step, from the start event to the result. Otherwise a manifest says
which function is which step (docs/extism.md), and becomes part of the module.`,
		Example: `  weft push                             # in a project, after 'weft build'
  weft push build/plugins/counter-go.wasm
  weft push step.wasm --name greet
  weft push step.wasm --check           # can runs that wait go on with it?
  weft push step.wasm --manifest step.json  # made for Extism
  weft push step.wasm --json | jq .sha256`,
		Args: takes("[FILE.wasm]"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"wasm"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	cmd.Flags().StringVar(&o.name, "name", "", "`NAME` of the plugin (default: from the file's name)")
	cmd.Flags().StringVar(&o.manifest, "manifest", "", "`FILE` with the manifest of a plugin made for Extism (JSON)")
	cmd.Flags().BoolVar(&o.check, "check", false, "say which runs in progress could not move to the new version")
	cmd.Flags().BoolVar(&o.replace, "replace-workflow", false, "accept a version whose workflow has another name than before")
	return clientCommand(cmd, func(ctx context.Context, r *remote, args []string) error {
		file, name, err := pushed(args)
		if err != nil {
			return err
		}
		if o.name == "" {
			o.name = name
		}
		return push(ctx, r, file, o)
	})
}

// pushOptions are the flags of `weft push`.
type pushOptions struct {
	name     string
	manifest string
	check    bool
	replace  bool
}

// pushed finds the module to upload, and the name of its plugin: the file that is named,
// or what 'weft build' has made of the project here.
func pushed(args []string) (file, name string, err error) {
	if len(args) > 0 {
		return args[0], exampleName(args[0]), nil
	}
	p, err := findProject(".", "")
	if err != nil {
		return "", "", usage("FILE.wasm is missing, and here is no project: %w", err)
	}
	if _, err := os.Stat(p.Output()); err != nil {
		return "", "", fmt.Errorf("%s is not there: build the project with 'weft build'", p.Output())
	}
	return p.Output(), p.Name, nil
}

func push(ctx context.Context, r *remote, file string, o pushOptions) error {
	name := o.name
	wasm, err := readPlugin(file, o.manifest)
	if err != nil {
		return err
	}
	var doc abi.Raw
	if name == exampleName(file) { // by another name the flow would not find its functions
		if doc, err = flowBeside(file); err != nil {
			return err
		}
	}
	began, shown := time.Now(), r.working()
	defer shown.done()
	put := client.PutPluginOptions{Check: o.check, ReplaceWorkflow: o.replace, Progress: uploading(shown, file, len(wasm))}
	var (
		info    host.PluginInfo
		created bool
		checks  []client.Migration
		answer  []byte
	)
	composed, err := putWithFlow(ctx, r, name, doc, func() (err error) {
		info, created, checks, err = r.PutPluginWith(ctx, name, wasm, put)
		answer = bytes.Clone(r.last.body.Bytes())
		return err
	})
	shown.done()
	if err != nil {
		return refusal(file, err)
	}
	if r.json {
		return r.printJSON(answer)
	}
	if doc != nil {
		info.ComposedIn = append([]string{name}, slices.DeleteFunc(info.ComposedIn, func(w string) bool { return w == name })...)
	}
	state := "uploaded"
	if !created {
		state = "unchanged"
	}
	return r.print(fmt.Sprintf("%s %s, version %d (%s)\n", state, printable(info.Name), info.Version, span(time.Since(began))) + summary(&info, timeoutInForce(ctx, r, &info)) + checked(checks) + flowNote(name, doc, composed) + whatNow(r, &info))
}

// uploading shows the stages of an upload.
func uploading(shown *working, file string, bytes int) func(host.Stage) {
	waited := false
	return func(s host.Stage) {
		switch s.Name {
		case client.StageSending:
			shown.phase("uploading %s, %s", printable(file), bytesOf(bytes))
		case client.StageSent:
			shown.detail("the server checks %s", printable(file))
		case host.StageWaiting:
			show := shown.detail
			if !waited {
				show, waited = shown.phase, true
			}
			show("waiting for the compiler: %s before it", counted(uint64(s.Ahead), "module"))
		case host.StageCompiling:
			shown.detail("the server compiles %s", printable(file))
		}
	}
}

// flowNote says what became of the flow beside a module.
func flowNote(name string, doc abi.Raw, composed bool) string {
	switch {
	case doc == nil:
		return ""
	case composed:
		return fmt.Sprintf("the flow beside it is the workflow %s now\n", printable(name))
	}
	return fmt.Sprintf("the flow beside it is the workflow %s, unchanged\n", printable(name))
}

// whatNow says what can be done with a plugin that is uploaded.
func whatNow(r *remote, info *host.PluginInfo) string {
	switch {
	case info.Workflow != "":
		return fmt.Sprintf("run it with: %s\n", r.hint("run", printable(info.Workflow)))
	case len(info.ComposedIn) > 0:
		return fmt.Sprintf("run it with: %s\n", r.hint("run", printable(info.ComposedIn[0])))
	}
	return fmt.Sprintf("it is a part, and makes no workflow by itself; compose one with: %s\n",
		r.hint("compose", "NAME", "--plugin", printable(info.Name), "--plugin", "..."))
}

// readPlugin reads a module, and its manifest if there is one.
func readPlugin(file, manifest string) ([]byte, error) {
	wasm, err := readModule(file)
	if err != nil || manifest == "" {
		return wasm, err
	}
	text, err := readAtMost(manifest, maxManifest)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return nil, fmt.Errorf("%s is not JSON: %w", manifest, err)
	}
	return abi.WithManifest(wasm, compact.Bytes()), nil
}

// maxManifest bounds a manifest beside a module, in bytes.
const maxManifest = 1 << 20

// readModule reads a file that is to be a WebAssembly module.
func readModule(file string) ([]byte, error) {
	wasm, err := readAtMost(file, int64(host.MaxLimits().ModuleBytes)) // the server has its own limit
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(string(wasm), wasmMagic) {
		return nil, fmt.Errorf("%s is not a WebAssembly module: build one with GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared", file)
	}
	return wasm, nil
}

// readAtMost reads a file of at most limit bytes.
func readAtMost(file string, limit int64) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	b, err := readSome(f, file, limit)
	return b, errors.Join(err, f.Close())
}

// readSome reads to the end of what may hold at most limit bytes.
func readSome(from io.Reader, name string, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(from, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = fmt.Errorf("%s is longer than the %d MiB that a request may have", name, limit>>20)
	}
	return b, err
}

// timeoutInForce says what timeout the runs of a plugin's workflow have on the server, in
// which its settings and the server's default count; "": the server does not say.
func timeoutInForce(ctx context.Context, r *remote, info *host.PluginInfo) string {
	if info.Workflow == "" {
		return ""
	}
	about, err := r.About(ctx, info.Workflow)
	if err != nil {
		return "" // a key may upload and not read
	}
	return timeoutOf(about.Timeout)
}

// summary shows what a plugin is and what it asks for. timeout is that in force, or "" for
// what the plugin declares.
func summary(info *host.PluginInfo, timeout string) string {
	var s sheet
	s.add("workflow", info.Workflow)
	s.add("composed in", strings.Join(info.ComposedIn, ", "))
	s.add("digest", digest(info.SHA256))
	s.add("size", bytesOf(info.Size))
	d := declared(info)
	s.add("steps", strings.Join(d.steps, ", "))
	s.add("asks for", asked(info.Imports))
	s.add("resources", strings.Join(d.resources, ", "))
	s.add("waits for", strings.Join(d.waits, ", "))
	s.add("retries", strings.Join(d.retries, ", "))
	s.add("timeout", cmp.Or(timeout, d.timeout))
	s.add("limits", strings.Join(d.limits, ", "))
	return s.render("  ")
}

// mostListed is how many functions of a module other than ours are worth naming.
const mostListed = 4

// asked shows which functions of the host a plugin imports, by module.
func asked(imports []string) string {
	var modules []string
	functions := map[string][]string{}
	for _, name := range imports {
		module, function, _ := strings.Cut(name, ".")
		if functions[module] == nil {
			modules = append(modules, module)
		}
		functions[module] = append(functions[module], function)
	}
	if i := slices.Index(modules, abi.ImportModule); i > 0 { // ours first: the rest comes with every build
		modules = slices.Insert(slices.Delete(modules, i, i+1), 0, abi.ImportModule)
	}
	for i, module := range modules {
		list := strings.Join(functions[module], ", ")
		if n := len(functions[module]); module != abi.ImportModule && n > mostListed {
			list = fmt.Sprintf("%d functions", n)
		}
		modules[i] = module + " (" + list + ")"
	}
	return strings.Join(modules, ", ")
}
