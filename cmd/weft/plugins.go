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
		Long: `List the plugins with their newest version, or all versions of one plugin,
oldest first. RUNS counts the running runs that hold a version.`,
		Example: `  weft plugins
  weft plugins counter
  weft plugins rm counter`,
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
	cmd := &cobra.Command{
		Use:     "rm NAME",
		Aliases: []string{"delete", "remove"},
		Short:   "Remove a plugin with all its versions",
		Long: `Remove a plugin with all its versions, and with it its workflow. It is refused
while runs hold a version; 'weft runs --status running' shows them. Records,
states and streams of runs that have ended stay.`,
		Example: `  weft plugins rm counter`,
		Args:    takes("NAME"),
	}
	return clientCommand(cmd, func(ctx context.Context, r *remote, args []string) error {
		if err := r.DeletePlugin(ctx, args[0]); err != nil {
			return r.unknownPlugin(ctx, err, args[0])
		}
		if !r.json { // the API has nothing to say
			r.note("removed plugin %s", args[0])
		}
		return nil
	})
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
	return r.print(pluginTable(list, time.Now()).render(r.screen.cols))
}

func listVersions(ctx context.Context, r *remote, name string) error {
	list, err := r.Versions(ctx, name)
	if err != nil {
		return r.unknownPlugin(ctx, err, name)
	}
	if r.json {
		return r.printAnswer()
	}
	return r.print(pluginTable(list, time.Now()).render(r.screen.cols))
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
