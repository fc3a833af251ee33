// Command weft is the server and its command line.
//
// It must not hold logic of the host: it wires the rooms together, reads flags
// and environment, and shows what the API answers.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// version is set by the linker.
var version = "dev"

// Exit codes.
const (
	exitOK       = 0
	exitFailed   = 1 // the command could not do what it was asked to
	exitUsage    = 2 // the command line is wrong
	exitRunEnded = 3 // a run was waited for and did not complete
)

// exitError is an error with an exit code of its own.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

func main() { os.Exit(run()) }

// run is main with an exit code, so that tests can be it.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := newRoot()
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(os.Stderr, terminalOf(os.Stderr).paint(red, "weft:"), err)
	var e *exitError
	if errors.As(err, &e) {
		return e.code
	}
	return exitFailed
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
		Version:           version,
		Args:              knownCommand,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return fromEnvironment(cmd.Flags()) },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%w; see '%s --help'", err, cmd.CommandPath())
	})
	root.AddCommand(newCompile())
	addClientCommands(root)
	addCommands(root, "data", "Data:", newCheck(), newBackup(), newRestore(), newCompact())
	addCompletion(root)
	refuseUnknown(root)
	return root
}

// usage is an error in the command line.
func usage(format string, args ...any) error {
	return &exitError{exitUsage, fmt.Errorf(format, args...)}
}

// commandLineOnly marks a flag that no variable gives, as the same name means more
// elsewhere.
const commandLineOnly = "weft_command_line_only"

// fromEnvironment gives each flag that was not set the value of its variable:
// WEFT_ and its name in capitals, with _ for -.
func fromEnvironment(flags *pflag.FlagSet) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		if _, not := f.Annotations[commandLineOnly]; not || f.Changed || f.Name == "help" || f.Name == "version" {
			return
		}
		name := "WEFT_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if v, ok := os.LookupEnv(name); ok && v != "" {
			if e := flags.Set(f.Name, v); e != nil && err == nil {
				err = usage("environment variable %s: %w", name, e)
			}
		}
	})
	return err
}
