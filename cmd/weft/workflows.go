package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/host"
)

func newWorkflows() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workflows [NAME]",
		Short: "List the workflows, or show the start fields of one",
		Long: `List the workflows with the plugins of which they are made; or show one workflow: its
plugins, and the fields of its start event, which 'weft run' takes as key=value.`,
		Example: `  weft workflows
  weft workflows wordcount`,
		Args: takes("[NAME]"),
	}
	return clientCommand(cmd, func(ctx context.Context, r *remote, args []string) error {
		if len(args) == 0 {
			return listWorkflows(ctx, r)
		}
		return showWorkflow(ctx, r, args[0])
	})
}

func listWorkflows(ctx context.Context, r *remote) error {
	names, err := r.Workflows(ctx)
	switch {
	case err != nil:
		return err
	case r.json:
		return r.printAnswer()
	case len(names) == 0:
		r.note("no workflows yet: upload a plugin with %q", r.hint("push", "FILE.wasm"))
		return nil
	}
	plugins, err := r.Plugins(ctx)
	if err != nil {
		return err
	}
	t := &table{columns: []column{{title: "NAME", elastic: true}, {title: "PLUGINS", elastic: true}}}
	for _, name := range names {
		t.add(name, strings.Join(madeOf(name, plugins), ", "))
	}
	return r.print(t.render(r.screen))
}

// madeOf names the plugins of a workflow. What is composed goes before what a
// plugin makes by itself.
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

// showWorkflow shows what a workflow is composed of, and the fields of its start
// event.
func showWorkflow(ctx context.Context, r *remote, name string) error {
	start, _, err := r.Schema(ctx, name)
	if err != nil {
		return r.unknownWorkflow(ctx, err, name)
	}
	if r.json {
		return r.printAnswer()
	}
	s, err := readSchema(start)
	if err != nil {
		return err
	}
	about, err := r.About(ctx, name)
	if err != nil {
		return err
	}
	made := ""
	if about.Composed {
		made = composition(&about).render("")
	}
	example := []string{"run", printable(name)}
	timeout := "Timeout of a run: " + timeoutOf(about.Timeout) + ".\n"
	if len(s.properties) == 0 {
		return r.print(made + "It takes no fields. Run it with: " + r.hint(example...) + "\n" + timeout)
	}
	for _, field := range s.required {
		example = append(example, printable(field)+"=...")
	}
	return r.print(made + fieldTable(s).render(r.screen) + "Run it with: " + r.hint(example...) + "\n" + timeout)
}

// timeoutOf says what timeout the runs of a workflow have.
func timeoutOf(t host.WorkflowTimeout) string {
	switch {
	case t.Span <= 0:
		return "none"
	case t.Set:
		return t.Span.String() + ", with its waits"
	}
	return t.Span.String() + " of work, without its waits"
}

// fieldTable shows the fields of an event type.
func fieldTable(s *eventSchema) *table {
	t := &table{columns: []column{{title: "FIELD"}, {title: "TYPE"}, {title: "DEFAULT", elastic: true}, {title: "DESCRIPTION", elastic: true}}}
	for _, name := range s.names() {
		var about struct {
			Default     json.RawMessage
			Description string
		}
		// Only objects say more; a field may also be declared as true.
		if text, err := json.Marshal(s.properties[name]); err == nil {
			_ = json.Unmarshal(text, &about)
		}
		def := string(about.Default)
		if def == "" && s.requires(name) {
			def = "(required)"
		}
		t.add(name, s.kindsOf(name).String(), def, about.Description)
	}
	return t
}
