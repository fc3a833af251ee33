// Package cli has what all commands share: exit codes, errors in the command line, flags
// from the environment, suggestions for mistyped names, and bounded reads of files.
//
// It does not depend on any command, server or terminal.
package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Version is the version of this program. Function main sets it before anything else.
var Version = "dev"

// Exit codes.
const (
	ExitOK       = 0
	ExitFailed   = 1 // the command could not do what it was asked to
	exitUsage    = 2 // the command line is wrong
	ExitRunEnded = 3 // the command waited for a run, which did not complete
)

// ExitError is an error with an exit code of its own; see [Exit].
type ExitError struct {
	Code int
	Err  error
}

// Error implements error.
func (e *ExitError) Error() string { return e.Err.Error() }

// Unwrap returns the error without its exit code.
func (e *ExitError) Unwrap() error { return e.Err }

// Exit returns an error that ends the program with an exit code.
func Exit(code int, err error) error { return &ExitError{code, err} }

// Usage returns an error in the command line.
func Usage(format string, args ...any) error {
	return &ExitError{exitUsage, fmt.Errorf(format, args...)}
}

// CommandLineOnly marks a flag that cannot be set by an environment variable, because the
// variable would also mean something else.
const CommandLineOnly = "weft_command_line_only"

// FromEnvironment sets each flag that the command line does not set from its variable:
// WEFT_ and the flag's name in capitals, with _ for -.
func FromEnvironment(flags *pflag.FlagSet) error {
	var err error
	flags.VisitAll(func(f *pflag.Flag) {
		if _, not := f.Annotations[CommandLineOnly]; not || f.Changed || f.Name == "help" || f.Name == "version" {
			return
		}
		name := "WEFT_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if v, ok := os.LookupEnv(name); ok && v != "" {
			if e := flags.Set(f.Name, v); e != nil && err == nil {
				err = Usage("environment variable %s: %w", name, e)
			}
		}
	})
	return err
}

// Takes checks the number of arguments. names are the arguments as in the usage line:
// NAME, [NAME] for an optional argument, NAME... for an argument that may occur any
// number of times. Optional arguments follow the others, and NAME... is the last.
func Takes(names ...string) cobra.PositionalArgs {
	least, most := len(names), len(names)
	if most > 0 && strings.HasSuffix(names[most-1], "...") {
		least, most = most-1, -1
	}
	for least > 0 && strings.HasPrefix(names[least-1], "[") {
		least--
	}
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return Usage("%s is missing; see '%s --help'", names[len(args)], cmd.CommandPath())
		case most >= 0 && len(args) > most:
			return Usage("unexpected argument %q; see '%s --help'", args[most], cmd.CommandPath())
		}
		return nil
	}
}

// YesFlag adds the flag that answers a command's question in advance.
func YesFlag(cmd *cobra.Command, yes *bool) {
	cmd.Flags().BoolVar(yes, "yes", false, "do not ask")
	cmd.Flags().Lookup("yes").Annotations = map[string][]string{CommandLineOnly: nil}
}

// DefaultAddr is where the server listens and the client connects by default.
const DefaultAddr = "127.0.0.1:8080"

// OrAnyPort names the flag that lets a server use another port if its port is in use.
const OrAnyPort = "or-any-port"
