package rewrite

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// TestRewriteParses has that Rewrite returns the errors of Parse.
func TestRewriteParses(t *testing.T) {
	for _, wasm := range [][]byte{nil, []byte(wasmbin.Header[:6]), append([]byte(wasmbin.Header), 13, 1, 0)} {
		_, err := wasmbin.Parse(wasm)
		if _, rewriteErr := Rewrite(wasm, Options{}); err == nil || rewriteErr == nil || rewriteErr.Error() != err.Error() {
			t.Errorf("% x: Rewrite says %v, Parse %v", wasm, rewriteErr, err)
		}
	}
}

// TestSpelling has numbers that are longer than they need to be, and too long.
func TestSpelling(t *testing.T) {
	function := func(instructions ...byte) []byte {
		g := plain()
		g.funcs[0].code = code(instructions, wasmbin.OpLocalGet, 0)
		return g.wasm()
	}
	for _, tt := range []struct {
		name string
		code []byte
		says string // "" if it is accepted
	}{
		{"an index of five bytes", code(wasmbin.OpLocalGet, 0x80, 0x80, 0x80, 0x80, 0, wasmbin.OpDrop), ""},
		{"an index of six bytes", code(wasmbin.OpLocalGet, 0x80, 0x80, 0x80, 0x80, 0x80, 0, wasmbin.OpDrop), "more than 32 bits"},
		{"an index of 33 bits", code(wasmbin.OpLocalGet, 0x80, 0x80, 0x80, 0x80, 0x10, wasmbin.OpDrop), "more than 32 bits"},
		{"-1 in five bytes", code(wasmbin.OpI32Const, 0xff, 0xff, 0xff, 0xff, 0x7f, wasmbin.OpDrop), ""},
		{"-1 with bits that are not its sign", code(wasmbin.OpI32Const, 0xff, 0xff, 0xff, 0xff, 0x4f, wasmbin.OpDrop), "more than 32 bits"},
		{"i64 in ten bytes", code(wasmbin.OpI64Const, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0, wasmbin.OpDrop), ""},
		{"i64 in eleven", code(wasmbin.OpI64Const, bytes.Repeat([]byte{0x80}, 10), 0, wasmbin.OpDrop), "more than 64 bits"},
		{"memory.fill in three bytes", code(wasmbin.OpI32Const, 0, wasmbin.OpI32Const, 0, wasmbin.OpLocalGet, 0, wasmbin.OpMisc, 0x8b, 0x80, 0, 0), ""},
		{"a vector instruction in three bytes", code(wasmbin.OpVector, 0x8c, 0x80, 0), "unknown number"},
		{"the memory's index in two bytes", code(wasmbin.OpMemorySize, 0x80, 0, wasmbin.OpDrop), "memory 128 is not supported"},
		{"an alignment that names a memory", code(wasmbin.OpI32Const, 0, wasmbin.OpFirstLoad, 0x40, 0, 0, wasmbin.OpDrop), "several memories"},
		{"a block of no type", code(wasmbin.OpBlock, 0x41, wasmbin.OpEnd), "unknown type"},
		{"throw", code(0x08, 0), "instruction 0x8 is not supported"},
		{"return_call", code(0x12, 0), "instruction 0x12 is not supported"},
	} {
		wasm := function(tt.code...)
		r, err := Rewrite(wasm, Options{})
		switch {
		case tt.says != "":
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s: %v", tt.name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", tt.name, err)
		default:
			if err := errors.Join(Verify(r.Wasm), compiles(t, wasm), compiles(t, r.Wasm)); err != nil {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
	}
}

// TestReserved has names that the rewriting adds, and some that are only like
// them.
func TestReserved(t *testing.T) {
	for name, refused := range map[string]bool{
		ExportFuel: true, ExportDepth: true, ExportStart: true, GlobalPrefix + "0": true, GlobalPrefix: true, GlobalPrefix + "x": true,
		"weft:other": false, "fuel": false, "Weft:fuel": false,
	} {
		g := plain()
		g.exports = append(g.exports, wasmbin.Export{Name: name, Kind: wasmbin.KindFunc, Index: 1})
		if _, err := Rewrite(g.wasm(), Options{}); errors.Is(err, ErrReserved) != refused {
			t.Errorf("export %q: %v", name, err)
		}
	}
	g := plain()
	g.imports = append(g.imports, wasmbin.Import{Module: MeterModule, Name: "anything"})
	if _, err := Rewrite(g.wasm(), Options{}); !errors.Is(err, ErrReserved) {
		t.Errorf("import: %v", err)
	}
}

// TestDuplicates: names that are there twice are the engine's to refuse; a
// rewriting neither hides nor adds any.
func TestDuplicates(t *testing.T) {
	g := plain()
	g.exports = append(g.exports, g.exports[0])
	if compiles(t, g.wasm()) == nil || compiles(t, mustRewrite(t, g.wasm(), Options{}).Wasm) == nil {
		t.Error("an export is there twice")
	}
}

// TestLarge has counts that are far beyond what any host accepts: they are read
// in one go, and Caps name them.
func TestLarge(t *testing.T) {
	const many = 50_000
	labels := append(leb(many), make([]byte, many+1)...)
	for _, tt := range []struct {
		says string
		f    guestFunc
	}{
		{"function 1 has 1000000 locals, at most 10000 are allowed", guestFunc{decl: code(1, leb(1_000_000), wasmbin.TypeI64), code: code(wasmbin.OpCall, 0)}},
		{"function 1 has 4294967295 locals, at most 10000 are allowed", guestFunc{decl: code(2, leb(1<<32-1), wasmbin.TypeI64, leb(1<<32-1), wasmbin.TypeI64)}},
		{"function 1 has 50000 blocks inside each other, at most 5000 are allowed", guestFunc{code: code(bytes.Repeat([]byte{wasmbin.OpBlock, wasmbin.BlockEmpty}, many), bytes.Repeat([]byte{wasmbin.OpEnd}, many))}},
		{"function 1 has 50001 labels in a br_table, at most 50000 are allowed", guestFunc{code: code(wasmbin.OpI32Const, 0, wasmbin.OpBrTable, labels)}},
	} {
		g := guest{types: []wasmbin.FuncType{{}}, imports: []wasmbin.Import{{Module: "env", Name: "f"}}, funcs: []guestFunc{tt.f}}
		if excess := wasmbin.DefaultCaps().Exceeded(mustParse(t, g.wasm())); len(excess) != 1 || excess[0].String() != tt.says {
			t.Errorf("%v, not %q", excess, tt.says)
		}
		if err := Verify(mustRewrite(t, g.wasm(), Options{}).Wasm); err != nil {
			t.Errorf("%s: %v", tt.says, err)
		}
	}
	if excess := (wasmbin.Caps{}).Exceeded(mustParse(t, plain().wasm())); len(excess) > 0 {
		t.Errorf("no caps: %v", excess)
	}
	if excess := (wasmbin.Caps{Types: 1, Functions: 4, Tables: 1, Globals: 1, Exports: 2, Params: 1}).Exceeded(mustParse(t, plain().wasm())); len(excess) != 4 {
		t.Errorf("small caps: %v", excess)
	}
}
