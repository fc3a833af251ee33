package rewrite

import (
	"errors"
	"testing"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// exact charges every path separately, in quarters.
var exact = policy{least: 1, fine: true}

// small are the kernels as short as tests want them.
func small(k kernel) kernel {
	if k.name != "fib" {
		k.n /= 16
	}
	return k
}

// TestFuel runs the kernels: what is charged is the same in the interpreter and
// in the compiler, is never less than exact charges, nor more than twice that,
// and two refuels are never further apart than promised.
func TestFuel(t *testing.T) {
	wasm := readFile(t, "testdata", "kernels.wasm")
	precise, err := rewriteWith(wasm, Options{}, exact)
	if err != nil {
		t.Fatal(err)
	}
	metered := mustRewrite(t, wasm, Options{})
	compiled, interpreted, exactly := newMachine(t, compiler), newMachine(t, interpreter), newMachine(t, compiler)
	one, other, fine := compiled.start(t, metered.Wasm), interpreted.start(t, metered.Wasm), exactly.start(t, precise.Wasm)
	for _, k := range watKernels {
		k = small(k)
		spent := func(m machine, guest api.Module) int64 {
			before := m.total(guest)
			if _, err := guest.ExportedFunction(k.name).Call(t.Context(), k.n); err != nil {
				t.Fatalf("%s: %v", k.name, err)
			}
			return m.total(guest) - before
		}
		units, again, quarter := spent(compiled, one), spent(interpreted, other), spent(exactly, fine)
		if units != again {
			t.Errorf("%s: %d units in the compiler, %d in the interpreter", k.name, units, again)
		}
		if k.name == "copies" {
			continue // helpers charge whole units in any module
		}
		if units*quarters < quarter || units*quarters > 2*quarter {
			t.Errorf("%s: %d units charged, %d quarters exactly", k.name, units, quarter)
		}
	}
	if compiled.longest > Slice+MaxCharge || compiled.refuels == 0 {
		t.Errorf("%d units between two of %d refuels", compiled.longest, compiled.refuels)
	}
	t.Logf("%d refuels, %d units apart at most", compiled.refuels, compiled.longest)
}

// TestWorst counts what is charged between two checks, by a host that gives no
// fuel, so that each check refuels. It drives that up: functions that
// leave as much as they may unchecked, calls of them and of small leaves in a row,
// ends of many calls one behind the other, and bulk instructions of a piece.
func TestWorst(t *testing.T) {
	arithmetic := func(n int) (b []byte) {
		for range n {
			b = append(b, code(wasmbin.OpLocalGet, 0, i32(3), wasmbin.OpI32Mul, wasmbin.OpLocalSet, 0)...)
		}
		return b
	}
	// dear is an if of which one arm costs so much, and is taken if local 0 is odd.
	dear := func(n int) []byte {
		return code(wasmbin.OpLocalGet, 0, i32(1), wasmbin.OpI32And, wasmbin.OpIf, wasmbin.BlockEmpty, arithmetic(n), wasmbin.OpEnd)
	}
	repeat := func(n int, parts ...any) (b []byte) {
		for range n {
			b = append(b, code(parts...)...)
		}
		return b
	}
	const nest, leave, leaf, ends = 0, 1, 2, 3
	g := guest{
		types:    []wasmbin.FuncType{{Params: string([]byte{wasmbin.TypeI32}), Results: ""}},
		memories: []wasmbin.Limits{{Min: 2}},
		exports:  []wasmbin.Export{{Name: "go", Kind: wasmbin.KindFunc, Index: nest}},
		funcs: []guestFunc{
			{0, nil, code(wasmbin.OpLoop, wasmbin.BlockEmpty, repeat(5, wasmbin.OpLocalGet, 0, wasmbin.OpCall, ends, dear(900), wasmbin.OpLocalGet, 0, wasmbin.OpCall, leave),
				repeat(30, wasmbin.OpLocalGet, 0, wasmbin.OpCall, leaf), i32(0), i32(5), i32(Piece), wasmbin.OpMisc, wasmbin.MiscMemoryCopy, 0, 0, wasmbin.OpLocalGet, 0, wasmbin.OpCall, leave, dear(1500),
				i32(0), i32(5), wasmbin.OpLocalGet, 0, i32(0xffff), wasmbin.OpI32And, i32(0xffff), wasmbin.OpI32Or, wasmbin.OpMisc, wasmbin.MiscMemoryCopy, 0, 0, wasmbin.OpBr, 0, wasmbin.OpEnd)},
			{0, nil, repeat(12, dear(350))},
			{0, nil, dear(60)},
			{0, nil, code(wasmbin.OpLocalGet, 0, i32(1<<20), wasmbin.OpI32LtU, wasmbin.OpIf, wasmbin.BlockEmpty, wasmbin.OpLocalGet, 0, i32(2*4*8*8*8), wasmbin.OpI32Mul, i32(1), wasmbin.OpI32Or, wasmbin.OpCall, ends, dear(300), wasmbin.OpElse, wasmbin.OpLocalGet, 0, wasmbin.OpCall, leave, wasmbin.OpEnd)},
		},
	}
	r := mustRewrite(t, g.wasm(), Options{})
	if err := Verify(r.Wasm); err != nil {
		t.Fatal(err)
	}
	m := newMachine(t, interpreter)
	m.slice, m.stopAfter = 0, 20_000
	guest := m.start(t, r.Wasm)
	var exit *sys.ExitError
	if _, err := guest.ExportedFunction("go").Call(t.Context(), 1); !errors.As(err, &exit) || exit.ExitCode() != exitStopped {
		t.Fatal(err)
	}
	if m.longest > MaxCharge || m.longest < MaxCharge/2 {
		t.Errorf("%d units between two checks", m.longest)
	}
	t.Logf("%d functions without a frame; charges of %d units at most; checks %d apart at most", r.Stats.LeafFunctions, r.Stats.MaxCharge, m.longest)
}

// TestDepth lets a function call itself until its frames do not fit: 48 bytes
// each, 8 for parameter, result and local, 16 for the vector, and 8 for each of two
// operands.
func TestDepth(t *testing.T) {
	const frame = 48 + 3*8 + 16 + 2*8
	g := guest{
		types:   []wasmbin.FuncType{{Params: string([]byte{wasmbin.TypeI32}), Results: string([]byte{wasmbin.TypeI32})}},
		exports: []wasmbin.Export{{Name: "go", Kind: wasmbin.KindFunc, Index: 0}},
		funcs: []guestFunc{{0, code(2, 1, wasmbin.TypeI64, 1, wasmbin.TypeV128),
			code(wasmbin.OpLocalGet, 0, wasmbin.OpI32Eqz, wasmbin.OpIf, wasmbin.BlockEmpty, wasmbin.OpLocalGet, 0, wasmbin.OpReturn, wasmbin.OpEnd, wasmbin.OpLocalGet, 0, i32(1), wasmbin.OpI32Sub, wasmbin.OpCall, 0)}},
	}
	m := newMachine(t, compiler)
	r := mustRewrite(t, g.wasm(), Options{})
	if r.Stats.MaxFrame != frame {
		t.Errorf("a frame of %d bytes, not %d", r.Stats.MaxFrame, frame)
	}
	guest := m.start(t, r.Wasm)
	recurse := func(n uint64) error {
		_, err := guest.ExportedFunction("go").Call(t.Context(), n)
		return err
	}
	const most = DefaultDepth / frame // frames
	var exit *sys.ExitError
	if err := recurse(most - 1); err != nil {
		t.Errorf("%d frames: %v", most, err)
	}
	if depth := guest.ExportedGlobal(ExportDepth).Get(); depth != DefaultDepth {
		t.Errorf("%d bytes are left of the depth at the end", depth)
	}
	if err := recurse(most); !errors.As(err, &exit) || exit.ExitCode() != exitOverflow {
		t.Errorf("%d frames: %v", most+1, err)
	}
}

// TestBulk moves bytes by original and rewritten instructions, about the lengths
// at which these differ, and counts what is charged.
func TestBulk(t *testing.T) {
	three := string([]byte{wasmbin.TypeI32, wasmbin.TypeI32, wasmbin.TypeI32})
	g := guest{
		types: []wasmbin.FuncType{{Params: three}}, memories: []wasmbin.Limits{{Min: 4}},
		exports: []wasmbin.Export{{Name: "copy", Kind: wasmbin.KindFunc, Index: 0}, {Name: "fill", Kind: wasmbin.KindFunc, Index: 1}, {Name: "memory", Kind: wasmbin.KindMemory, Index: 0}},
		funcs: []guestFunc{
			{0, nil, code(wasmbin.OpLocalGet, 0, wasmbin.OpLocalGet, 1, wasmbin.OpLocalGet, 2, wasmbin.OpMisc, wasmbin.MiscMemoryCopy, 0, 0)},
			{0, nil, code(wasmbin.OpLocalGet, 0, wasmbin.OpLocalGet, 1, wasmbin.OpLocalGet, 2, wasmbin.OpMisc, wasmbin.MiscMemoryFill, 0)},
		},
	}
	plainHost, host := newMachine(t, compiler), newMachine(t, compiler)
	original, metered := plainHost.start(t, g.wasm()), host.start(t, mustRewrite(t, g.wasm(), Options{}).Wasm)
	for i := range uint32(4 * pageBytes / 4) {
		original.Memory().WriteUint32Le(4*i, i*2654435761)
		metered.Memory().WriteUint32Le(4*i, i*2654435761)
	}
	const end = 4 * pageBytes
	for _, length := range []uint64{0, 1, shortBulk, shortBulk + 1, Piece - 1, Piece, Piece + 1, 2*Piece + 7, 3 * Piece, end, end + 1, 1<<32 - 1} {
		for _, name := range []string{"copy", "fill"} {
			for _, at := range [][2]uint64{{0, 0}, {3, 1000}, {1000, 3}, {end - length, 0}, {0, end - length}, {1 << 31, 0}} {
				before := host.total(metered)
				_, want := original.ExportedFunction(name).Call(t.Context(), at[0], at[1], length)
				_, got := metered.ExportedFunction(name).Call(t.Context(), at[0], at[1], length)
				if (want == nil) != (got == nil) {
					t.Fatalf("%s %d of %d bytes: %v, not %v", name, at, length, got, want)
				}
				units := host.total(metered) - before
				if least := int64(length) / bytesPerUnit; got == nil && (units < least || units > least+40) || got != nil && units > Piece/bytesPerUnit+40 {
					t.Errorf("%s %d of %d bytes: %d units", name, at, length, units)
				}
			}
			if a, b := memory(original), memory(metered); a != b {
				t.Fatalf("%s of %d bytes: the memories differ", name, length)
			}
		}
	}
}

func memory(guest api.Module) string {
	view, _ := guest.Memory().Read(0, guest.Memory().Size())
	return string(view)
}
