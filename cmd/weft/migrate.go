package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

func newMigrate() *cobra.Command {
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
		Args: takes("WORKFLOW", "[ID]"),
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say which runs would move")
	yesFlag(cmd, &yes)
	return clientCommand(cmd, func(ctx context.Context, r *remote, args []string) error {
		req := client.MigrateRequest{Workflow: args[0], DryRun: true}
		if len(args) > 1 {
			req.HandlerID = args[1]
		}
		switch {
		case dry:
			return migrate(ctx, r, req)
		case !yes && !r.asks():
			return usage("migrate moves runs: add --yes, or --dry-run to see which ones would move")
		case !yes:
			plan, err := migrateAll(ctx, r, req)
			if err != nil {
				return err
			}
			if plan.Fit == 0 {
				return r.migrated(&plan, true)
			}
			r.note("%s", strings.TrimRight(movedText(&plan, true), "\n"))
			if err := r.confirm(ctx, false, "Move %s?", counted(uint64(plan.Fit), "run")); err != nil {
				return err
			}
		}
		req.DryRun = false
		return migrate(ctx, r, req)
	})
}

func migrate(ctx context.Context, r *remote, req client.MigrateRequest) error {
	sum, err := migrateAll(ctx, r, req)
	if err != nil {
		return err
	}
	return r.migrated(&sum, req.DryRun)
}

// migrated prints what came of a migration.
func (r *remote) migrated(sum *client.Migration, dry bool) error {
	if r.json {
		return r.printValue(migrationOf(sum, dry))
	}
	return r.print(movedText(sum, dry))
}

// migrateAll asks for all pages of a migration, and gives their sum.
func migrateAll(ctx context.Context, r *remote, req client.MigrateRequest) (client.Migration, error) {
	var sum client.Migration
	for {
		m, err := r.Migrate(ctx, req)
		switch {
		case err != nil && req.HandlerID != "" && host.CodeOf(err) == host.CodeNotFound:
			return sum, r.unknownRun(err, req.HandlerID)
		case err != nil && host.CodeOf(err) == host.CodeNotFound:
			return sum, r.unknownWorkflow(ctx, err, req.Workflow)
		case err != nil:
			return sum, err
		}
		sum = added(sum, m)
		if req.Cursor = m.Next; req.Cursor == "" {
			return sum, nil
		}
		r.note("%s so far", counted(uint64(sum.Checked), "run"))
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

// movedText says for people what came of a migration.
func movedText(m *client.Migration, dry bool) string {
	var b strings.Builder
	if m.Checked == 0 {
		return fmt.Sprintf("no runs of %s are on another version than %s\n", printable(m.Workflow), digest(m.Version))
	}
	verb, n := "moved to", m.Moved
	if dry {
		verb, n = "would move to", m.Fit
	}
	fmt.Fprintf(&b, "%s of %s: %d %s %s\n", counted(uint64(m.Checked), "run"), printable(m.Workflow), n, verb, digest(m.Version))
	for i := range m.Departed {
		d := &m.Departed[i]
		fmt.Fprintf(&b, "  %s stays on %s", d.HandlerID, digest(d.Version))
		if d.Step != "" {
			fmt.Fprintf(&b, ": step %s, call %d (%s)", printable(d.Step), d.Call, d.Import)
		}
		fmt.Fprintf(&b, ": %s\n", printable(d.Message))
	}
	for _, id := range m.Running {
		fmt.Fprintf(&b, "  %s has a step at work: try again, or pause it first\n", id)
	}
	return b.String()
}

// checked says which runs an uploaded version does not fit.
func checked(checks []client.Migration) string {
	var b strings.Builder
	for i := range checks {
		b.WriteString(movedText(&checks[i], true))
		if checks[i].Next != "" {
			fmt.Fprintf(&b, "  there are more: 'weft migrate %s --dry-run' looks at all\n", printable(checks[i].Workflow))
		}
	}
	return b.String()
}

// printValue prints what is put together of several answers.
func (r *remote) printValue(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return r.printJSON(b)
}

// migrationJSON is the sum of all pages as the API has one.
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
