package runs

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// retryOptions are the flags of `weft retry`.
type retryOptions struct {
	all       bool
	newest    bool
	dry       bool
	blocked   bool
	code      string
	workflows []string
	since     string
}

// NewRetry makes the command 'weft retry'.
func NewRetry() *cobra.Command {
	var o retryOptions
	cmd := &cobra.Command{
		Use:   "retry ID | --all",
		Short: "Continue a failed run from the step that failed",
		Long: `Continue a run that failed, from the step that failed, as a new run of its handler and
on the state that its session has now. What other steps did is not done again, and steps
that were waiting wait on. A run that has timed out gets its full time again.

In a blocked run ('weft runs --blocked' lists those), the interrupted steps begin anew.

With --all, retry every handler whose latest run failed, or with --blocked, is blocked.`,
		Example: `  weft retry 7f3k2m9x4q1z
  weft retry 7f3k2m9x4q1z --newest      # with the plugin's newest version
  weft retry --all --code timeout --workflow report --since 24h
  weft retry --all --code trap --dry-run`,
		Args: cli.Takes("[ID]"),
	}
	f := cmd.Flags()
	f.BoolVar(&o.newest, "newest", false, "continue with the newest version of the workflow")
	f.BoolVar(&o.all, "all", false, "retry all runs that match the filters below")
	f.StringVar(&o.code, "code", "", "only runs that failed with this error `CODE` ('weft show ID' shows it)")
	f.StringArrayVar(&o.workflows, "workflow", nil, "only runs of this `WORKFLOW` (repeatable)")
	f.StringVar(&o.since, "since", "", "only runs that changed in the last `TIME`, such as 90m or 7d, or since a time such as 2026-11-21T09:00:00Z")
	f.BoolVar(&o.blocked, "blocked", false, "runs that are blocked, instead of runs that failed")
	f.BoolVar(&o.dry, "dry-run", false, "only list the runs")
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		switch {
		case o.all && len(args) > 0:
			return cli.Usage("either an ID or --all")
		case o.all:
			return retryAll(ctx, r, &o)
		case len(args) == 0:
			return cli.Usage("which run? weft retry ID, or --all for all that failed ('weft runs --status failed' lists them)")
		case o.dry || o.blocked || o.code != "" || len(o.workflows) > 0 || o.since != "":
			return cli.Usage("--code, --workflow, --since, --blocked and --dry-run need --all")
		}
		return retryOne(ctx, r, args[0], o.newest)
	})
}

func retryOne(ctx context.Context, r *remote.Conn, id string, newest bool) error {
	rec, anew, err := r.Retry(ctx, id, newest)
	switch {
	case host.CodeOf(err) == host.CodeNotFound:
		return r.UnknownRun(err, id)
	case err != nil:
		return err
	case r.JSON:
		return r.PrintAnswer()
	}
	noteAnew(r, anew)
	return r.Print(rec.HandlerID + "\n")
}

// noteAnew lists the active work in other places that was started again.
func noteAnew(r *remote.Conn, anew []host.Renewed) {
	for _, a := range anew {
		if a.Kind == host.RenewedResource {
			r.Note("called anew: resource %s, by step %s", a.Resource, a.Step)
			continue
		}
		r.Note("begun anew: %s %s %s (was %s)", a.Kind, a.Workflow, a.HandlerID, a.Was)
	}
}

// retryAll retries runs page by page. It reads the whole list before it retries the first
// run, because retried runs would change the list.
func retryAll(ctx context.Context, r *remote.Conn, o *retryOptions) error {
	since, err := parseSince(o.since, time.Now())
	if err != nil {
		return err
	}
	q := client.ListQuery{Workflows: o.workflows, ErrorCode: o.code, Since: since, Limit: remote.MaxPage}
	if o.blocked {
		q.Blocked = true
	} else {
		q.Statuses = []string{string(host.StatusFailed)}
	}
	var found []client.Record
	for {
		page, err := r.List(ctx, q)
		if err != nil {
			return err
		}
		found = append(found, page.Records...)
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	if o.dry {
		if r.JSON {
			return r.PrintJSON(runList(time.Now()).Joined(found))
		}
		r.Note("%s would be retried", screen.Counted(uint64(len(found)), "run"))
		return r.Print(runTable(found, time.Now()).Render(r.Screen))
	}
	return retryEach(r, ctx, found, o.newest)
}

// retried is the result of retrying a run, for programs.
type retried struct {
	HandlerID string `json:"handler_id"`
	RunID     string `json:"run_id,omitempty"`
	Error     string `json:"error,omitempty"`
	Code      string `json:"code,omitempty"`
}

func retryEach(r *remote.Conn, ctx context.Context, found []client.Record, newest bool) error {
	var out []retried
	failed := 0
	for i := range found {
		id := found[i].HandlerID
		rec, _, err := r.Retry(ctx, id, newest)
		var known *host.Error
		switch {
		case err == nil:
			out = append(out, retried{HandlerID: id, RunID: rec.RunID})
			if !r.JSON {
				if err := r.Print(id + "\n"); err != nil {
					return err
				}
			}
		case !errors.As(err, &known) || known.Code == host.CodeUnavailable:
			return err // the other runs would fail in the same way
		default:
			failed++
			out = append(out, retried{HandlerID: id, Error: known.Message, Code: string(known.Code)})
			r.Note("%s: %s", id, known.Message)
		}
		if (i+1)%100 == 0 {
			r.Note("%d of %d", i+1, len(found))
		}
	}
	if r.JSON {
		if err := r.PrintValue(out); err != nil {
			return err
		}
	}
	r.Note("%s retried", screen.Counted(uint64(len(found)-failed), "run"))
	if failed > 0 {
		return host.Errorf(host.CodeConflict, "%s could not be retried", screen.Counted(uint64(failed), "run"))
	}
	return nil
}
