package plugins

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/input"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
)

// composeOptions are the flags of compose.
type composeOptions struct {
	plugins     []string
	timeout     time.Duration
	hasTimeout  bool
	description string
	config      []string
	flow        string
	remove      bool
}

// NewCompose makes the command 'weft compose'.
func NewCompose() *cobra.Command {
	var o composeOptions
	cmd := &cobra.Command{
		Use:   "compose NAME",
		Short: "Make a workflow of several plugins, or change its settings",
		Long: `Make a workflow of the steps of several plugins, in the order of the flags. Upload the
plugins first, with 'weft push'; a part makes no workflow by itself. Without --plugin,
give settings to the workflow that a plugin makes by itself.

The new composition replaces the one of the same name, with its settings. The server
checks it as a whole before anything changes, and lists every problem. New runs use it;
runs in progress finish with the old one. When a plugin gets a new version, workflows
that are composed of it take the new version, unless that would break them.

--config gives a step its configuration: STEP:=JSON, or STEP=@FILE with a JSON object.`,
		Example: `  weft compose hello --plugin greet-part --plugin shout-part
  weft compose hello --plugin greet-part --plugin shout-part --timeout 45s \
      --config greet=@greet.json --config 'shout:={"mark": "?"}'
  weft compose approval --timeout 0        # settings of a plugin's own workflow
  weft compose hello --delete`,
		Args: cli.Takes("NAME"),
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&o.plugins, "plugin", nil, "`NAME` of a plugin whose steps the workflow has (repeatable)")
	flags.DurationVar(&o.timeout, "timeout", 0, "`TIME` that a run may take, such as 45s; 0: no limit (default: what the plugins say)")
	flags.StringVar(&o.description, "description", "", "`TEXT` that describes the workflow")
	flags.StringArrayVar(&o.config, "config", nil, "configuration of a step, `STEP:=JSON` or STEP=@FILE (repeatable)")
	flags.StringVar(&o.flow, "flow", "", "`FILE` of a flow, YAML or JSON: a tree that calls functions of plugins, instead of --plugin")
	flags.BoolVar(&o.remove, "delete", false, "remove the composition; a plugin's own workflow of that name becomes available again")
	return remote.Command(cmd, func(ctx context.Context, r *remote.Conn, args []string) error {
		o.hasTimeout = flags.Changed("timeout")
		if o.remove {
			return decompose(ctx, r, &o, args[0])
		}
		return compose(ctx, r, &o, args[0])
	})
}

func compose(ctx context.Context, r *remote.Conn, o *composeOptions, name string) error {
	c := host.Composition{Plugins: o.plugins, Settings: host.WorkflowSettings{Description: o.description}}
	if o.hasTimeout {
		if o.timeout < 0 {
			return cli.Usage("--timeout %v is negative: use 0 for no limit", o.timeout)
		}
		c.Settings.Timeout = &o.timeout
	}
	var err error
	if c.Settings.Config, err = configOf(ctx, r, o.config); err != nil {
		return err
	}
	if o.flow != "" {
		if c.Flow, err = ReadFlow(o.flow); err != nil {
			return err
		}
	}
	info, changed, err := r.Compose(ctx, name, c)
	if err != nil {
		return Refusal("workflow "+name, err)
	}
	if r.JSON {
		return r.PrintAnswer()
	}
	state := "composed"
	if !changed {
		state = "unchanged"
	}
	return r.Print(state + " " + screen.Printable(info.Name) + "\n" + composition(&info).Render("  ") +
		"run it with: " + r.Hint("run", screen.Printable(info.Name)) + "\n")
}

func decompose(ctx context.Context, r *remote.Conn, o *composeOptions, name string) error {
	if len(o.plugins)+len(o.config) > 0 || o.hasTimeout || o.description != "" || o.flow != "" {
		return cli.Usage("--delete cannot be combined with other settings")
	}
	if err := r.Decompose(ctx, name); err != nil {
		return err
	}
	return r.Done("removed the composition of %s", name)
}

// configOf reads the configurations of steps, of the forms STEP:=JSON and
// STEP=@FILE.
func configOf(ctx context.Context, r *remote.Conn, args []string) (map[string]abi.Raw, error) {
	if len(args) == 0 {
		return nil, nil
	}
	config := map[string]abi.Raw{}
	for _, arg := range args {
		step, value, ok := strings.Cut(arg, "=")
		step, raw := strings.CutSuffix(step, ":")
		file, isFile := strings.CutPrefix(value, "@")
		switch {
		case !ok || step == "" || !raw && !isFile || isFile && file == "":
			return nil, cli.Usage("--config %q is neither STEP:=JSON nor STEP=@FILE", input.Short(arg))
		case config[step] != nil:
			return nil, cli.Usage("--config: step %s is given twice", input.Short(step))
		case !raw:
			text, err := cli.ReadText(ctx, file, r.In)
			if err != nil {
				return nil, fmt.Errorf("--config of step %s: %w", step, err)
			}
			value = text
		}
		b, err := abi.FromJSON([]byte(value))
		if err != nil {
			return nil, cli.Usage("--config %q is not JSON: %v", input.Short(arg), err)
		}
		config[step] = b
	}
	return config, nil
}

// composition shows the parts of a composed workflow.
func composition(info *host.WorkflowInfo) *screen.Sheet {
	s := &screen.Sheet{}
	s.Add("plugins", strings.Join(info.Plugins, ", "))
	s.Add("description", info.Settings.Description)
	if d := info.Settings.Timeout; d != nil {
		text := d.String()
		if *d == 0 {
			text = "none"
		}
		s.Add("timeout", text)
	}
	for _, step := range slices.Sorted(maps.Keys(info.Settings.Config)) {
		if text, err := abi.ToJSON(info.Settings.Config[step]); err == nil {
			s.Add("config", step+" "+screen.Cut(string(text), MostConfig))
		}
	}
	s.Add("digest", screen.Digest(info.Digest))
	return s
}

// MostConfig is how much of a configuration is shown, in characters.
const MostConfig = 200

// Refusal shows every problem that the server reports, one per line.
func Refusal(what string, err error) error {
	var e *host.Error
	if !errors.As(err, &e) || len(e.Problems) == 0 {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s is refused for %s, and nothing has changed:", what, screen.Counted(uint64(len(e.Problems)), "problem"))
	for _, p := range e.Problems {
		b.WriteString("\n  - ")
		if p.Step != "" {
			fmt.Fprintf(&b, "step %s: ", screen.Printable(p.Step))
		}
		if p.Event != "" {
			fmt.Fprintf(&b, "event %s: ", screen.Printable(p.Event))
		}
		b.WriteString(screen.Printable(p.Message))
	}
	return errors.New(b.String())
}
