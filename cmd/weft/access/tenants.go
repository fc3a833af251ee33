package access

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
)

// NewTenants makes the command 'weft tenants'.
func NewTenants() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tenants",
		Short: "List, make and remove tenants",
		Long: `List the tenants that the key may see: all tenants with the server's own admin key,
otherwise one. A tenant has its own plugins, workflows, runs, sessions and keys, and
cannot see those of other tenants.`,
		Example: `  weft tenants
  weft tenants create acme
  weft tenants rm acme`,
		Args: cli.Takes(),
	}
	remote.Command(cmd, listTenants)
	cmd.AddCommand(newCreateTenant(), newRemoveTenant())
	return cmd
}

func listTenants(ctx context.Context, r *remote.Conn, _ []string) error {
	list, err := r.Tenants(ctx)
	switch {
	case err != nil:
		return err
	case r.JSON:
		return r.PrintAnswer()
	}
	t := &screen.Table{Columns: []screen.Column{{Title: "NAME", Elastic: true}, {Title: "CREATED"}}}
	for _, tenant := range list {
		t.Add(tenant.Name, screen.Ago(time.Unix(0, tenant.Created), time.Now()))
	}
	return r.Print(t.Render(r.Screen))
}

func newCreateTenant() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "create NAME",
		Short:   "Make a tenant (with the server's own admin key)",
		Example: `  weft tenants create acme`,
		Args:    cli.Takes("NAME"),
	}
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		if _, err := r.CreateTenant(ctx, args[0]); err != nil {
			return err
		}
		if r.JSON {
			return r.PrintAnswer()
		}
		r.Note("made tenant %s; a key for it: %s", args[0], r.Hint("keys", "create", "--tenant", args[0], "--role", "admin"))
		return nil
	})
}

func newRemoveTenant() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:     "rm NAME",
		Aliases: []string{"delete", "remove"},
		Short:   "Remove a tenant with everything it has (with the server's own admin key)",
		Long: `Remove a tenant with everything that it has: runs, sessions, plugins, workflows and
keys. The server refuses this while runs of the tenant are active. This cannot be undone.`,
		Example: `  weft tenants rm acme`,
		Args:    cli.Takes("NAME"),
	}
	cli.YesFlag(cmd, &yes)
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		if err := r.Confirm(ctx, yes, "Remove tenant %s with all its plugins, workflows, sessions, runs and keys? This cannot be undone.", screen.Printable(args[0])); err != nil {
			return err
		}
		if err := r.DeleteTenant(ctx, args[0]); err != nil {
			return remote.Reworded(err, host.CodeNotFound, "no tenant %q at %s: %q lists them", args[0], r.Address, r.Hint("tenants"))
		}
		return r.Done("removed tenant %s with all that it had", args[0])
	})
}

// namedTenant returns the tenant to use: the named tenant, the tenant of --tenant, the
// only tenant that the key may see, or the default tenant.
func namedTenant(r *remote.Conn, ctx context.Context, args []string) (string, error) {
	switch {
	case len(args) > 0:
		return args[0], nil
	case r.Tenant != "":
		return r.Tenant, nil
	}
	list, err := r.Tenants(ctx)
	if err != nil || len(list) != 1 {
		return host.DefaultTenant, err
	}
	return list[0].Name, nil
}
