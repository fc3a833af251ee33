package access

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
)

// NewNodes makes the command 'weft nodes'.
func NewNodes() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "nodes",
		Short: "List the nodes of a cluster",
		Long: `List the nodes of the cluster that the server belongs to (with the server's own admin
key, if it has one). The owner runs the sessions; the other nodes hand requests to it, and
one of them takes over when it leaves or dies. See docs/cluster.md.`,
		Example: `  weft nodes
  weft nodes --server https://weft-2.example:8443 --json`,
		Args: cli.Takes(),
	}
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, _ []string) error {
		list, err := r.Nodes(ctx)
		switch {
		case err != nil:
			return err
		case r.JSON:
			return r.PrintAnswer()
		case len(list) == 0:
			r.Note("%s is not part of a cluster: it has its store to itself", r.Address)
			return nil
		}
		t := &screen.Table{Columns: []screen.Column{{Title: "NODE", Elastic: true}, {Title: "STATE"}, {Title: "SESSIONS"}, {Title: "SEEN"}, {Title: "VERSION"}, {Title: "ADDRESS", Elastic: true}}}
		for i := range list {
			n := &list[i]
			owner := ""
			if n.Owner {
				owner = "owner"
			}
			t.Add(n.Name, n.State, owner, screen.Ago(time.Unix(0, n.Seen), time.Now()), n.Version, n.URL)
		}
		shown := t.Render(r.Screen)
		for i := range list {
			if n := &list[i]; len(n.Differs) > 0 {
				shown += fmt.Sprintf("%s has other settings than the owner: %s\n", screen.Printable(n.Name), screen.Printable(strings.Join(n.Differs, ", ")))
			}
		}
		return r.Print(shown)
	})
}
