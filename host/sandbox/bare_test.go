package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/sys"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/missing"
	"github.com/weftrun/weft/host/sandbox/wasi"
)

// bare runs the original module of a guest that has no SDK as the compiler
// made it: nothing is metered, and nothing is reset. It is what the sandbox is
// measured against, and shows what a guest can do where nothing stops it.
type bare struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	instance api.Module
	step     api.Function
	memory   hotMemory
	stack    [1]uint64

	input, output []byte
	shown         [][]byte      // by the import log
	marks         []time.Time   // by the import now
	began         chan struct{} // if there is one, the first mark closes it
	now           int64
}

// newBare compiles a module and makes the first instance.
func newBare(tb testing.TB, wasm []byte, config wazero.RuntimeConfig) *bare {
	tb.Helper()
	ctx := context.Background()
	b := &bare{runtime: wazero.NewRuntimeWithConfig(ctx, config)}
	tb.Cleanup(func() {
		if err := b.runtime.Close(ctx); err != nil {
			tb.Error(err)
		}
	})
	err := wasi.Instantiate(ctx, b.runtime, wasi.Names(), func(context.Context) wasi.Host { return b })
	if err == nil {
		_, err = b.imports().Instantiate(ctx)
	}
	if err == nil {
		b.compiled, err = b.runtime.CompileModule(ctx, wasm)
	}
	if err == nil {
		err = b.fresh()
	}
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// imports are those of weft:v1 that guests without an SDK use.
func (b *bare) imports() wazero.HostModuleBuilder {
	builder := b.runtime.NewHostModuleBuilder(abi.ImportModule)
	add := func(im abi.Import, serve func(m api.Memory, args []uint64)) {
		is := imports[im].is
		f := func(_ context.Context, m api.Module, args []uint64) { serve(m.Memory(), args) }
		builder.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(f), []byte(is.Params), []byte(is.Results)).Export(string(im))
	}
	add(abi.ImportInput, func(m api.Memory, args []uint64) {
		m.Write(uint32(args[0]), b.input[uint32(args[1]):][:uint32(args[2])])
	})
	add(abi.ImportOutput, func(m api.Memory, args []uint64) {
		view, _ := m.Read(uint32(args[0]), uint32(args[1]))
		b.output = append(b.output[:0], view...)
	})
	add(abi.ImportLog, func(m api.Memory, args []uint64) {
		view, _ := m.Read(uint32(args[0]), uint32(args[1]))
		b.shown = append(b.shown, bytes.Clone(view))
		args[0] = 0
	})
	add(abi.ImportNow, func(_ api.Memory, args []uint64) {
		if b.began != nil && len(b.marks) == 0 {
			close(b.began)
		}
		b.marks = append(b.marks, time.Now())
		args[0] = 0
	})
	return builder
}

// fresh makes a new instance in the memory of the last one, so that no page of
// it is touched for the first time.
func (b *bare) fresh() error {
	ctx := context.Background()
	if b.instance != nil {
		if err := b.instance.Close(ctx); err != nil {
			return err
		}
	}
	b.memory.clear()
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions(abi.ExportInitialize)
	var err error
	if b.instance, err = b.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, &b.memory), b.compiled, config); err != nil {
		return err
	}
	b.step = b.instance.ExportedFunction(abi.ExportStep)
	_, err = b.instance.ExportedFunction(abi.ExportDescribe).Call(ctx)
	return err
}

// call runs weft_step once.
func (b *bare) call(ctx context.Context, input []byte) error {
	b.input, b.output, b.shown, b.marks = input, b.output[:0], b.shown[:0], b.marks[:0]
	b.stack[0] = uint64(len(input))
	if err := b.step.CallWithStack(ctx, b.stack[:]); err != nil {
		return fmt.Errorf("call weft_step bare: %w", err)
	}
	return nil
}

// The methods below make it a wasi.Host.

func (b *bare) Clock() int64         { return b.now }
func (b *bare) Poll(until int64)     { b.now = max(b.now, until) }
func (b *bare) Random(p []byte)      { clear(p) }
func (b *bare) Print(uint32, []byte) {}
func (b *bare) Lacks(missing.Thing)  {}
func (b *bare) Work(int)             {}
func (b *bare) Exit(code uint32)     { panic(sys.NewExitError(code)) }

// hotMemory is a memory for one instance after another.
type hotMemory struct {
	buf  []byte
	used int // by the present one
}

// hotMemoryBytes is the size of the buffer, unless it was made before.
const hotMemoryBytes = 64 << 20

// Allocate implements [experimental.MemoryAllocator].
func (m *hotMemory) Allocate(_, _ uint64) experimental.LinearMemory { return m }

// Reallocate implements [experimental.LinearMemory].
func (m *hotMemory) Reallocate(size uint64) []byte {
	if m.buf == nil {
		m.buf = make([]byte, hotMemoryBytes)
	}
	if size > uint64(len(m.buf)) {
		return nil
	}
	m.used = max(m.used, int(size))
	return m.buf[:size]
}

// Free implements [experimental.LinearMemory].
func (m *hotMemory) Free() {}

func (m *hotMemory) clear() {
	clear(m.buf[:m.used])
	m.used = 0
}
