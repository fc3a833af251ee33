package plugins

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// NewMigrate makes the command 'weft migrate'.
func NewMigrate() *cobra.Command {
	var dry, yes bool
	cmd := &cobra.Command{
		Use:   "migrate WORKFLOW [ID]",
		Short: "Move runs in progress to the newest version of their workflow",
		Long: `Move runs in progress to the newest version of their workflow. Without this, a run keeps
the version with which it began.

A run can move if the new version continues it without repeating anything: the new
version must make the same calls that the run's open steps have made, and must accept
what waits in the run. Other runs stay as they are; the command lists them with the
first call that differs. A run with a step at work is not moved: pause it, or try again.
A blocked run continues with the new version.

On a terminal, the command first shows which runs would move, and asks. Elsewhere it
needs --yes or --dry-run.`,
		Example: `  weft migrate approval --dry-run
  weft migrate approval
  weft migrate approval 7f3k2m9x4q1z --yes`,
		Args: cli.Takes("WORKFLOW", "[ID]"),
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say which runs would move")
	cli.YesFlag(cmd, &yes)
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		req := client.MigrateRequest{Workflow: args[0], DryRun: true}
		if len(args) > 1 {
			req.HandlerID = args[1]
		}
		switch {
		case dry:
			return migrate(ctx, r, req)
		case !yes && !r.Asks():
			return cli.Usage("migrate moves runs: add --yes, or --dry-run to see which ones would move")
		case !yes:
			plan, err := migrateAll(ctx, r, req)
			if err != nil {
				return err
			}
			if plan.Fit == 0 {
				return migrated(r, &plan, true)
			}
			r.Note("%s", strings.TrimRight(movedText(&plan, true), "\n"))
			if err := r.Confirm(ctx, false, "Move %s?", screen.Counted(uint64(plan.Fit), "run")); err != nil {
				return err
			}
		}
		req.DryRun = false
		return migrate(ctx, r, req)
	})
}

func migrate(ctx context.Context, r *remote.Conn, req client.MigrateRequest) error {
	sum, err := migrateAll(ctx, r, req)
	if err != nil {
		return err
	}
	return migrated(r, &sum, req.DryRun)
}

// migrated prints the result of a migration.
func migrated(r *remote.Conn, sum *client.Migration, dry bool) error {
	if r.JSON {
		return r.PrintValue(migrationOf(sum, dry))
	}
	return r.Print(movedText(sum, dry))
}

// migrateAll requests all pages of a migration, and returns their totals.
func migrateAll(ctx context.Context, r *remote.Conn, req client.MigrateRequest) (client.Migration, error) {
	var sum client.Migration
	for {
		m, err := r.Migrate(ctx, req)
		switch {
		case err != nil && req.HandlerID != "" && host.CodeOf(err) == host.CodeNotFound:
			return sum, r.UnknownRun(err, req.HandlerID)
		case err != nil && host.CodeOf(err) == host.CodeNotFound:
			return sum, r.UnknownWorkflow(ctx, err, req.Workflow)
		case err != nil:
			return sum, err
		}
		sum = added(sum, m)
		if req.Cursor = m.Next; req.Cursor == "" {
			return sum, nil
		}
		r.Note("%s so far", screen.Counted(uint64(sum.Checked), "run"))
	}
}

func added(sum, m client.Migration) client.Migration {
	m.Checked += sum.Checked
	m.Fit += sum.Fit
	m.Moved += sum.Moved
	m.Departed = append(sum.Departed, m.Departed...)
	m.Running = append(sum.Running, m.Running...)
	return m
}

// movedText describes the result of a migration for people.
func movedText(m *client.Migration, dry bool) string {
	var b strings.Builder
	if m.Checked == 0 {
		return fmt.Sprintf("no runs of %s are on another version than %s\n", screen.Printable(m.Workflow), screen.Digest(m.Version))
	}
	verb, n := "moved to", m.Moved
	if dry {
		verb, n = "would move to", m.Fit
	}
	fmt.Fprintf(&b, "%s of %s: %d %s %s\n", screen.Counted(uint64(m.Checked), "run"), screen.Printable(m.Workflow), n, verb, screen.Digest(m.Version))
	for i := range m.Departed {
		d := &m.Departed[i]
		fmt.Fprintf(&b, "  %s stays on %s", d.HandlerID, screen.Digest(d.Version))
		if d.Step != "" {
			fmt.Fprintf(&b, ": step %s, call %d (%s)", screen.Printable(d.Step), d.Call, d.Import)
		}
		fmt.Fprintf(&b, ": %s\n", screen.Printable(d.Message))
	}
	for _, id := range m.Running {
		fmt.Fprintf(&b, "  %s has a running step: try again, or pause it first\n", id)
	}
	return b.String()
}

// checked reports which runs do not fit an uploaded version.
func checked(checks []client.Migration) string {
	var b strings.Builder
	for i := range checks {
		b.WriteString(movedText(&checks[i], true))
		if checks[i].Next != "" {
			fmt.Fprintf(&b, "  there are more: 'weft migrate %s --dry-run' looks at all\n", screen.Printable(checks[i].Workflow))
		}
	}
	return b.String()
}

// migrationJSON has the totals of all pages in the form of the API.
type migrationJSON struct {
	Workflow string          `json:"workflow"`
	Version  string          `json:"version"`
	DryRun   bool            `json:"dry_run"`
	Checked  int             `json:"checked"`
	Fit      int             `json:"fit"`
	Moved    int             `json:"moved"`
	Departed []departureJSON `json:"departed"`
	Running  []string        `json:"running"`
}

type departureJSON struct {
	HandlerID string `json:"handler_id"`
	RunID     string `json:"run_id"`
	Version   string `json:"version"`
	Code      string `json:"code"`
	Message   string `json:"message"`
	Step      string `json:"step,omitempty"`
	Call      uint64 `json:"call,omitempty"`
	Import    string `json:"import,omitempty"`
}

func migrationOf(m *client.Migration, dry bool) migrationJSON {
	out := migrationJSON{
		Workflow: m.Workflow, Version: m.Version, DryRun: dry, Checked: m.Checked, Fit: m.Fit, Moved: m.Moved,
		Departed: []departureJSON{}, Running: append([]string{}, m.Running...),
	}
	for _, d := range m.Departed {
		out.Departed = append(out.Departed, departureJSON(d))
	}
	return out
}
