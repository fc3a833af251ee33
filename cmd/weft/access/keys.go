// Package access has the commands about access to a server: logins, tenants, keys, the
// usage of a tenant, the audit log, and the resources that tenants define.
//
// It does not depend on runs or plugins.
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

// NewKeys makes the command 'weft keys'.
func NewKeys() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "keys",
		Short: "List, make, revoke and rotate API keys",
		Long: `List the API keys of the tenant. With the server's own admin key, list the keys of all
tenants, or of the tenant that --tenant names. The list cannot show the keys themselves:
the server has only hashes of them. PREFIX is the beginning of a key.`,
		Example: `  weft keys
  weft keys create --role run --name CI --expires 720h
  weft keys rotate key_0123456789abcdef --grace 1h
  weft keys rm key_0123456789abcdef`,
		Args: cli.Takes(),
	}
	remote.Command(cmd, listKeys)
	cmd.AddCommand(newCreateKey(), newRevokeKey(), newRotateKey())
	return cmd
}

func listKeys(ctx context.Context, r *remote.Conn, _ []string) error {
	list, err := r.Keys(ctx)
	switch {
	case err != nil:
		return err
	case r.JSON:
		return r.PrintAnswer()
	case len(list) == 0:
		r.Note("no keys yet: make one with %q", r.Hint("keys", "create", "--role", "admin"))
		return nil
	}
	t := &screen.Table{Columns: []screen.Column{{Title: "ID"}, {Title: "TENANT", Elastic: true}, {Title: "ROLE"}, {Title: "NAME", Elastic: true},
		{Title: "PREFIX"}, {Title: "CREATED"}, {Title: "LAST USED"}, {Title: "STATE"}}}
	now := time.Now()
	for i := range list {
		k := &list[i]
		used := "never"
		if k.LastUsed != 0 {
			used = screen.Ago(time.Unix(0, k.LastUsed), now)
		}
		t.Add(k.ID, k.Tenant, string(k.Role), k.Name, k.Prefix, screen.Ago(time.Unix(0, k.Created), now), used, keyState(k, now))
	}
	return r.Print(t.Render(r.Screen))
}

// keyState says whether a key is valid.
func keyState(k *host.KeyRecord, now time.Time) string {
	switch {
	case k.Revoked != 0:
		return "revoked"
	case k.Expires != 0 && k.Expires <= now.UnixNano():
		return "expired"
	case k.PreviousUntil > now.UnixNano():
		return "rotated"
	case k.Expires != 0:
		return "until " + screen.Stamp(time.Unix(0, k.Expires))
	}
	return "in force"
}

func newCreateKey() *cobra.Command {
	var role, name string
	var expires time.Duration
	cmd := &cobra.Command{
		Use:   "create --role ROLE",
		Short: "Make a key, and print it once",
		Long: `Make a key and print it. The key is shown only now: the server keeps a hash of it.

The roles; each includes the ones above it:
  read     look at everything but keys
  run      start, steer and speak to runs
  deploy   upload plugins, compose workflows, migrate runs
  admin    keys of the tenant, its usage and its audit log`,
		Example: `  weft keys create --role run --name CI --expires 720h
  weft keys create --role admin --tenant acme    # with the server's own admin key`,
		Args: cli.Takes(),
	}
	cmd.Flags().StringVar(&role, "role", "", "`ROLE` of the key: read, run, deploy or admin")
	cmd.Flags().StringVar(&name, "name", "", "`TEXT` for people: what the key is for")
	cmd.Flags().DurationVar(&expires, "expires", 0, "`TIME` after which the key expires, such as 720h (0: never)")
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, _ []string) error {
		switch {
		case !host.Role(role).Known():
			return cli.Usage("--role %q: use read, run, deploy or admin", role)
		case expires < 0:
			return cli.Usage("--expires %s: must be a time from now", expires)
		}
		req := host.KeyRequest{Role: host.Role(role), Name: name}
		if expires > 0 {
			req.Expires = time.Now().Add(expires).UnixNano()
		}
		k, secret, err := r.CreateKey(ctx, req)
		return printSecret(r, &k, secret, err)
	})
}

// printSecret prints a key for programs and people: the secret alone on the standard
// output.
func printSecret(r *remote.Conn, k *host.KeyRecord, secret string, err error) error {
	switch {
	case err != nil:
		return err
	case r.JSON:
		return r.PrintAnswer()
	}
	r.Note("key %s of tenant %s, role %s; it is shown this once:", k.ID, k.Tenant, k.Role)
	return r.Print(secret + "\n")
}

func newRevokeKey() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rm ID",
		Aliases: []string{"revoke", "delete", "remove"},
		Short:   "Revoke a key at once",
		Long: `Revoke a key. The server refuses the key from now on, and ends requests in progress that
use it. The key stays in the list, so that the audit log remains readable.`,
		Example: `  weft keys rm key_0123456789abcdef`,
		Args:    cli.Takes("ID"),
	}
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		if err := r.RevokeKey(ctx, args[0]); err != nil {
			return unknownKey(r, err, args[0])
		}
		return r.Done("revoked key %s", args[0])
	})
}

func unknownKey(r *remote.Conn, err error, id string) error {
	return remote.Reworded(err, host.CodeNotFound, "no key %q in force at %s: %q lists them", id, r.Address, r.Hint("keys"))
}

func newRotateKey() *cobra.Command {
	var grace time.Duration
	cmd := &cobra.Command{
		Use:   "rotate ID",
		Short: "Give a key a new secret, and print it once",
		Long: `Give a key a new secret and print it. The old secret stops working at once, or after
--grace, so that its users have time to change. Id, role, name and expiry stay.`,
		Example: `  weft keys rotate key_0123456789abcdef --grace 1h`,
		Args:    cli.Takes("ID"),
	}
	cmd.Flags().DurationVar(&grace, "grace", 0, "`TIME` for which the old secret still works, such as 1h")
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		if grace < 0 {
			return cli.Usage("--grace %s: must be a time from now", grace)
		}
		k, secret, err := r.RotateKey(ctx, args[0], grace)
		return printSecret(r, &k, secret, unknownKey(r, err, args[0]))
	})
}
