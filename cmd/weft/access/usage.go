package access

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
)

// NewUsage makes the command 'weft usage'.
func NewUsage() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "usage [TENANT]",
		Short: "Show what a tenant stores, has used and may use",
		Long: `Show what a tenant has stored, what its runs have used in each month (of UTC) and in
all, and how much of each of its quotas is used. Runs that were cancelled, purged or
deleted for their age count too. Without TENANT, show the tenant of --tenant, or the
tenant named default.

The quotas are set in the server's file of limits: see 'weft limits --help'.`,
		Example: `  weft usage
  weft usage acme --json`,
		Args: cli.Takes("[TENANT]"),
	}
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		name, err := namedTenant(r, ctx, args)
		if err != nil {
			return err
		}
		u, err := r.Usage(ctx, name)
		switch {
		case err != nil:
			return remote.Reworded(err, host.CodeNotFound, "no tenant %q at %s: %q lists them", name, r.Address, r.Hint("tenants"))
		case r.JSON:
			return r.PrintAnswer()
		}
		text := usageSheet(name, &u).Render("")
		if len(u.Months) > 0 {
			text += "\n" + monthsTable(&u).Render(r.Screen)
		}
		if len(u.Quotas) > 0 {
			text += "\n" + quotasTable(&u).Render(r.Screen)
		}
		return r.Print(text)
	})
}

func usageSheet(name string, u *host.TenantUsage) *screen.Sheet {
	s := &screen.Sheet{}
	s.Add("tenant", screen.Printable(name))
	for _, status := range []host.Status{host.StatusRunning, host.StatusCompleted, host.StatusFailed, host.StatusCancelled} {
		s.Add("runs "+string(status), strconv.Itoa(u.Runs[status]))
	}
	s.Add("runs started", screen.Grouped(u.RunsStarted))
	s.Add("steps", screen.Grouped(u.Steps))
	s.Add("fuel", screen.Grouped(u.Fuel))
	s.Add("logs", screen.Bytes(int(u.LogBytes)))
	s.Add("handlers", strconv.Itoa(u.Handlers))
	s.Add("sessions", strconv.Itoa(u.Sessions))
	s.Add("plugins", screen.Counted(uint64(u.Plugins), "plugin")+", "+screen.Counted(uint64(u.Versions), "version")+", "+screen.Bytes(int(u.PluginBytes)))
	s.Add("journal", screen.Bytes(int(u.JournalBytes)))
	s.Add("streams", screen.Bytes(int(u.StreamBytes)))
	return s
}

func monthsTable(u *host.TenantUsage) *screen.Table {
	t := &screen.Table{Columns: []screen.Column{{Title: "MONTH"}, {Title: "RUNS"}, {Title: "FUEL"}, {Title: "LOGS"}}}
	for i := range u.Months {
		m := &u.Months[i]
		t.Add(m.Month.String(), screen.Grouped(m.Runs), screen.Grouped(m.Fuel), screen.Bytes(int(m.LogBytes)))
	}
	return t
}

func quotasTable(u *host.TenantUsage) *screen.Table {
	t := &screen.Table{Columns: []screen.Column{{Title: "LIMIT"}, {Title: "USED"}, {Title: "AT MOST"}, {Title: "%"}}}
	for _, q := range u.Quotas {
		used, share := q.Show(q.Used), ""
		if q.Quota.IsRate() {
			used = "-"
		} else if q.Limit > 0 {
			share = strconv.FormatInt(int64(float64(q.Used)/float64(q.Limit)*100), 10)
		}
		t.Add(q.Quota.String(), used, q.Text(), share)
	}
	return t
}
