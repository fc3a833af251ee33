package access

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

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
)

// NewResources makes the command 'weft resources'.
func NewResources() *cobra.Command {
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
		Args: cli.Takes(),
	}
	remote.Command(cmd, listResources)
	cmd.AddCommand(newPutResource(), newShowResource(), newResourceKeys(), newRemoveResource())
	return cmd
}

func listResources(ctx context.Context, r *remote.Conn, _ []string) error {
	list, err := r.Resources(ctx)
	switch {
	case err != nil:
		return err
	case r.JSON:
		return r.PrintAnswer()
	case len(list) == 0:
		r.Note("no resources yet: define one with %q", r.Hint("resources", "put", "NAME", "FILE"))
		return nil
	}
	t := &screen.Table{Columns: []screen.Column{{Title: "NAME", Elastic: true}, {Title: "KIND"}, {Title: "SOURCE"}, {Title: "WORKFLOW", Elastic: true},
		{Title: "CALLS"}, {Title: "FAILED"}, {Title: "SENT"}, {Title: "RECEIVED"}, {Title: "TOKENS IN"}, {Title: "TOKENS OUT"}}}
	for i := range list {
		addResource(t, &list[i])
	}
	if err := r.Print(t.Render(r.Screen)); err != nil {
		return err
	}
	for i := range list {
		if list[i].Problem != "" {
			r.Note("%s cannot be used: %s", list[i].Name, list[i].Problem)
		}
	}
	return nil
}

func addResource(t *screen.Table, r *host.ResourceInfo) {
	source := "api"
	if r.File {
		source = "file"
	}
	if len(r.Uses) == 0 {
		t.Add(r.Name, r.Kind, source, "-", "0", "0", "0", "0", "0", "0")
	}
	for _, u := range r.Uses {
		t.Add(r.Name, r.Kind, source, u.Workflow, screen.Grouped(u.Calls), screen.Grouped(u.Failed), screen.Grouped(u.Sent), screen.Grouped(u.Received),
			screen.Grouped(u.InputTokens), screen.Grouped(u.OutputTokens))
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
		Args: cli.Takes("NAME", "FILE"),
	}
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
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
		case r.JSON:
			return r.PrintAnswer()
		case created:
			r.Note("defined resource %s of the kind %s", info.Name, info.Kind)
		default:
			r.Note("replaced resource %s of the kind %s", info.Name, info.Kind)
		}
		return nil
	})
}

// byLines formats a refusal with several problems, one line each.
func byLines(err error) error {
	lines := strings.Split(host.MessageOf(err), "\n")
	for i := range lines {
		lines[i] = remote.Sentence(lines[i])
	}
	return errors.New(strings.Join(lines, "\n"))
}

func readDefinition(file string) ([]byte, error) {
	if file != "-" {
		return cli.ReadBounded(file, limit.MaxResourceDefinition)
	}
	text, err := io.ReadAll(io.LimitReader(os.Stdin, limit.MaxResourceDefinition+1))
	if err == nil && len(text) > limit.MaxResourceDefinition {
		err = fmt.Errorf("the standard input is longer than %d KiB", limit.MaxResourceDefinition>>10)
	}
	return text, err
}

func newShowResource() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "show NAME",
		Short:   "Show a resource's definition, without its secrets",
		Example: `  weft resources show llm`,
		Args:    cli.Takes("NAME"),
	}
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		info, err := r.Resource(ctx, args[0])
		switch {
		case err != nil:
			return err
		case r.JSON:
			return r.PrintAnswer()
		case info.File:
			r.Note("%s is the operator's, from the server's file of resources", info.Name)
			return nil
		}
		var text bytes.Buffer
		if err := json.Indent(&text, info.Definition, "", "  "); err != nil {
			return err
		}
		return r.Print(text.String() + "\n")
	})
}

func newRemoveResource() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "rm NAME",
		Aliases: []string{"delete", "remove"},
		Short:   "Delete a resource that was defined by 'weft resources put'",
		Example: `  weft resources rm llm`,
		Args:    cli.Takes("NAME"),
	}
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		if err := r.DeleteResource(ctx, args[0]); err != nil {
			return err
		}
		return r.Done("deleted resource %s", args[0])
	})
}
