package runs

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// listOptions are the flags of `weft runs`.
type listOptions struct {
	statuses  []string
	workflows []string
	version   string
	session   string
	code      string
	since     string
	search    string
	blocked   bool
	remote.PageOptions
}

// NewRuns makes the command 'weft runs'.
func NewRuns() *cobra.Command {
	var o listOptions
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List runs, newest first",
		Long: `List handlers with their latest runs, newest first. A run is listed if it matches all
filters; a filter that is repeated matches if one of its values does.

--search looks for words in the errors and results of ended runs. Every word of the text
must occur, in any order and in upper or lower case. A word with a * at its end matches
the beginning of words. Punctuation is ignored.`,
		Example: `  weft runs
  weft runs --status failed --status cancelled --since 24h
  weft runs --workflow wordcount --all --json
  weft runs --status running --version 4f1c2a9be0d3
  weft runs --search 'no such file'     # in the error or the result
  weft runs --blocked                   # those that wait for an operator`,
		Args: cli.Takes(),
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.statuses, "status", nil, "`STATUS`: running, completed, failed or cancelled (repeatable)")
	f.StringArrayVar(&o.workflows, "workflow", nil, "runs of this `WORKFLOW` (repeatable)")
	f.StringVar(&o.version, "version", "", "runs on the version with this `DIGEST`, or the beginning of one (8 digits or more)")
	f.StringVar(&o.session, "session", "", "runs of the session with this `ID`")
	f.StringVar(&o.code, "code", "", "runs that failed with this error `CODE`, such as timeout or trap")
	f.StringVar(&o.since, "since", "", "runs that changed in the last `TIME`, such as 90m or 7d, or since a time such as 2026-11-21T09:00:00Z")
	f.StringVar(&o.search, "search", "", "ended runs whose error or result has all words of this `TEXT`; WORD* matches the beginning of a word")
	f.BoolVar(&o.blocked, "blocked", false, "runs that cannot continue without help")
	o.Flags(f)
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, _ []string) error { return listRuns(ctx, r, o, time.Now()) })
}

func listRuns(ctx context.Context, r *remote.Conn, o listOptions, now time.Time) error {
	q, err := o.query(now)
	if err != nil {
		return err
	}
	list, next, err := remote.Gather(&o.PageOptions, func(cursor string) ([]client.Record, string, error) {
		q.Cursor = cursor
		page, err := r.List(ctx, q)
		return page.Records, page.Next, err
	})
	if err != nil {
		return err
	}
	return runList(now).Print(r, &o.PageOptions, list, next)
}

// runList formats a list of runs.
func runList(now time.Time) remote.List[client.Record] {
	return remote.List[client.Record]{
		Name: "handlers", None: "no runs",
		JSON: func(rec *client.Record) json.RawMessage { return rec.JSON },
		Rows: func(list []client.Record) *screen.Table { return runTable(list, now) },
	}
}

// query turns the flags into the API's filters.
func (o *listOptions) query(now time.Time) (client.ListQuery, error) {
	q := client.ListQuery{
		Statuses: o.statuses, Workflows: o.workflows, Version: o.version, Session: o.session, ErrorCode: o.code,
		Text: o.search, Blocked: o.blocked, Limit: o.Size(),
	}
	for _, s := range o.statuses {
		switch host.Status(s) {
		case host.StatusRunning, host.StatusCompleted, host.StatusFailed, host.StatusCancelled:
		default:
			return q, cli.Usage("--status %q: must be running, completed, failed or cancelled", s)
		}
	}
	err := o.Check()
	if err != nil {
		return q, err
	}
	q.Since, err = parseSince(o.since, now)
	return q, err
}

// parseSince reads a point in time, or a duration before now; "" is the zero time.
func parseSince(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int
		if n, err = strconv.Atoi(days); err == nil && n > 36500 {
			err = errors.New("too long ago")
		}
		d = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || d < 0 {
		return time.Time{}, cli.Usage("--since %q: must be a time like 90m, 24h or 7d, or a point in time like 2026-11-21T09:00:00Z", text)
	}
	return now.Add(-d), nil
}

func runTable(records []client.Record, now time.Time) *screen.Table {
	t := &screen.Table{Columns: []screen.Column{
		{Title: "HANDLER"}, {Title: "WORKFLOW", Elastic: true}, {Title: "STATUS"},
		{Title: "STARTED"}, {Title: "DURATION", Right: true}, {Title: "ERROR", Elastic: true},
	}}
	for i := range records {
		run := &records[i].Run
		t.Add(run.HandlerID, run.Workflow, statusOf(run), screen.Ago(time.Unix(0, run.Started), now), lasted(run, now), complaint(run))
	}
	return t
}

// statusOf describes a run's status, and why a running run does not continue.
func statusOf(run *host.Run) string {
	switch {
	case run.Blocked != nil:
		return string(run.Status) + " (blocked)"
	case run.Paused:
		return string(run.Status) + " (paused)"
	}
	return string(run.Status)
}

// lasted says how long a run took, or has been running.
func lasted(run *host.Run, now time.Time) string {
	end := now.UnixNano()
	if run.Completed != 0 {
		end = run.Completed
	}
	return screen.Span(time.Duration(end - run.Started))
}

// complaint describes the problem of a run, if it has one.
func complaint(run *host.Run) string {
	if run.Blocked != nil {
		return run.Blocked.Message
	}
	return run.Error
}
