package main

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/host"
)

func newPlugins() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugins [NAME]",
		Short: "List the plugins, or the versions of one",
		Long: `List the plugins with their newest version, or all versions of one plugin, oldest first.
RUNS counts the running runs that use a version, also as a part of a composed workflow.
For a plugin it counts the runs that use any of its versions.`,
		Example: `  weft plugins
  weft plugins counter
  weft plugins rm counter
  weft plugins rm counter --version 2`,
		Args: takes("[NAME]"),
	}
	clientCommand(cmd, func(ctx context.Context, r *remote, args []string) error {
		if len(args) == 0 {
			return listPlugins(ctx, r)
		}
		return listVersions(ctx, r, args[0])
	})
	cmd.AddCommand(newRemovePlugin())
	return cmd
}

func newRemovePlugin() *cobra.Command {
	var version int
	var yes bool
	cmd := &cobra.Command{
		Use:     "rm NAME",
		Aliases: []string{"delete", "remove"},
		Short:   "Remove a plugin with all its versions, or an old version of it",
		Long: `Remove a plugin with all its versions and its workflow; or with --version, one version
that is not the newest. The server refuses this while runs use what would be removed:
'weft plugins NAME' says how many runs do, and how to list them. Sessions, records,
states and streams of ended runs stay, and can be used as before.`,
		Example: `  weft plugins rm counter
  weft plugins rm counter --version 2`,
		Args: takes("NAME"),
	}
	cmd.Flags().IntVar(&version, "version", 0, "remove only version `N`")
	yesFlag(cmd, &yes)
	return clientCommand(cmd, func(ctx context.Context, r *remote, args []string) error {
		if cmd.Flags().Changed("version") {
			return removeVersion(ctx, r, args[0], version)
		}
		if err := confirmPlugin(ctx, r, args[0], yes); err != nil {
			return err
		}
		if err := r.DeletePlugin(ctx, args[0]); err != nil {
			return r.unknownPlugin(ctx, err, args[0])
		}
		return r.done("removed plugin %s", args[0])
	})
}

// confirmPlugin asks before a plugin is removed, and says what depends on it.
func confirmPlugin(ctx context.Context, r *remote, name string, yes bool) error {
	if yes || !r.asks() {
		return nil
	}
	info, err := r.Plugin(ctx, name)
	if err != nil {
		return r.unknownPlugin(ctx, err, name)
	}
	what := "no workflow"
	if names := workflowsOf(&info); info.Workflow != "" || len(info.ComposedIn) > 0 {
		what = names
	}
	return r.confirm(ctx, yes, "Remove plugin %s with all its versions? Its steps are in: %s; %s of it in progress.", printable(name), what, counted(uint64(info.Runs), "run"))
}

func removeVersion(ctx context.Context, r *remote, name string, version int) error {
	if version < 1 {
		return usage("--version %d: it is the number of a version, from 1 on; 'weft plugins %s' lists them", version, name)
	}
	if err := r.DeletePluginVersion(ctx, name, version); err != nil {
		return err
	}
	if !r.json {
		r.note("removed version %d of plugin %s", version, name)
	}
	return nil
}

func listPlugins(ctx context.Context, r *remote) error {
	list, err := r.Plugins(ctx)
	switch {
	case err != nil:
		return err
	case r.json:
		return r.printAnswer()
	case len(list) == 0:
		r.note("no plugins yet: upload one with %q", r.hint("push", "FILE.wasm"))
		return nil
	}
	return r.print(pluginTable(list, time.Now()).render(r.screen))
}

func listVersions(ctx context.Context, r *remote, name string) error {
	list, err := r.Versions(ctx, name)
	if err != nil {
		return r.unknownPlugin(ctx, err, name)
	}
	if r.json {
		return r.printAnswer()
	}
	if err := r.print(pluginTable(list, time.Now()).render(r.screen)); err != nil {
		return err
	}
	for _, v := range list {
		for _, held := range v.HeldBy {
			line := r.hint("runs", "--workflow", held.Workflow, "--status", "running")
			if held.Version != "" {
				line = r.hint("runs", "--version", digest(held.Version), "--status", "running")
			}
			r.note("version %d is held by %s of workflow %s: %s", v.Version, counted(uint64(held.Runs), "run"), held.Workflow, line)
		}
	}
	return nil
}

func pluginTable(list []host.PluginInfo, now time.Time) *table {
	t := &table{columns: []column{
		{title: "NAME", elastic: true}, {title: "WORKFLOW", elastic: true}, {title: "VERSION", right: true},
		{title: "DIGEST"}, {title: "SIZE", right: true}, {title: "UPLOADED"}, {title: "RUNS", right: true},
	}}
	for _, p := range list {
		t.add(p.Name, workflowsOf(&p), strconv.Itoa(p.Version), digest(p.SHA256), bytesOf(p.Size), ago(p.Created, now), strconv.Itoa(p.Runs))
	}
	return t
}

// workflowsOf names the workflows that have a plugin's steps.
func workflowsOf(p *host.PluginInfo) string {
	names := slices.Clone(p.ComposedIn)
	if p.Workflow != "" && !slices.Contains(names, p.Workflow) {
		names = slices.Insert(names, 0, p.Workflow)
	}
	if len(names) == 0 {
		return "(a part)"
	}
	return strings.Join(names, ", ")
}
