// Package bench measures how fast runs of a workflow are: 'weft bench'.
//
// It does not depend on how a server works: it measures the API.
package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/input"
	"github.com/weftrun/weft/cmd/weft/plugins"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/runs"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// Bounds and defaults of a benchmark.
const (
	benchMaxClients = 10_000
	benchClients    = 8
	benchDuration   = 10 * time.Second
	benchWarmUp     = 2 // runs of each client
)

// benchOptions are the flags of `weft bench`.
type benchOptions struct {
	clients  int
	runs     int64
	duration time.Duration
	warmUp   int
	data     string
	plugins  []string
	start    input.Sources
}

// New makes the command 'weft bench'.
func New() *cobra.Command {
	var o benchOptions
	cmd := &cobra.Command{
		Use:   "bench WORKFLOW [key=value | key:=JSON]...",
		Short: "Measure how fast runs of a workflow are",
		Long: `Measure how fast runs of a workflow are. Several clients start runs at a time; each
waits for its run's end before it starts the next. The command prints rate and latency.
All runs begin with the same start event, given as for 'weft run', each in its own
session.

The load ends after --duration, when the last runs have ended, or when --runs have been
started. Runs of --warm-up come first and are not counted.

By default the load goes to a server that is already running. With --data, the command
starts a server on a free port, with the default settings of 'weft serve'; --plugin
uploads a plugin to it first. The data stays in the directory.

Latency is the time from sending a start to reading the result of a run that completed.
Runs that did not complete are counted by their error code. If the server is on the
same machine, the clients take a part of its cores.

Exit codes: 0 all runs completed; 1 nothing could be measured, or it was interrupted;
2 the command line is wrong; 3 some runs did not complete.`,
		Example: `  weft bench counter --clients 64 --duration 30s
  weft bench wordcount --file text=README.md --clients 1 --runs 100 --json
  weft bench chain n=10 --data /tmp/bench --plugin build/plugins/chain-tinygo.wasm
  weft bench counter --server https://weft.example --json | jq .latency_ms.p99`,
		Args: cli.Takes("WORKFLOW", "key=value..."),
	}
	f := cmd.Flags()
	f.IntVar(&o.clients, "clients", benchClients, "`N` clients that start runs and wait for them")
	f.Int64Var(&o.runs, "runs", 0, "start `N` runs, regardless of the time they take")
	f.DurationVar(&o.duration, "duration", 0, "start runs for this `TIME`, such as 30s (default: 10s, unless --runs is given)")
	f.IntVar(&o.warmUp, "warm-up", benchWarmUp, "`N` runs of each client that are not counted, at the beginning")
	f.StringVar(&o.data, "data", "", "start a server on the directory `DIR`, or in :memory:, instead of using --server")
	f.Lookup("data").Annotations = map[string][]string{cli.CommandLineOnly: nil}
	f.StringArrayVar(&o.plugins, "plugin", nil, "upload a plugin, `FILE`, to the server of --data (repeatable)")
	o.start.Flags(f)
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		if err := o.check(); err != nil {
			return err
		}
		return bench(ctx, r, o, args[0], args[1:])
	})
}

// check refuses what cannot be measured, and fills in the duration.
func (o *benchOptions) check() error {
	switch {
	case o.clients < 1 || o.clients > benchMaxClients:
		return cli.Usage("--clients %d: must be a number from 1 to %d", o.clients, benchMaxClients)
	case o.runs < 0 || o.duration < 0 || o.warmUp < 0:
		return cli.Usage("--runs, --duration and --warm-up must not be negative")
	case o.runs > 0 && o.duration > 0:
		return cli.Usage("--runs and --duration each end the load: give only one")
	case len(o.plugins) > 0 && o.data == "":
		return cli.Usage("--plugin uploads to the server of --data: use 'weft push' for a running server")
	}
	if o.runs == 0 && o.duration == 0 {
		o.duration = benchDuration
	}
	return nil
}

// bench measures and prints the results.
func bench(ctx context.Context, r *remote.Conn, o benchOptions, workflow string, args []string) error {
	if o.data != "" {
		own, err := remote.StartOwn(ctx, o.data, r.Errs)
		if err != nil {
			return err
		}
		defer own.Stop()
		if r, err = r.At(own.URL); err != nil {
			return err
		}
		defer r.Close()
		if err := plugins.UploadAll(ctx, r, o.plugins); err != nil {
			return err
		}
	}
	event, err := input.Start(ctx, r, o.start, workflow, args)
	if err != nil {
		return err
	}
	c, err := r.Concurrent(o.clients)
	if err != nil {
		return err
	}
	defer c.Close()
	l := newLoad(c, client.StartRequest{Workflow: workflow, Event: event, Wait: true})
	// One run shows whether the workflow can be measured.
	if err := l.try(ctx); err != nil {
		return runs.RefusedStart(ctx, r, err, workflow)
	}
	l.run(ctx, o.clients, int64(o.warmUp)*int64(o.clients), 0)
	counted := watched(ctx, r, l, o)
	report := newBenchReport(r.Address, workflow, event, o, counted)
	if err := report.print(r); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if counted.failed() > 0 {
		return cli.Exit(cli.ExitRunEnded, fmt.Errorf("%d of %d runs did not complete", counted.failed(), counted.ended()))
	}
	return nil
}

