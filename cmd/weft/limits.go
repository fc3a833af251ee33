package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/host"
)

// maxLimitFile bounds a file of limits, in bytes.
const maxLimitFile = 4 << 20

// limitsOptions are the flags of `weft limits`.
type limitsOptions struct {
	file   string
	tenant string
	plugin string
	check  bool
	json   bool
}

func newLimits() *cobra.Command {
	var o limitsOptions
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "Show the limits in force, or check a file of limits",
		Long: `Show the limits that hold for the plugins of a tenant: those that are built in,
and with --limits those that a server has which was started with that file. MOST is
what a limit can be set to, FROM the place of the file that sets it.

The file is a JSON object. "defaults" changes limits for all, "plugins" for a plugin
by its name, "tenants" for a tenant, and "plugins" inside a tenant for one of its
plugins. The later in this order wins, limit by limit; what is left out is inherited:

  {"defaults": {"memory_bytes": "128MiB", "wall_time": "10s"},
   "plugins":  {"crunch": {"fuel": 50000000000}},
   "tenants":  {"default": {"tenant_fuel_per_second": 2000000000,
                            "plugins": {"crunch": {"call_depth": "4MiB"}}}}}

Sizes are numbers of bytes or texts such as "64MiB", times are texts such as "30s".
tenant_fuel_per_second is what all guests of a tenant may burn in a second, and
tenant_invocations how many of them run at a time; what is more waits. Beyond
waiting_starts runs that wait for their first core, its starts are refused. Runs that ended
longer ago than retention_age, and those beyond the retention_runs newest ones, are
deleted; 0 is none of each. The other limits that begin with tenant_ are what a tenant
may have and use in all: "weft usage" shows how much of them it does. A run keeps the limits that held when it started.`,
		Example: `  weft limits
  weft limits --limits limits.json --tenant default --plugin crunch
  weft limits --limits limits.json --check
  weft limits --json | jq .limits.fuel`,
		Args: takes(),
		RunE: func(cmd *cobra.Command, _ []string) error { return showLimits(cmd, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.file, "limits", "", "`FILE` of limits, as for 'weft serve'")
	f.StringVar(&o.tenant, "tenant", host.DefaultTenant, "`NAME` of the tenant")
	f.StringVar(&o.plugin, "plugin", "", "`NAME` of the plugin (default: any that has no settings)")
	f.BoolVar(&o.check, "check", false, "only say whether the file is right")
	f.BoolVar(&o.json, "json", false, "print JSON; \"limits\" in it is what a file could say")
	return cmd
}

func showLimits(cmd *cobra.Command, o limitsOptions) error {
	if o.check && o.file == "" {
		return usage("--check needs --limits FILE, the file to check")
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
		text = fmt.Sprintf("%s is right: it has settings of %s and %s\n", o.file,
			counted(uint64(len(tenants)), "tenant"), counted(uint64(len(plugins)), "plugin"))
	case o.json:
		if text, err = limitsJSON(limits, o); err != nil {
			return err
		}
	default:
		text = limitsTable(limits.InForce(o.tenant, o.plugin)).render(terminalOf(out))
	}
	_, err = fmt.Fprint(out, text)
	return err
}

func limitsTable(list []host.LimitInForce) *table {
	t := &table{columns: []column{
		{title: "LIMIT"}, {title: "VALUE", right: true}, {title: "MOST", right: true}, {title: "FROM", elastic: true},
	}}
	for _, in := range list {
		from := in.From
		if from == "" {
			from = "built in"
		}
		t.add(in.Name, in.Text, in.Most, from)
	}
	return t
}

// limitsJSON keeps the order of the limits.
func limitsJSON(limits *host.LimitTable, o limitsOptions) (string, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"tenant":%s,"plugin":%s,"limits":{`, jsonName(o.tenant), jsonName(o.plugin))
	for i, in := range limits.InForce(o.tenant, o.plugin) {
		value, err := json.Marshal(in.Value)
		if err != nil {
			return "", err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%s:%s", jsonName(in.Name), value)
	}
	b.WriteString("}}")
	return indented(b.Bytes()) + "\n", nil
}

// jsonName writes a JSON string.
func jsonName(s string) []byte {
	text, _ := json.Marshal(s) // a string always has one
	return text
}

// readLimits reads a file of limits; "" is none.
func readLimits(file string) (*host.LimitTable, error) {
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
	limits, err := host.ParseLimits(text)
	if err != nil {
		return nil, fmt.Errorf("--limits %s: %w", file, err)
	}
	return limits, nil
}
