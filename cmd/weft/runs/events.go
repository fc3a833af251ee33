package runs

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/position"
)

// quiet is the silence after which the past events of a running run count as read,
// because the stream does not say where the past ends.
const quiet = 500 * time.Millisecond

// errCaughtUp ends a viewer that shows only past events.
var errCaughtUp = errors.New("caught up")

// eventsOptions are the flags of `weft events`.
type eventsOptions struct {
	after    string
	follow   bool
	internal bool
}

// NewEvents makes the command 'weft events'.
func NewEvents() *cobra.Command {
	var o eventsOptions
	cmd := &cobra.Command{
		Use:   "events ID",
		Short: "Show the events of a run",
		Long: `Show the events on the stream of a run, one a line: sequence number, type and fields.
The list begins with the first event of the handler's latest run, or after the event
that --after names. Numbers continue over the runs of a handler and include hidden
events, so they have gaps.

With --follow, continue until the run ends, and reconnect if the connection is lost.`,
		Example: `  weft events 7f3k2m9x4q1z
  weft events 7f3k2m9x4q1z --follow --internal
  weft events 7f3k2m9x4q1z --after 120 --json
  weft events 7f3k2m9x4q1z --after now --follow`,
		Args: cli.Takes("ID"),
	}
	f := cmd.Flags()
	f.StringVar(&o.after, "after", "", "begin after the event with sequence number `N`, or now (default: from the run's first event)")
	f.BoolVarP(&o.follow, "follow", "f", false, "continue until the run ends")
	f.BoolVar(&o.internal, "internal", false, "also show internal events: those of steps that begin, work and end")
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		after, err := parseAfter(o.after)
		if err != nil {
			return err
		}
		err = Follow(ctx, r, args[0], after, o.internal, o.viewer(r))
		if errors.Is(err, errCaughtUp) {
			return nil
		}
		return r.UnknownRun(err, args[0])
	})
}

// viewer chooses how the events are shown.
func (o *eventsOptions) viewer(r *remote.Conn) Viewer {
	var v Viewer = &eventLines{r: r}
	if r.JSON {
		v = &jsonLines{print: r.Print}
	}
	if !o.follow {
		v = untilQuiet{v}
	}
	return v
}

// parseAfter reads --after.
func parseAfter(text string) (int64, error) {
	switch text {
	case "":
		return position.FromRun, nil
	case "now":
		return position.FromNow, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < position.FromRun {
		return 0, cli.Usage("--after %q: must be a sequence number, or now", text)
	}
	return n, nil
}

// eventLines prints each event as a line with its number.
type eventLines struct{ r *remote.Conn }

// Show implements Viewer.
func (v *eventLines) Show(events []host.StreamEvent) error {
	for i := range events {
		line, err := EventLine(&events[i])
		if err != nil {
			return err
		}
		if err := v.r.Print(strconv.FormatUint(events[i].Seq, 10) + screen.Gap + line + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// Patience implements Viewer.
func (v *eventLines) Patience() time.Duration { return Untold }

// Close implements Viewer.
func (v *eventLines) Close() error { return nil }

// untilQuiet ends with errCaughtUp when no more events arrive.
type untilQuiet struct{ Viewer }

// Show implements Viewer.
func (v untilQuiet) Show(events []host.StreamEvent) error {
	if len(events) == 0 {
		return errCaughtUp
	}
	return v.Viewer.Show(events)
}

// Patience implements Viewer.
func (v untilQuiet) Patience() time.Duration { return quiet }
