package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
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

// logsOptions are the flags of `weft logs`.
type logsOptions struct {
	follow   bool
	level    string
	since    string
	workflow string
	runs     int
}

// NewLogs makes the command 'weft logs'.
func NewLogs() *cobra.Command {
	var o logsOptions
	cmd := &cobra.Command{
		Use:   "logs [ID]",
		Short: "Show what the steps of a run have logged",
		Long: `Show what the steps of a run have logged, one message a line: time, level, step with its
number, message and attributes. ID is a handler, for its latest run, or a run id. With
--workflow instead of ID, show the logs of the newest runs of a workflow, in the order
of time, with their handlers.

A message becomes visible when its step next changes something, waits or ends. With
--follow, continue until the run ends, and after a lost connection continue where it was.`,
		Example: `  weft logs 7f3k2m9x4q1z
  weft logs 7f3k2m9x4q1z -f --level warn
  weft logs --workflow wordcount --since 1h
  weft logs 7f3k2m9x4q1z --json | jq -r .message`,
		Args: cli.Takes("[ID]"),
	}
	f := cmd.Flags()
	f.BoolVarP(&o.follow, "follow", "f", false, "continue until the run ends")
	f.StringVar(&o.level, "level", "", "only this `LEVEL` and above: debug, info, warn, error, or a number")
	f.StringVar(&o.since, "since", "", "only the last `TIME`, such as 90m or 7d, or since a time such as 2026-11-21T09:00:00Z")
	f.StringVar(&o.workflow, "workflow", "", "show the newest runs of this `WORKFLOW`")
	f.IntVar(&o.runs, "runs", remote.DefaultListed, "with --workflow: show `N` runs")
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		v, err := o.view(r, time.Now())
		switch {
		case err != nil:
			return err
		case len(args) == 0 && o.workflow == "":
			return cli.Usage("ID is missing, or --workflow; see 'weft logs --help'")
		case len(args) > 0 && o.workflow != "":
			return cli.Usage("either an ID or --workflow")
		case o.workflow != "" && o.follow:
			return cli.Usage("--follow needs one run: name its handler")
		case o.workflow != "":
			return workflowLogs(ctx, r, o, v)
		case o.follow:
			return followLogs(ctx, r, args[0], v)
		}
		run, err := r.Get(ctx, args[0])
		if err != nil {
			return r.UnknownRun(err, args[0])
		}
		return v.reader(&run).read(ctx, r, v.print)
	})
}

// levels are the names of levels.
var levels = []struct {
	name  string
	least int64
}{{"debug", -4}, {"info", 0}, {"warn", 4}, {"error", 8}}