// benchReport is the result of a benchmark, as --json prints it. Times are in the units
// of their names.
type benchReport struct {
	Workflow    string            `json:"workflow"`
	Server      string            `json:"server"`
	Settings    benchSettings     `json:"settings"`
	Started     time.Time         `json:"started_at"`
	Elapsed     float64           `json:"elapsed_seconds"`
	Interrupted bool              `json:"interrupted"`
	Runs        int64             `json:"runs"` // that ended, or could not be started
	Completed   int64             `json:"completed"`
	Failed      int64             `json:"failed"`
	Errors      map[string]int64  `json:"errors"` // by code
	Rate        float64           `json:"runs_per_second"`
	Latency     benchLatency      `json:"latency_ms"`
	Histogram   []benchPercentile `json:"histogram"`
}

// benchSettings are the settings from the command line.
type benchSettings struct {
	Clients  int             `json:"clients"`
	Runs     int64           `json:"runs"`             // 0: by duration
	Duration float64         `json:"duration_seconds"` // 0: by runs
	WarmUp   int             `json:"warm_up_runs"`     // of each client
	Data     string          `json:"data,omitempty"`   // data directory of a server that was started for the benchmark
	Plugins  []string        `json:"plugins,omitempty"`
	Event    json.RawMessage `json:"start_event"`
}

// longEvent is how much of a start event a report repeats, in bytes.
const longEvent = 4 << 10

func newBenchReport(server, workflow string, event json.RawMessage, o benchOptions, t *tally) *benchReport {
	switch {
	case event == nil:
		event = json.RawMessage("{}")
	case len(event) > longEvent:
		event = json.RawMessage(fmt.Sprintf(`"%d bytes"`, len(event)))
	}
	return &benchReport{
		Workflow: workflow, Server: server, Started: t.began.UTC(), Elapsed: t.took.Seconds(), Interrupted: t.interrupted,
		Settings: benchSettings{o.clients, o.runs, o.duration.Seconds(), o.warmUp, o.data, o.plugins, event},
		Runs:     t.ended(), Completed: t.completed(), Failed: t.failed(), Errors: t.errors,
		Rate: t.rate(), Latency: t.latency(), Histogram: t.percentiles(),
	}
}

func (b *benchReport) print(r *remote.Conn) error {
	if r.JSON {
		text, err := json.Marshal(b)
		if err != nil {
			return fmt.Errorf("write the report: %w", err)
		}
		return r.PrintJSON(text)
	}
	return b.show(r.Out)
}

// show prints the figures for people.
func (b *benchReport) show(out io.Writer) error {
	l := b.Latency
	text := fmt.Sprintf("%s: %s of %s in %s\n", screen.Printable(b.Workflow), screen.Counted(uint64(b.Runs), "run"),
		screen.Counted(uint64(b.Settings.Clients), "client"), screen.Span(time.Duration(b.Elapsed*float64(time.Second))))
	text += fmt.Sprintf("  rate     %.1f runs/s\n", b.Rate)
	if b.Completed > 0 {
		text += fmt.Sprintf("  latency  p50 %s, p90 %s, p99 %s, max %s; mean %s\n", inMillis(l.P50), inMillis(l.P90), inMillis(l.P99), inMillis(l.Max), inMillis(l.Mean))
	}
	for _, code := range sortedKeys(b.Errors) {
		text += fmt.Sprintf("  error    %s: %s\n", screen.Printable(code), screen.Counted(uint64(b.Errors[code]), "run"))
	}
	_, err := io.WriteString(out, text)
	return err
}

// inMillis formats milliseconds with about three significant digits.
func inMillis(v float64) string {
	digits := 2
	if v >= 100 {
		digits = 0
	} else if v >= 10 {
		digits = 1
	}
	return strconv.FormatFloat(v, 'f', digits, 64) + " ms"
}

// errorCode returns the code under which a run that did not complete is counted.
func errorCode(rec client.Record, err error) string {
	switch {
	case err != nil:
		return string(host.CodeOf(err))
	case rec.ErrorCode != "":
		return rec.ErrorCode
	}
	return string(rec.Status)
}
