package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/codes"
)

// places are the names of the places of error codes.
var places = map[codes.Where]string{
	codes.InAnswer:  "in the answer to a request",
	codes.InRun:     "of a run that has failed",
	codes.InBlocked: "of a run that is blocked",
	codes.InPlugin:  "of a plugin or workflow that was refused",
	codes.InCall:    "of a host function, in a step",
}

func newExplain() *cobra.Command {
	return &cobra.Command{
		Use:   "explain [CODE]",
		Short: "Explain an error code, and say what to do",
		Long: `Explain an error code and say what to do about it. CODE is the "code" of an answer, the
"error_code" of a run, the code of a problem of a plugin, or the code of an error that a
step gets from a host function. Codes that steps define themselves are not listed.
Without CODE, list all codes.`,
		Example: `  weft explain
  weft explain never_accepted
  weft explain limit_exceeded`,
		Args: cli.Takes("[CODE]"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return explainedCodes(), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				_, err := fmt.Fprint(cmd.OutOrStdout(), allExplained())
				return err
			}
			found := codes.Explain(args[0])
			if len(found) == 0 {
				return cli.Usage("weft has no error code %q: %s", args[0], cli.Meant(args[0], explainedCodes(), "if a step returned it, ask the step's author"))
			}
			var b strings.Builder
			for i, e := range found {
				if i > 0 {
					b.WriteByte('\n')
				}
				fmt.Fprintf(&b, "%s, %s", e.Code, places[e.Where])
				if e.Where == codes.InAnswer {
					fmt.Fprintf(&b, " (status %d)", host.Code(e.Code).HTTPStatus())
				}
				fmt.Fprintf(&b, ":\n  %s\n", e.What)
				if e.Do != "" {
					fmt.Fprintf(&b, "  %s\n", e.Do)
				}
			}
			_, err := fmt.Fprint(cmd.OutOrStdout(), b.String())
			return err
		},
	}
}

// allExplained lists all codes by place, with their meaning and what to do.
func allExplained() string {
	var b strings.Builder
	where := codes.Where("")
	for _, e := range codes.Explanations() {
		if e.Where != where {
			where = e.Where
			fmt.Fprintf(&b, "Codes %s:\n", places[where])
		}
		fmt.Fprintf(&b, "  %s\n      %s\n", e.Code, strings.TrimSpace(e.What+" "+e.Do))
	}
	return b.String()
}

// explainedCodes lists the codes, each once.
func explainedCodes() []string {
	var list []string
	seen := map[string]bool{}
	for _, e := range codes.Explanations() {
		if !seen[e.Code] {
			list, seen[e.Code] = append(list, e.Code), true
		}
	}
	return list
}
