package main

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/host"
)

func newTenants() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tenants",
		Short: "List, make and remove tenants",
		Long: `List the tenants that the key may see: all tenants with the server's own admin key,
otherwise one. A tenant has its own plugins, workflows, runs, sessions and keys, and
cannot see those of other tenants.`,
		Example: `  weft tenants
  weft tenants create acme
  weft tenants rm acme`,
		Args: takes(),
	}
	clientCommand(cmd, listTenants)
	cmd.AddCommand(newCreateTenant(), newRemoveTenant())
	return cmd
}

func listTenants(ctx context.Context, r *remote, _ []string) error {
	list, err := r.Tenants(ctx)
	switch {
	case err != nil:
		return err
	case r.json:
		return r.printAnswer()
	}
	t := &table{columns: []column{{title: "NAME", elastic: true}, {title: "CREATED"}}}
	for _, tenant := range list {
		t.add(tenant.Name, ago(time.Unix(0, tenant.Created), time.Now()))
	}
	return r.print(t.render(r.screen))
}

func newCreateTenant() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "create NAME",
		Short:   "Make a tenant (with the server's own admin key)",
		Example: `  weft tenants create acme`,
		Args:    takes("NAME"),
	}
	return clientCommand(cmd, func(ctx context.Context, r *remote, args []string) error {
		if _, err := r.CreateTenant(ctx, args[0]); err != nil {
			return err
		}
		if r.json {
			return r.printAnswer()
		}
		r.note("made tenant %s; a key for it: %s", args[0], r.hint("keys", "create", "--tenant", args[0], "--role", "admin"))
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
		Args:    takes("NAME"),
	}
	yesFlag(cmd, &yes)
	return clientCommand(cmd, func(ctx context.Context, r *remote, args []string) error {
		if err := r.confirm(ctx, yes, "Remove tenant %s with all its plugins, workflows, sessions, runs and keys? This cannot be undone.", printable(args[0])); err != nil {
			return err
		}
		if err := r.DeleteTenant(ctx, args[0]); err != nil {
			return reworded(err, host.CodeNotFound, "no tenant %q at %s: %q lists them", args[0], r.server, r.hint("tenants"))
		}
		return r.done("removed tenant %s with all that it had", args[0])
	})
}

// tenantNamed is the tenant that is meant: the one named, that of --tenant, the only
// one that the key may see, or the default.
func (r *remote) tenantNamed(ctx context.Context, args []string) (string, error) {
	switch {
	case len(args) > 0:
		return args[0], nil
	case r.tenant != "":
		return r.tenant, nil
	}
	list, err := r.Tenants(ctx)
	if err != nil || len(list) != 1 {
		return host.DefaultTenant, err
	}
	return list[0].Name, nil
}

// grouped is a number with commas.
func grouped(n uint64) string {
	text := strconv.FormatUint(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
