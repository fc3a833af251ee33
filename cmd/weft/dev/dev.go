// Package dev has the commands with which an author works on a plugin: 'weft build', and
// 'weft dev', which builds, uploads and runs a project again whenever a file changes.
//
// It does not depend on how a server or a compiler works: it starts them.
package dev

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/guest"
	"github.com/weftrun/weft/cmd/weft/input"
	"github.com/weftrun/weft/cmd/weft/plugins"
	"github.com/weftrun/weft/cmd/weft/project"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// devOptions are the flags of `weft dev`.
type devOptions struct {
	language  string
	addr      string
	resources string
}

// New makes the command 'weft dev'.
func New() *cobra.Command {
	var o devOptions
	cmd := &cobra.Command{
		Use:   "dev [DIR] [key=value | key:=JSON]...",
		Short: "Serve a project; build, upload and run it again at each change",
		Long: `Start a server for the project in a folder (default: this one), build and upload the
plugin (and a flow.yaml or flow.json), run its workflow, and repeat this whenever a file
changes. If the project does not compile, or the server refuses the plugin, the server
continues with the last good version.

The run gets the fields of the command line. Without fields it gets those of the last
run, or the start event and the answers of the first case in cases.json. On a terminal,
Enter runs the workflow again, key=value runs it with other fields, and q or Ctrl-C
quits. The server keeps its data in the project's folder .weft. The command shows what
steps log, and the source line where a step panics or traps.`,
		Example: `  weft dev
  weft dev greet name=Grace
  weft dev --lang go          # of a TinyGo project: with the stack of a panic`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 && !strings.Contains(args[0], "=") {
				dir, args = args[0], args[1:]
			}
			out := screen.NewWorking(cmd.OutOrStdout())
			r := &remote.Conn{In: cmd.InOrStdin(), Out: out, Errs: out, Screen: screen.Of(out)}
			return dev(cmd.Context(), o, dir, args, r)
		},
	}
	f := cmd.Flags()
	project.LanguageFlag(cmd, &o.language)
	f.StringVar(&o.addr, "addr", "", "`ADDRESS` to listen on (default: "+cli.DefaultAddr+", or another port if this one is taken)")
	f.Lookup("addr").Annotations = map[string][]string{cli.CommandLineOnly: nil}
	f.StringVar(&o.resources, "resources", "", "`FILE` with the resources that workflows may call")
	return cmd
}

// developer is the state of `weft dev`. One goroutine uses it.
type developer struct {
	r     *remote.Conn // to its own server
	p     guest.Project
	input devInput
	good  *host.PluginInfo // the last good version; nil: none so far

	stopRun context.CancelFunc // stops showing the current run; nil: no run is shown
	runs    chan struct{}      // closed when the run is no longer shown
}

// devInput is the input of the workflow. Without fields, the start event of the first
// case is used.
type devInput struct {
	Fields []string `json:"fields,omitempty"` // in the form of the command line
}

// devFolder is the folder in a project for the data of `weft dev`.
const devFolder = ".weft"

func dev(ctx context.Context, o devOptions, dir string, fields []string, r *remote.Conn) error {
	if _, err := input.Parse(fields); err != nil {
		return err
	}
	p, err := project.Find(dir, o.language)
	if err != nil {
		return err
	}
	keep := filepath.Join(p.Dir, devFolder)
	if err := os.MkdirAll(keep, 0o777); err != nil {
		return err
	}
	log := &devLog{r: r, module: modulePath(p)}
	own, err := remote.StartOwn(ctx, filepath.Join(keep, "data"), log, o.serverFlags()...)
	if err != nil {
		return err
	}
	defer own.Stop()
	at, err := r.At(own.URL)
	if err != nil {
		return err
	}
	defer at.Close()
	d := &developer{r: at, p: p, input: devInput{Fields: fields}}
	d.readInput()
	r.Note("%s (%s) is served on %s, data in %s", p.Name, p.Language, own.URL, keep)
	if note := project.SDKNote(p); note != "" {
		r.Note("%s", strings.TrimSuffix(note, "\n"))
	}
	defer d.endRun()
	err = d.loop(ctx, typed(ctx, r.In))
	if ctx.Err() != nil || errors.Is(err, errQuit) {
		r.Note("stopped")
		return nil
	}
	return err
}

// serverFlags are the flags of the server. devLog reads the server's log.
func (o devOptions) serverFlags() []string {
	flags := []string{"--log-level", "info", "--log-format", "json", "--source-lines"}
	if o.addr == "" {
		flags = append(flags, "--addr", cli.DefaultAddr, "--"+cli.OrAnyPort)
	} else {
		flags = append(flags, "--addr", o.addr)
	}
	if o.resources != "" {
		flags = append(flags, "--resources", o.resources)
	}
	if cache := cli.UserCode(); cache != "" {
		flags = append(flags, "--cache", cache)
	}
	return flags
}

// errQuit is returned when the user quits.
var errQuit = errors.New("quit")

