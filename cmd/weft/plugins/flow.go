package plugins

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host/limit"
)

// NewFlow makes the command 'weft flow'.
func NewFlow() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "flow",
		Short: "Make workflows from flows: trees that call functions of plugins",
		Args:  cli.Takes(),
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newFlowPut(), newFlowGet())
	return cmd
}

func newFlowPut() *cobra.Command {
	var o composeOptions
	cmd := &cobra.Command{
		Use:   "put NAME FILE",
		Short: "Make a workflow of a flow",
		Long: `Make a workflow of a flow: a document, YAML or JSON, that says which functions of
plugins are called, and when. Upload the plugins first. The server checks the flow as a
whole before anything changes, and lists every problem with its node.

The new flow replaces the one of the same name, with its settings. New runs use it; runs
in progress finish with the old one.`,
		Example: `  weft flow put shopping-list plugins/shopping-list/flow.json
  weft flow put review review.yaml --timeout 0`,
		Args: cli.Takes("NAME", "FILE"),
	}
	flags := cmd.Flags()
	flags.DurationVar(&o.timeout, "timeout", 0, "`TIME` that a run may take, such as 45s; 0: no limit")
	flags.StringVar(&o.description, "description", "", "`TEXT` that describes the workflow (default: the flow's own)")
	flags.StringArrayVar(&o.config, "config", nil, "configuration of a function, `PLUGIN.FUNCTION:=JSON` or PLUGIN.FUNCTION=@FILE (repeatable)")
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		o.hasTimeout, o.flow = flags.Changed("timeout"), args[1]
		return compose(ctx, r, &o, args[0])
	})
}

func newFlowGet() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "get NAME",
		Short:   "Print the flow of a workflow, as JSON",
		Example: "  weft flow get shopping-list > flow.json",
		Args:    cli.Takes("NAME"),
	}
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		info, err := r.About(ctx, args[0])
		if err != nil {
			return r.UnknownWorkflow(ctx, err, args[0])
		}
		if info.Flow == nil {
			return fmt.Errorf("workflow %s is not a flow", screen.Printable(args[0]))
		}
		text, err := abi.ToJSON(info.Flow)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := json.Indent(&b, text, "", "  "); err != nil {
			return err
		}
		return r.Print(b.String() + "\n")
	})
}

// ReadFlow reads the document of a flow. JSON is also YAML, but only the JSON decoder
// keeps numbers exact, so JSON is tried first.
func ReadFlow(file string) (abi.Raw, error) {
	text, err := cli.ReadBounded(file, limit.MaxFlowBytes)
	if err != nil {
		return nil, err
	}
	if first := bytes.TrimSpace(text); len(first) > 0 && first[0] == '{' {
		raw, err := abi.FromJSON(text)
		if err != nil {
			return nil, fmt.Errorf("%s is not JSON: %w", file, shortened(err))
		}
		return raw, nil
	}
	var v any
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&v); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s is empty: a flow is an object with the field \"steps\"", file)
	} else if err != nil {
		return nil, fmt.Errorf("%s is not YAML: %w", file, err)
	}
	if err := d.Decode(new(any)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s has more than one document", file)
	}
	raw, err := abi.EncodeValue(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w (keys must be texts, and dates and bytes must be quoted)", file, shortened(err))
	}
	return raw, nil
}

// mostFault limits the text of an error in a document, because a path may be very long.
const mostFault = 200

// shortened shortens an error to about two lines. It keeps the beginning and the end.
func shortened(err error) error {
	text := err.Error()
	if len(text) <= mostFault {
		return err
	}
	return errors.New(strings.ToValidUTF8(text[:mostFault/2]+"..."+text[len(text)-mostFault/2:], ""))
}
