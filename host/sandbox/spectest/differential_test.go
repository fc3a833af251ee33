package spectest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/weftrun/weft/host/sandbox/rewrite"
	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

const (
	// memoryPages bounds the memory of random modules, in all lanes alike: 4 MiB.
	memoryPages = 64
	// rounds is how often each export of a random module is called.
	rounds = 3
	// patience is what a generated module's countdown is set to before each call.
	patience = 300
)

// differ runs a random module in all lanes, and in one lane twice, and reports
// where they differ. The error is that of an engine or a rewriter that refuses
// the module, which is valid.
func differ(t testing.TB, wasm []byte, seed uint64, total *tally) error {
	var runs []*runOf
	for _, l := range append(slices.Clone(lanes), lanes[1]) {
		r := &runOf{machine: newMachine(t, l, memoryPages), hosts: &hosts{}}
		defer r.close(t)
		if err := r.begin(t.Context(), wasm); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		runs = append(runs, r)
	}
	parts, err := wasmbin.Parse(wasm)
	if err != nil {
		return err
	}
	d := &difference{TB: t, choices: randomChoices(seed, 0, 1<<12), runs: runs, tally: total, parts: parts}
	d.all()
	for _, r := range runs {
		if err := r.meter.problem; err != nil {
			d.Errorf("%s: %v", r.lane.name, err)
		}
		total.add(r.machine)
	}
	return nil
}

// runOf is one lane's run of a module.
type runOf struct {
	*machine
	instance api.Module
	hosts    *hosts
	trapped  string // why there is no instance
	// empties says that active data segments were taken out of a module that may
	// read them still, by memory.init. They must be empty then, but the engine
	// leaves those in that it initializes memory with.
	empties bool
	last    outcome
	units   int64 // that the last call took
}

// begin makes an instance, unless the module traps at its start. The error is
// the engine's on the original, or errRewriter.
func (r *runOf) begin(ctx context.Context, wasm []byte) error {
	if err := r.hosts.instantiate(ctx, r.runtime); err != nil {
		return err
	}
	p, err := r.prepare(ctx, wasm, false)
	if err != nil {
		return err
	}
	if r.lane.extract && len(p.result.Segments) > 0 {
		parts, err := wasmbin.Parse(p.result.Wasm)
		if err != nil {
			return fmt.Errorf("%w: its own module: %w", errRewriter, err)
		}
		r.empties = parts.Data > 0
	}
	r.instance, err = r.instantiate(ctx, p, "guest")
	if errors.Is(err, errRewriter) {
		return err
	}
	if err != nil {
		r.trapped = reason(err)
	}
	return nil
}

// hosts are the functions that random modules may import. What they answer, and
// whether they trap, follows from what they were asked so far.
type hosts struct{ asked uint64 }

func (h *hosts) instantiate(ctx context.Context, r wazero.Runtime) error {
	env := r.NewHostModuleBuilder("env")
	for n, s := range hostFunctions {
		f := api.GoModuleFunc(func(_ context.Context, _ api.Module, stack []uint64) {
			h.answer(n, s, stack)
		})
		env.NewFunctionBuilder().
			WithGoModuleFunction(f, []byte(s.params), []byte(s.results)).
			Export(fmt.Sprintf("f%d", n))
	}
	_, err := env.Instantiate(ctx)
	return err
}

var errHost = errors.New("the host says no")

func (h *hosts) answer(n int, s signature, stack []uint64) {
	digest := fnv.New64a()
	_, _ = fmt.Fprint(digest, h.asked, n)
	for at, of := range []byte(s.params) {
		_, _ = fmt.Fprint(digest, canonicalBits(of, stack[at]))
	}
	h.asked = digest.Sum64()
	if h.asked%64 == 0 {
		panic(errHost)
	}
	for at, of := range []byte(s.results) {
		switch of {
		case tF32:
			stack[at] = uint64(math.Float32bits(float32(int32(h.asked))))
		case tF64:
			stack[at] = math.Float64bits(float64(int32(h.asked)))
		case tI32:
			stack[at] = h.asked & math.MaxUint32
		default:
			stack[at] = h.asked
		}
	}
}

// canonicalBits leaves out what a value's type does not have.
func canonicalBits(of byte, bits uint64) uint64 {
	switch of {
	case tI32, tF32:
		return bits & math.MaxUint32
	case tFuncref: // an address of the engine's
		return min(bits, 1)
	}
	return bits
}

