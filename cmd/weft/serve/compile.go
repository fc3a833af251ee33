package serve

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/host/sandbox"
)

// compileCommand is the command that the server starts to compile a tenant's module, in a
// process without any other data (sandbox.Config.Compiler).
const compileCommand = "compile-module"

// NewCompile makes the hidden command that builds modules for a server.
func NewCompile() *cobra.Command {
	return &cobra.Command{
		Use:    compileCommand,
		Short:  "Build a module for the server that starts this",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return sandbox.CompileMain(cmd.InOrStdin(), cmd.OutOrStdout(), os.Exit)
		},
	}
}

// compiler returns the command line of compileCommand, including the name of the program.
// It runs this very program, even if its file has been replaced.
func compiler() ([]string, error) {
	program := "/proc/self/exe"
	if _, err := os.Stat(program); err != nil {
		if program, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	return []string{program, "weft", compileCommand}, nil
}
