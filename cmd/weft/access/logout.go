package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
)

// NewLogout makes the command 'weft logout'.
func NewLogout() *cobra.Command {
	return &cobra.Command{
		Use:   "logout [PROFILE]",
		Short: "Forget a server and its key",
		Long: `Forget a server and its key: the profile of the last login, or the one named PROFILE.
The key itself stays valid; 'weft keys rm' revokes it.`,
		Example: `  weft logout
  weft logout production`,
		Args: cli.Takes("[PROFILE]"),
		RunE: func(cmd *cobra.Command, args []string) error { return logout(cmd.ErrOrStderr(), args) },
	}
}

func logout(said io.Writer, args []string) error {
	p, err := remote.ReadProfiles()
	if err != nil {
		return err
	}
	name := p.Current
	if len(args) > 0 {
		name = args[0]
	}
	gone, known := p.Profiles[name]
	switch {
	case !known && len(args) == 0:
		return errors.New("not logged in: 'weft profiles' lists the profiles")
	case !known:
		return cli.Usage("no profile %q: %s", name, cli.Meant(name, slices.Sorted(maps.Keys(p.Profiles)), "'weft profiles' lists them"))
	}
	delete(p.Profiles, name)
	if p.Current == name {
		p.Current = ""
	}
	if _, err := p.Write(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(said, "forgot %s, and its key\n", gone.Server)
	return err
}

// NewProfiles makes the command 'weft profiles'.
func NewProfiles() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "profiles",
		Short: "List the servers that 'weft login' has stored",
		Long: `List the profiles that 'weft login' has made, without their keys. Other commands use the
current profile, unless --profile or --server names another.`,
		Example: `  weft profiles
  weft runs --profile production`,
		Args: cli.Takes(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return listProfiles(cmd.OutOrStdout(), cmd.ErrOrStderr(), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the profiles as JSON")
	return cmd
}

func listProfiles(out, said io.Writer, asJSON bool) error {
	p, err := remote.ReadProfiles()
	if err != nil {
		return err
	}
	type listed struct {
		Name    string `json:"name"`
		Server  string `json:"server"`
		Key     bool   `json:"key"`
		Current bool   `json:"current"`
	}
	list := []listed{}
	t := &screen.Table{Columns: []screen.Column{{Title: "NAME", Elastic: true}, {Title: "SERVER", Elastic: true}, {Title: "KEY"}, {Title: "CURRENT"}}}
	mark := map[bool]string{true: "yes", false: "-"}
	for _, name := range slices.Sorted(maps.Keys(p.Profiles)) {
		l := listed{Name: name, Server: p.Profiles[name].Server, Key: p.Profiles[name].Key != "", Current: name == p.Current}
		list = append(list, l)
		t.Add(l.Name, l.Server, mark[l.Key], mark[l.Current])
	}
	switch {
	case asJSON:
		return json.NewEncoder(out).Encode(map[string]any{"profiles": list})
	case len(list) == 0:
		_, err = fmt.Fprintln(said, "no profiles yet: 'weft login URL' makes one")
		return err
	}
	_, err = io.WriteString(out, t.Render(screen.Of(out)))
	return err
}