// difference holds the runs of one module against each other: what is rewritten
// against the original on the same engine, compiler or interpreter, and against
// what else was rewritten.
type difference struct {
	testing.TB
	*choices
	runs  []*runOf
	parts *wasmbin.Module // of the original
	tally *tally
}

// original gives the run that r is held against: itself, for an original.
func (d *difference) original(r *runOf) *runOf {
	return d.runs[slices.IndexFunc(d.runs, func(o *runOf) bool {
		return !o.lane.rewritten && o.lane.interpreter == r.lane.interpreter
	})]
}

// disagree counts a module that ends because the engine's compiler and its
// interpreter have parted over the original. It always gives false.
func (d *difference) disagree() bool {
	d.tally.count(&d.tally.skipped, "rest of a module over which the engine's compiler and interpreter disagree")
	return false
}

// all compares the start, every exported function's calls, and what is left.
func (d *difference) all() {
	d.tally.count(&d.tally.modules, "compared")
	for _, r := range d.runs {
		if o := d.original(r); r.trapped != o.trapped {
			d.differs("the start", r, outcome{trap: r.trapped}, outcome{trap: o.trapped})
			return
		}
	}
	for _, r := range d.runs {
		if r.trapped != d.runs[0].trapped {
			d.disagree()
			return
		}
	}
	if trap := d.runs[0].trapped; trap != "" {
		d.tally.count(&d.tally.assertions, "start: "+trap)
		return
	}
	if !d.state("the start") {
		return
	}
	for range rounds {
		for _, e := range d.parts.Exports {
			if e.Kind == kFunc && !d.call(e) {
				return
			}
		}
	}
	d.tables()
}

// call calls one function in all runs; it gives false when they have parted.
func (d *difference) call(e wasmbin.Export) bool {
	s, _ := d.parts.Signature(e.Index)
	args := d.args(s.Params)
	what := fmt.Sprintf("%q%#x", e.Name, args)
	var same []int64 // fuel of those that are rewritten
	for _, r := range d.runs {
		r.last, r.units = r.metered(d.Context(), e.Name, args)
		if r.lane.rewritten {
			same = append(same, r.units)
		}
	}
	for _, r := range d.runs {
		if o := d.original(r); !sameOutcome(s.Results, r.last, o.last) {
			d.differs(what, r, r.last, o.last)
			return false
		}
		if depth := r.instance.ExportedGlobal(rewrite.ExportDepth); depth != nil && depth.Get() != rewrite.DefaultDepth {
			d.Errorf("%s: %s: %d bytes of frames left", r.lane.name, what, depth.Get())
			return false
		}
	}
	for _, r := range d.runs {
		if !sameOutcome(s.Results, r.last, d.runs[0].last) {
			return d.disagree()
		}
	}
	if !d.state(what) {
		return false
	}
	if slices.Min(same) != slices.Max(same) {
		d.Errorf("%s: %d units of fuel", what, same)
		return false
	}
	kind := "returned"
	if trap := d.runs[0].last.trap; trap != "" {
		kind = trap
	}
	d.tally.count(&d.tally.assertions, kind)
	d.tally.spent(same[0])
	return true
}

// metered calls a function, and tells how many units of fuel that took.
func (r *runOf) metered(ctx context.Context, function string, args []uint64) (outcome, int64) {
	if count, ok := r.instance.ExportedGlobal(countdownName).(api.MutableGlobal); ok {
		count.Set(patience)
	}
	before := r.meter.fuel(r.instance)
	got := r.call(ctx, r.instance.ExportedFunction(function), args)
	return got, r.meter.fuel(r.instance) - before
}

// differs reports a difference, unless it is one of the two that may be.
func (d *difference) differs(what string, r *runOf, got, want outcome) {
	switch {
	case got.trap == stackOverflow && r.meter.overflow > 0:
		d.tally.count(&d.tally.skipped, "rest of a module whose frames fit the engine, not the limit")
	case got.trap == outOfBounds && r.empties:
		d.tally.count(&d.tally.skipped, "rest of a module that reads an active data segment, which the engine forgets to empty")
	default:
		d.Errorf("%s: %s: %v, but the original gives %v", r.lane.name, what, got, want)
	}
}

