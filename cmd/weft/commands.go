package main

import (
	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/access"
	"github.com/weftrun/weft/cmd/weft/bench"
	"github.com/weftrun/weft/cmd/weft/cases"
	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/dev"
	"github.com/weftrun/weft/cmd/weft/plugins"
	"github.com/weftrun/weft/cmd/weft/project"
	"github.com/weftrun/weft/cmd/weft/runs"
	"github.com/weftrun/weft/cmd/weft/serve"
)

// addClientCommands adds the commands that talk to a server.
func addClientCommands(root *cobra.Command) {
	addCommands(root, "server", "Server:", serve.New(), serve.NewLimits(), access.NewNodes())
	addCommands(root, "write", "Writing steps:", project.New(), dev.NewBuild(), cases.New(), dev.New(), project.NewSDK())
	addCommands(root, "plugins", "Plugins and workflows:", plugins.NewPush(), plugins.NewInspect(), plugins.NewPlugins(), plugins.NewWorkflows(), plugins.NewMigrate(), plugins.NewCompose(), plugins.NewFlow(), plugins.NewGraph())
	addCommands(root, "runs", "Runs:", runs.NewRun(), runs.NewRuns(), runs.NewShow(), runs.NewSend(), runs.NewPause(), runs.NewResume(), runs.NewCancel(), runs.NewRetry(), runs.NewEvents(), runs.NewJournal(), runs.NewLogs(), runs.NewFork(), runs.NewSnapshot(), newExplain(), bench.New())
	addCommands(root, "sessions", "Sessions and their state:", runs.NewSessions(), runs.NewState())
	addCommands(root, "access", "Tenants and keys:", access.NewLogin(), access.NewLogout(), access.NewProfiles(), access.NewWhoAmI(), access.NewTenants(), access.NewKeys(), access.NewUsage(), access.NewAudit(), access.NewResources())
	root.AddCommand(newVersion())
}

// addCommands adds commands that are listed under a common title.
func addCommands(root *cobra.Command, id, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: id, Title: title})
	for _, cmd := range commands {
		cmd.GroupID = id
	}
	root.AddCommand(commands...)
}

// knownCommand is the argument check of the root: a remaining argument is an unknown
// command.
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
	return cli.Usage("unknown command %q: %s", args[0], cli.Meant(args[0], names, "'"+cmd.CommandPath()+" --help' lists them"))
}

// refuseUnknown creates the commands that cobra adds, and makes them refuse unknown
// arguments like all other commands. By default they would show a help and succeed.
func refuseUnknown(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, args []string) error {
				found, rest, err := root.Find(args)
				if err != nil {
					return cli.Usage("%w", err)
				}
				return knownCommand(found, rest)
			}
		case "completion":
			cmd.Args = knownCommand
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
}
