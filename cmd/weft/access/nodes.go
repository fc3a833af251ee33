package access

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
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
  weft nodes drain weft-1
  weft nodes --server https://weft-2.example:8443 --json`,
		Args: cli.Takes(),
	}
	remote.Command(cmd, listNodes)
	cmd.AddCommand(newDrain())
	return cmd
}

func listNodes(ctx context.Context, r *remote.Conn, _ []string) error {
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
		switch {
		case n.Owner:
			owner = "owner"
		case n.Drained:
			owner = "drained"
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
}

// drainPoll is the time between two looks at who owns the sessions.
const drainPoll = 200 * time.Millisecond

func newDrain() *cobra.Command {
	var undo bool
	cmd := &cobra.Command{
		Use:   "drain NAME",
		Short: "Move the sessions away from a node",
		Long: `Move the sessions away from a node of the cluster, and wait until another node runs them
(with the server's own admin key, if it has one). The node does not stop: it hands requests
on. It takes the sessions again only if no other node can. After --undo, or when it
starts anew, it is a node like the others; it does not get the sessions back by that.`,
		Example: `  weft nodes drain weft-1
  weft nodes drain weft-1 --undo`,
		Args: cli.Takes("NAME"),
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "let the node take the sessions again when their owner goes")
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		if undo {
			if err := r.UndrainNode(ctx, args[0]); err != nil {
				return unknownNode(r, err, args[0])
			}
			return r.Done("%s may take the sessions again", args[0])
		}
		if err := r.DrainNode(ctx, args[0]); err != nil {
			return unknownNode(r, err, args[0])
		}
		tick := time.NewTicker(drainPoll)
		defer tick.Stop()
		for {
			list, err := r.Nodes(ctx)
			if err != nil {
				return err
			}
			if i := slices.IndexFunc(list, func(n host.Node) bool { return n.Owner }); i >= 0 && list[i].Name != args[0] {
				return r.Done("%s is drained: %s runs the sessions", args[0], list[i].Name)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
}

func unknownNode(r *remote.Conn, err error, name string) error {
	return remote.Reworded(err, host.CodeNotFound, "no live node %q in the cluster of %s: %q lists them", name, r.Address, r.Hint("nodes"))
}
