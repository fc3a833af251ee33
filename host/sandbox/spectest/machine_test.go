package spectest

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/weftrun/weft/host/sandbox/rewrite"
)

// lane is a way to run a module. All lanes must give what the originals give.
type lane struct {
	name        string
	interpreter bool
	rewritten   bool
	extract     bool
}

var lanes = []lane{
	{name: "original"},
	{name: "rewritten", rewritten: true},
	{name: "extracted", rewritten: true, extract: true},
	{name: "interpreted original", interpreter: true},
	{name: "interpreted", rewritten: true, interpreter: true},
}

// machine is a runtime that runs modules in one lane. It belongs to one goroutine.
type machine struct {
	lane    lane
	runtime wazero.Runtime
	meter   *meter
	// instances in the order of their making, those that failed left out.
	instances []api.Module
	notes     notes
}

// notes is what a machine has seen, for the counts that tests end with.
type notes struct {
	rewritten int // modules
	extracted int // of these, modules whose segments or start function were taken out
	segments  int // that the host wrote in place of the module
}

// newMachine makes a runtime, to be closed. Its memories have at most the given
// pages, in all lanes alike. (testing's Cleanup would hold it for too long: a
// test's functions stay in memory until the test around it has ended.)
func newMachine(t testing.TB, l lane, pages uint32) *machine {
	config := wazero.NewRuntimeConfigCompiler()
	if l.interpreter {
		config = wazero.NewRuntimeConfigInterpreter()
	}
	config = config.WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(pages)
	m := &machine{lane: l, runtime: wazero.NewRuntimeWithConfig(t.Context(), config)}
	var err error
	if m.meter, err = newMeter(t.Context(), m.runtime); err != nil {
		t.Fatalf("%s: meter: %v", l.name, err)
	}
	return m
}

func (m *machine) close(t testing.TB) {
	if err := m.runtime.Close(t.Context()); err != nil {
		t.Errorf("%s: close: %v", m.lane.name, err)
	}
}

// errRewriter marks what the rewriter did wrong, or could not do: never what
// WebAssembly lets a module do.
var errRewriter = errors.New("rewriter")

// prepared is a module as a lane runs it.
type prepared struct {
	compiled wazero.CompiledModule
	result   *rewrite.Result // nil in the original's lane
	extract  bool            // rewritten with Options.Extract
}

// prepare compiles a module in the machine's lane. The error is errRewriter, or
// the engine's on the original. Nothing is taken out of a module that others import:
// its memory would begin with another size, and guests are never linked.
func (m *machine) prepare(ctx context.Context, wasm []byte, imported bool) (prepared, error) {
	compiled, err := m.runtime.CompileModule(ctx, wasm)
	if err != nil || !m.lane.rewritten {
		return prepared{compiled: compiled}, err
	}
	if err := compiled.Close(ctx); err != nil {
		return prepared{}, err
	}
	extract := m.lane.extract && !imported
	result, err := rewriteModule(wasm, rewrite.Options{Extract: extract})
	if err != nil {
		return prepared{}, err
	}
	if compiled, err = m.runtime.CompileModule(ctx, result.Wasm); err != nil {
		return prepared{}, fmt.Errorf("%w: what it wrote does not compile: %w", errRewriter, err)
	}
	m.notes.rewritten++
	return prepared{compiled, result, extract}, nil
}

// rewriteModule rewrites a valid module, and proves that it is metered.
func rewriteModule(wasm []byte, o rewrite.Options) (result *rewrite.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: panic: %v", errRewriter, p)
		}
	}()
	result, err = rewrite.Rewrite(wasm, o)
	if err != nil {
		return nil, fmt.Errorf("%w: refuses a valid module: %w", errRewriter, err)
	}
	if err := rewrite.Verify(result.Wasm); err != nil {
		return nil, fmt.Errorf("%w: %w", errRewriter, err)
	}
	return result, nil
}

// instantiate makes an instance by the rules of WebAssembly: what Extract took
// out of the module is done here.
func (m *machine) instantiate(ctx context.Context, p prepared, name string) (api.Module, error) {
	config := wazero.NewModuleConfig().WithName(name).WithStartFunctions()
	mod, err := m.runtime.InstantiateModule(ctx, p.compiled, config)
	if err != nil {
		return nil, err
	}
	if p.extract {
		if err := m.start(ctx, mod, p.result); err != nil {
			return nil, errors.Join(err, mod.Close(ctx))
		}
	}
	m.instances = append(m.instances, mod)
	return mod, nil
}

// start writes the segments and calls the start function of an extracted module.
func (m *machine) start(ctx context.Context, mod api.Module, r *rewrite.Result) error {
	if len(r.Segments) > 0 || r.HasStart {
		m.notes.extracted++
	}
	if r.MemoryPages > 0 {
		if size, ok := mod.Memory().Grow(r.MemoryPages); !ok || size != 0 {
			return fmt.Errorf("%w: an extracted memory has %d pages and does not grow by %d", errRewriter, size, r.MemoryPages)
		}
	}
	for i, s := range r.Segments {
		if !mod.Memory().Write(s.Offset, s.Data) {
			return fmt.Errorf("%w: extracted segment %d is out of bounds", errRewriter, i)
		}
		m.notes.segments++
	}
	if !r.HasStart {
		return nil
	}
	f := mod.ExportedFunction(rewrite.ExportStart)
	if f == nil {
		return fmt.Errorf("%w: no export %s", errRewriter, rewrite.ExportStart)
	}
	_, err := f.Call(ctx)
	return err
}

// load prepares and instantiates.
func (m *machine) load(ctx context.Context, wasm []byte, name string) (api.Module, error) {
	p, err := m.prepare(ctx, wasm, name != "")
	if err != nil {
		return nil, err
	}
	return m.instantiate(ctx, p, name)
}

// outcome is what a call has led to: a trap's reason, or results.
type outcome struct {
	trap    string
	results []uint64 // two to a v128
}

// call calls an exported function. After a trap, it gives the frames back that
// the trap has left without their functions' ends.
func (m *machine) call(ctx context.Context, f api.Function, args []uint64) outcome {
	results, err := f.Call(ctx, args...)
	if err != nil {
		m.unwind()
		return outcome{trap: reason(err)}
	}
	return outcome{results: results}
}

// unwind is what a host does after a trap: nothing of ours is on the stack.
func (m *machine) unwind() {
	for _, mod := range m.instances {
		if depth, ok := mod.ExportedGlobal(rewrite.ExportDepth).(api.MutableGlobal); ok {
			depth.Set(rewrite.DefaultDepth)
		}
	}
}

func (o outcome) String() string {
	if o.trap != "" {
		return "trap: " + o.trap
	}
	return fmt.Sprintf("%#x", o.results)
}

// Reasons to trap, in the engine's words.
const (
	stackOverflow = "stack overflow"
	outOfBounds   = "out of bounds memory access"
)

var startFailed = regexp.MustCompile(`^start function\[\d+\]( export\[.*?\])? failed: `)

// reason is what of an error does not depend on the lane: the first line,
// without the number of a start function and without who has noticed.
func reason(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	line = startFailed.ReplaceAllString(line, "")
	line = strings.TrimSuffix(line, " (recovered by wazero)")
	return strings.TrimPrefix(line, "wasm error: ")
}