// loop builds and runs, now and at each change, until ctx ends or the user quits.
func (d *developer) loop(ctx context.Context, lines <-chan string) error {
	type change struct {
		seen guest.Seen
		file string
		err  error
	}
	seen, err := d.p.Look()
	if err != nil {
		return err
	}
	for {
		if err := d.renew(ctx); err != nil {
			return err
		}
		watch, stop := context.WithCancel(ctx)
		changed := make(chan change, 1)
		go func() {
			now, file, err := d.p.Changed(watch, seen)
			changed <- change{now, file, err}
		}()
		for waiting := true; waiting; {
			select {
			case c := <-changed:
				if c.err != nil {
					stop()
					return c.err
				}
				seen, waiting = c.seen, false
				d.r.Note("\n%s has changed", screen.Printable(c.file))
			case line, ok := <-lines:
				if !ok {
					lines = nil
					continue
				}
				if err := d.obey(ctx, line); err != nil {
					stop()
					<-changed
					return err
				}
			}
		}
		stop()
		d.endRun()
	}
}

// renew builds, uploads and runs. It shows errors in the project instead of returning
// them.
func (d *developer) renew(ctx context.Context) error {
	began, shown := time.Now(), d.r.Working()
	defer shown.Done()
	file := filepath.Join(d.p.Dir, devFolder, d.p.Name+".wasm")
	err := project.Compile(ctx, d.p, guest.Options{Names: true, Out: file, Said: d.r.Out, Begins: project.Compiling(shown, d.p)})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var info host.PluginInfo
	if err == nil {
		info, err = d.upload(ctx, file)
	}
	shown.Done()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		d.r.Note("error: %v", err)
		if d.good != nil {
			d.r.Note("version %d is served on", d.good.Version)
		}
		d.r.Note("watching for changes")
		return nil
	}
	if d.good == nil {
		_, _ = io.WriteString(d.r.Out, plugins.Summary(&info, plugins.TimeoutInForce(ctx, d.r, &info)))
	}
	d.good = &info
	d.r.Note("built in %s: version %d", screen.Span(time.Since(began)), info.Version)
	d.run(ctx)
	return nil
}

func (d *developer) upload(ctx context.Context, file string) (host.PluginInfo, error) {
	wasm, err := plugins.ReadModule(file)
	if err != nil {
		return host.PluginInfo{}, err
	}
	var info host.PluginInfo
	progress := plugins.Uploading(d.r.Working(), d.p.Name, len(wasm))
	put := func() (err error) {
		info, _, _, err = d.r.PutPluginWith(ctx, d.p.Name, wasm, client.PutPluginOptions{ReplaceWorkflow: true, Progress: progress})
		return err
	}
	doc, err := d.flow(ctx, wasm)
	if err != nil {
		return info, err
	}
	_, err = plugins.PutWithFlow(ctx, d.r, d.p.Name, doc, put)
	if doc != nil && plugins.HasProblems(err) && d.r.Decompose(ctx, d.p.Name) == nil { // plugin and flow have changed together
		_, err = plugins.PutWithFlow(ctx, d.r, d.p.Name, doc, put)
	}
	if doc != nil {
		info.Workflow = d.p.Name
	}
	return info, d.r.Explain(plugins.Refusal(d.p.Name, err)) // in this order, because Explain returns a plain text
}

// flow reads the project's flow from its file, and checks it with the module; nil if the
// project has no flow.
func (d *developer) flow(ctx context.Context, wasm []byte) (abi.Raw, error) {
	p, err := guest.Find(d.p.Dir, d.p.Language)
	if err != nil || p.Flow == "" {
		return nil, err
	}
	doc, err := plugins.ReadFlow(p.Flow)
	if err != nil {
		return nil, err
	}
	return doc, plugins.Refusal(p.Flow, plugins.Fitting(ctx, p.Name, wasm, doc))
}

// obey executes a line from the terminal.
func (d *developer) obey(ctx context.Context, line string) error {
	line = strings.TrimSpace(line)
	switch line {
	case "q", "quit", "exit":
		return errQuit
	case "":
	default:
		fields := SplitFields(line)
		if _, err := input.Parse(fields); err != nil {
			d.r.Note("%v; Enter runs again, q ends", err)
			return nil
		}
		d.input = devInput{Fields: fields}
		d.keepInput()
	}
	if d.good == nil {
		d.r.Note("there is no version yet that could be run")
		return nil
	}
	d.endRun()
	d.run(ctx)
	return nil
}

// SplitFields splits a line into key=value fields at spaces that are not quoted, like a
// simple shell.
func SplitFields(line string) []string {
	var fields []string
	var field strings.Builder
	var quote rune
	for _, r := range line + " " {
		switch {
		case quote == 0 && (r == '\'' || r == '"') && strings.HasSuffix(field.String(), "="):
			quote = r
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && r == ' ':
			if field.Len() > 0 {
				fields = append(fields, field.String())
				field.Reset()
			}
		default:
			field.WriteRune(r)
		}
	}
	if field.Len() > 0 {
		fields = append(fields, strings.TrimSuffix(field.String(), " "))
	}
	return fields
}

// typed returns the lines that the user types on a terminal. It returns no lines if the
// input is not a terminal.
func typed(ctx context.Context, in io.Reader) <-chan string {
	lines := make(chan string)
	if !screen.OnTerminal(in) {
		return nil
	}
	go func() { // a read cannot be cancelled: it ends with the program
		defer close(lines)
		s := bufio.NewScanner(in)
		for s.Scan() {
			select {
			case lines <- s.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}
