package runs

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// forkOptions are the flags of `weft fork`.
type forkOptions struct {
	client.ForkOptions
	set    []string
	unset  []string
	patch  string
	answer sendOptions
}

// NewFork makes the command 'weft fork'.
func NewFork() *cobra.Command {
	var o forkOptions
	cmd := &cobra.Command{
		Use:   "fork ID [TYPE [key=value | key:=JSON]...] --at N",
		Short: "Continue a run a second time, from a point of its past",
		Long: `Continue a run a second time, from just after an entry of its journal. 'weft journal ID'
shows the entries; a fork may begin at those with a *. The fork has a new handler and a
private session with the state of that moment, and its waits and sleeps continue with
the time that remained. The original run does not change, and may have ended.

The fork may begin with another state (--set, --unset, --patch), and with an event that it
gets before it continues: its TYPE and its fields, as for 'weft send'. All of that takes
effect together with the fork, or not at all.

Work of the run in other sessions begins anew; --dry-run lists it, checks everything, and
begins nothing.`,
		Example: `  weft fork 7f3k2m9x4q1z --at 12
  weft fork 7f3k2m9x4q1z --at 12 HumanResponseEvent role=manager approved:=false
  weft fork 7f3k2m9x4q1z --at 12 --set budget:=100 --dry-run`,
		Args: cli.Takes("ID", "[TYPE]", "key=value..."),
	}
	cmd.Flags().Uint64Var(&o.At, "at", 0, "continue after the entry at position `N`")
	cmd.Flags().StringArrayVar(&o.set, "set", nil, "set a value of the fork's state: `PATH=VALUE`, or PATH:=JSON (repeatable)")
	cmd.Flags().StringArrayVar(&o.unset, "unset", nil, "delete the value at `PATH` of the fork's state (repeatable)")
	cmd.Flags().StringVar(&o.patch, "patch", "", "a `FILE` with a merge patch of the fork's state (RFC 7396); - is the standard input")
	cmd.Flags().StringVar(&o.answer.step, "step", "", "`STEP` that gets the event (default: all steps that accept the type)")
	cmd.Flags().StringVar(&o.answer.event, "json-event", "", "the event's fields as one `JSON` object")
	cmd.Flags().BoolVar(&o.Paused, "paused", false, "the fork waits for 'weft resume'")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "check everything, and begin nothing")
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		if o.At == 0 {
			return cli.Usage("--at is missing: the position of an entry of 'weft journal %s'", args[0])
		}
		if err := o.complete(ctx, r, args); err != nil {
			return err
		}
		rec, anew, err := r.Fork(ctx, args[0], o.ForkOptions)
		switch {
		case host.CodeOf(err) == host.CodeNotFound:
			return r.UnknownRun(err, args[0])
		case err != nil:
			return err
		case r.JSON:
			return r.PrintAnswer()
		}
		noteAnew(r, anew)
		if o.DryRun {
			r.Note("nothing was begun: it was a dry run")
			return nil
		}
		return r.Print(rec.HandlerID + "\n")
	})
}

// complete reads what the fork changes.
func (o *forkOptions) complete(ctx context.Context, r *remote.Conn, args []string) (err error) {
	edits, err := (&setOptions{unset: o.unset}).edits(o.set)
	switch {
	case err != nil:
		return err
	case o.patch != "" && len(edits) > 0:
		return cli.Usage("--patch cannot be combined with --set and --unset")
	case o.patch != "":
		if o.Patch, err = readJSON(r, ctx, o.patch); err != nil {
			return err
		}
	case len(edits) > 0:
		raw, err := abi.EncodeEdits(edits)
		if err == nil {
			o.Edits, err = abi.ToJSON(raw)
		}
		if err != nil {
			return &host.Error{Code: host.CodeInvalidArgument, Message: "The edits are not valid: " + err.Error(), Cause: err}
		}
	}
	if len(args) == 1 {
		if o.answer != (sendOptions{}) {
			return cli.Usage("--step and --json-event need the TYPE of an event")
		}
		return nil
	}
	o.AnswerType, o.Step = args[1], o.answer.step
	var fields json.RawMessage
	fields, err = sentEvent(ctx, r, o.answer, args[0], args[1], args[2:])
	o.Answer = fields
	return err
}
