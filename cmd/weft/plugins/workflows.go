package plugins

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/input"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
)

// NewWorkflows makes the command 'weft workflows'.
func NewWorkflows() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workflows [NAME]",
		Short: "List the workflows, or show the start fields of one",
		Long: `List the workflows with the plugins of which they are made; or show one workflow: its
plugins, and the fields of its start event, which 'weft run' takes as key=value.`,
		Example: `  weft workflows
  weft workflows wordcount`,
		Args: cli.Takes("[NAME]"),
	}
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		if len(args) == 0 {
			return listWorkflows(ctx, r)
		}
		return showWorkflow(ctx, r, args[0])
	})
}

func listWorkflows(ctx context.Context, r *remote.Conn) error {
	names, err := r.Workflows(ctx)
	switch {
	case err != nil:
		return err
	case r.JSON:
		return r.PrintAnswer()
	case len(names) == 0:
		r.Note("no workflows yet: upload a plugin with %q", r.Hint("push", "FILE.wasm"))
		return nil
	}
	plugins, err := r.Plugins(ctx)
	if err != nil {
		return err
	}
	t := &screen.Table{Columns: []screen.Column{{Title: "NAME", Elastic: true}, {Title: "PLUGINS", Elastic: true}}}
	for _, name := range names {
		t.Add(name, strings.Join(madeOf(name, plugins), ", "))
	}
	return r.Print(t.Render(r.Screen))
}

// madeOf names the plugins of a workflow. A composed workflow takes precedence over a
// workflow that a plugin defines.
func madeOf(workflow string, plugins []host.PluginInfo) []string {
	var composed, own []string
	for i := range plugins {
		p := &plugins[i]
		if slices.Contains(p.ComposedIn, workflow) {
			composed = append(composed, p.Name)
		}
		if p.Workflow == workflow {
			own = append(own, p.Name)
		}
	}
	if composed != nil {
		return composed
	}
	return own
}

// showWorkflow shows the parts of a workflow, and the fields of its start event.
func showWorkflow(ctx context.Context, r *remote.Conn, name string) error {
	start, _, err := r.Schema(ctx, name)
	if err != nil {
		return r.UnknownWorkflow(ctx, err, name)
	}
	if r.JSON {
		return r.PrintAnswer()
	}
	s, err := input.ReadSchema(start)
	if err != nil {
		return err
	}
	about, err := r.About(ctx, name)
	if err != nil {
		return err
	}
	made := ""
	if about.Composed {
		made = composition(&about).Render("")
	}
	example := []string{"run", screen.Printable(name)}
	timeout := "Timeout of a run: " + screen.TimeoutOf(about.Timeout) + ".\n"
	if len(s.Properties) == 0 {
		return r.Print(made + "It takes no fields. Run it with: " + r.Hint(example...) + "\n" + timeout)
	}
	for _, field := range s.Required {
		example = append(example, screen.Printable(field)+"=...")
	}
	return r.Print(made + fieldTable(s).Render(r.Screen) + "Run it with: " + r.Hint(example...) + "\n" + timeout)
}

// fieldTable shows the fields of an event type.
func fieldTable(s *input.Schema) *screen.Table {
	t := &screen.Table{Columns: []screen.Column{{Title: "FIELD"}, {Title: "TYPE"}, {Title: "DEFAULT", Elastic: true}, {Title: "DESCRIPTION", Elastic: true}}}
	for _, name := range s.Names() {
		var about struct {
			Default     json.RawMessage
			Description string
		}
		// Only objects have more to show; a field may also be declared as true.
		if text, err := json.Marshal(s.Properties[name]); err == nil {
			_ = json.Unmarshal(text, &about)
		}
		def := string(about.Default)
		if def == "" && s.Requires(name) {
			def = "(required)"
		}
		t.Add(name, s.KindsOf(name).String(), def, about.Description)
	}
	return t
}
