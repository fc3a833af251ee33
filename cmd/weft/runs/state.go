package runs

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/input"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// NewState makes the command 'weft state'.
func NewState() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "state",
		Short: "Read and edit the state of a session",
		Long: `Read and edit the state of a session, also while runs are active in it. Steps see an
edit at once. The state must satisfy the schemas of all workflows that have run in the
session: an edit that breaks one is refused, and changes nothing.`,
		Example: `  weft state get chat-42
  weft state set chat-42 user.name=Ada user.age:=36`,
		Args: knownState,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newGetState(), newSetState())
	return cmd
}

// knownState is the argument check: a remaining argument is an unknown command.
func knownState(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return cli.Usage("unknown command %q: %s", args[0], cli.Meant(args[0], []string{"get", "set"}, "it is get or set"))
	}
	return nil
}

func newGetState() *cobra.Command {
	var at uint64
	cmd := &cobra.Command{
		Use:   "get SESSION [PATH]",
		Short: "Print the state of a session, or a value in it, as JSON",
		Long: `Print the state of a session, or the value at a path in it, as JSON. A path consists of
keys of maps and positions in lists, with dots between them. Negative positions count
from the end of a list: messages.-1.text. A dot that belongs to a key is written \. in a
path.

With --at, the argument is a run or a handler, and the state is the one that its session
had just after that entry of its journal ('weft journal' shows the entries).`,
		Example: `  weft state get chat-42
  weft state get chat-42 messages.-1.text
  weft state get 7f3k2m9x4q1z           # a handler's own session has its name
  weft state get 7f3k2m9x4q1z --at 12`,
		Args: cli.Takes("SESSION", "[PATH]"),
	}
	cmd.Flags().Uint64Var(&at, "at", 0, "as it was just after the entry at position `N` of a run's journal")
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		path := ""
		if len(args) == 2 {
			path = args[1]
		}
		if cmd.Flags().Changed("at") {
			return printStateAt(ctx, r, args[0], at, path)
		}
		v, err := r.State(ctx, args[0], path)
		if host.CodeOf(err) == host.CodeNotFound {
			if _, none := r.Session(ctx, args[0]); host.CodeOf(none) == host.CodeNotFound {
				return unknownSession(r, none, args[0])
			}
		}
		if err != nil {
			return err
		}
		return r.PrintJSON(v.JSON)
	})
}

// printStateAt prints the state of a run's session after an entry.
func printStateAt(ctx context.Context, r *remote.Conn, id string, at uint64, path string) error {
	v, err := r.StateAt(ctx, id, at, path)
	if host.CodeOf(err) == host.CodeNotFound {
		if _, none := r.Get(ctx, id); host.CodeOf(none) == host.CodeNotFound {
			return r.UnknownRun(none, id)
		}
	}
	if err != nil {
		return err
	}
	return r.PrintJSON(v.JSON)
}

// setOptions are the flags of `weft state set`.
type setOptions struct {
	unset   []string
	patch   string
	replace string
	make    bool
	key     string
}

func newSetState() *cobra.Command {
	var o setOptions
	cmd := &cobra.Command{
		Use:   "set SESSION [PATH=VALUE...]",
		Short: "Edit the state of a session, and print it",
		Long: `Edit the state of a session, all or nothing, and print the new state. PATH=VALUE sets a
text, PATH:=JSON any value; missing maps on the path are made. --unset deletes the value
at a path. An edit can also be a file: a merge patch (RFC 7396; null deletes) with
--patch, or the whole state with --replace. - is the standard input.`,
		Example: `  weft state set chat-42 user.name=Ada user.age:=36 --unset user.token
  weft state set chat-42 topic=boats --make       # a session that has not run yet
  echo '{"user": {"age": null}}' | weft state set chat-42 --patch -
  weft state set chat-42 --replace state.json`,
		Args: cli.Takes("SESSION", "PATH=VALUE..."),
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.unset, "unset", nil, "delete the value at this `PATH` (repeatable)")
	f.StringVar(&o.patch, "patch", "", "merge the JSON object in this `FILE` into the state")
	f.StringVar(&o.replace, "replace", "", "replace the state by the JSON object in this `FILE`")
	f.BoolVar(&o.make, "make", false, "make the session if it does not exist")
	f.StringVar(&o.key, "key", "", "make the edit only once, even if it is sent again with this `KEY` within a day")
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		return setState(ctx, r, &o, args[0], args[1:])
	})
}

func setState(ctx context.Context, r *remote.Conn, o *setOptions, session string, args []string) error {
	edits, err := o.edits(args)
	if err != nil {
		return err
	}
	ways := 0
	for _, way := range []bool{len(edits) > 0, o.patch != "", o.replace != ""} {
		if way {
			ways++
		}
	}
	if ways != 1 {
		return cli.Usage("say what to set: PATH=VALUE... and --unset PATH, or --patch FILE, or --replace FILE")
	}
	if o.replace != "" {
		return replaceState(ctx, r, o, session)
	}
	if o.make {
		if _, _, err := r.PutSession(ctx, session, nil, client.EditOptions{}); err != nil {
			return err
		}
	}
	var v client.StateValue
	if o.patch != "" {
		var text json.RawMessage
		if text, err = readJSON(r, ctx, o.patch); err == nil {
			v, err = r.PatchState(ctx, session, text, client.EditOptions{Key: o.key})
		}
	} else {
		v, err = r.EditState(ctx, session, edits, client.EditOptions{Key: o.key})
	}
	if err != nil {
		return unknownSession(r, err, session)
	}
	return r.PrintJSON(v.JSON)
}

// edits returns the edits of the arguments and --unset.
func (o *setOptions) edits(args []string) ([]abi.Edit, error) {
	fields, err := input.Parse(args)
	if err != nil {
		return nil, err
	}
	var edits []abi.Edit
	for _, f := range fields {
		text, err := f.JSON(nil)
		if err != nil {
			return nil, err
		}
		value, err := abi.FromJSON(text)
		if err != nil {
			return nil, cli.Usage("%s: %v", input.Short(f.Where), err)
		}
		edits = append(edits, abi.Edit{Op: abi.OpSet, Path: f.Key, Value: value})
	}
	for _, path := range o.unset {
		edits = append(edits, abi.Edit{Op: abi.OpDelete, Path: path})
	}
	return edits, nil
}

// readJSON reads a JSON object from a file, or the standard input (-).
func readJSON(r *remote.Conn, ctx context.Context, path string) (json.RawMessage, error) {
	text, err := cli.ReadText(ctx, path, r.In)
	if err != nil {
		return nil, err
	}
	if !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("%s is not JSON", path)
	}
	return json.RawMessage(text), nil
}

func replaceState(ctx context.Context, r *remote.Conn, o *setOptions, session string) error {
	if o.key != "" {
		return cli.Usage("--key cannot be combined with --replace, which can be repeated anyway")
	}
	text, err := readJSON(r, ctx, o.replace)
	if err != nil {
		return err
	}
	var existing client.EditOptions
	if !o.make {
		existing.Tag = host.AnyTag
	}
	if _, _, err := r.PutSession(ctx, session, text, existing); err != nil {
		return remote.Reworded(err, host.CodePreconditionFailed, "no session %q at %s: --make makes one", session, r.Address)
	}
	v, err := r.State(ctx, session, "")
	if err != nil {
		return unknownSession(r, err, session)
	}
	return r.PrintJSON(v.JSON)
}
