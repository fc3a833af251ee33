package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/guest"
	"github.com/weftrun/weft/cmd/weft/plugins"
	"github.com/weftrun/weft/cmd/weft/project"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/cmd/weft/wire"
	"github.com/weftrun/weft/host"
)

// buildOptions are the flags of `weft build`.
type buildOptions struct {
	language string
	names    bool
	optimize string
	noLines  bool
	noTypes  bool
}

// Values of --optimize.
const (
	optimizeAuto   = "auto"
	optimizeAlways = "always"
	optimizeNever  = "never"
)

// NewBuild makes the command 'weft build'.
func NewBuild() *cobra.Command {
	var o buildOptions
	cmd := &cobra.Command{
		Use:   "build [DIR]",
		Short: "Compile a project to a plugin, and check it",
		Long: `Compile the project in a folder (default: this one) to build/NAME.wasm, and check it
as a server does. If the folder has a flow.yaml (or flow.json), check it too and write
it beside the module as build/NAME.flow.json.

weft.json names the language; without that file, a Cargo.toml means Rust, a go.mod means
Go, a main.ts TypeScript, a main.js JavaScript and a main.py Python. The compiler's
messages are shown unchanged. If wasm-opt is installed, it makes modules of TinyGo and
Rust smaller. For Go this takes 10 seconds and saves 4 per cent, so wasm-opt runs only
with --optimize=always.

weft bundles TypeScript and JavaScript itself, with packages of node_modules if there are
any. If node_modules has the TypeScript compiler, the command checks types first. Python
is bundled too, with packages in pure Python of the folder vendor.

The check compiles the module. build, test, dev and inspect keep compiled code, at most
1 GiB, in weft/code in your cache directory, or in the folder that WEFT_CACHE names.`,
		Example: `  weft build
  weft build greet --lang tinygo
  weft push build/greet.wasm`,
		Args: cli.Takes("[DIR]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return buildAndShow(cmd.Context(), o, project.Folder(args), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	project.LanguageFlag(cmd, &o.language)
	f.BoolVar(&o.names, "names", false, "keep the names of functions in the module, so that traps name them")
	f.BoolVar(&o.noLines, "no-lines", false, "leave files and lines out of a module in TypeScript or JavaScript, which makes it smaller")
	f.BoolVar(&o.noTypes, "no-types", false, "do not check types with the TypeScript compiler in node_modules")
	f.StringVar(&o.optimize, "optimize", optimizeAuto, "`WHEN` to run wasm-opt: auto, always or never")
	return cmd
}

func buildAndShow(ctx context.Context, o buildOptions, dir string, out, said io.Writer) error {
	if !slices.Contains([]string{optimizeAuto, optimizeAlways, optimizeNever}, o.optimize) {
		return cli.Usage("--optimize %q: use auto, always or never", o.optimize)
	}
	p, err := project.Find(dir, o.language)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(said, project.SDKNote(p)); err != nil {
		return err
	}
	began, shown := time.Now(), screen.NewWorking(said)
	defer shown.Done()
	if err := project.Compile(ctx, p, guest.Options{Names: o.names, NoLines: o.noLines, Types: !o.noTypes, Said: shown, Begins: project.Compiling(shown, p)}); err != nil {
		return err
	}
	shown.Detail("checking %s as a server does", p.Output())
	info, err := examine(ctx, p.Name, p.Output())
	if err != nil {
		return err
	}
	if err := plugins.BuildFlow(ctx, p, p.Output()); err != nil {
		return err
	}
	note := o.smaller(ctx, p, shown)
	shown.Done()
	if info.Size, err = sizeOf(p.Output()); err != nil {
		return err
	}
	info.SHA256 = "" // only a server computes it
	if p.Flow != "" {
		note += fmt.Sprintf("%s is checked with it: 'weft push' makes the workflow %s of it, too\n", p.Flow, p.Name)
	}
	_, err = fmt.Fprintf(out, "built %s in %s\n%s%supload it with: weft push %s\n", p.Output(), screen.Span(time.Since(began)), plugins.Summary(&info, ""), note, p.Output())
	return err
}

// examine checks a module as a server does, and describes it.
func examine(ctx context.Context, name, file string) (host.PluginInfo, error) {
	wasm, err := plugins.ReadModule(file)
	if err != nil {
		return host.PluginInfo{}, err
	}
	info, err := analysed(ctx, name, wasm)
	return info, plugins.Refusal(file, err)
}

// analysed uploads a module to a host in memory.
func analysed(ctx context.Context, name string, wasm []byte) (info host.PluginInfo, err error) {
	h, err := wire.OpenScratch(ctx, wire.Config{})
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, h.Close(context.WithoutCancel(ctx))) }()
	info, _, err = h.Plugins.Put(ctx, host.DefaultTenant, name, wasm)
	return info, err
}

// smaller runs wasm-opt if that is enabled, and describes the result in a line.
func (o buildOptions) smaller(ctx context.Context, p guest.Project, shown *screen.Working) string {
	if o.optimize == optimizeNever || o.names || o.optimize == optimizeAuto && p.Language == "go" || guest.Script(p.Language) {
		return ""
	}
	shown.Detail("making %s smaller with wasm-opt", p.Output())
	r := p.Optimize(ctx, func(wasm []byte) error {
		_, err := analysed(ctx, p.Name, wasm)
		return err
	})
	if r.Why != "" {
		return "not made smaller: " + screen.Printable(r.Why) + "\n"
	}
	return fmt.Sprintf("made smaller by wasm-opt: %s, was %s\n", screen.Bytes(r.After), screen.Bytes(r.Before))
}

func sizeOf(file string) (int, error) {
	info, err := os.Stat(file)
	if err != nil {
		return 0, err
	}
	return int(info.Size()), nil
}
