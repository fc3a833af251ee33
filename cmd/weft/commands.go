package main

import (
	"strings"

	"github.com/spf13/cobra"
)

// addClientCommands adds the commands that talk to a server.
func addClientCommands(root *cobra.Command) {
	addCommands(root, "server", "Server:", newServe(), newLimits())
	addCommands(root, "write", "Writing steps:", newNew(), newBuild(), newTest(), newDev(), newSDK())
	addCommands(root, "plugins", "Plugins and workflows:", newPush(), newInspect(), newPlugins(), newWorkflows(), newMigrate(), newCompose(), newFlow(), newGraph())
	addCommands(root, "runs", "Runs:", newRun(), newRuns(), newShow(), newSend(), newPause(), newResume(), newCancel(), newRetry(), newEvents(), newJournal(), newLogs(), newFork(), newSnapshot(), newExplain(), newBench())
	addCommands(root, "sessions", "Sessions and their state:", newSessions(), newState())
	addCommands(root, "access", "Tenants and keys:", newLogin(), newLogout(), newProfiles(), newTenants(), newKeys(), newUsage(), newAudit(), newResources())
	root.AddCommand(newVersion())
}

// addCommands adds commands that are listed together, under a title.
func addCommands(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = id
	}
	root.AddCommand(commands...)
}

// takes checks the number of arguments. names says what they are, as in the
// usage line: NAME, [NAME] for one that may be left out, NAME... for one that
// may be repeated or left out. Only the last may be of the latter two forms.
func takes(names ...string) cobra.PositionalArgs {
	least, most := len(names), len(names)
	if n := len(names); n > 0 {
		last := names[n-1]
		switch {
		case strings.HasSuffix(last, "..."):
			least, most = n-1, -1
		case strings.HasPrefix(last, "["):
			least = n - 1
		}
	}
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage("%s is missing; see '%s --help'", names[len(args)], cmd.CommandPath())
		case most >= 0 && len(args) > most:
			return usage("unexpected argument %q; see '%s --help'", args[most], cmd.CommandPath())
		}
		return nil
	}
}

// knownCommand is the argument check of the root: what is left is no command.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return usage("unknown command %q: %s", args[0], meant(args[0], names, "'"+cmd.CommandPath()+" --help' lists them"))
}

// refuseUnknown makes the commands that cobra adds, and has them refuse what they do
// not know, as the others do: they would show a help, and end well.
func refuseUnknown(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				found, rest, err := root.Find(args)
				if err != nil {
					return usage("%w", err)
				}
				return knownCommand(found, rest)
			}
		case "completion":
			cmd.Args = knownCommand
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}
