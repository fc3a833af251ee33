package plugins

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/input"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/cmd/weft/wire"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/sandbox"
)

type inspectOptions struct {
	sources input.Sources
	noRun   bool
	json    bool
	timeout time.Duration
}

// NewInspect makes the command 'weft inspect'.
func NewInspect() *cobra.Command {
	var o inspectOptions
	cmd := &cobra.Command{
		Use:   "inspect FILE.wasm [key=value | key:=JSON]...",
		Short: "Describe a plugin: its steps, its imports, the fuel it burns",
		Long: `Check a plugin as an upload does, without a server, and describe it: what it imports and
so may ask for, its steps, what was added to meter it, whether its instances are reset
in place or made anew for each invocation and why, and the size of its memory image.

Then run the workflow once, in this process, with the start event's fields as for
'weft run', and say how much fuel each step burnt. Fuel is counted, not timed: the same
event burns the same units on every machine.`,
		Example: `  weft inspect step.wasm
  weft inspect build/plugins/wordcount-go.wasm --file text=README.md
  weft inspect step.wasm --no-run --json | jq .rewriter`,
		Args: cli.Takes("FILE.wasm", "[key=value]..."),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"wasm"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return inspect(cmd.Context(), o, args, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	o.sources.Flags(flags)
	flags.BoolVar(&o.noRun, "no-run", false, "do not run the workflow")
	flags.BoolVar(&o.json, "json", false, "print everything as JSON")
	flags.DurationVar(&o.timeout, "timeout", time.Minute, "`TIME` that the run may take; a run that asks a question would never end")
	return cmd
}

// inspection is the result of inspect.
type inspection struct {
	Module   moduleReport  `json:"module"`
	Rewriter rewriteReport `json:"rewriter"`
	Image    imageReport   `json:"image"`
	Problems []problem     `json:"problems,omitempty"`
	Manifest any           `json:"manifest,omitempty"`
	Run      *sampleRun    `json:"run,omitempty"`
}

type moduleReport struct {
	SHA256    string          `json:"sha256"`
	Bytes     int             `json:"bytes"`
	Functions int             `json:"functions"`
	Globals   int             `json:"globals"`
	Imports   []string        `json:"imports"`
	Exports   []string        `json:"exports"`
	Memory    sandbox.Extent  `json:"memory_bytes"`
	Tables    []extent        `json:"tables,omitempty"`
	Custom    []customSection `json:"custom_sections,omitempty"`
}

type (
	extent        = sandbox.Extent
	customSection = sandbox.CustomSection
)

type rewriteReport struct {
	Version string `json:"version"`
	SHA256  string `json:"sha256,omitempty"`
	Bytes   int    `json:"bytes,omitempty"`
	Stats   any    `json:"stats,omitempty"`
}

type imageReport struct {
	SHA256       string   `json:"sha256,omitempty"`
	Bytes        int      `json:"bytes"`
	Kept         int      `json:"kept_bytes"`
	DescribeFuel uint64   `json:"describe_fuel"`
	InPlace      bool     `json:"reset_in_place"`
	Reasons      []string `json:"reasons,omitempty"`
}

type problem struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// sampleRun is one run of the workflow.
type sampleRun struct {
	Status string       `json:"status"`
	Error  string       `json:"error,omitempty"`
	Fuel   uint64       `json:"fuel"`
	Steps  []sampleStep `json:"steps"`
}

// sampleStep sums up the invocations of one step.
type sampleStep struct {
	Step        string `json:"step"`
	Invocations int    `json:"invocations"`
	Fuel        uint64 `json:"fuel"`
	Most        uint64 `json:"most"` // of one invocation
}

func inspect(ctx context.Context, o inspectOptions, args []string, in io.Reader, out io.Writer) error {
	wasm, err := ReadModule(args[0])
	if err != nil {
		return err
	}
	meter := &sampleMeter{}
	h, err := wire.OpenScratch(ctx, wire.Config{SourceLines: true, Observe: meter.observe})
	if err != nil {
		return err
	}
	report, problems := h.Sandbox.Report(ctx, wasm, host.Limits{})
	found := inspected(report, problems)
	if len(problems) == 0 && !o.noRun {
		found.Run, err = runSample(ctx, h, meter, o, wasm, args[1:], in)
	}
	err = errors.Join(err, h.Close(context.WithoutCancel(ctx)))
	if o.json {
		text, jsonErr := json.MarshalIndent(found, "", "  ")
		_, writeErr := fmt.Fprintf(out, "%s\n", text)
		err = errors.Join(err, jsonErr, writeErr)
	} else if _, writeErr := io.WriteString(out, found.text(&report)); writeErr != nil {
		err = errors.Join(err, writeErr)
	}
	if len(problems) > 0 {
		err = errors.Join(err, fmt.Errorf("%s cannot be uploaded: %s", args[0], screen.Counted(uint64(len(problems)), "problem")))
	}
	return err
}

// inspected turns a report into an inspection.
func inspected(r sandbox.Report, problems []host.Problem) *inspection {
	found := &inspection{
		Module: moduleReport{
			SHA256: r.Digest, Bytes: r.Bytes, Functions: r.Functions, Globals: r.Globals, Imports: r.Imports,
			Exports: r.Exports, Memory: r.Memory, Tables: r.Tables, Custom: r.Custom,
		},
		Rewriter: rewriteReport{Version: r.Rewriter, SHA256: r.Rewritten, Bytes: r.RewrittenBytes},
		Image: imageReport{
			SHA256: r.ImageHash, Bytes: r.ImageBytes, Kept: r.SnapshotBytes, DescribeFuel: r.DescribeFuel,
			InPlace: r.InPlace, Reasons: r.Reasons,
		},
	}
	if r.Rewritten != "" {
		found.Rewriter.Stats = r.Stats
	}
	if text, err := abi.ToJSON(r.Manifest); err == nil {
		found.Manifest = json.RawMessage(text)
	}
	for _, p := range problems {
		found.Problems = append(found.Problems, problem{p.Code, p.Message})
	}
	return found
}

// text formats the inspection for people.
func (f *inspection) text(r *sandbox.Report) string {
	var s screen.Sheet
	d := declared(&host.PluginInfo{Manifest: r.Manifest})
	s.Add("digest", f.Module.SHA256)
	s.Add("size", fmt.Sprintf("%s in %s", screen.Bytes(r.Bytes), screen.Counted(uint64(r.Functions), "function")))
	for _, c := range r.Custom {
		s.Add("section", fmt.Sprintf("%s, %s, is not run", c.Name, screen.Bytes(c.Bytes)))
	}
	s.Add("asks for", asked(r.Imports))
	s.Add("steps", strings.Join(d.steps, ", "))
	s.Add("resources", strings.Join(d.resources, ", "))
	for _, p := range f.Problems {
		s.Add("problem", p.Message)
	}
	if r.Rewritten != "" {
		f.built(&s, r)
	}
	if f.Run != nil {
		f.Run.add(&s)
	}
	return s.Render("")
}

// built shows the result of building the module.
func (f *inspection) built(s *screen.Sheet, r *sandbox.Report) {
	t := &r.Stats
	s.Add("rewritten", fmt.Sprintf("by %s to %s (%.2f times)", r.Rewriter, screen.Bytes(r.RewrittenBytes), float64(r.RewrittenBytes)/float64(max(r.Bytes, 1))))
	s.Add("charges", fmt.Sprintf("%d in %d functions with %d loops, the largest takes %d units", t.Charges, t.Functions, t.Loops, t.MaxCharge))
	s.Add("call depth", fmt.Sprintf("bounded, but in the %d functions that call nobody; the largest frame counts %s", t.LeafFunctions, screen.Bytes(t.MaxFrame)))
	s.Add("bulk work", fmt.Sprintf("%d places work in pieces, %d are small by themselves", t.BulkSites, t.BulkConst))
	how := "one for many invocations, reset in place"
	if !r.InPlace {
		how = "a new one for each invocation: " + strings.Join(r.Reasons, "; ")
	}
	s.Add("instances", how)
	s.Add("image", fmt.Sprintf("%s of memory, of which %s are kept; %s", screen.Bytes(r.ImageBytes), screen.Bytes(r.SnapshotBytes), screen.Digest(r.ImageHash)))
	s.Add("describing", fmt.Sprintf("%s of fuel", screen.Counted(r.DescribeFuel, "unit")))
}

// add shows a run.
func (run *sampleRun) add(s *screen.Sheet) {
	state := run.Status
	if run.Error != "" {
		state += ": " + run.Error
	}
	s.Add("sample run", fmt.Sprintf("%s, %s of fuel", state, screen.Counted(run.Fuel, "unit")))
	for _, step := range run.Steps {
		text := fmt.Sprintf("%s: %s", step.Step, screen.Counted(step.Fuel, "unit"))
		if step.Invocations > 1 {
			text += fmt.Sprintf(" in %d invocations, %d at most", step.Invocations, step.Most)
		}
		s.Add("", text)
	}
}

// runSample runs the workflow of the module once.
func runSample(ctx context.Context, h *wire.Host, meter *sampleMeter, o inspectOptions, wasm []byte, args []string, in io.Reader) (*sampleRun, error) {
	info, _, err := h.Plugins.Put(ctx, host.DefaultTenant, "inspected", wasm)
	if err != nil {
		return nil, Refusal("the plugin", err)
	}
	if info.Workflow == "" {
		return &sampleRun{Status: "none", Error: "the plugin is a part and defines no workflow (weft compose)"}, nil
	}
	event, err := sampleEvent(ctx, h, info.Workflow, o, args, in)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	run, err := h.Runs.Start(ctx, host.StartRequest{Tenant: host.DefaultTenant, Workflow: info.Workflow, Event: abi.Event{Body: event}, Wait: true})
	if errors.Is(err, context.DeadlineExceeded) {
		done := meter.run()
		done.Status, done.Error = "not ended", fmt.Sprintf("after %v: it waits for an event, or has much to do (--timeout)", o.timeout)
		return done, nil
	}
	if err != nil {
		return nil, fmt.Errorf("the sample run: %s; give the start event's fields as for 'weft run', or --no-run", remote.Sentence(host.MessageOf(err)))
	}
	done := meter.run()
	done.Status = string(run.Status)
	done.Error = run.Error
	return done, nil
}

// sampleEvent reads the start event's fields from the command line.
func sampleEvent(ctx context.Context, h *wire.Host, workflow string, o inspectOptions, args []string, in io.Reader) (abi.Raw, error) {
	fields, err := input.Parse(args)
	if err != nil {
		return nil, err
	}
	texts, err := input.FileFields(ctx, o.sources.Files, o.sources.Stdin, in)
	if err != nil {
		return nil, err
	}
	if fields = append(fields, texts...); len(fields) == 0 {
		return abi.EmptyMap, nil
	}
	info, err := h.Plugins.Workflow(ctx, host.DefaultTenant, workflow)
	if err != nil {
		return nil, err
	}
	text, err := abi.ToJSON(info.StartSchema)
	if err != nil {
		return nil, err
	}
	schema, err := input.ReadSchema(text)
	if err != nil {
		return nil, err
	}
	event, err := input.Event(fields, schema)
	if err != nil {
		return nil, err
	}
	return abi.FromJSON(event)
}

// sampleMeter sums up the fuel of invocations by step. The host calls observe
// from any goroutine.
type sampleMeter struct {
	mu    sync.Mutex // guards steps
	steps []sampleStep
}

func (m *sampleMeter) observe(inv *host.Invocation, res *host.InvocationResult) {
	in, err := abi.DecodeStepInput(inv.Input)
	if err != nil {
		return // the host has encoded it
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.steps, func(s sampleStep) bool { return s.Step == in.Step })
	if i < 0 {
		i = len(m.steps)
		m.steps = append(m.steps, sampleStep{Step: in.Step})
	}
	s := &m.steps[i]
	s.Invocations++
	s.Fuel += res.Fuel
	s.Most = max(s.Most, res.Fuel)
}

// run returns the totals so far.
func (m *sampleMeter) run() *sampleRun {
	m.mu.Lock()
	defer m.mu.Unlock()
	run := &sampleRun{Steps: slices.Clone(m.steps)}
	for _, s := range run.Steps {
		run.Fuel += s.Fuel
	}
	return run
}
