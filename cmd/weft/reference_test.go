package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/serve"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/codes"
	"github.com/weftrun/weft/host/hosttest"
)

var update = flag.Bool("update", false, "write the pages that are made of the code: docs/reference")

// The pages of docs/reference are generated from the code.
func TestReference(t *testing.T) {
	for name, page := range map[string]string{
		"cli.md": commandPage(newRoot()), "errors.md": errorPage(), "configuration.md": settingsPage(serve.New()),
		"abi.md": abiPage(t), "manifest.md": manifestPage(t),
		"sdk-go.md": goPage(t), "sdk-rust.md": rustPage(t),
	} {
		path := filepath.Join(hosttest.Root(), "docs", "reference", name)
		if *update {
			if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(path); err != nil || string(have) != page {
			t.Errorf("docs/reference/%s is not what the code says (%v): go test ./cmd/weft -run Reference -update", name, err)
		}
	}
}

// commandPage describes each command, in the order in which `weft --help` lists them.
func commandPage(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# The command line\n\nWhat `weft COMMAND --help` says, on one page. Each flag can be given by an environment\n" +
		"variable as well: `--addr` by `WEFT_ADDR`.\n")
	root.InitDefaultCompletionCmd()
	walkCommands(root, func(cmd *cobra.Command) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", cmd.CommandPath(), fenced(strings.TrimSpace(longOf(cmd))+"\n\nUsage:\n  "+cmd.UseLine()))
		if cmd.Example != "" {
			fmt.Fprintf(&b, "\n%s\n", fenced(strings.Trim(cmd.Example, "\n")))
		}
		if flags := cmd.NonInheritedFlags(); flags.HasAvailableFlags() {
			fmt.Fprintf(&b, "\n%s\n", fenced(strings.TrimRight(flags.FlagUsagesWrapped(120), "\n")))
		}
	})
	return b.String()
}

func walkCommands(cmd *cobra.Command, visit func(*cobra.Command)) {
	if cmd.HasParent() {
		visit(cmd)
	}
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "completion" && c.Name() != "help" {
			walkCommands(c, visit)
		}
	}
}

func longOf(cmd *cobra.Command) string {
	if cmd.Long != "" {
		return cmd.Long
	}
	return cmd.Short + "."
}

// fenced indents a text that is shown unchanged, so that no line of it can end the block.
func fenced(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = "    " + strings.ReplaceAll(line, "\t", "  ")
		}
	}
	return strings.Join(lines, "\n")
}

// errorPage lists the error codes by their places.
func errorPage() string {
	var b strings.Builder
	b.WriteString("# Error codes\n\n`weft explain CODE` says the same.\n")
	var where codes.Where
	for _, e := range codes.Explanations() {
		if e.Where != where {
			where = e.Where
			fmt.Fprintf(&b, "\n## Codes %s\n\n", places[where])
			if where == codes.InAnswer {
				b.WriteString("| code | status | what it means | what to do |\n|---|---|---|---|\n")
			} else {
				b.WriteString("| code | what it means | what to do |\n|---|---|---|\n")
			}
		}
		status := ""
		if where == codes.InAnswer {
			status = fmt.Sprintf(" %d |", host.Code(e.Code).HTTPStatus())
		}
		fmt.Fprintf(&b, "| `%s` |%s %s | %s |\n", e.Code, status, e.What, e.Do)
	}
	return b.String()
}

// settingsPage lists the settings of the server.
func settingsPage(serve *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# Settings of the server\n\nFlags of `weft serve`, and the variables that give them; a flag goes before its variable. Limits and\n" +
		"quotas have [a file of their own](../limits.md#settings), what steps may call [another one](../resources.md).\n\n" +
		"| flag | variable | default | what |\n|---|---|---|---|\n")
	serve.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		kind, what := pflag.UnquoteUsage(f)
		name := "`--" + f.Name + strings.TrimRight(" "+kind, " ") + "`"
		variable := "`WEFT_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")) + "`"
		if _, not := f.Annotations[cli.CommandLineOnly]; not {
			variable = ""
		}
		what = strings.Join(strings.Fields(what), " ")
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", name, variable, codeOf(f.DefValue), strings.ReplaceAll(what, "|", "\\|"))
	})
	return b.String()
}

func codeOf(text string) string {
	if text == "" || text == "[]" {
		return ""
	}
	return "`" + text + "`"
}
