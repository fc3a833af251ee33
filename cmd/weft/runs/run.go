// Package runs has the commands that start, show and steer runs, sessions and their
// state, and the views of a run in progress.
//
// It does not depend on how plugins get to a server.
package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/input"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
	"github.com/weftrun/weft/host/position"
)

// runOptions are the flags of `weft run`.
type runOptions struct {
	sources input.Sources
	handler string
	session string
	onBusy  string
	from    string
	watch   bool
	noWait  bool
	timeout time.Duration
}

// NewRun makes the command 'weft run'.
func NewRun() *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run WORKFLOW [key=value | key:=JSON]...",
		Short: "Start a run and wait for its result",
		Long: `Start a run of a workflow, wait for its end and print its result as JSON.

Give the fields of the start event as key=value. The workflow's schema says how a value
is read ('weft workflows NAME' shows it): 3 is a number if the field is a number; lists
and objects are written as JSON; a field without a schema is text. The value of
key:=JSON is always read as JSON.

The result goes to the standard output, everything else to the standard error. --watch
shows the steps while they work, and what they write to the stream. If you interrupt the
command, the run continues.

Exit codes: 0 the run completed; 1 it could not be started or followed; 2 the command
line is wrong; 3 it failed, was cancelled or took longer than --timeout.`,
		Example: `  weft run counter --session mine
  weft run accumulator 'items=["a","b"]' --watch
  weft run wordcount --file text=README.md top=3
  git log | weft run wordcount --stdin text
  id=$(weft run human --no-wait)`,
		Args: cli.Takes("WORKFLOW", "key=value..."),
	}
	f := cmd.Flags()
	o.sources.Flags(f)
	f.StringVar(&o.handler, "handler", "", "`ID` of the run's handler; if it exists and its run has ended, the new run continues on its state")
	f.StringVar(&o.session, "session", "", "`ID` of the session on whose state the run works; made if it does not exist")
	f.StringVar(&o.onBusy, "on-busy", "", "`WHAT` to do if another run of the session is active: share (run beside it; the default), queue (wait for its end) or reject")
	f.StringVar(&o.from, "snapshot", "", "continue from the snapshot of a run ('weft snapshot ID') in the file `PATH`; if that run had ended, start a new run on its state")
	f.BoolVar(&o.watch, "watch", false, "show the steps while they work")
	f.BoolVar(&o.noWait, "no-wait", false, "do not wait: print the handler's id")
	f.DurationVar(&o.timeout, "timeout", 0, "stop waiting after this `TIME`, such as 30s; the run continues (default: never)")
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		if o.noWait && (o.watch || o.timeout > 0) {
			return cli.Usage("--no-wait cannot be combined with --watch or --timeout")
		}
		switch host.OnBusy(o.onBusy) {
		case "", host.OnBusyShare, host.OnBusyQueue, host.OnBusyReject:
			return start(ctx, r, o, args[0], args[1:])
		}
		return cli.Usage("--on-busy %q: must be share, queue or reject", o.onBusy)
	})
}

// start starts a run and waits for its end if the options say so.
func start(ctx context.Context, r *remote.Conn, o runOptions, workflow string, args []string) error {
	event, err := input.Start(ctx, r, o.sources, workflow, args)
	if err != nil {
		return err
	}
	from, err := readSnapshot(o.from)
	if err != nil {
		return err
	}
	// Start the run without waiting, so that its id is known whatever happens.
	rec, err := patientStart(ctx, r, client.StartRequest{
		Workflow: workflow, Event: event, HandlerID: o.handler, SessionID: o.session, OnBusy: host.OnBusy(o.onBusy), Snapshot: from,
	})
	if err != nil {
		return RefusedStart(ctx, r, err, workflow)
	}
	if o.noWait {
		return started(r, rec)
	}
	if o.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.timeout)
		defer cancel()
	}
	ended := rec
	err = Follow(ctx, r, rec.HandlerID, position.FromRun, o.watch, newViewer(r, o, rec))
	if err == nil {
		ended, err = r.Get(ctx, rec.RunID)
	}
	if err != nil {
		return leftGoing(r, err, rec.HandlerID, o.timeout)
	}
	return outcome(r, ended)
}

