package main

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// placeholders are the words for values in the flags and arguments of all commands, with
// their meanings.
var placeholders = map[string]string{
	"ADDRESS":   "HOST:PORT to listen on",
	"BYTES":     "a number of bytes",
	"CODE":      "an error code",
	"DIGEST":    "the beginning of a version's digest",
	"DIR":       "a folder",
	"FILE":      "a file",
	"FILE.wasm": "a module",
	"FORMAT":    "one of the formats that the flag lists",
	"HOST:PORT": "an address",
	"ID":        "a handler, run, session or key",
	"JSON":      "a JSON text",
	"KEY":       "a key: of a field, or of a request",
	"LANGUAGE":  "one that steps are written in",
	"LEVEL":     "of log lines",
	"N":         "a number",
	"NAME":      "of a plugin, profile, tenant and the like",
	"PATH":      "into a state, or of a file",
	"PATTERN":   "a regular expression",
	"PREFIX":    "how keys begin",
	"PROFILE":   "of weft login",
	"ROLE":      "of a key",
	"SESSION":   "a session",
	"STATUS":    "of a run",
	"STEP":      "of a workflow",
	"TENANT":    "a tenant",
	"TEXT":      "any text",
	"TIME":      "how long, or since when",
	"TYPE":      "of an event",
	"FROM":      "a data directory or the address of a database",
	"TO":        "the same",
	"URL":       "an address of a server, a service or a page",
	"WHAT":      "one of the choices that the flag lists",
	"WHEN":      "one of the choices that the flag lists",
	"WORKFLOW":  "a workflow",

	"key=PATH":              "a field and a file",
	"STEP:=JSON":            "a step and its configuration",
	"PLUGIN.FUNCTION:=JSON": "a function and its configuration",
	"key=value":             "a field and its value",
	"key:=JSON":             "the same",
	"PATH=VALUE":            "of a state",
	`DIR[="build/plugins"]`: "a folder, and the one that it is without a value",
}

// ambiguous are the flags that mean different things in different commands, each with its
// placeholders.
var ambiguous = map[string][]string{
	"plugin":  {"FILE", "NAME"},
	"version": {"DIGEST", "N"},
	"config":  {"PLUGIN.FUNCTION:=JSON", "STEP:=JSON"},
	"name":    {"NAME", "TEXT"},
}

var inUse = regexp.MustCompile(`[^\s\[\]|]+`)

// A letter means the same flag in every command, a flag has the same letter and the same
// placeholder in every command, and all placeholders are in one list.
func TestFlagsAndPlaceholdersAreAlike(t *testing.T) {
	letterOf, flagOf, kindsOf := map[string]string{}, map[string]string{}, map[string][]string{}
	seen := 0
	walkCommands(newRoot(), func(cmd *cobra.Command) {
		where := cmd.CommandPath()
		for _, word := range inUse.FindAllString(strings.TrimPrefix(cmd.Use, cmd.Name()), -1) {
			word = strings.TrimSuffix(word, "...")
			if word != "" && !strings.HasPrefix(word, "-") && placeholders[word] == "" {
				t.Errorf("%s: the argument %q is not a placeholder of the list", where, word)
			}
		}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" {
				return
			}
			seen++
			if was, known := letterOf[f.Name]; known && was != f.Shorthand {
				t.Errorf("%s: --%s has the letter %q here, and %q elsewhere", where, f.Name, f.Shorthand, was)
			}
			letterOf[f.Name] = f.Shorthand
			if was := flagOf[f.Shorthand]; f.Shorthand != "" && was != "" && was != f.Name {
				t.Errorf("%s: -%s is --%s here, and --%s elsewhere", where, f.Shorthand, f.Name, was)
			}
			flagOf[f.Shorthand] = f.Name
			kind, _ := pflag.UnquoteUsage(f)
			if kind == "" { // a flag without a value
				kindsOf[f.Name] = append(kindsOf[f.Name], "")
				return
			}
			if placeholders[kind] == "" {
				t.Errorf("%s: --%s %s is not a placeholder of the list", where, f.Name, kind)
			}
			kindsOf[f.Name] = append(kindsOf[f.Name], kind)
		})
	})
	for name, kinds := range kindsOf {
		slices.Sort(kinds)
		kinds = slices.Compact(kinds)
		if want := ambiguous[name]; len(kinds) > 1 && !slices.Equal(kinds, want) {
			t.Errorf("--%s stands before %q in different commands", name, kinds)
		}
	}
	if seen < 200 || flagOf["f"] != "follow" {
		t.Errorf("%d flags were seen; -f is --%s", seen, flagOf["f"])
	}
}
