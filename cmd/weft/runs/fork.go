package runs

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/host"
)

// NewFork makes the command 'weft fork'.
func NewFork() *cobra.Command {
	var at uint64
	cmd := &cobra.Command{
		Use:   "fork ID --at N",
		Short: "Continue a run a second time, from a point of its past",
		Long: `Continue a run a second time, from just after an entry of its journal. 'weft journal ID'
shows the entries; a fork may begin at those with a *. The fork has a new handler and a
private session with the state of that moment, and its waits and sleeps continue with
the time that remained. The original run does not change, and may have ended.

Work of the run in other sessions begins anew.`,
		Example: `  weft fork 7f3k2m9x4q1z --at 12`,
		Args:    cli.Takes("ID"),
	}
	cmd.Flags().Uint64Var(&at, "at", 0, "continue after the entry at position `N`")
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		if at == 0 {
			return cli.Usage("--at is missing: the position of an entry of 'weft journal %s'", args[0])
		}
		rec, anew, err := r.Fork(ctx, args[0], at)
		switch {
		case host.CodeOf(err) == host.CodeNotFound:
			return r.UnknownRun(err, args[0])
		case err != nil:
			return err
		case r.JSON:
			return r.PrintAnswer()
		}
		noteAnew(r, anew)
		return r.Print(rec.HandlerID + "\n")
	})
}
