package main

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// completionTime limits how long a shell waits for names from the server.
const completionTime = 2 * time.Second

// completed is the largest number of names that are offered.
const completed = 100

// lister lists names of one kind, each followed by a tab and a description.
type lister func(ctx context.Context, r *remote.Conn) ([]string, error)

// listers are the kinds of names that a server has.
var listers = map[string]lister{
	"run": func(ctx context.Context, r *remote.Conn) ([]string, error) {
		page, err := r.List(ctx, client.ListQuery{Limit: completed})
		return namesOf(page.Records, func(rec client.Record) string {
			return rec.HandlerID + "\t" + rec.Workflow + ", " + string(rec.Status)
		}), err
	},
	"workflow": func(ctx context.Context, r *remote.Conn) ([]string, error) { return r.Workflows(ctx) },
	"plugin": func(ctx context.Context, r *remote.Conn) ([]string, error) {
		list, err := r.Plugins(ctx)
		return namesOf(list, func(p host.PluginInfo) string { return p.Name + "\t" + p.Workflow }), err
	},
	"session": func(ctx context.Context, r *remote.Conn) ([]string, error) {
		page, err := r.Sessions(ctx, completed, "")
		return namesOf(page.Sessions, func(s client.Session) string { return s.SessionID }), err
	},
	"tenant": func(ctx context.Context, r *remote.Conn) ([]string, error) {
		list, err := r.Tenants(ctx)
		return namesOf(list, func(t host.TenantRecord) string { return t.Name }), err
	},
	"key": func(ctx context.Context, r *remote.Conn) ([]string, error) {
		list, err := r.Keys(ctx)
		return namesOf(list, func(k host.KeyRecord) string { return k.ID + "\t" + string(k.Role) + " " + k.Name }), err
	},
}

func namesOf[T any](list []T, name func(T) string) []string {
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = name(e)
	}
	return names
}

// firstArguments has the kind of each command's first argument.
var firstArguments = map[string]string{
	"weft show": "run", "weft cancel": "run", "weft pause": "run", "weft resume": "run", "weft retry": "run", "weft events": "run",
	"weft journal": "run", "weft logs": "run", "weft fork": "run", "weft snapshot": "run", "weft send": "run",
	"weft run": "workflow", "weft bench": "workflow", "weft workflows": "workflow", "weft workflows rm": "workflow",
	"weft graph": "workflow", "weft migrate": "workflow", "weft compose": "workflow",
	"weft plugins": "plugin", "weft plugins rm": "plugin",
	"weft sessions": "session", "weft sessions rm": "session", "weft state get": "session", "weft state set": "session",
	"weft usage": "tenant", "weft tenants rm": "tenant", "weft keys rm": "key", "weft keys rotate": "key",
}

// flagKinds has the kinds of flags. flagValues lists the values of other flags.
var (
	flagKinds  = map[string]string{"workflow": "workflow", "session": "session", "tenant": "tenant"}
	flagValues = map[string][]string{
		"status": {string(host.StatusRunning), string(host.StatusCompleted), string(host.StatusFailed), string(host.StatusCancelled)},
		"role":   {string(host.RoleRead), string(host.RoleRun), string(host.RoleDeploy), string(host.RoleAdmin)},
		"level":  {"debug", "info", "warn", "error"},
	}
)

// addCompletion lets a shell complete names of the server, for all commands that talk to
// a server. If the server does not answer, completion offers nothing and prints nothing.
func addCompletion(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		addCompletion(cmd)
	}
	if kind := firstArguments[root.CommandPath()]; kind != "" && root.ValidArgsFunction == nil {
		root.ValidArgsFunction = func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveDefault
			}
			return offered(cmd, kind)
		}
	}
	root.Flags().VisitAll(func(f *pflag.Flag) {
		complete := func(values func(cmd *cobra.Command) ([]string, cobra.ShellCompDirective)) {
			_ = root.RegisterFlagCompletionFunc(f.Name, // an error means that the command already has a completion
				func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
					return values(cmd)
				})
		}
		kind, fixed := flagKinds[f.Name], flagValues[f.Name]
		switch {
		case f.Name == "profile":
			complete(func(*cobra.Command) ([]string, cobra.ShellCompDirective) { return profileNames() })
		case fixed != nil:
			complete(func(*cobra.Command) ([]string, cobra.ShellCompDirective) {
				return fixed, cobra.ShellCompDirectiveNoFileComp
			})
		case kind != "" && root.Flags().Lookup("server") != nil:
			complete(func(cmd *cobra.Command) ([]string, cobra.ShellCompDirective) { return offered(cmd, kind) })
		}
	})
}

// offered asks the server that the command line names.
func offered(cmd *cobra.Command, kind string) ([]string, cobra.ShellCompDirective) {
	if err := cli.FromEnvironment(cmd.Flags()); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	flag := func(name string) string {
		f := cmd.Flags().Lookup(name)
		if f == nil || !f.Changed {
			return ""
		}
		return f.Value.String()
	}
	tenant := flag("tenant")
	if kind == "tenant" {
		tenant = "" // the user is entering this name
	}
	r, err := remote.Connect(cmd, flag("server"), flag("profile"), tenant)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer r.Close()
	ctx, cancel := context.WithTimeout(context.Background(), completionTime)
	defer cancel()
	names, err := listers[kind](ctx, r)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for i := range names {
		names[i] = completable(names[i])
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completable makes a name with its description safe to show. It keeps the tab between
// them.
func completable(s string) string {
	parts := strings.Split(s, "\t")
	for i := range parts {
		parts[i] = screen.Printable(parts[i])
	}
	return strings.Join(parts, "\t")
}

func profileNames() ([]string, cobra.ShellCompDirective) {
	p, err := remote.ReadProfiles()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return slices.Sorted(maps.Keys(p.Profiles)), cobra.ShellCompDirectiveNoFileComp
}