// args makes arguments.
func (d *difference) args(types string) []uint64 {
	var args []uint64
	for _, of := range []byte(types) {
		switch of {
		case tI32:
			args = append(args, d.integer()&math.MaxUint32)
		case tF32:
			bits := math.Float32bits(float32(floatOf(one(d.choices, floats))))
			args = append(args, uint64(bits))
		case tF64:
			args = append(args, one(d.choices, floats))
		case tV128:
			args = append(args, d.integer(), one(d.choices, floats))
		case tFuncref:
			args = append(args, 0)
		default:
			args = append(args, d.integer())
		}
	}
	return args
}

func sameOutcome(results string, a, b outcome) bool {
	if a.trap != b.trap {
		return false
	}
	if a.trap != "" {
		return true
	}
	at := 0
	for _, of := range []byte(results) {
		if canonicalBits(of, a.results[at]) != canonicalBits(of, b.results[at]) {
			return false
		}
		at++
		if of == tV128 {
			if a.results[at] != b.results[at] {
				return false
			}
			at++
		}
	}
	return true
}

// state compares memories and exported globals, and what the host was asked.
// It gives false when they have parted.
func (d *difference) state(after string) bool {
	for _, r := range d.runs {
		if err := d.sameState(d.original(r), r); err != nil {
			d.Errorf("%s: after %s: %v", r.lane.name, after, err)
			return false
		}
	}
	for _, r := range d.runs {
		if d.sameState(d.runs[0], r) != nil {
			return d.disagree()
		}
	}
	return true
}

// sameState says what tells b from a.
func (d *difference) sameState(a, b *runOf) error {
	if a.hosts.asked != b.hosts.asked {
		return errors.New("the host was not asked the same")
	}
	for _, e := range d.parts.Exports {
		if e.Kind != kGlobal {
			continue
		}
		x, y := a.instance.ExportedGlobal(e.Name), b.instance.ExportedGlobal(e.Name)
		if want, got := canonicalBits(x.Type(), x.Get()), canonicalBits(x.Type(), y.Get()); got != want {
			return fmt.Errorf("global %q is %#x, not %#x", e.Name, got, want)
		}
	}
	return sameMemory(a.instance, b.instance)
}

// tables compares sizes of tables and which of their entries are null.
func (d *difference) tables() {
	for _, e := range d.parts.Exports {
		if e.Kind != kTable {
			continue
		}
		var want []bool
		for n, r := range d.runs {
			got, err := r.entries(d.Context(), e.Name, d.parts.Tables[e.Index].Type)
			switch {
			case err != nil:
				d.Errorf("%s: probe of table %q: %v", r.lane.name, e.Name, err)
				return
			case n == 0:
				want = got
			case !slices.Equal(got, want):
				d.Errorf("%s: at the end, table %q is %v, but the original's %v", r.lane.name, e.Name, got, want)
			}
		}
	}
}

// entries tells of each entry of a table whether it is not null. The engine has
// no interface to tables, so that a module made for it has to look.
func (r *runOf) entries(ctx context.Context, name string, of byte) ([]bool, error) {
	probe, err := r.runtime.InstantiateWithConfig(ctx, tableProbe(name, of), wazero.NewModuleConfig().WithName(""))
	if err != nil {
		return nil, err
	}
	size, err := probe.ExportedFunction("size").Call(ctx)
	if err != nil {
		return nil, err
	}
	entries := make([]bool, size[0])
	null := probe.ExportedFunction("null")
	for n := range entries {
		is, err := null.Call(ctx, uint64(n))
		if err != nil {
			return nil, err
		}
		entries[n] = is[0] == 0
	}
	return entries, probe.Close(ctx)
}

// tableProbe is a module that looks at a table of "guest".
func tableProbe(name string, of byte) []byte {
	var types, imports, funcs, exports, bodies vector
	types.item().signature("", I32)
	types.item().signature(I32, I32)
	c := imports.item()
	c.name("guest")
	c.name(name)
	c.bytes(kTable, of)
	c.limits(0, -1)
	for n, function := range []struct {
		name string
		code []byte
	}{
		{"size", []byte{0, opBulk, 16, 0, opEnd}},
		{"null", []byte{0, opLocalGet, 0, opTableGet, 0, opRefIsNull, opEnd}},
	} {
		funcs.item().u32(uint32(n))
		exports.export(function.name, kFunc, uint32(n))
		bodies.item().name(string(function.code))
	}
	wasm := header()
	wasm.section(1, types)
	wasm.section(2, imports)
	wasm.section(3, funcs)
	wasm.section(7, exports)
	wasm.section(10, bodies)
	return wasm
}
