// Command weft is the server and its command line.
//
// It contains no logic of the host: it connects the packages, reads flags and
// environment, and shows the answers of the API.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/data"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/cmd/weft/serve"
)

// version is set by the linker.
var version = "dev"

func main() { os.Exit(run()) }

// run is main with an exit code, so that tests can call it.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cli.Version = version
	cmd := newRoot()
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return cli.ExitOK
	}
	fmt.Fprintln(os.Stderr, screen.Of(os.Stderr).Paint(screen.Red, "weft:"), err)
	var e *cli.ExitError
	if errors.As(err, &e) {
		return e.Code
	}
	return cli.ExitFailed
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "weft",
		Short: "A server for workflows of WebAssembly steps",
		Long: `weft is a server for workflows whose steps are WebAssembly plugins, and the command
line for it.

Start a server, and in another terminal make a plugin, upload it and run its workflow:

  weft serve
  weft new greet && cd greet && weft build && weft push
  weft run greet name=Ada --watch

Every flag can also be set by an environment variable: --addr by WEFT_ADDR, --data by
WEFT_DATA, --server by WEFT_SERVER, and so on.`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		Version:           cli.Version,
		Args:              knownCommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return cli.FromEnvironment(cmd.Flags()) },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return cli.Usage("%w; see '%s --help'", err, cmd.CommandPath())
	})
	root.AddCommand(serve.NewCompile())
	addClientCommands(root)
	addCommands(root, "data", "Data:", data.NewCheck(), data.NewBackup(), data.NewRestore(), data.NewCompact(), data.NewMigrateStore())
	addCompletion(root)
	refuseUnknown(root)
	return root
}
