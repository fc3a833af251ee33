package spectest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/weftrun/weft/host/sandbox/rewrite"
)

// command is one command of a specification script, as wast2json writes it.
type command struct {
	Type       string  `json:"type"`
	Line       int     `json:"line"`
	Name       string  `json:"name"`        // of a module, within the script
	As         string  `json:"as"`          // register: the name to import by
	Filename   string  `json:"filename"`    // of the module
	ModuleType string  `json:"module_type"` // binary or text
	Text       string  `json:"text"`        // what is said to be wrong
	Action     action  `json:"action"`
	Expected   []value `json:"expected"`
}

// action is a call or the reading of a global.
type action struct {
	Type   string  `json:"type"` // invoke or get
	Module string  `json:"module"`
	Field  string  `json:"field"`
	Args   []value `json:"args"`
}

// trapWords has the engine's words for each reason to trap in a script's. Those
// that begin with "uninitialized" name an element besides.
var trapWords = map[string]string{
	"call stack exhausted":          stackOverflow,
	"indirect call type mismatch":   "indirect call type mismatch",
	"indirect call":                 "indirect call type mismatch",
	"integer divide by zero":        "integer divide by zero",
	"integer overflow":              "integer overflow",
	"invalid conversion to integer": "invalid conversion to integer",
	"out of bounds memory access":   "out of bounds memory access",
	"out of bounds table access":    "invalid table access",
	"undefined":                     "invalid table access",
	"undefined element":             "invalid table access",
	"uninitialized":                 "invalid table access",
	"uninitialized element":         "invalid table access",
	"uninitialized element 2":       "invalid table access",
	"uninitialized element 7":       "invalid table access",
	"unreachable":                   "unreachable",
}

// player plays one script in all lanes, command by command.
type player struct {
	*testing.T
	folder   string
	name     string
	features api.CoreFeatures // of what the script says is invalid
	lanes    []*playing
	tally    *tally
	line     int
}

// playing is a lane's part of a player.
type playing struct {
	*machine
	current api.Module
	named   map[string]api.Module
}

// play runs a script and adds to the tally.
func play(t *testing.T, file string, features api.CoreFeatures, host []byte, total *tally) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var script struct{ Commands []command }
	if err := json.Unmarshal(text, &script); err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSuffix(filepath.Base(file), ".json")
	p := &player{T: t, folder: filepath.Dir(file), name: name, features: features, tally: total}
	for _, l := range lanes {
		m := newMachine(t, l, 65_536)
		defer m.close(t)
		if _, err := m.runtime.InstantiateWithConfig(t.Context(), host, wazero.NewModuleConfig()); err != nil {
			t.Fatalf("the scripts' host module: %v", err)
		}
		p.lanes = append(p.lanes, &playing{machine: m, named: map[string]api.Module{}})
	}
	for i, c := range script.Commands {
		p.line = c.Line
		as := ""
		if next := i + 1; next < len(script.Commands) && script.Commands[next].Type == "register" {
			as = script.Commands[next].As
		}
		p.command(c, as)
	}
	p.end()
}

func (p *player) command(c command, as string) {
	switch c.Type {
	case "module":
		p.module(c, as)
	case "register": // done with the module before it, as an instance's name is for life
	case "action", "assert_return", "assert_trap", "assert_exhaustion":
		p.action(c)
	case "assert_unlinkable", "assert_uninstantiable":
		p.refused(c)
	case "assert_invalid", "assert_malformed":
		p.invalid(c)
	default:
		p.failf("unknown command %q", c.Type)
	}
}

func (p *player) failf(format string, args ...any) {
	p.Helper()
	p.Errorf("line %d: %s", p.line, fmt.Sprintf(format, args...))
}

func (p *player) read(c command) []byte {
	wasm, err := os.ReadFile(filepath.Join(p.folder, c.Filename))
	if err != nil {
		p.Fatalf("line %d: %v", p.line, err)
	}
	return wasm
}

// module instantiates in every lane. Without it, nothing that follows means anything.
func (p *player) module(c command, as string) {
	wasm := p.read(c)
	for _, l := range p.lanes {
		mod, err := l.load(p.Context(), wasm, as)
		if err != nil {
			p.Fatalf("line %d: %s: %s: %v", p.line, l.lane.name, c.Filename, err)
		}
		l.current = mod
		if c.Name != "" {
			l.named[c.Name] = mod
		}
	}
	p.tally.count(&p.tally.modules, c.Type)
}

