package runs

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/input"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/host"
)

// sendOptions are the flags of `weft send`.
type sendOptions struct {
	step  string
	event string
}

// NewSend makes the command 'weft send'.
func NewSend() *cobra.Command {
	var o sendOptions
	cmd := &cobra.Command{
		Use:   "send ID TYPE [key=value | key:=JSON]...",
		Short: "Send an event to a running run",
		Long: `Send an event to a running run: the answer of a person, or any other event that its
workflow takes from outside. Give the event's fields like those of a start event ('weft
run --help'), or all at once with --json-event. The output says which steps got the
event, or that the run keeps it for a later wait.`,
		Example: `  weft send 7f3k2m9x4q1z HumanResponseEvent response=42
  weft send 7f3k2m9x4q1z HumanResponseEvent role=manager approved:=true
  weft send 7f3k2m9x4q1z ItemEvent --json-event '{"item":"a","index":0}' --step process_item`,
		Args: cli.Takes("ID", "TYPE", "key=value..."),
	}
	cmd.Flags().StringVar(&o.step, "step", "", "`STEP` that gets the event (default: all steps that accept the type)")
	cmd.Flags().StringVar(&o.event, "json-event", "", "the event's fields as one `JSON` object")
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		id, eventType := args[0], args[1]
		event, err := sentEvent(ctx, r, o, id, eventType, args[2:])
		if err != nil {
			return err
		}
		d, err := r.Send(ctx, id, eventType, event, o.step)
		if err != nil {
			return r.UnknownRun(err, id)
		}
		if r.JSON {
			return r.PrintAnswer()
		}
		r.Note("sent %s to %s%s", eventType, id, delivered(&d))
		return nil
	})
}

// delivered says what happened to a sent event.
func delivered(d *host.Delivery) string {
	steps := strings.Join(d.To, ", ")
	switch d.How {
	case host.DeliveredWaiter:
		return ": " + steps + " waited for it"
	case host.DeliveredSteps:
		return ": taken by " + steps
	case host.DeliveredKept:
		return ": the run keeps it until a step waits for it"
	case host.DeliveredNobody:
		return ": no step takes it"
	}
	return ""
}

// sentEvent reads the event's fields from the command line.
func sentEvent(ctx context.Context, r *remote.Conn, o sendOptions, id, eventType string, args []string) (json.RawMessage, error) {
	if o.event != "" {
		var object map[string]json.RawMessage
		if err := json.Unmarshal([]byte(o.event), &object); err != nil || object == nil {
			return nil, cli.Usage("--json-event %q is not a JSON object", input.Short(o.event))
		}
		if len(args) > 0 {
			return nil, cli.Usage("the event's fields come from --json-event or from %q, not from both", args[0])
		}
		return json.RawMessage(o.event), nil
	}
	fields, err := input.Parse(args)
	if err != nil || len(fields) == 0 {
		return nil, err
	}
	rec, err := r.Get(ctx, id)
	if err != nil {
		return nil, r.UnknownRun(err, id)
	}
	s, err := schemaOf(ctx, r, rec.Workflow, eventType)
	if err != nil {
		return nil, err
	}
	if s != nil {
		for _, note := range input.Strays(fields, s) {
			r.Note("note: %s; it is sent all the same", note)
		}
	}
	return input.Event(fields, s)
}

// schemaOf returns the schema of an event type; nil if the workflow no longer has the
// type or does not describe it.
func schemaOf(ctx context.Context, r *remote.Conn, workflow, eventType string) (*input.Schema, error) {
	info, err := r.Workflow(ctx, workflow)
	if host.CodeOf(err) == host.CodeNotFound {
		return nil, nil // the plugin may be gone while the run exists
	}
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(info.Events, func(e host.EventInfo) bool { return e.Type == eventType })
	if i < 0 || info.Events[i].Schema == nil {
		return nil, nil
	}
	text, err := abi.ToJSON(info.Events[i].Schema)
	if err != nil {
		return nil, err
	}
	return input.ReadSchema(text)
}

// NewPause makes the command 'weft pause'.
func NewPause() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "pause ID",
		Short: "Pause a run",
		Long: `Pause a run: it begins no steps until it is resumed. Steps in progress continue to their
end or their next wait, arriving events are kept, and the timeouts of the workflow and
its steps stand still.`,
		Example: `  weft pause 7f3k2m9x4q1z`,
		Args:    cli.Takes("ID"),
	}
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		_, err := r.Pause(ctx, args[0])
		return steered(r, err, args[0], "paused")
	})
}

// NewResume makes the command 'weft resume'.
func NewResume() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resume ID",
		Short: "Continue a paused or blocked run",
		Long: `Continue a run that is paused, or that is blocked ('weft runs --blocked' lists those).
Its steps are replayed to where they were.`,
		Example: `  weft resume 7f3k2m9x4q1z`,
		Args:    cli.Takes("ID"),
	}
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		_, err := r.Resume(ctx, args[0])
		return steered(r, err, args[0], "resumed")
	})
}

// steered says what was done with a run.
func steered(r *remote.Conn, err error, id, what string) error {
	switch {
	case host.CodeOf(err) == host.CodeNotFound:
		return r.UnknownRun(err, id)
	case err != nil:
		return err
	case r.JSON:
		return r.PrintAnswer()
	}
	r.Note("%s %s", what, id)
	return nil
}

// NewCancel makes the command 'weft cancel'.
func NewCancel() *cobra.Command {
	var purge bool
	cmd := &cobra.Command{
		Use:   "cancel ID",
		Short: "Cancel a run, or delete a handler",
		Long: `Cancel a running run. Its record, events and state stay. If steps of the run clean up
first, the command waits for them; a second cancel does not wait.

With --purge, delete the handler with all its runs and their events, and with its state
unless it worked in a named session. The run may have ended or not.`,
		Example: `  weft cancel 7f3k2m9x4q1z
  weft cancel 7f3k2m9x4q1z --purge`,
		Args: cli.Takes("ID"),
	}
	cmd.Flags().BoolVar(&purge, "purge", false, "delete the handler with everything that belongs to it")
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		deleted, err := r.Cancel(ctx, args[0], purge)
		if err != nil {
			return notCancelled(ctx, r, err, args[0])
		}
		switch {
		case r.JSON:
			return r.PrintAnswer()
		case deleted:
			r.Note("deleted %s", args[0])
		default:
			r.Note("cancelled %s", args[0])
		}
		return nil
	})
}

// notCancelled explains the not-found error of a cancel, which also occurs if the run has
// already ended.
func notCancelled(ctx context.Context, r *remote.Conn, err error, id string) error {
	if host.CodeOf(err) != host.CodeNotFound {
		return err
	}
	rec, lookup := r.Get(ctx, id)
	if lookup != nil {
		return r.UnknownRun(err, id)
	}
	return remote.Reworded(err, host.CodeNotFound, "%s has ended already (%s); --purge deletes it", id, rec.Status)
}
