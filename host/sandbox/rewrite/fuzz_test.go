package rewrite

import (
	"bytes"
	"errors"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"
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
	every.tables = append(every.tables, Table{TypeExternref, Limits{Max: 9, HasMax: true}})
	every.globals = append(every.globals, GlobalType{TypeV128, true}, GlobalType{TypeFuncref, true})
	every.counted = true
	every.data = []dataSegment{{offset: code(i32(7), opEnd), bytes: []byte("seven")}, {flag: dataPassive, bytes: make([]byte, 600)}}
	three := code(opI32Const, 0, opI32Const, 0, opI32Const, 9, opNop)
	every.funcs = append(every.funcs, guestFunc{0, code(1, 2, TypeV128), code(
		three, opMisc, miscMemoryInit, 1, 0, opMisc, miscDataDrop, 1, three, opMisc, miscTableCopy, 0, 0, three, opMisc, miscTableInit, 0, 0, opMisc, miscElemDrop, 0,
		opRefNull, TypeExternref, three, opMisc, miscTableGrow, 1, opDrop, opDrop, opDrop, opDrop, opRefFunc, 3, opDrop,
		opBlock, blockEmpty, opBlock, blockEmpty, opI32Const, 1, opBrTable, 2, 0, 1, 0, opEnd, opUnreachable, opEnd,
		opLocalGet, 0, opLocalGet, 1, opVector, 14, opLocalSet, 0, opI32Const, 0, opCallIndirect, 0, 0)})
	add(every.wasm())
}

// FuzzParse: the same bytes give the same answer, without a panic.
func FuzzParse(f *testing.F) {
	addSeeds(f, func(wasm []byte) { f.Add(wasm) })
	f.Fuzz(func(t *testing.T, wasm []byte) {
		before := bytes.Clone(wasm)
		m, err := Parse(wasm)
		again, errAgain := Parse(before)
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
		m, parseErr := Parse(wasm)
		if parseErr != nil || len(DefaultCaps().Exceeded(m)) > 0 || host && !clampable(m, o) || compiles(t, withoutCustom(wasm)) != nil {
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
	bare := bytes.Clone(wasm[:len(header)])
	r := &reader{b: wasm[len(header):]}
	for len(r.b) > 0 && r.err == nil {
		id := r.byte()
		if payload := r.take(r.uint(32)); id != sectionCustom {
			bare = appendBytes(append(bare, id), payload)
		}
	}
	return bare
}

// clampable tells whether the limits can be lowered as asked; if not, what comes
// out need not be valid.
func clampable(m *Module, o Options) bool {
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
	nothing := guest{types: []FuncType{{}}, memories: []Limits{{Min: 1}}, tables: []Table{{TypeFuncref, Limits{Min: 1}}}, funcs: []guestFunc{{}}}
	with := func(change func(*guest)) []byte {
		g := nothing
		change(&g)
		return g.wasm()
	}
	does := func(parts ...any) []byte {
		return with(func(g *guest) { g.funcs = []guestFunc{{code: code(parts...)}} })
	}
	for name, wasm := range map[string][]byte{
		"types":     with(func(g *guest) { g.types = slices.Repeat(g.types, many) }),
		"imports":   with(func(g *guest) { g.imports = slices.Repeat([]Import{{}}, many) }),
		"exports":   with(func(g *guest) { g.exports = slices.Repeat([]Export{{}}, many) }),
		"tables":    with(func(g *guest) { g.tables = slices.Repeat(g.tables, many) }),
		"globals":   with(func(g *guest) { g.globals = slices.Repeat([]GlobalType{{TypeI32, true}}, many) }),
		"elements":  with(func(g *guest) { g.elements = slices.Repeat([]uint32{0}, many) }),
		"data":      with(func(g *guest) { g.data = slices.Repeat([]dataSegment{{flag: dataPassive}}, many) }),
		"functions": with(func(g *guest) { g.funcs = slices.Repeat(g.funcs, many) }),
		"blocks":    does(bytes.Repeat([]byte{opBlock, blockEmpty}, many), bytes.Repeat([]byte{opEnd}, many)),
		"loops":     does(bytes.Repeat([]byte{opLoop, blockEmpty, opEnd}, many)),
		"branches":  does(bytes.Repeat([]byte{opI32Const, 0, opBrIf, 0}, many)),
		"labels":    does(opI32Const, 0, opBrTable, leb(many), make([]byte, many+1)),
		"fills":     does(bytes.Repeat(code(opI32Const, 0, opI32Const, 0, opI32Const, 0, opNop, opMisc, miscMemoryFill, 0), many)),
		"locals":    with(func(g *guest) { g.funcs[0].decl = code(leb(many), bytes.Repeat([]byte{1, TypeI64}, many)) }),
		"copies": with(func(g *guest) {
			g.tables = slices.Repeat(g.tables, 300)
			var b []byte
			for i := range uint64(300 * 300) {
				b = append(b, code(opI32Const, 0, opI32Const, 0, opI32Const, 0, opNop, opMisc, miscTableCopy, leb(i/300), leb(i%300))...)
			}
			g.funcs = []guestFunc{{code: b}}
		}),
		"kernels": readFile(t, "testdata", "kernels.wasm"),
	} {
		var r *Result
		var err, verifyErr error
		parsed := allocated(func() { _, err = Parse(wasm) })
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
