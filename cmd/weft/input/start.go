package input

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/remote"
)

// Start reads the start event from the command line.
func Start(ctx context.Context, r *remote.Conn, o Sources, workflow string, args []string) (json.RawMessage, error) {
	fields, err := Parse(args)
	if err != nil {
		return nil, err
	}
	texts, err := FileFields(ctx, o.Files, o.Stdin, r.In)
	if err != nil {
		return nil, err
	}
	fields = append(fields, texts...)
	if len(fields) == 0 {
		return nil, nil
	}
	text, _, err := r.Schema(ctx, workflow)
	if err != nil {
		return nil, r.UnknownWorkflow(ctx, err, workflow)
	}
	s, err := ReadSchema(text)
	if err != nil {
		return nil, err
	}
	if unknown := Strays(fields, s); len(unknown) > 0 {
		return nil, cli.Usage("%s", strings.Join(unknown, "; "))
	}
	return Event(fields, s)
}
