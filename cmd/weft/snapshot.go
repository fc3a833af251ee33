package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/host"
)

func newSnapshot() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot ID",
		Short: "Print all that a run is made of, so that it can go on elsewhere",
		Long: `Print a snapshot of the latest run of a handler, or of any run by its run id: its
state, its steps under way and what they wait for. 'weft run WORKFLOW --snapshot
FILE' goes on from it under a new handler, on this server or on another that has
the same versions of its plugins. Of a run that has ended it has the state alone.

The snapshot is JSON, and contains whatever the run has been given.`,
		Example: `  weft snapshot 7f3k2m9x4q1z > run.json
  weft run human --snapshot run.json --server http://127.0.0.1:9000`,
		Args: takes("ID"),
	}
	return clientCommand(cmd, func(ctx context.Context, r *remote, args []string) error {
		text, err := r.Snapshot(ctx, args[0])
		switch {
		case host.CodeOf(err) == host.CodeNotFound:
			return r.unknownRun(err, args[0])
		case err != nil:
			return err
		}
		return r.print(string(text) + "\n")
	})
}

// readSnapshot reads a snapshot from a file; nil if none is named.
func readSnapshot(path string) (json.RawMessage, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if !json.Valid(text) {
		return nil, fmt.Errorf("%s is no snapshot: it is not JSON", path)
	}
	return text, nil
}
