package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

func newShow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show a run with its result",
		Long: `Show the latest run of a handler, or any run by its run id: its status, what it waits
for or why it failed, and its result.

The exit code says whether the run could be read, not how it ended; scripts look at
"status" in --json.`,
		Example: `  weft show 7f3k2m9x4q1z
  weft show 7f3k2m9x4q1z --json | jq -r .status`,
		Args: takes("ID"),
	}
	return clientCommand(cmd, func(ctx context.Context, r *remote, args []string) error {
		rec, err := r.Get(ctx, args[0])
		if err != nil {
			return r.unknownRun(err, args[0])
		}
		if r.json {
			return r.printAnswer()
		}
		return showRecord(ctx, r, rec, time.Now())
	})
}

func showRecord(ctx context.Context, r *remote, rec client.Record, now time.Time) error {
	s := recordSheet(rec, now)
	if rec.Status == host.StatusRunning {
		if about, err := r.About(ctx, rec.Workflow); err == nil { // its plugin may be gone
			s.add("timeout", timeoutOf(about.Timeout))
		}
	}
	if rec.Status != host.StatusCompleted {
		return r.print(s.renderOn(r.screen, ""))
	}
	result, err := resultOf(rec.Result)
	if err != nil {
		return err
	}
	return r.print(s.renderOn(r.screen, "") + "\n" + printableJSON(indented(result)) + "\n")
}

func recordSheet(rec client.Record, now time.Time) *sheet {
	started := time.Unix(0, rec.Started)
	s := &sheet{}
	s.add("handler", rec.HandlerID)
	s.add("run", rec.RunID)
	s.add("workflow", rec.Workflow)
	s.add("session", rec.SessionID)
	s.add("version", digest(rec.Version))
	s.add("status", statusOf(&rec.Run))
	s.add("started", stamp(started)+" ("+ago(started, now)+")")
	if rec.Completed != 0 {
		s.add("ended", stamp(time.Unix(0, rec.Completed)))
	}
	s.add("duration", lasted(&rec.Run, now))
	s.add("steps", fmt.Sprint(rec.Steps))
	if rec.Blocked != nil {
		s.add("blocked", rec.Blocked.Code+": "+rec.Blocked.Message)
	}
	for _, w := range waiting(rec.WaitingFor) {
		s.add("waits for", w)
	}
	for _, k := range rec.Kept {
		if k.Step != "" {
			k.Type += " for step " + k.Step
		}
		s.add("keeps", k.Type)
	}
	s.add("code", rec.ErrorCode)
	s.add("failed in", failedIn(rec))
	s.add("error", rec.Error)
	s.add("do", rec.Remedy)
	return s
}

// failedIn names the step that failed, and which attempt of it; "" for none.
func failedIn(rec client.Record) string {
	switch {
	case rec.ErrorStep == "":
		return ""
	case rec.ErrorAttempt == 0: // the run's own failure, at which these steps were at work
		return "step " + rec.ErrorStep
	}
	return fmt.Sprintf("step %s, attempt %d", rec.ErrorStep, rec.ErrorAttempt)
}

// waiting says what a run waits for.
func waiting(all []host.Waiting) []string {
	var list []string
	for _, w := range all {
		var text strings.Builder
		switch {
		case w.Reason == host.WaitsForTurn:
			text.WriteString("the runs before it in its session")
		case w.Reason == host.WaitsForRetry:
			fmt.Fprintf(&text, "its next attempt at %s", stamp(time.Unix(0, w.Until)))
		case w.Reason != "":
			text.WriteString(w.Reason)
		case w.Child != "":
			fmt.Fprintf(&text, "its child %s", w.Child)
		case w.Resource != "":
			fmt.Fprintf(&text, "the resource %s", w.Resource)
		case w.Until != 0:
			fmt.Fprintf(&text, "%s", stamp(time.Unix(0, w.Until)))
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
			fmt.Fprintf(&text, ", since %s", stamp(time.Unix(0, w.Since)))
		}
		list = append(list, text.String())
	}
	return list
}
