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

// NewShow makes the command 'weft show'.
func NewShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a run with its result",
		Long: `Show the latest run of a handler, or any run by its run id: its status, what it waits
for or why it failed, and its result.

The exit code says whether the run could be read, not how it ended; scripts look at
"status" in --json.`,
		Example: `  weft show 7f3k2m9x4q1z
  weft show 7f3k2m9x4q1z --json | jq -r .status`,
		Args: cli.Takes("ID"),
	}
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		rec, err := r.Get(ctx, args[0])
		if err != nil {
			return r.UnknownRun(err, args[0])
		}
		if r.JSON {
			return r.PrintAnswer()
		}
		return showRecord(ctx, r, rec, time.Now())
	})
}

func showRecord(ctx context.Context, r *remote.Conn, rec client.Record, now time.Time) error {
	s := recordSheet(rec, now)
	if rec.Status == host.StatusRunning {
		if about, err := r.About(ctx, rec.Workflow); err == nil { // its plugin may be gone
			s.Add("timeout", screen.TimeoutOf(about.Timeout))
		}
	}
	if rec.Status != host.StatusCompleted {
		return r.Print(s.RenderOn(r.Screen, ""))
	}
	result, err := ResultOf(rec.Result)
	if err != nil {
		return err
	}
	return r.Print(s.RenderOn(r.Screen, "") + "\n" + screen.PrintableJSON(screen.Indented(result)) + "\n")
}

func recordSheet(rec client.Record, now time.Time) *screen.Sheet {
	started := time.Unix(0, rec.Started)
	s := &screen.Sheet{}
	s.Add("handler", rec.HandlerID)
	s.Add("run", rec.RunID)
	s.Add("workflow", rec.Workflow)
	s.Add("session", rec.SessionID)
	s.Add("version", screen.Digest(rec.Version))
	s.Add("status", statusOf(&rec.Run))
	s.Add("started", screen.Stamp(started)+" ("+screen.Ago(started, now)+")")
	if rec.Completed != 0 {
		s.Add("ended", screen.Stamp(time.Unix(0, rec.Completed)))
	}
	s.Add("duration", lasted(&rec.Run, now))
	s.Add("steps", fmt.Sprint(rec.Steps))
	if rec.Blocked != nil {
		s.Add("blocked", rec.Blocked.Code+": "+rec.Blocked.Message)
	}
	for _, w := range waiting(rec.WaitingFor) {
		s.Add("waits for", w)
	}
	for _, k := range rec.Kept {
		if k.Step != "" {
			k.Type += " for step " + k.Step
		}
		s.Add("keeps", k.Type)
	}
	s.Add("code", rec.ErrorCode)
	s.Add("failed in", failedIn(rec))
	s.Add("error", rec.Error)
	s.Add("do", rec.Remedy)
	return s
}

// failedIn names the step that failed, and its attempt; "" if no step failed.
func failedIn(rec client.Record) string {
	switch {
	case rec.ErrorStep == "":
		return ""
	case rec.ErrorAttempt == 0: // the run itself failed while these steps were running
		return "step " + rec.ErrorStep
	}
	return fmt.Sprintf("step %s, attempt %d", rec.ErrorStep, rec.ErrorAttempt)
}

// waiting lists what a run waits for.
func waiting(all []host.Waiting) []string {
	var list []string
	for _, w := range all {
		var text strings.Builder
		switch {
		case w.Reason == host.WaitsForTurn:
			text.WriteString("the runs before it in its session")
		case w.Reason == host.WaitsForRetry:
			fmt.Fprintf(&text, "its next attempt at %s", screen.Stamp(time.Unix(0, w.Until)))
		case w.Reason != "":
			text.WriteString(w.Reason)
		case w.Child != "":
			fmt.Fprintf(&text, "its child %s", w.Child)
		case w.Resource != "":
			fmt.Fprintf(&text, "the resource %s", w.Resource)
		case w.Until != 0:
			fmt.Fprintf(&text, "%s", screen.Stamp(time.Unix(0, w.Until)))
		default:
			text.WriteString(w.Type)
		}
		if w.Step != "" {
			fmt.Fprintf(&text, " in step %s", w.Step)
		}
		if w.Requirements != "" {
			fmt.Fprintf(&text, ", with %s", w.Requirements)
		}
		if w.WaiterID != "" {
			fmt.Fprintf(&text, ", waiter %s", w.WaiterID)
		}
		if w.Since != 0 {
			fmt.Fprintf(&text, ", since %s", screen.Stamp(time.Unix(0, w.Since)))
		}
		list = append(list, text.String())
	}
	return list
}
