package access

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// NewLogin makes the command 'weft login'.
func NewLogin() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "login URL",
		Short: "Remember a server and its key",
		Long: `Remember a server and its key as a profile, in a file in your configuration directory
that nobody else may read. The key comes from the environment variable WEFT_KEY, or from
the standard input. The command tries the key before it keeps it.

Other commands use the profile of the last login, unless --profile or --server names
another. WEFT_KEY takes precedence over a profile's key. A key is sent only to its own
server.`,
		Example: `  weft login https://weft.example < key.txt
  weft login https://weft.example --profile production
  weft runs --profile production`,
		Args: cli.Takes("URL"),
		RunE: func(cmd *cobra.Command, args []string) error { return login(cmd, args[0], name) },
	}
	cmd.Flags().StringVar(&name, "profile", "default", "`NAME` of the profile")
	return cmd
}

func login(cmd *cobra.Command, server, name string) error {
	server = remote.BaseURL(server)
	key := os.Getenv("WEFT_KEY")
	keyless := key == "" && tryKey(cmd.Context(), server, "") == nil
	if key == "" && !keyless {
		line, err := askKey(cmd, server)
		if key = strings.TrimSpace(line); errors.Is(err, context.Canceled) {
			return errors.New("interrupted")
		} else if key == "" {
			return cli.Usage("no key: put it into WEFT_KEY, or into the standard input (%v)", err)
		}
	}
	if err := tryKey(cmd.Context(), server, key); err != nil {
		return err
	}
	if keyless {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s needs no key: only its address is stored\n", server)
	} else if plain(server) {
		fmt.Fprintf(cmd.ErrOrStderr(), "note: %s is not encrypted: others on the network can read the key\n", server)
	}
	p, err := remote.ReadProfiles()
	if err != nil {
		return err
	}
	p.Current, p.Profiles[name] = name, remote.Profile{Server: server, Key: key}
	path, err := p.Write()
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "logged in to %s as profile %s, kept in %s\n", server, name, path)
	return nil
}

// askKey reads a line from the standard input. A terminal does not show it.
func askKey(cmd *cobra.Command, server string) (string, error) {
	in := cmd.InOrStdin()
	if f, ok := in.(*os.File); ok && screen.Of(f).Cols > 0 {
		hint := " (it is shown as you enter it)"
		if show := screen.HideInput(f); show != nil {
			hint = ""
			defer fmt.Fprintln(cmd.ErrOrStderr()) // the terminal has not shown the end of the line either
			defer show()
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "key for %s%s: ", server, hint)
	}
	// Ctrl-C ends the read, so that the terminal shows input again.
	return screen.ReadLine(cmd.Context(), in)
}

// tryKey sends a request that every key may make.
func tryKey(ctx context.Context, server, key string) error {
	c, err := client.New(server, client.Options{Key: key})
	if err != nil {
		return cli.Usage("%q is not an address of a server, such as %s", server, remote.DefaultServer)
	}
	defer c.Close()
	_, err = c.Workflows(ctx)
	if host.CodeOf(err) == host.CodeUnauthenticated {
		return fmt.Errorf("%s does not accept this key", server)
	}
	return err
}

// plain reports whether requests to a server leave this machine unencrypted.
func plain(server string) bool {
	u, err := url.Parse(server)
	if err != nil || u.Scheme == "https" || u.Hostname() == "localhost" {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err != nil || !ip.IsLoopback()
}
