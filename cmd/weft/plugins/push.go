package plugins

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/project"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/turns"
)

// wasmMagic begins every WebAssembly module.
const wasmMagic = "\x00asm"

// NewPush makes the command 'weft push'.
func NewPush() *cobra.Command {
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
  weft push step.wasm --check           # can waiting runs continue with it?
  weft push step.wasm --dry-run         # what would change?
  weft push step.wasm --manifest step.json  # made for Extism
  weft push step.wasm --json | jq .sha256`,
		Args: cli.Takes("[FILE.wasm]"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"wasm"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	cmd.Flags().StringVar(&o.name, "name", "", "`NAME` of the plugin (default: from the file's name)")
	cmd.Flags().StringVar(&o.manifest, "manifest", "", "`FILE` with the manifest of a plugin made for Extism (JSON)")
	cmd.Flags().BoolVar(&o.check, "check", false, "say which runs in progress could not move to the new version")
	cmd.Flags().BoolVar(&o.dry, "dry-run", false, "check the module, say how it differs from the newest version, and store nothing")
	cmd.Flags().BoolVar(&o.replace, "replace-workflow", false, "accept a version whose workflow has another name than before")
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		file, name, err := pushed(args)
		if err != nil {
			return err
		}
		if o.name == "" {
			o.name = name
		}
		if o.dry && o.check {
			return cli.Usage("--check needs a version that is stored: leave out --check or --dry-run")
		}
		if o.dry {
			return try(ctx, r, file, o)
		}
		return push(ctx, r, file, o)
	})
}

// pushOptions are the flags of `weft push`.
type pushOptions struct {
	name     string
	manifest string
	check    bool
	dry      bool
	replace  bool
}

// pushed finds the module to upload and the name of its plugin: the file that the command
// line names, or the output of 'weft build' in the current project.
func pushed(args []string) (file, name string, err error) {
	if len(args) > 0 {
		return args[0], ExampleName(args[0]), nil
	}
	p, err := project.Find(".", "")
	if err != nil {
		return "", "", cli.Usage("FILE.wasm is missing, and the current folder is not a project: %w", err)
	}
	if _, err := os.Stat(p.Output()); err != nil {
		return "", "", fmt.Errorf("%s does not exist: build the project with 'weft build'", p.Output())
	}
	return p.Output(), p.Name, nil
}

func push(ctx context.Context, r *remote.Conn, file string, o pushOptions) error {
	name := o.name
	wasm, err := readPlugin(file, o.manifest)
	if err != nil {
		return err
	}
	var doc abi.Raw
	if name == ExampleName(file) { // with another name the flow would not find its functions
		if doc, err = FlowBeside(file); err != nil {
			return err
		}
	}
	began, shown := time.Now(), r.Working()
	defer shown.Done()
	put := client.PutPluginOptions{Check: o.check, ReplaceWorkflow: o.replace, Progress: Uploading(shown, file, len(wasm))}
	var (
		info    host.PluginInfo
		created bool
		checks  []client.Migration
		answer  []byte
	)
	composed, err := PutWithFlow(ctx, r, name, doc, func() (err error) {
		info, created, checks, err = r.PutPluginWith(ctx, name, wasm, put)
		answer = r.Answer()
		return err
	})
	shown.Done()
	if err != nil {
		return Refusal(file, err)
	}
	if r.JSON {
		return r.PrintJSON(answer)
	}
	if doc != nil {
		info.ComposedIn = append([]string{name}, slices.DeleteFunc(info.ComposedIn, func(w string) bool { return w == name })...)
	}
	state := "uploaded"
	if !created {
		state = "unchanged"
	}
	return r.Print(fmt.Sprintf("%s %s, version %d (%s)\n", state, screen.Printable(info.Name), info.Version, screen.Span(time.Since(began))) + Summary(&info, TimeoutInForce(ctx, r, &info)) + checked(checks) + flowNote(name, doc, composed) + whatNow(r, &info))
}

// try shows what an upload would change.
func try(ctx context.Context, r *remote.Conn, file string, o pushOptions) error {
	wasm, err := readPlugin(file, o.manifest)
	if err != nil {
		return err
	}
	shown := r.Working()
	defer shown.Done()
	trial, err := r.TryPlugin(ctx, o.name, wasm, client.PutPluginOptions{ReplaceWorkflow: o.replace, Progress: Uploading(shown, file, len(wasm))})
	shown.Done()
	if err != nil {
		return Refusal(file, err)
	}
	if r.JSON {
		return r.PrintJSON(r.Answer())
	}
	var b strings.Builder
	name := screen.Printable(trial.Info.Name)
	switch {
	case trial.Unchanged:
		fmt.Fprintf(&b, "%s is the same as version %d\n", name, trial.Info.Version)
	case trial.Changes != nil && len(trial.Changes) == 0:
		fmt.Fprintf(&b, "%s would be version %d, with the same description; nothing was stored\n", name, trial.Info.Version)
	default:
		fmt.Fprintf(&b, "%s would be version %d; nothing was stored\n", name, trial.Info.Version)
	}
	for _, c := range trial.Changes {
		fmt.Fprintf(&b, "  %-8s", c.Change)
		for _, word := range []string{c.Part, c.Name} {
			if word != "" {
				b.WriteString(" " + screen.Printable(word))
			}
		}
		if len(c.Members) > 0 {
			fmt.Fprintf(&b, " (%s)", screen.Printable(strings.Join(c.Members, ", ")))
		}
		b.WriteString("\n")
	}
	return r.Print(b.String() + Summary(&trial.Info, ""))
}

// Uploading shows the stages of an upload.
func Uploading(shown *screen.Working, file string, bytes int) func(turns.Stage) {
	waited := false
	return func(s turns.Stage) {
		switch s.Name {
		case client.StageSending:
			shown.Phase("uploading %s, %s", screen.Printable(file), screen.Bytes(bytes))
		case client.StageSent:
			shown.Detail("the server checks %s", screen.Printable(file))
		case turns.StageWaiting:
			show := shown.Detail
			if !waited {
				show, waited = shown.Phase, true
			}
			show("waiting for the compiler: %s before it", screen.Counted(uint64(s.Ahead), "module"))
		case turns.StageCompiling:
			shown.Detail("the server compiles %s", screen.Printable(file))
		}
	}
}

// flowNote says what happened to the flow next to a module.
func flowNote(name string, doc abi.Raw, composed bool) string {
	switch {
	case doc == nil:
		return ""
	case composed:
		return fmt.Sprintf("its flow is now the workflow %s\n", screen.Printable(name))
	}
	return fmt.Sprintf("its flow is the workflow %s, unchanged\n", screen.Printable(name))
}

// whatNow suggests what to do with an uploaded plugin.
func whatNow(r *remote.Conn, info *host.PluginInfo) string {
	switch {
	case info.Workflow != "":
		return fmt.Sprintf("run it with: %s\n", r.Hint("run", screen.Printable(info.Workflow)))
	case len(info.ComposedIn) > 0:
		return fmt.Sprintf("run it with: %s\n", r.Hint("run", screen.Printable(info.ComposedIn[0])))
	}
	return fmt.Sprintf("it is a part and defines no workflow; compose one with: %s\n",
		r.Hint("compose", "NAME", "--plugin", screen.Printable(info.Name), "--plugin", "..."))
}

// readPlugin reads a module, and its manifest if it has one.
func readPlugin(file, manifest string) ([]byte, error) {
	wasm, err := ReadModule(file)
	if err != nil || manifest == "" {
		return wasm, err
	}
	text, err := cli.ReadAtMost(manifest, maxManifest)
	if err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return nil, fmt.Errorf("%s is not JSON: %w", manifest, err)
	}
	return abi.WithManifest(wasm, compact.Bytes()), nil
}

// maxManifest limits a manifest next to a module, in bytes.
const maxManifest = 1 << 20

// ReadModule reads a file that must be a WebAssembly module.
func ReadModule(file string) ([]byte, error) {
	wasm, err := cli.ReadAtMost(file, int64(limit.Most().ModuleBytes)) // the server has its own limit
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(string(wasm), wasmMagic) {
		return nil, fmt.Errorf("%s is not a WebAssembly module: build one with GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared", file)
	}
	return wasm, nil
}

// TimeoutInForce returns the timeout of the runs of a plugin's workflow on the server,
// which depends on the workflow's settings and the server's default; "" if the server
// does not say.
func TimeoutInForce(ctx context.Context, r *remote.Conn, info *host.PluginInfo) string {
	if info.Workflow == "" {
		return ""
	}
	about, err := r.About(ctx, info.Workflow)
	if err != nil {
		return "" // a key may be allowed to upload but not to read
	}
	return screen.TimeoutOf(about.Timeout)
}

// Summary describes a plugin and what it asks for. timeout is the timeout in force, or ""
// for the timeout that the plugin declares.
func Summary(info *host.PluginInfo, timeout string) string {
	var s screen.Sheet
	s.Add("workflow", info.Workflow)
	s.Add("composed in", strings.Join(info.ComposedIn, ", "))
	s.Add("digest", screen.Digest(info.SHA256))
	s.Add("size", screen.Bytes(info.Size))
	d := declared(info)
	s.Add("steps", strings.Join(d.steps, ", "))
	s.Add("asks for", asked(info.Imports))
	s.Add("resources", strings.Join(d.resources, ", "))
	s.Add("waits for", strings.Join(d.waits, ", "))
	s.Add("retries", strings.Join(d.retries, ", "))
	s.Add("timeout", cmp.Or(timeout, d.timeout))
	s.Add("limits", strings.Join(d.limits, ", "))
	return s.Render("  ")
}

// mostListed is how many functions of a foreign module are listed.
const mostListed = 4

// asked lists the functions of the host that a plugin imports, by module.
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
	if i := slices.Index(modules, abi.ImportModule); i > 0 { // our module first: every build imports the others
		modules = slices.Insert(slices.Delete(modules, i, i+1), 0, abi.ImportModule)
	}
	for i, module := range modules {
		list := strings.Join(functions[module], ", ")
		switch n := len(functions[module]); {
		case module == abi.ImportModule && n > len(abi.HostCalls):
			list = "any function, by the interpreter" // which imports them all, whatever the script calls
		case module != abi.ImportModule && n > mostListed:
			list = fmt.Sprintf("%d functions", n)
		}
		modules[i] = module + " (" + list + ")"
	}
	return strings.Join(modules, ", ")
}

// UploadAll uploads plugins from files.
func UploadAll(ctx context.Context, r *remote.Conn, files []string) error {
	for _, file := range files {
		wasm, err := ReadModule(file)
		if err != nil {
			return err
		}
		doc, err := FlowBeside(file)
		if err != nil {
			return err
		}
		name := ExampleName(file)
		_, err = PutWithFlow(ctx, r, name, doc, func() error {
			_, _, err := r.PutPlugin(ctx, name, wasm)
			return err
		})
		if err != nil {
			return Refusal(file, err)
		}
	}
	return nil
}

// DefaultExamples is where `make plugins` puts the examples, and goSuffix marks the
// examples that need no toolchain other than Go.
const (
	DefaultExamples = "build/plugins"
	GoSuffix        = "-go"
	TinygoSuffix    = "-tinygo"
)

// FlowSuffix is the suffix of an example's flow, in the folder of its plugin.
const FlowSuffix = ".flow.json"

// ExampleName returns the plugin's name of a built example: NAME for NAME-go.wasm and
// NAME-tinygo.wasm. For any other file it is the whole name without the extension.
func ExampleName(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), ".wasm")
	for _, lang := range []string{GoSuffix, TinygoSuffix} {
		if s, ok := strings.CutSuffix(name, lang); ok && s != "" {
			return s
		}
	}
	return name
}