// action acts in every lane, and holds each against the script and the first lane.
func (p *player) action(c command) {
	var first outcome
	changed := false
	for i, l := range p.lanes {
		got, err := l.act(p.T, c.Action)
		if err == nil {
			err = c.check(got)
		}
		switch {
		case i == 0:
			first = got
			changed = err != nil && p.changed()
		case got.trap != first.trap, changed && !slices.Equal(got.results, first.results):
			err = fmt.Errorf("%v, but the original gives %v", got, first)
		case changed:
			err = nil
		}
		if err != nil && (!changed || i != 0) {
			p.failf("%s: %s(%v): %v", l.lane.name, c.Action.Field, c.Action.Args, err)
		}
	}
	p.tally.count(&p.tally.assertions, c.Type)
}

// changed tells whether the original may give something else than the script
// wants, which is 1.0's there, and the engine is asked for 2.0's: a module whose
// segments do not all fit leaves those before in memories and tables. The lanes
// are still held against each other.
func (p *player) changed() bool {
	if p.features != api.CoreFeaturesV1 || !slices.Contains([]string{"elem", "linking"}, p.name) {
		return false
	}
	p.tally.count(&p.tally.skipped, "held against the original alone, as 2.0 has other rules for segments that do not fit")
	return true
}

func (l *playing) act(t *testing.T, a action) (outcome, error) {
	mod := l.current
	if a.Module != "" {
		mod = l.named[a.Module]
	}
	if a.Type == "get" {
		global := mod.ExportedGlobal(a.Field)
		if global == nil {
			return outcome{}, fmt.Errorf("no global %q", a.Field)
		}
		return outcome{results: []uint64{global.Get()}}, nil
	}
	var args []uint64
	for _, v := range a.Args {
		bits, err := v.args()
		if err != nil {
			return outcome{}, err
		}
		args = append(args, bits...)
	}
	f := mod.ExportedFunction(a.Field)
	if f == nil {
		return outcome{}, fmt.Errorf("no function %q", a.Field)
	}
	return l.call(t.Context(), f, args), nil
}

// check holds an outcome against what the script expects.
func (c command) check(got outcome) error {
	want := ""
	if c.Type == "assert_trap" || c.Type == "assert_exhaustion" {
		words, known := trapWords[c.Text]
		if !known {
			return fmt.Errorf("unknown reason %q", c.Text)
		}
		want = words
	}
	if got.trap != want {
		return fmt.Errorf("trap %q where %q is expected", got.trap, want)
	}
	if c.Type != "assert_return" {
		return nil
	}
	return match(got.results, c.Expected)
}

// refused instantiates what cannot be: every lane must say so in the words that
// the original's gives. A module that the engine takes all the same must be
// taken by all.
func (p *player) refused(c command) {
	wasm := p.read(c)
	first := ""
	for i, l := range p.lanes {
		_, err := l.load(p.Context(), wasm, "")
		got := ""
		if err != nil {
			got = reason(err)
			l.unwind()
		}
		if i == 0 {
			first = got
		} else if got != first {
			p.failf("%s: %s: %q, but the original gives %q", l.lane.name, c.Filename, got, first)
		}
	}
	// The engine leaves table segments out that do not fit, where it should trap.
	if first == "" && c.Text != "out of bounds table access" && !p.changed() {
		p.failf("%s: instantiated, but %s", c.Filename, c.Text)
	}
	p.tally.count(&p.tally.assertions, c.Type)
}

// invalid shows that the original is refused, and that the rewriter survives it.
func (p *player) invalid(c command) {
	if c.ModuleType == "text" {
		p.tally.count(&p.tally.skipped, c.Type+" of WebAssembly text, which no host reads")
		return
	}
	wasm := p.read(c)
	config := wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(p.features)
	r := wazero.NewRuntimeWithConfig(p.Context(), config)
	if _, err := r.InstantiateWithConfig(p.Context(), wasm, wazero.NewModuleConfig()); err == nil {
		p.failf("%s: the engine takes what is %s: %s", c.Filename, c.Type, c.Text)
	}
	if err := r.Close(p.Context()); err != nil {
		p.failf("close: %v", err)
	}
	_, _ = rewrite.Rewrite(wasm, rewrite.Options{Extract: true}) // any answer, but no panic
	p.tally.count(&p.tally.assertions, c.Type)
}

// end compares what the script has left in memory, and what the meters saw.
func (p *player) end() {
	for _, l := range p.lanes {
		if l.meter.problem != nil {
			p.Errorf("%s: %v", l.lane.name, l.meter.problem)
		}
		p.tally.add(l.machine)
	}
	original := p.lanes[0]
	for _, l := range p.lanes[1:] {
		if len(l.instances) != len(original.instances) {
			p.Errorf("%s: %d instances, %d of originals", l.lane.name, len(l.instances), len(original.instances))
			continue
		}
		for i, mod := range l.instances {
			if err := sameMemory(original.instances[i], mod); err != nil {
				p.Errorf("%s: at the end, instance %d: %v", l.lane.name, i, err)
			}
		}
	}
}
