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

// NewWhoAmI makes the command 'weft whoami'.
func NewWhoAmI() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "whoami",
		Short: "Show what your key may do on a server",
		Long: `Show the server that the commands talk to, and who it takes you for: the tenant, the
role, and the key without its secret.`,
		Example: `  weft whoami
  weft whoami --profile production --json`,
		Args: cli.Takes(),
	}
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, _ []string) error {
		me, err := r.WhoAmI(ctx)
		switch {
		case err != nil:
			return err
		case r.JSON:
			return r.PrintAnswer()
		}
		return r.Print(identitySheet(r.Address, &me).Render(""))
	})
}

func identitySheet(address string, me *host.Identity) *screen.Sheet {
	s := &screen.Sheet{}
	s.Add("server", address)
	if me.Version != "" {
		s.Add("version", screen.Printable(me.Version))
	}
	s.Add("serving since", screen.Ago(time.Unix(0, me.Started), time.Now()))
	s.Add("tenant", screen.Printable(me.Tenant))
	s.Add("role", screen.Printable(string(me.Role)))
	switch {
	case me.Keyless:
		s.Add("key", "none: the server needs no keys")
	case me.Key == nil:
		s.Add("key", "the server's own admin key")
	default:
		s.Add("key", screen.Printable(me.Key.ID))
		s.Add("begins with", screen.Printable(me.Key.Prefix))
		if me.Key.Name != "" {
			s.Add("name", screen.Printable(me.Key.Name))
		}
		if me.Key.Expires != 0 {
			s.Add("expires", time.Unix(0, me.Key.Expires).UTC().Format(time.RFC3339))
		}
	}
	return s
}
