package runs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// NewJournal makes the command 'weft journal'.
func NewJournal() *cobra.Command {
	var o client.JournalOptions
	cmd := &cobra.Command{
		Use:   "journal ID",
		Short: "Show what happened in a run, step by step",
		Long: `Show the journal of a handler's latest run, or of any run by its run id: the
events that came and went, attempts of steps with what they took, edits of the
state with the values before and after, waits, sleeps, children, logs.

The number at the beginning of a line is the position in the journal. A * after it says
that a fork may begin there (weft fork ID --at N).`,
		Example: `  weft journal 7f3k2m9x4q1z
  weft journal 7f3k2m9x4q1z --newest --limit 20
  weft journal 7f3k2m9x4q1z --kind edit --step render
  weft journal 7f3k2m9x4q1z --json | jq '.entries[] | select(.edits)'`,
		Args: cli.Takes("ID"),
	}
	cmd.Flags().Uint64Var(&o.After, "after", 0, "only entries after position `N`")
	cmd.Flags().Uint64Var(&o.Before, "before", 0, "only entries before position `N`")
	cmd.Flags().BoolVar(&o.Newest, "newest", false, "the newest entries first")
	cmd.Flags().StringSliceVar(&o.Kinds, "kind", nil, "only entries of the kind `WHAT`, such as edit or finish")
	cmd.Flags().StringSliceVar(&o.Steps, "step", nil, "only entries of `STEP`")
	cmd.Flags().IntVar(&o.Limit, "limit", 0, "at most `N` entries (default: all; with --json 1000, and next_cursor for the next page)")
	cmd.Flags().StringVar(&o.Cursor, "cursor", "", "begin after an earlier page (`TEXT`: its next_cursor)")
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		t := &screen.Table{Columns: []screen.Column{{Title: "POSITION", Right: true}, {Title: "TIME"}, {Title: "KIND"}, {Title: "STEP"}, {Title: "WHAT", Elastic: true}}}
		limit := o.Limit
		for rest := limit; ; {
			o.Limit = min(rest, host.MaxTimeline)
			page, err := r.Journal(ctx, args[0], o)
			switch {
			case host.CodeOf(err) == host.CodeNotFound:
				return r.UnknownRun(err, args[0])
			case err != nil:
				return err
			case r.JSON:
				return r.PrintAnswer()
			}
			for i := range page.Entries {
				addEntry(t, &page.Entries[i])
			}
			o.Cursor, rest = string(page.NextCursor), rest-len(page.Entries)
			if o.Cursor == "" || limit > 0 && rest <= 0 {
				break
			}
		}
		if o.Cursor != "" {
			r.Note("more follows: --cursor %s", o.Cursor)
		}
		return r.Print(t.Render(r.Screen))
	})
}

func addEntry(t *screen.Table, e *client.JournalEntry) {
	position := fmt.Sprintf("%d ", e.Seq)
	if e.Forkable {
		position = fmt.Sprintf("%d*", e.Seq)
	}
	step := e.Step
	if e.Invocation != 0 {
		step = strings.TrimSpace(fmt.Sprintf("%s #%d", step, e.Invocation))
	}
	if e.Attempt > 1 {
		step += fmt.Sprintf("/%d", e.Attempt)
	}
	t.Add(position, e.At.Time().Local().Format("15:04:05.000"), e.Kind, step, describeEntry(e))
}

// describeEntry describes an entry in one line.
func describeEntry(e *client.JournalEntry) string {
	var parts []string
	say := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	for _, ev := range e.Events {
		say("%s %s", ev.Type, ev.Body)
	}
	if e.To != "" {
		say("to step %s", e.To)
	}
	for _, edit := range e.Edits {
		path := edit.Path
		if path == "" {
			path = "(state)"
		}
		switch {
		case edit.New == nil:
			say("%s: %s deleted", path, edit.Old)
		case edit.Old == nil:
			say("%s: %s", path, edit.New)
		default:
			say("%s: %s -> %s", path, edit.Old, edit.New)
		}
	}
	if w := e.Wait; w != nil {
		say("for %s", w.Type)
	}
	if c := e.Child; c != nil {
		say("%s", strings.TrimSpace("child "+c.Workflow+" "+c.HandlerID))
	}
	if c := e.Called; c != nil {
		say("%s", strings.TrimSpace(fmt.Sprintf("resource %s %s %s%s", c.Resource, c.Method, c.Payload, c.Answer)))
	}
	if e.Timer != "" {
		say("%s", e.Timer)
	}
	if e.Until != 0 {
		say("until %s", screen.Stamp(e.Until.Time()))
	}
	return strings.Join(append(parts, outcomeOf(e)...), "; ")
}

// outcomeOf says how an attempt, or the run, ended with an entry, and what began.
func outcomeOf(e *client.JournalEntry) []string {
	var parts []string
	say := func(format string, args ...any) { parts = append(parts, fmt.Sprintf(format, args...)) }
	if e.Err != nil {
		say("%s: %s", e.Err.Code, e.Err.Message)
	}
	if e.RetryAt != 0 {
		say("again at %s", screen.Stamp(e.RetryAt.Time()))
	}
	if e.Block != nil {
		say("%s: %s", e.Block.Code, e.Block.Message)
	}
	if e.Duration != 0 {
		say("took %s", time.Duration(e.Duration).Round(time.Microsecond))
	}
	if e.Fuel != 0 {
		say("fuel %d", e.Fuel)
	}
	for _, l := range e.Logs {
		say("log %q", l.Message)
	}
	for _, b := range e.Began {
		say("%s #%d begins", b.Step, b.Invocation)
	}
	if e.Status != "" {
		say("the run is %s", e.Status)
	}
	return parts
}
