package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/host"
)

func newResources() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resources",
		Short: "List, define and delete the resources that workflows may call",
		Long: `List the resources of the tenant, also those of the operator's file, and how much
workflows have used them. The command needs a key with the role admin. It does not show
secrets: the server keeps them sealed.`,
		Example: `  weft resources
  weft resources put llm llm.json
  weft resources show llm
  weft resources keys cache
  weft resources rm llm`,
		Args: takes(),
	}
	clientCommand(cmd, listResources)
	cmd.AddCommand(newPutResource(), newShowResource(), newResourceKeys(), newRemoveResource())
	return cmd
}

func listResources(ctx context.Context, r *remote, _ []string) error {
	list, err := r.Resources(ctx)
	switch {
	case err != nil:
		return err
	case r.json:
		return r.printAnswer()
	case len(list) == 0:
		r.note("no resources yet: define one with %q", r.hint("resources", "put", "NAME", "FILE"))
		return nil
	}
	t := &table{columns: []column{{title: "NAME", elastic: true}, {title: "KIND"}, {title: "SOURCE"}, {title: "WORKFLOW", elastic: true},
		{title: "CALLS"}, {title: "FAILED"}, {title: "SENT"}, {title: "RECEIVED"}, {title: "TOKENS IN"}, {title: "TOKENS OUT"}}}
	for i := range list {
		addResource(t, &list[i])
	}
	if err := r.print(t.render(r.screen)); err != nil {
		return err
	}
	for i := range list {
		if list[i].Problem != "" {
			r.note("%s cannot be used: %s", list[i].Name, list[i].Problem)
		}
	}
	return nil
}

func addResource(t *table, r *host.ResourceInfo) {
	source := "api"
	if r.File {
		source = "file"
	}
	if len(r.Uses) == 0 {
		t.add(r.Name, r.Kind, source, "-", "0", "0", "0", "0", "0", "0")
	}
	for _, u := range r.Uses {
		t.add(r.Name, r.Kind, source, u.Workflow, grouped(u.Calls), grouped(u.Failed), grouped(u.Sent), grouped(u.Received),
			grouped(u.InputTokens), grouped(u.OutputTokens))
	}
}

func newPutResource() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "put NAME FILE",
		Short: "Define a resource, or replace it",
		Long: `Define a resource by a JSON file, or by the standard input (-): kind, settings, secrets
and grants, as docs/resources.md says. The definition takes effect at once. It must
contain the secrets each time, because the server does not show them.`,
		Example: `  weft resources put llm llm.json
  envsubst < llm.json | weft resources put llm -`,
		Args: takes("NAME", "FILE"),
	}
	return clientCommand(cmd, func(ctx context.Context, r *remote, args []string) error {
		text, err := readDefinition(args[1])
		if err != nil {
			return err
		}
		info, created, err := r.PutResource(ctx, args[0], text)
		switch {
		case host.CodeOf(err) == host.CodeInvalidArgument:
			return byLines(err)
		case err != nil:
			return err
		case r.json:
			return r.printAnswer()
		case created:
			r.note("defined resource %s of the kind %s", info.Name, info.Kind)
		default:
			r.note("replaced resource %s of the kind %s", info.Name, info.Kind)
		}
		return nil
	})
}

// byLines is a refusal that tells of several problems, a line for each.
func byLines(err error) error {
	lines := strings.Split(host.MessageOf(err), "\n")
	for i := range lines {
		lines[i] = sentence(lines[i])
	}
	return errors.New(strings.Join(lines, "\n"))
}

func readDefinition(file string) ([]byte, error) {
	if file != "-" {
		return readBounded(file, host.MaxResourceDefinition)
	}
	text, err := io.ReadAll(io.LimitReader(os.Stdin, host.MaxResourceDefinition+1))
	if err == nil && len(text) > host.MaxResourceDefinition {
		err = fmt.Errorf("the standard input is longer than %d KiB", host.MaxResourceDefinition>>10)
	}
	return text, err
}

func newShowResource() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show a resource's definition, without its secrets",
		Example: `  weft resources show llm`,
		Args:    takes("NAME"),
	}
	return clientCommand(cmd, func(ctx context.Context, r *remote, args []string) error {
		info, err := r.Resource(ctx, args[0])
		switch {
		case err != nil:
			return err
		case r.json:
			return r.printAnswer()
		case info.File:
			r.note("%s is the operator's, from the server's file of resources", info.Name)
			return nil
		}
		var text bytes.Buffer
		if err := json.Indent(&text, info.Definition, "", "  "); err != nil {
			return err
		}
		return r.print(text.String() + "\n")
	})
}

func newRemoveResource() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rm NAME",
		Aliases: []string{"delete", "remove"},
		Short:   "Delete a resource that was defined by 'weft resources put'",
		Example: `  weft resources rm llm`,
		Args:    takes("NAME"),
	}
	return clientCommand(cmd, func(ctx context.Context, r *remote, args []string) error {
		if err := r.DeleteResource(ctx, args[0]); err != nil {
			return err
		}
		return r.done("deleted resource %s", args[0])
	})
}
