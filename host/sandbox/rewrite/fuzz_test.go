package rewrite

import (
	"bytes"
	"errors"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// addSeeds gives the fuzzer modules with something of everything: those of the
// tests, and hostile guests. What it has found is in testdata/fuzz.
func addSeeds(f *testing.F, add func(wasm []byte)) {
	paths, err := filepath.Glob(filepath.Join("..", "..", "..", "testdata", "hostile", "*.wasm"))
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range append(paths, filepath.Join("testdata", "kernels.wasm")) {
		add(readFile(f, path))
	}
	add(plain().wasm())
	every := plain()
	every.tables = append(every.tables, wasmbin.Table{Type: wasmbin.TypeExternref, Limits: wasmbin.Limits{Max: 9, HasMax: true}})
	every.globals = append(every.globals, wasmbin.GlobalType{Type: wasmbin.TypeV128, Mutable: true}, wasmbin.GlobalType{Type: wasmbin.TypeFuncref, Mutable: true})
	every.counted = true
	every.data = []wasmbin.DataSegment{{Offset: code(i32(7), wasmbin.OpEnd), Bytes: []byte("seven")}, {Flag: wasmbin.DataPassive, Bytes: make([]byte, 600)}}
	three := code(wasmbin.OpI32Const, 0, wasmbin.OpI32Const, 0, wasmbin.OpI32Const, 9, wasmbin.OpNop)
	every.funcs = append(every.funcs, guestFunc{0, code(1, 2, wasmbin.TypeV128), code(
		three, wasmbin.OpMisc, wasmbin.MiscMemoryInit, 1, 0, wasmbin.OpMisc, wasmbin.MiscDataDrop, 1, three, wasmbin.OpMisc, wasmbin.MiscTableCopy, 0, 0, three, wasmbin.OpMisc, wasmbin.MiscTableInit, 0, 0, wasmbin.OpMisc, wasmbin.MiscElemDrop, 0,
		wasmbin.OpRefNull, wasmbin.TypeExternref, three, wasmbin.OpMisc, wasmbin.MiscTableGrow, 1, wasmbin.OpDrop, wasmbin.OpDrop, wasmbin.OpDrop, wasmbin.OpDrop, wasmbin.OpRefFunc, 3, wasmbin.OpDrop,
		wasmbin.OpBlock, wasmbin.BlockEmpty, wasmbin.OpBlock, wasmbin.BlockEmpty, wasmbin.OpI32Const, 1, wasmbin.OpBrTable, 2, 0, 1, 0, wasmbin.OpEnd, wasmbin.OpUnreachable, wasmbin.OpEnd,
		wasmbin.OpLocalGet, 0, wasmbin.OpLocalGet, 1, wasmbin.OpVector, 14, wasmbin.OpLocalSet, 0, wasmbin.OpI32Const, 0, wasmbin.OpCallIndirect, 0, 0)})
	add(every.wasm())
}

// FuzzParse: the same bytes give the same answer, without a panic.
func FuzzParse(f *testing.F) {
	addSeeds(f, func(wasm []byte) { f.Add(wasm) })
	f.Fuzz(func(t *testing.T, wasm []byte) {
		before := bytes.Clone(wasm)
		m, err := wasmbin.Parse(wasm)
		again, errAgain := wasmbin.Parse(before)
		if !reflect.DeepEqual(m, again) || (err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() {
			t.Error("another answer to the same bytes")
		}
		if (m == nil) == (err == nil) && err == nil {
			t.Error("neither a module nor an error")
		}
		if !bytes.Equal(wasm, before) {
			t.Error("the bytes were changed")
		}
		_ = Verify(wasm)
	})
}

// FuzzRewrite: what comes out of a module that the compiler takes is taken as
// well, and is metered. Of any other it is no matter what comes out.
func FuzzRewrite(f *testing.F) {
	addSeeds(f, func(wasm []byte) {
		f.Add(wasm, false)
		f.Add(wasm, true)
	})
	f.Fuzz(func(t *testing.T, wasm []byte, host bool) {
		var o Options
		if host {
			o = Options{TableEntries: 100, MemoryPages: 4, Extract: true}
		}
		r, err := Rewrite(wasm, o)
		if err == nil {
			if again := mustRewrite(t, wasm, o); !bytes.Equal(r.Wasm, again.Wasm) {
				t.Error("the same bytes became others")
			}
		}
		m, parseErr := wasmbin.Parse(wasm)
		if parseErr != nil || len(wasmbin.DefaultCaps().Exceeded(m)) > 0 || host && !clampable(m, o) || compiles(t, withoutCustom(wasm)) != nil {
			if err == nil {
				_ = Verify(r.Wasm)
			}
			return // the engine would take too long, or does not take it
		}
		if errors.Is(err, ErrReserved) {
			return
		}
		if err != nil {
			t.Fatalf("refuses a valid module: %v", err)
		}
		if err := errors.Join(Verify(r.Wasm), compiles(t, r.Wasm)); err != nil {
			t.Error(err)
		}
	})
}

// withoutCustom takes out custom sections: the compiler makes room for as many
// names as one says that it has.
func withoutCustom(wasm []byte) []byte {
	bare := bytes.Clone(wasm[:len(wasmbin.Header)])
	r := &wasmbin.Reader{Rest: wasm[len(wasmbin.Header):]}
	for len(r.Rest) > 0 && r.Err == nil {
		id := r.Byte()
		if payload := r.Take(r.Uint(32)); id != wasmbin.SectionCustom {
			bare = appendBytes(append(bare, id), payload)
		}
	}
	return bare
}

// clampable tells whether the limits can be lowered as asked; if not, what comes
// out need not be valid.
func clampable(m *wasmbin.Module, o Options) bool {
	for _, l := range m.Memories {
		if l.Min > uint64(o.MemoryPages) {
			return false
		}
	}
	return true
}

// TestMemory holds Parse, Rewrite and Verify to what they may allocate, all in
// all: a multiple of the module's size, of those whose parts are smallest.
func TestMemory(t *testing.T) {
	const parse, rewrite, verify = 150, 300, 200 // bytes for each of the module, as documented
	const many = 100_000
	nothing := guest{types: []wasmbin.FuncType{{}}, memories: []wasmbin.Limits{{Min: 1}}, tables: []wasmbin.Table{{Type: wasmbin.TypeFuncref, Limits: wasmbin.Limits{Min: 1}}}, funcs: []guestFunc{{}}}
	with := func(change func(*guest)) []byte {
		g := nothing
		change(&g)
		return g.wasm()
	}
	does := func(parts ...any) []byte {
		return with(func(g *guest) { g.funcs = []guestFunc{{code: code(parts...)}} })
	}
	for name, wasm := range map[string][]byte{
		"types":   with(func(g *guest) { g.types = slices.Repeat(g.types, many) }),
		"imports": with(func(g *guest) { g.imports = slices.Repeat([]wasmbin.Import{{}}, many) }),
		"exports": with(func(g *guest) { g.exports = slices.Repeat([]wasmbin.Export{{}}, many) }),
		"tables":  with(func(g *guest) { g.tables = slices.Repeat(g.tables, many) }),
		"globals": with(func(g *guest) {
			g.globals = slices.Repeat([]wasmbin.GlobalType{{Type: wasmbin.TypeI32, Mutable: true}}, many)
		}),
		"elements":  with(func(g *guest) { g.elements = slices.Repeat([]uint32{0}, many) }),
		"data":      with(func(g *guest) { g.data = slices.Repeat([]wasmbin.DataSegment{{Flag: wasmbin.DataPassive}}, many) }),
		"functions": with(func(g *guest) { g.funcs = slices.Repeat(g.funcs, many) }),
		"blocks":    does(bytes.Repeat([]byte{wasmbin.OpBlock, wasmbin.BlockEmpty}, many), bytes.Repeat([]byte{wasmbin.OpEnd}, many)),
		"loops":     does(bytes.Repeat([]byte{wasmbin.OpLoop, wasmbin.BlockEmpty, wasmbin.OpEnd}, many)),
		"branches":  does(bytes.Repeat([]byte{wasmbin.OpI32Const, 0, wasmbin.OpBrIf, 0}, many)),
		"labels":    does(wasmbin.OpI32Const, 0, wasmbin.OpBrTable, leb(many), make([]byte, many+1)),
		"fills":     does(bytes.Repeat(code(wasmbin.OpI32Const, 0, wasmbin.OpI32Const, 0, wasmbin.OpI32Const, 0, wasmbin.OpNop, wasmbin.OpMisc, wasmbin.MiscMemoryFill, 0), many)),
		"locals":    with(func(g *guest) { g.funcs[0].decl = code(leb(many), bytes.Repeat([]byte{1, wasmbin.TypeI64}, many)) }),
		"copies": with(func(g *guest) {
			g.tables = slices.Repeat(g.tables, 300)
			var b []byte
			for i := range uint64(300 * 300) {
				b = append(b, code(wasmbin.OpI32Const, 0, wasmbin.OpI32Const, 0, wasmbin.OpI32Const, 0, wasmbin.OpNop, wasmbin.OpMisc, wasmbin.MiscTableCopy, leb(i/300), leb(i%300))...)
			}
			g.funcs = []guestFunc{{code: b}}
		}),
		"kernels": readFile(t, "testdata", "kernels.wasm"),
	} {
		var r *Result
		var err, verifyErr error
		parsed := allocated(func() { _, err = wasmbin.Parse(wasm) })
		rewritten := allocated(func() { r, _ = Rewrite(wasm, Options{}) })
		if r == nil {
			t.Fatalf("%s: %v", name, err)
		}
		verified := allocated(func() { verifyErr = Verify(r.Wasm) })
		if verifyErr != nil && name != "exports" {
			t.Errorf("%s: %v", name, verifyErr)
		}
		n, fixed := uint64(len(wasm)), uint64(1<<16)
		t.Logf("%s: %d bytes; parse %d, rewrite %d, to %d bytes; verify %d", name, n, parsed/n, rewritten/n, len(r.Wasm), verified/n)
		if parsed > n*parse+fixed || rewritten > n*rewrite+fixed || verified > n*verify+fixed {
			t.Errorf("%s: %d bytes take %d, %d and %d of memory", name, n, parsed, rewritten, verified)
		}
	}
}

// allocated counts the bytes that are allocated meanwhile, freed ones too.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}
