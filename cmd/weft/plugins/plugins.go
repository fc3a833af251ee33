// Package plugins has the commands about plugins and workflows: they upload, inspect,
// compose, draw and migrate. It also reads the files of modules and flows, and explains
// why a server refuses them.
//
// It does not depend on how a module is built, or on what runs do.
package plugins

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
)

// NewPlugins makes the command 'weft plugins'.
func NewPlugins() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plugins [NAME]",
		Short: "List the plugins, or the versions of one",
		Long: `List the plugins with their newest version, or all versions of one plugin, oldest first.
RUNS counts the running runs that use a version, also as a part of a composed workflow.
For a plugin it counts the runs that use any of its versions.`,
		Example: `  weft plugins
  weft plugins counter
  weft plugins get counter --version 2
  weft plugins rm counter
  weft plugins rm counter --version 2`,
		Args: cli.Takes("[NAME]"),
	}
	remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		if len(args) == 0 {
			return listPlugins(ctx, r)
		}
		return listVersions(ctx, r, args[0])
	})
	cmd.AddCommand(newRemovePlugin(), newGetPlugin())
	return cmd
}

func newGetPlugin() *cobra.Command {
	var version int
	out := ""
	cmd := &cobra.Command{
		Use:   "get NAME",
		Short: "Write the module of a plugin to a file",
		Long: `Write the bytes of a plugin's newest version, or with --version of another one, to a
file: the module as it was uploaded. The role deploy is needed for this.`,
		Example: `  weft plugins get counter
  weft plugins get counter --version 2 --out old.wasm`,
		Args: cli.Takes("NAME"),
	}
	cmd.Flags().IntVar(&version, "version", 0, "write version `N` instead of the newest")
	cmd.Flags().StringVarP(&out, "out", "o", "", "write to this `FILE` instead of NAME.wasm")
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		digest := ""
		if cmd.Flags().Changed("version") {
			versions, err := r.Versions(ctx, args[0])
			if err != nil {
				return r.UnknownPlugin(ctx, err, args[0])
			}
			i := slices.IndexFunc(versions, func(v host.PluginInfo) bool { return v.Version == version })
			if i < 0 {
				return fmt.Errorf("plugin %s has no version %d: %q lists the versions", args[0], version, r.Hint("plugins", args[0]))
			}
			digest = versions[i].SHA256
		}
		wasm, err := r.Module(ctx, args[0], digest)
		if err != nil {
			return r.UnknownPlugin(ctx, err, args[0])
		}
		file := out
		if file == "" {
			file = args[0] + ".wasm"
		}
		if err := os.WriteFile(file, wasm, 0o666); err != nil {
			return err
		}
		return r.Done("wrote %d bytes to %s", len(wasm), file)
	})
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
		Args: cli.Takes("NAME"),
	}
	cmd.Flags().IntVar(&version, "version", 0, "remove only version `N`")
	cli.YesFlag(cmd, &yes)
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		if cmd.Flags().Changed("version") {
			return removeVersion(ctx, r, args[0], version)
		}
		if err := confirmPlugin(ctx, r, args[0], yes); err != nil {
			return err
		}
		if err := r.DeletePlugin(ctx, args[0]); err != nil {
			return r.UnknownPlugin(ctx, err, args[0])
		}
		return r.Done("removed plugin %s", args[0])
	})
}

// confirmPlugin asks before a plugin is removed, and says what depends on the plugin.
func confirmPlugin(ctx context.Context, r *remote.Conn, name string, yes bool) error {
	if yes || !r.Asks() {
		return nil
	}
	info, err := r.Plugin(ctx, name)
	if err != nil {
		return r.UnknownPlugin(ctx, err, name)
	}
	what := "no workflow"
	if names := workflowsOf(&info); info.Workflow != "" || len(info.ComposedIn) > 0 {
		what = names
	}
	return r.Confirm(ctx, yes, "Remove plugin %s with all its versions? Its steps are in: %s; %s of it in progress.", screen.Printable(name), what, screen.Counted(uint64(info.Runs), "run"))
}

func removeVersion(ctx context.Context, r *remote.Conn, name string, version int) error {
	if version < 1 {
		return cli.Usage("--version %d: must be the number of a version, from 1; 'weft plugins %s' lists them", version, name)
	}
	if err := r.DeletePluginVersion(ctx, name, version); err != nil {
		return err
	}
	if !r.JSON {
		r.Note("removed version %d of plugin %s", version, name)
	}
	return nil
}

func listPlugins(ctx context.Context, r *remote.Conn) error {
	list, err := r.Plugins(ctx)
	switch {
	case err != nil:
		return err
	case r.JSON:
		return r.PrintAnswer()
	case len(list) == 0:
		r.Note("no plugins yet: upload one with %q", r.Hint("push", "FILE.wasm"))
		return nil
	}
	return r.Print(pluginTable(list, time.Now()).Render(r.Screen))
}

func listVersions(ctx context.Context, r *remote.Conn, name string) error {
	list, err := r.Versions(ctx, name)
	if err != nil {
		return r.UnknownPlugin(ctx, err, name)
	}
	if r.JSON {
		return r.PrintAnswer()
	}
	if err := r.Print(pluginTable(list, time.Now()).Render(r.Screen)); err != nil {
		return err
	}
	for _, v := range list {
		for _, held := range v.HeldBy {
			line := r.Hint("runs", "--workflow", held.Workflow, "--status", "running")
			if held.Version != "" {
				line = r.Hint("runs", "--version", screen.Digest(held.Version), "--status", "running")
			}
			r.Note("version %d is held by %s of workflow %s: %s", v.Version, screen.Counted(uint64(held.Runs), "run"), held.Workflow, line)
		}
	}
	return nil
}

func pluginTable(list []host.PluginInfo, now time.Time) *screen.Table {
	t := &screen.Table{Columns: []screen.Column{
		{Title: "NAME", Elastic: true}, {Title: "WORKFLOW", Elastic: true}, {Title: "VERSION", Right: true},
		{Title: "DIGEST"}, {Title: "SIZE", Right: true}, {Title: "UPLOADED"}, {Title: "RUNS", Right: true},
	}}
	for _, p := range list {
		t.Add(p.Name, workflowsOf(&p), strconv.Itoa(p.Version), screen.Digest(p.SHA256), screen.Bytes(p.Size), screen.Ago(p.Created, now), strconv.Itoa(p.Runs))
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
