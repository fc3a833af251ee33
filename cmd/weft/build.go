package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/guest"
	"github.com/weftrun/weft/cmd/weft/wire"
	"github.com/weftrun/weft/host"
)

// buildOptions are the flags of `weft build`.
type buildOptions struct {
	language string
	names    bool
	optimize string
}

// Values of --optimize.
const (
	optimizeAuto   = "auto"
	optimizeAlways = "always"
	optimizeNever  = "never"
)

func newBuild() *cobra.Command {
	var o buildOptions
	cmd := &cobra.Command{
		Use:   "build [DIR]",
		Short: "Compile a project to a plugin, and check it",
		Long: `Compile the project in a folder (default: this one) to build/NAME.wasm, and check it
as a server does. If the folder has a flow.yaml (or flow.json), check it too and write
it beside the module as build/NAME.flow.json.

weft.json names the language; without that file, a Cargo.toml means Rust and a go.mod
means Go. The compiler's messages are shown unchanged. If wasm-opt is installed, it
makes modules of TinyGo and Rust smaller. For Go this takes 10 seconds and saves 4 per
cent, so wasm-opt runs only with --optimize=always.`,
		Example: `  weft build
  weft build greet --lang tinygo
  weft push build/greet.wasm`,
		Args: takes("[DIR]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return buildAndShow(cmd.Context(), o, folder(args), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	languageFlag(cmd, &o.language)
	f.BoolVar(&o.names, "names", false, "keep the names of functions in the module, so that traps name them")
	f.StringVar(&o.optimize, "optimize", optimizeAuto, "`WHEN` to run wasm-opt: auto, always or never")
	return cmd
}

// compilers are the names of what compiles a language.
var compilers = map[string]string{"go": "Go", "tinygo": "TinyGo", "rust": "Rust"}

// compiling shows that a project is compiled, when that begins.
func (w *working) compiling(p guest.Project) func() {
	return func() { w.phase("compiling %s with %s", p.Name, compilers[p.Language]) }
}

// languageFlag adds --lang to a command that builds.
func languageFlag(cmd *cobra.Command, language *string) {
	cmd.Flags().StringVar(language, "lang", "", "`LANGUAGE` to compile as: "+strings.Join(guest.Languages, ", ")+" (default: the project's)")
}

// folder is the argument that may name one.
func folder(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return "."
}

func buildAndShow(ctx context.Context, o buildOptions, dir string, out, said io.Writer) error {
	if !slices.Contains([]string{optimizeAuto, optimizeAlways, optimizeNever}, o.optimize) {
		return usage("--optimize %q: use auto, always or never", o.optimize)
	}
	p, err := findProject(dir, o.language)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(said, sdkNote(p)); err != nil {
		return err
	}
	began, shown := time.Now(), newWorking(said)
	defer shown.done()
	if err := compileProject(ctx, p, guest.Options{Names: o.names, Said: shown, Begins: shown.compiling(p)}); err != nil {
		return err
	}
	shown.detail("checking %s as a server does", p.Output())
	info, err := examine(ctx, p.Name, p.Output())
	if err != nil {
		return err
	}
	if err := buildFlow(ctx, p, p.Output()); err != nil {
		return err
	}
	note := o.smaller(ctx, p, shown)
	shown.done()
	if info.Size, err = sizeOf(p.Output()); err != nil {
		return err
	}
	info.SHA256 = "" // a server tells it
	if p.Flow != "" {
		note += fmt.Sprintf("%s is checked with it: 'weft push' makes the workflow %s of it, too\n", p.Flow, p.Name)
	}
	_, err = fmt.Fprintf(out, "built %s in %s\n%s%supload it with: weft push %s\n", p.Output(), span(time.Since(began)), summary(&info, ""), note, p.Output())
	return err
}

// findProject looks at a folder; see [guest.Find].
func findProject(dir, language string) (guest.Project, error) {
	if language != "" && !slices.Contains(guest.Languages, language) {
		return guest.Project{}, usage("unknown language %q: %s", language,
			meant(language, guest.Languages, "there are "+strings.Join(guest.Languages, ", ")))
	}
	return guest.Find(dir, language)
}

// compileProject compiles, and words what may go wrong.
func compileProject(ctx context.Context, p guest.Project, o guest.Options) error {
	err := p.Build(ctx, o)
	switch {
	case errors.Is(err, context.Canceled):
		return errors.New("interrupted")
	case errors.Is(err, guest.ErrCompile):
		return fmt.Errorf("%s: %w; what the compiler says is above", p.Name, err)
	}
	return err
}

// examine checks a module as a server does, and tells what it is.
func examine(ctx context.Context, name, file string) (host.PluginInfo, error) {
	wasm, err := readModule(file)
	if err != nil {
		return host.PluginInfo{}, err
	}
	info, err := analysed(ctx, name, wasm)
	return info, refusal(file, err)
}

// analysed uploads a module to a host in memory.
func analysed(ctx context.Context, name string, wasm []byte) (info host.PluginInfo, err error) {
	h, err := wire.Open(ctx, wire.Config{Data: wire.InMemory})
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, h.Close(context.WithoutCancel(ctx))) }()
	info, _, err = h.Plugins.Put(ctx, host.DefaultTenant, name, wasm)
	return info, err
}

// smaller runs wasm-opt if that is wanted, and says what came of it, in a line.
func (o buildOptions) smaller(ctx context.Context, p guest.Project, shown *working) string {
	if o.optimize == optimizeNever || o.names || o.optimize == optimizeAuto && p.Language == "go" {
		return ""
	}
	shown.detail("making %s smaller with wasm-opt", p.Output())
	r := p.Optimize(ctx, func(wasm []byte) error {
		_, err := analysed(ctx, p.Name, wasm)
		return err
	})
	if r.Why != "" {
		return "not made smaller: " + printable(r.Why) + "\n"
	}
	return fmt.Sprintf("made smaller by wasm-opt: %s, was %s\n", bytesOf(r.After), bytesOf(r.Before))
}

func sizeOf(file string) (int, error) {
	info, err := os.Stat(file)
	if err != nil {
		return 0, err
	}
	return int(info.Size()), nil
}
