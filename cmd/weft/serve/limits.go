package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
)

// maxLimitFile limits a file of limits, in bytes.
const maxLimitFile = 4 << 20

// limitsOptions are the flags of `weft limits`.
type limitsOptions struct {
	file   string
	tenant string
	plugin string
	check  bool
	json   bool
}

// NewLimits makes the command 'weft limits'.
func NewLimits() *cobra.Command {
	var o limitsOptions
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "Show the limits in force, or check a file of limits",
		Long: `Show the limits that hold for the plugins of a tenant: the built-in limits, or with
--limits the limits of a server that is started with that file. MOST is the greatest
value that a limit can have. FROM is the place in the file that sets the limit.

The file is a JSON object. "defaults" changes limits for all, "plugins" for a plugin
by its name, "tenants" for a tenant, and "plugins" inside a tenant for one of its
plugins. For each limit, the last of these that sets the limit wins:

  {"defaults": {"memory_bytes": "128MiB", "wall_time": "10s"},
   "plugins":  {"crunch": {"fuel": 50000000000}},
   "tenants":  {"default": {"tenant_fuel_per_second": 2000000000,
                            "plugins": {"crunch": {"call_depth": "4MiB"}}}}}

The name of a flow or of a composed workflow can stand where a plugin's name can. Such
a workflow takes the least of each limit that its plugins have or that is set under its
own name.

Sizes are numbers of bytes or texts such as "64MiB"; times are texts such as "30s".

  tenant_fuel_per_second  fuel that all guests of a tenant may burn in a second
  tenant_invocations      guests of a tenant that run at a time; others wait
  waiting_starts          runs of a tenant that may wait for their first core; the
                          server refuses further starts
  retention_age           age at which ended runs are deleted; 0: never
  retention_runs          ended runs that are kept, the newest first; 0: all

The other limits that begin with tenant_ are quotas: what a tenant may hold and use in
all. 'weft usage' shows how much of them is used. A run keeps the limits that were in
force when it started.`,
		Example: `  weft limits
  weft limits --limits limits.json --tenant default --plugin crunch
  weft limits --limits limits.json --check
  weft limits --json | jq .limits.fuel`,
		Args: cli.Takes(),
		RunE: func(cmd *cobra.Command, _ []string) error { return showLimits(cmd, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.file, "limits", "", "`FILE` of limits, as for 'weft serve'")
	f.StringVar(&o.tenant, "tenant", host.DefaultTenant, "`NAME` of the tenant")
	f.StringVar(&o.plugin, "plugin", "", "`NAME` of the plugin or composed workflow (default: any without settings of its own)")
	f.BoolVar(&o.check, "check", false, "only check the file, and report its errors")
	f.BoolVar(&o.json, "json", false, "print JSON; its \"limits\" has the form of a file of limits")
	return cmd
}

func showLimits(cmd *cobra.Command, o limitsOptions) error {
	if o.check && o.file == "" {
		return cli.Usage("--check needs --limits FILE, the file to check")
	}
	limits, err := readLimits(o.file)
	if err != nil {
		return err
	}
	out := cmd.OutOrStdout()
	var text string
	switch {
	case o.check:
		tenants, plugins := limits.Named()
		text = fmt.Sprintf("%s is valid: it has settings for %s and %s\n", o.file,
			screen.Counted(uint64(len(tenants)), "tenant"), screen.Counted(uint64(len(plugins)), "plugin"))
	case o.json:
		if text, err = limitsJSON(limits, o); err != nil {
			return err
		}
	default:
		text = limitsTable(limits.InForce(o.tenant, o.plugin)).Render(screen.Of(out))
	}
	_, err = fmt.Fprint(out, text)
	return err
}

func limitsTable(list []limit.InForce) *screen.Table {
	t := &screen.Table{Columns: []screen.Column{
		{Title: "LIMIT"}, {Title: "VALUE", Right: true}, {Title: "MOST", Right: true}, {Title: "FROM", Elastic: true},
	}}
	for _, in := range list {
		from := in.From
		if from == "" {
			from = "built in"
		}
		t.Add(in.Name, in.Text, in.Most, from)
	}
	return t
}

// limitsJSON keeps the order of the limits.
func limitsJSON(limits *limit.Table, o limitsOptions) (string, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"tenant":%s,"plugin":%s,"limits":{`, screen.Quote(o.tenant), screen.Quote(o.plugin))
	for i, in := range limits.InForce(o.tenant, o.plugin) {
		value, err := json.Marshal(in.Value)
		if err != nil {
			return "", err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%s", screen.Quote(in.Name), value)
	}
	b.WriteString("}}")
	return screen.Indented(b.Bytes()) + "\n", nil
}

// readLimits reads a file of limits; "" means no file.
func readLimits(file string) (*limit.Table, error) {
	if file == "" {
		return nil, nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("--limits: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxLimitFile+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("--limits: %w", err)
	}
	if len(text) > maxLimitFile {
		return nil, fmt.Errorf("--limits %s: the file is longer than %d MiB", file, maxLimitFile>>20)
	}
	limits, err := limit.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("--limits %s: %w", file, err)
	}
	return limits, nil
}