// RefusedStart explains why a run was not started.
func RefusedStart(ctx context.Context, r *remote.Conn, err error, workflow string) error {
	if host.CodeOf(err) == host.CodeInvalidArgument {
		return fmt.Errorf("%s; %q shows what it takes", remote.Sentence(host.MessageOf(err)), r.Hint("workflows", workflow))
	}
	return r.UnknownWorkflow(ctx, err, workflow)
}

// started reports a run that the command does not wait for.
func started(r *remote.Conn, rec client.Record) error {
	if r.JSON {
		return r.PrintJSON(rec.JSON)
	}
	r.Note("started %s; follow it with %q", screen.Printable(rec.Workflow), r.Hint("events", rec.HandlerID, "--follow"))
	return r.Print(rec.HandlerID + "\n")
}

// leftGoing says what to do about a run that is no longer watched.
func leftGoing(r *remote.Conn, err error, id string, timeout time.Duration) error {
	goesOn := fmt.Sprintf("the run continues: %q follows it, %q cancels it", r.Hint("events", id, "--follow"), r.Hint("cancel", id))
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return cli.Exit(cli.ExitRunEnded, fmt.Errorf("%s has not ended within %s; %s", id, timeout, goesOn))
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("interrupted; %s", goesOn)
	case host.CodeOf(err) == host.CodeNotFound:
		return cli.Exit(cli.ExitRunEnded, fmt.Errorf("%s was deleted before it ended", id))
	}
	return fmt.Errorf("%w; perhaps %s", r.Explain(err), goesOn)
}

// outcome prints the result of a run that has ended, or says why it has none.
func outcome(r *remote.Conn, rec client.Record) error {
	if r.JSON {
		if err := r.PrintJSON(rec.JSON); err != nil {
			return err
		}
	}
	if rec.Status != host.StatusCompleted {
		return cli.Exit(cli.ExitRunEnded, ending(rec))
	}
	if r.JSON {
		return nil
	}
	result, err := ResultOf(rec.Result)
	if err != nil {
		return err
	}
	if err := r.PrintJSON(result); err != nil {
		return err
	}
	r.Note("%s %s in %s, %s; handler %s", screen.Printable(rec.Workflow), screen.Of(r.Errs).Paint(screen.Green, "completed"),
		screen.Span(time.Duration(rec.Completed-rec.Started)), screen.Counted(rec.Steps, "step"), rec.HandlerID)
	return nil
}

// ending returns an error that says how a run ended without completing.
func ending(rec client.Record) error {
	text := fmt.Sprintf("%s %s", rec.HandlerID, rec.Status)
	switch rec.Status {
	case host.StatusCancelled:
		text = rec.HandlerID + " was cancelled"
	case host.StatusRunning:
		text = rec.HandlerID + " has not ended" // its stream has ended, which should not happen
	}
	if rec.Error != "" && rec.Status == host.StatusFailed {
		if in := failedIn(rec); in != "" {
			text += " in " + screen.Printable(in)
		}
		text += ": " + remote.Sentence(rec.Error)
		if rec.Remedy != "" {
			text += "\n  " + screen.Printable(rec.Remedy)
		}
	}
	return errors.New(text)
}

// ResultOf returns the result of a stop event as JSON: the result of the base stop event,
// or all fields of any other.
func ResultOf(e *host.StreamEvent) ([]byte, error) {
	if e == nil {
		return []byte("null"), nil
	}
	body, err := abi.ToJSON(e.Body)
	if err != nil {
		return nil, fmt.Errorf("read the result: %w", err)
	}
	if !e.Base || e.Type != abi.TypeStop {
		return body, nil
	}
	var stop struct{ Result json.RawMessage }
	if err := json.Unmarshal(body, &stop); err != nil {
		return nil, fmt.Errorf("read the result: %w", err)
	}
	if stop.Result == nil {
		return []byte("null"), nil
	}
	return stop.Result, nil
}
