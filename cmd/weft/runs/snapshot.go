package runs

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/host"
)

// NewSnapshot makes the command 'weft snapshot'.
func NewSnapshot() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot ID",
		Short: "Print everything that a run consists of, to continue it elsewhere",
		Long: `Print a snapshot of the latest run of a handler, or of any run by its run id: its state,
its steps in progress and what they wait for. 'weft run WORKFLOW --snapshot FILE'
continues from it under a new handler, on this server or on another server with the same
versions of the plugins. The snapshot of an ended run contains only the state.

The snapshot is JSON. It contains all data that the run was given: keep it confidential.`,
		Example: `  weft snapshot 7f3k2m9x4q1z > run.json
  weft run human --snapshot run.json --server http://127.0.0.1:9000`,
		Args: cli.Takes("ID"),
	}
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		text, err := r.Snapshot(ctx, args[0])
		switch {
		case host.CodeOf(err) == host.CodeNotFound:
			return r.UnknownRun(err, args[0])
		case err != nil:
			return err
		}
		return r.Print(string(text) + "\n")
	})
}

// readSnapshot reads a snapshot from a file; nil if no file is named.
func readSnapshot(path string) (json.RawMessage, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if !json.Valid(text) {
		return nil, fmt.Errorf("%s is not a snapshot: it is not JSON", path)
	}
	return text, nil
}
