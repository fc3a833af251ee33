package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/host"
)

func newFork() *cobra.Command {
	var at uint64
	cmd := &cobra.Command{
		Use:   "fork ID --at N",
		Short: "Let a run go on a second time, from a point of its past",
		Long: `Let a run go on a second time from just after an entry of its journal (weft journal
ID shows them; a * says that a fork may begin there): under a new handler, with the
state of then in a private session, with its waits and sleeps and what remained of
them. The run itself, which may have ended, stays as it is.

What was under way in other sessions is begun anew.`,
		Example: `  weft fork 7f3k2m9x4q1z --at 12`,
		Args:    takes("ID"),
	}
	cmd.Flags().Uint64Var(&at, "at", 0, "position `N` of the entry behind which it goes on")
	return clientCommand(cmd, func(ctx context.Context, r *remote, args []string) error {
		if at == 0 {
			return usage("--at is missing: the position of an entry of 'weft journal %s'", args[0])
		}
		rec, anew, err := r.Fork(ctx, args[0], at)
		switch {
		case host.CodeOf(err) == host.CodeNotFound:
			return r.unknownRun(err, args[0])
		case err != nil:
			return err
		case r.json:
			return r.printAnswer()
		}
		r.noteAnew(anew)
		return r.print(rec.HandlerID + "\n")
	})
}