// parseLevel reads a level; "" means all levels.
func parseLevel(text string) (int64, error) {
	if text == "" {
		return -1 << 63, nil
	}
	for _, l := range levels {
		if strings.EqualFold(text, l.name) {
			return l.least, nil
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, cli.Usage("--level %q: must be debug, info, warn, error, or a number", text)
	}
	return n, nil
}

// levelName shows a level: the name of the next lower named level, and the difference to
// it.
func levelName(level int64) string {
	name, above := "DEBUG", level-levels[0].least
	for _, l := range levels {
		if level >= l.least {
			name, above = strings.ToUpper(l.name), level-l.least
		}
	}
	if above == 0 {
		return name
	}
	return fmt.Sprintf("%s%+d", name, above)
}

// logLine is a message with its origin, as --json prints it.
type logLine struct {
	Time       time.Time       `json:"time"`
	Level      int64           `json:"level"`
	Message    string          `json:"message"`
	Attrs      json.RawMessage `json:"attrs,omitempty"`
	HandlerID  string          `json:"handler_id"`
	RunID      string          `json:"run_id"`
	Workflow   string          `json:"workflow_name"`
	Step       string          `json:"step,omitempty"`
	Invocation uint64          `json:"invocation,omitempty"`
	Attempt    uint64          `json:"attempt,omitempty"`
	Seq        uint64          `json:"seq"` // of the journal's entry
}

// logView says which messages are shown, and how.
type logView struct {
	r     *remote.Conn
	least int64
	since time.Time
	named bool // show the handler
}

func (o *logsOptions) view(r *remote.Conn, now time.Time) (*logView, error) {
	v := &logView{r: r, named: o.workflow != ""}
	var err error
	if v.least, err = parseLevel(o.level); err != nil {
		return nil, err
	}
	if o.runs < 1 || o.runs > remote.MaxPage {
		return nil, cli.Usage("--runs %d: must be a number from 1 to %d", o.runs, remote.MaxPage)
	}
	v.since, err = parseSince(o.since, now)
	return v, err
}

func (v *logView) reader(run *client.Record) *logReader { return &logReader{view: v, run: run} }

// print shows messages.
func (v *logView) print(lines []logLine) error {
	for i := range lines {
		text, err := v.line(&lines[i])
		if err != nil {
			return err
		}
		if err := v.r.Print(text + "\n"); err != nil {
			return err
		}
	}
	return nil
}

func (v *logView) line(l *logLine) (string, error) {
	if v.r.JSON {
		text, err := json.Marshal(l)
		return string(text), err
	}
	parts := []string{l.Time.Local().Format("2006-01-02 15:04:05.000"), fmt.Sprintf("%-5s", levelName(l.Level))}
	if v.named {
		parts = append(parts, l.HandlerID)
	}
	step := l.Step
	if l.Invocation != 0 {
		step = strings.TrimSpace(fmt.Sprintf("%s #%d", step, l.Invocation))
	}
	if l.Attempt > 1 {
		step += fmt.Sprintf("/%d", l.Attempt)
	}
	parts = append(parts, step, screen.Printable(l.Message))
	if len(l.Attrs) > 0 && string(l.Attrs) != "{}" {
		parts = append(parts, screen.Printable(string(l.Attrs)))
	}
	return strings.Join(parts, screen.Gap), nil
}

// logPage is how many entries of a journal are read at once. The last page is read again
// when entries may have been added.
const logPage = 200

// logReader reads the messages of one run, each once.
type logReader struct {
	view   *logView
	run    *client.Record
	cursor string // of the last page that was read
	last   uint64 // all entries up to this one were shown
}

// read passes on the messages that it has not passed on yet, up to the journal's end.
func (l *logReader) read(ctx context.Context, r *remote.Conn, show func([]logLine) error) error {
	for {
		page, err := r.Journal(ctx, l.run.RunID, client.JournalOptions{Cursor: l.cursor, Limit: logPage})
		if err != nil {
			return err
		}
		var lines []logLine
		for i := range page.Entries {
			e := &page.Entries[i]
			if e.Seq <= l.last {
				continue
			}
			lines = append(lines, l.lines(e)...)
			l.last = e.Seq
		}
		if err := show(lines); err != nil {
			return err
		}
		if page.NextCursor == "" {
			return nil
		}
		l.cursor = string(page.NextCursor)
	}
}

// lines returns the messages of an entry that the view shows.
func (l *logReader) lines(e *client.JournalEntry) (lines []logLine) {
	for _, m := range e.Logs {
		at := m.At.Time().UTC()
		if m.Level < l.view.least || at.Before(l.view.since) {
			continue
		}
		lines = append(lines, logLine{
			Time: at, Level: m.Level, Message: m.Message, Attrs: json.RawMessage(m.Attrs.String()),
			HandlerID: l.run.HandlerID, RunID: l.run.RunID, Workflow: l.run.Workflow,
			Step: e.Step, Invocation: e.Invocation, Attempt: e.Attempt, Seq: e.Seq,
		})
	}
	return lines
}

// workflowLogs shows the messages of the newest runs of a workflow, in the order of time.
func workflowLogs(ctx context.Context, r *remote.Conn, o logsOptions, v *logView) error {
	page, err := r.List(ctx, client.ListQuery{Workflows: []string{o.workflow}, Since: v.since, Limit: o.runs})
	if err != nil {
		return err
	}
	if len(page.Records) == 0 {
		r.Note("no runs")
		return nil
	}
	var all []logLine
	for i := range page.Records {
		err := v.reader(&page.Records[i]).read(ctx, r, func(lines []logLine) error {
			all = append(all, lines...)
			return nil
		})
		switch host.CodeOf(err) {
		case host.CodeNotFound: // deleted meanwhile
		case host.CodeGone:
			r.Note("run %s: its journal was cut", page.Records[i].RunID)
		default:
			if err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(all, func(a, b logLine) int { return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(a.HandlerID, b.HandlerID)) })
	return v.print(all)
}
