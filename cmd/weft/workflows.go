package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"
)

func newWorkflows() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workflows [NAME]",
		Short: "List the workflows, or the start fields of one",
		Long: `List the names of the workflows, or show the fields that the start event of one
takes: what 'weft run' wants as key=value.`,
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
	return r.print(printableLines(names))
}

func printableLines(names []string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString(printable(name) + "\n")
	}
	return b.String()
}

// showWorkflow shows the fields of a workflow's start event.
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
	example := []string{"run", printable(name)}
	if len(s.properties) == 0 {
		return r.print("It takes no fields. Run it with: " + r.hint(example...) + "\n")
	}
	for _, field := range s.required {
		example = append(example, printable(field)+"=...")
	}
	return r.print(fieldTable(s).render(r.screen.cols) + "Run it with: " + r.hint(example...) + "\n")
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
