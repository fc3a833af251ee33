package access

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// auditPatience is how often a followed audit log is read again.
const auditPatience = 2 * time.Second

// auditOptions are the flags of `weft audit`.
type auditOptions struct {
	remote.PageOptions
	follow bool
}

// NewAudit makes the command 'weft audit'.
func NewAudit() *cobra.Command {
	var o auditOptions
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Show who changed tenants, keys, plugins and workflows",
		Long: `Show the audit log of the tenant, newest act first. With the server's own admin key,
show the log of all tenants, or of the tenant that --tenant names. The command needs a
key with the role admin. WHO is the id of a key, or says who asked without a key.
OUTCOME is ok, or the reason for which the act was refused.

With --follow, show the newest acts in the order of time, and then new ones as they
happen.`,
		Example: `  weft audit
  weft audit --all --json | jq '.entries[] | select(.act == "key.create")'
  weft audit -f`,
		Args: cli.Takes(),
	}
	f := cmd.Flags()
	o.Flags(f)
	f.BoolVarP(&o.follow, "follow", "f", false, "also show new acts, until interrupted")
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, _ []string) error {
		if err := o.Check(); err != nil {
			return err
		}
		switch {
		case o.All && o.follow:
			return cli.Usage("either --all or --follow")
		case o.follow:
			return followAudit(ctx, r, o.Limit)
		}
		return listAudit(ctx, r, o)
	})
}

func listAudit(ctx context.Context, r *remote.Conn, o auditOptions) error {
	list, next, err := remote.Gather(&o.PageOptions, func(cursor string) ([]client.AuditEntry, string, error) {
		page, err := r.Audit(ctx, cursor, o.Size())
		return page.Entries, page.Next, err
	})
	if err != nil {
		return err
	}
	return remote.List[client.AuditEntry]{
		Name: "entries", None: "nothing was done yet", Rows: auditTable,
		JSON: func(e *client.AuditEntry) json.RawMessage { return e.JSON },
	}.Print(r, &o.PageOptions, list, next)
}

func auditTable(entries []client.AuditEntry) *screen.Table {
	t := &screen.Table{Columns: []screen.Column{{Title: "TIME"}, {Title: "WHO", Elastic: true}, {Title: "TENANT", Elastic: true}, {Title: "ACT"},
		{Title: "TARGET", Elastic: true}, {Title: "OUTCOME"}, {Title: "DETAIL", Elastic: true}}}
	for i := range entries {
		t.Add(auditCells(&entries[i].AuditEntry)...)
	}
	return t
}

func auditCells(e *host.AuditEntry) []string {
	tenant := e.Tenant
	if tenant == "" {
		tenant = "-" // the server
	}
	return []string{screen.Stamp(time.Unix(0, e.Time)), e.Who, tenant, e.Act, e.Target, e.Outcome, e.Detail}
}

// followAudit shows the newest entries, then new entries as they arrive. Ids increase, so
// each entry is shown once.
func followAudit(ctx context.Context, r *remote.Conn, limit int) error {
	page, err := r.Audit(ctx, "", limit)
	away := remote.Outage{}
	for last := int64(0); ; {
		if err == nil {
			away.End()
			fresh := slices.Clone(page.Entries)
			for last > 0 && page.Next != "" && page.Entries[len(page.Entries)-1].ID > last && err == nil {
				if page, err = r.Audit(ctx, page.Next, remote.MaxPage); err == nil {
					fresh = append(fresh, page.Entries...)
				}
			}
			if err == nil {
				if last, err = showAudit(r, fresh, last); err != nil {
					return err
				}
			}
		}
		if err != nil && (host.CodeOf(err) != host.CodeUnavailable || away.TooLong(time.Now())) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(auditPatience):
		}
		page, err = r.Audit(ctx, "", remote.MaxPage)
	}
}

// showAudit prints the entries that are newer than last, oldest first, and returns the id
// of the newest entry.
func showAudit(r *remote.Conn, entries []client.AuditEntry, last int64) (int64, error) {
	slices.Reverse(entries)
	for i := range entries {
		e := &entries[i]
		if e.ID <= last {
			continue
		}
		line := string(e.JSON)
		if !r.JSON {
			cells := auditCells(&e.AuditEntry)
			for j := range cells {
				cells[j] = screen.Printable(cells[j])
			}
			line = strings.TrimRight(strings.Join(cells, screen.Gap), " ")
		}
		if err := r.Print(line + "\n"); err != nil {
			return last, err
		}
		last = e.ID
	}
	return last, nil
}
