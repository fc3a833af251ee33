package main

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/host"
)

func newUsage() *cobra.Command {
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
		Args: takes("[TENANT]"),
	}
	return clientCommand(cmd, func(ctx context.Context, r *remote, args []string) error {
		name, err := r.tenantNamed(ctx, args)
		if err != nil {
			return err
		}
		u, err := r.Usage(ctx, name)
		switch {
		case err != nil:
			return reworded(err, host.CodeNotFound, "no tenant %q at %s: %q lists them", name, r.server, r.hint("tenants"))
		case r.json:
			return r.printAnswer()
		}
		text := usageSheet(name, &u).render("")
		if len(u.Months) > 0 {
			text += "\n" + monthsTable(&u).render(r.screen)
		}
		if len(u.Quotas) > 0 {
			text += "\n" + quotasTable(&u).render(r.screen)
		}
		return r.print(text)
	})
}

func usageSheet(name string, u *host.TenantUsage) *sheet {
	s := &sheet{}
	s.add("tenant", printable(name))
	for _, status := range []host.Status{host.StatusRunning, host.StatusCompleted, host.StatusFailed, host.StatusCancelled} {
		s.add("runs "+string(status), strconv.Itoa(u.Runs[status]))
	}
	s.add("runs started", grouped(u.RunsStarted))
	s.add("steps", grouped(u.Steps))
	s.add("fuel", grouped(u.Fuel))
	s.add("logs", bytesOf(int(u.LogBytes)))
	s.add("handlers", strconv.Itoa(u.Handlers))
	s.add("sessions", strconv.Itoa(u.Sessions))
	s.add("plugins", counted(uint64(u.Plugins), "plugin")+", "+counted(uint64(u.Versions), "version")+", "+bytesOf(int(u.PluginBytes)))
	s.add("journal", bytesOf(int(u.JournalBytes)))
	s.add("streams", bytesOf(int(u.StreamBytes)))
	return s
}

func monthsTable(u *host.TenantUsage) *table {
	t := &table{columns: []column{{title: "MONTH"}, {title: "RUNS"}, {title: "FUEL"}, {title: "LOGS"}}}
	for i := range u.Months {
		m := &u.Months[i]
		t.add(m.Month.String(), grouped(m.Runs), grouped(m.Fuel), bytesOf(int(m.LogBytes)))
	}
	return t
}

func quotasTable(u *host.TenantUsage) *table {
	t := &table{columns: []column{{title: "LIMIT"}, {title: "USED"}, {title: "AT MOST"}, {title: "%"}}}
	for _, q := range u.Quotas {
		used, share := q.Show(q.Used), ""
		if q.Quota.IsRate() {
			used = "-"
		} else if q.Limit > 0 {
			share = strconv.FormatInt(int64(float64(q.Used)/float64(q.Limit)*100), 10)
		}
		t.add(q.Quota.String(), used, q.Text(), share)
	}
	return t
}
