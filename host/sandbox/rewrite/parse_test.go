package rewrite

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// TestParseRefuses has what is refused before a look at instructions, and by
// which words.
func TestParseRefuses(t *testing.T) {
	section := func(id byte, payload ...byte) []byte { return appendSection([]byte(header), id, payload) }
	for _, tt := range []struct {
		name string
		wasm []byte
		is   error
		says string
	}{
		{"nothing", nil, ErrNotWasm, ""},
		{"text", []byte("(module)"), ErrNotWasm, ""},
		{"half a header", []byte(header[:6]), ErrTruncated, "at byte 6"},
		{"a component", []byte("\x00asm\x0d\x00\x01\x00"), ErrComponent, ""},
		{"version 2", []byte("\x00asm\x02\x00\x00\x00"), nil, "version 02 00 00 00"},
		{"a section without its size", append([]byte(header), sectionType), ErrTruncated, "at byte 9"},
		{"a section that ends late", append([]byte(header), sectionType, 5, 0), ErrTruncated, "at byte 10"},
		{"a section that is not known", section(13, 0), nil, "unknown section 13"},
		{"a section twice", append(section(sectionType, 0), sectionType, 1, 0), nil, "there twice"},
		{"sections in another order", append(section(sectionFunc, 0), sectionType, 1, 0), nil, "out of order"},
		{"bytes left over", section(sectionType, 0, 0), nil, "left over in section 1"},
		{"more entries than bytes", section(sectionType, 0xff, 0xff, 0xff, 0xff, 0x0f), ErrTruncated, "4294967295 entries are missing"},
		{"a type that is not known", section(sectionType, 1, formFunc, 1, 0x77, 0), nil, "value type 0x77"},
		{"a name that is not a text", section(sectionCustom, 1, 0xff), nil, "not UTF-8"},
		{"functions without code", section(sectionFunc, 1, 0), nil, "1 functions are declared, 0 have code"},
		{"memory 64 kinds of limits", section(sectionMemory, 1, 8, 0), nil, "unknown kind 0x8"},
		{"a table of numbers", section(sectionTable, 1, TypeI32, 0, 0), nil, "tables of type 0x7f"},
		{"a tag", section(sectionImport, 1, 0, 0, 4, 0, 0), nil, "imports of kind 4"},
	} {
		_, err := Parse(tt.wasm)
		if err == nil || !strings.Contains(err.Error(), tt.says) || tt.is != nil && !errors.Is(err, tt.is) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if _, rewriteErr := Rewrite(tt.wasm, Options{}); rewriteErr == nil || rewriteErr.Error() != err.Error() {
			t.Errorf("%s: Rewrite says %v", tt.name, rewriteErr)
		}
	}
}

// TestSpelling has numbers that are longer than they need to be, and too long.
func TestSpelling(t *testing.T) {
	function := func(instructions ...byte) []byte {
		g := plain()
		g.funcs[0].code = code(instructions, opLocalGet, 0)
		return g.wasm()
	}
	for _, tt := range []struct {
		name string
		code []byte
		says string // "" if it is accepted
	}{
		{"an index of five bytes", code(opLocalGet, 0x80, 0x80, 0x80, 0x80, 0, opDrop), ""},
		{"an index of six bytes", code(opLocalGet, 0x80, 0x80, 0x80, 0x80, 0x80, 0, opDrop), "more than 32 bits"},
		{"an index of 33 bits", code(opLocalGet, 0x80, 0x80, 0x80, 0x80, 0x10, opDrop), "more than 32 bits"},
		{"-1 in five bytes", code(opI32Const, 0xff, 0xff, 0xff, 0xff, 0x7f, opDrop), ""},
		{"-1 with bits that are not its sign", code(opI32Const, 0xff, 0xff, 0xff, 0xff, 0x4f, opDrop), "more than 32 bits"},
		{"i64 in ten bytes", code(opI64Const, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0, opDrop), ""},
		{"i64 in eleven", code(opI64Const, bytes.Repeat([]byte{0x80}, 10), 0, opDrop), "more than 64 bits"},
		{"memory.fill in three bytes", code(opI32Const, 0, opI32Const, 0, opLocalGet, 0, opMisc, 0x8b, 0x80, 0, 0), ""},
		{"a vector instruction in three bytes", code(opVector, 0x8c, 0x80, 0), "unknown number"},
		{"the memory's index in two bytes", code(opMemorySize, 0x80, 0, opDrop), "memory 128 is not supported"},
		{"an alignment that names a memory", code(opI32Const, 0, opFirstLoad, 0x40, 0, 0, opDrop), "several memories"},
		{"a block of no type", code(opBlock, 0x41, opEnd), "unknown type"},
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
		g.exports = append(g.exports, Export{name, KindFunc, 1})
		if _, err := Rewrite(g.wasm(), Options{}); errors.Is(err, ErrReserved) != refused {
			t.Errorf("export %q: %v", name, err)
		}
	}
	g := plain()
	g.imports = append(g.imports, Import{Module: MeterModule, Name: "anything"})
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
		{"function 1 has 1000000 locals, at most 10000 are allowed", guestFunc{decl: code(1, leb(1_000_000), TypeI64), code: code(opCall, 0)}},
		{"function 1 has 4294967295 locals, at most 10000 are allowed", guestFunc{decl: code(2, leb(1<<32-1), TypeI64, leb(1<<32-1), TypeI64)}},
		{"function 1 has 50000 blocks inside each other, at most 5000 are allowed", guestFunc{code: code(bytes.Repeat([]byte{opBlock, blockEmpty}, many), bytes.Repeat([]byte{opEnd}, many))}},
		{"function 1 has 50001 labels in a br_table, at most 50000 are allowed", guestFunc{code: code(opI32Const, 0, opBrTable, labels)}},
	} {
		g := guest{types: []FuncType{{}}, imports: []Import{{Module: "env", Name: "f"}}, funcs: []guestFunc{tt.f}}
		if excess := DefaultCaps().Exceeded(mustParse(t, g.wasm())); len(excess) != 1 || excess[0].String() != tt.says {
			t.Errorf("%v, not %q", excess, tt.says)
		}
		if err := Verify(mustRewrite(t, g.wasm(), Options{}).Wasm); err != nil {
			t.Errorf("%s: %v", tt.says, err)
		}
	}
	if excess := (Caps{}).Exceeded(mustParse(t, plain().wasm())); len(excess) > 0 {
		t.Errorf("no caps: %v", excess)
	}
	if excess := (Caps{Types: 1, Functions: 4, Tables: 1, Globals: 1, Exports: 2, Params: 1}).Exceeded(mustParse(t, plain().wasm())); len(excess) != 4 {
		t.Errorf("small caps: %v", excess)
	}
}
