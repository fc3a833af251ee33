package rewrite

import (
	"slices"
	"testing"

	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// guest is a small module that tests write.
type guest struct {
	types    []wasmbin.FuncType
	imports  []wasmbin.Import
	tables   []wasmbin.Table
	memories []wasmbin.Limits
	globals  []wasmbin.GlobalType // all zero
	exports  []wasmbin.Export
	start    *uint32
	elements []uint32 // functions, from entry 0 of table 0
	funcs    []guestFunc
	data     []wasmbin.DataSegment
	custom   []string // names of custom sections

	counted bool // with the count of data segments
}

// guestFunc is a function: its type, its declarations of locals and its code
// without the last end.
type guestFunc struct {
	typ  uint32
	decl []byte // nil: none
	code []byte
}

// code puts instructions together: numbers are single bytes.
func code(parts ...any) (b []byte) {
	for _, part := range parts {
		switch part := part.(type) {
		case int:
			b = append(b, byte(part))
		case []byte:
			b = append(b, part...)
		}
	}
	return b
}

func i32(v int64) []byte  { return appendInt([]byte{wasmbin.OpI32Const}, v) }
func leb(v uint64) []byte { return appendUint(nil, v) }

// entries is a section of entries; nothing if there are none.
func entries[T any](list []T, write func(b []byte, entry T) []byte) []byte {
	if len(list) == 0 {
		return nil
	}
	b := leb(uint64(len(list)))
	for _, e := range list {
		b = write(b, e)
	}
	return b
}

func appendGlobalType(b []byte, g wasmbin.GlobalType) []byte {
	if b = append(b, g.Type, 0); g.Mutable {
		b[len(b)-1] = 1
	}
	return b
}

func (g guest) wasm() []byte {
	b := []byte(wasmbin.Header)
	section := func(id byte, payload []byte) { b = appendSection(b, id, payload) }
	section(wasmbin.SectionType, entries(g.types, func(b []byte, t wasmbin.FuncType) []byte {
		return appendBytes(appendBytes(append(b, wasmbin.FormFunc), t.Params), t.Results)
	}))
	section(wasmbin.SectionImport, entries(g.imports, func(b []byte, im wasmbin.Import) []byte {
		b = append(appendBytes(appendBytes(b, im.Module), im.Name), im.Kind)
		switch im.Kind {
		case wasmbin.KindFunc:
			return appendUint(b, uint64(im.Type))
		case wasmbin.KindTable:
			return im.Table.AppendTo(append(b, im.Table.Type))
		case wasmbin.KindMemory:
			return im.Memory.AppendTo(b)
		}
		return appendGlobalType(b, im.Global)
	}))
	section(wasmbin.SectionFunc, entries(g.funcs, func(b []byte, f guestFunc) []byte { return appendUint(b, uint64(f.typ)) }))
	section(wasmbin.SectionTable, entries(g.tables, func(b []byte, t wasmbin.Table) []byte { return t.AppendTo(append(b, t.Type)) }))
	section(wasmbin.SectionMemory, entries(g.memories, func(b []byte, l wasmbin.Limits) []byte { return l.AppendTo(b) }))
	section(wasmbin.SectionGlobal, entries(g.globals, func(b []byte, g wasmbin.GlobalType) []byte {
		zero := map[byte][]byte{
			wasmbin.TypeI32: {wasmbin.OpI32Const, 0}, wasmbin.TypeI64: {wasmbin.OpI64Const, 0}, wasmbin.TypeF32: {wasmbin.OpF32Const, 0, 0, 0, 0},
			wasmbin.TypeFuncref: {wasmbin.OpRefNull, wasmbin.TypeFuncref}, wasmbin.TypeV128: append([]byte{wasmbin.OpVector, wasmbin.VecConst}, make([]byte, 16)...),
		}
		return append(append(appendGlobalType(b, g), zero[g.Type]...), wasmbin.OpEnd)
	}))
	section(wasmbin.SectionExport, entries(g.exports, appendExport))
	if g.start != nil {
		section(wasmbin.SectionStart, leb(uint64(*g.start)))
	}
	if len(g.elements) > 0 {
		section(wasmbin.SectionElement, append([]byte{1, 0, wasmbin.OpI32Const, 0, wasmbin.OpEnd}, entries(g.elements, func(b []byte, f uint32) []byte { return appendUint(b, uint64(f)) })...))
	}
	if g.counted {
		section(wasmbin.SectionCount, leb(uint64(len(g.data))))
	}
	section(wasmbin.SectionCode, entries(g.funcs, func(b []byte, f guestFunc) []byte {
		if f.decl == nil {
			f.decl = []byte{0}
		}
		return appendBytes(b, append(slices.Concat(f.decl, f.code), wasmbin.OpEnd))
	}))
	section(wasmbin.SectionData, entries(g.data, func(b []byte, d wasmbin.DataSegment) []byte {
		return appendBytes(append(appendUint(b, uint64(d.Flag)), d.Offset...), d.Bytes)
	}))
	for _, name := range g.custom {
		section(wasmbin.SectionCustom, append(appendBytes(nil, name), 0, 0))
	}
	return b
}

// assembled puts a parsed module together again, after a test has changed its
// parts.
func assembled(m *wasmbin.Module) []byte {
	m.Sections[wasmbin.SectionCode] = entries(m.Bodies, func(b []byte, body wasmbin.Body) []byte { return appendBytes(b, slices.Concat(body.Decl, body.Code)) })
	if len(m.Exports) > 0 {
		m.Sections[wasmbin.SectionExport] = entries(m.Exports, appendExport)
	}
	b := []byte(wasmbin.Header)
	for _, id := range []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11} {
		b = appendSection(b, id, m.Sections[id])
	}
	return b
}

func mustParse(tb testing.TB, wasm []byte) *wasmbin.Module {
	tb.Helper()
	m, err := wasmbin.Parse(wasm)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// plain is a module with a little of everything that is metered: function 0 is
// imported, 1 is a small leaf, 2 calls and returns from within, 3 loops, 4 moves
// bytes, 5 does so out of a table.
func plain() guest {
	return guest{
		types:    []wasmbin.FuncType{{}, {Params: string([]byte{wasmbin.TypeI32}), Results: string([]byte{wasmbin.TypeI32})}},
		imports:  []wasmbin.Import{{Module: "env", Name: "f"}},
		tables:   []wasmbin.Table{{Type: wasmbin.TypeFuncref, Limits: wasmbin.Limits{Min: 4}}},
		memories: []wasmbin.Limits{{Min: 1}},
		globals:  []wasmbin.GlobalType{{Type: wasmbin.TypeI32, Mutable: true}, {Type: wasmbin.TypeF32, Mutable: false}},
		exports:  []wasmbin.Export{{Name: "go", Kind: wasmbin.KindFunc, Index: 2}, {Name: "loop", Kind: wasmbin.KindFunc, Index: 3}, {Name: "fill", Kind: wasmbin.KindFunc, Index: 4}},
		elements: []uint32{5},
		funcs: []guestFunc{
			{1, nil, code(wasmbin.OpLocalGet, 0, i32(3), wasmbin.OpI32Add)},
			{1, nil, code(wasmbin.OpCall, 0, wasmbin.OpLocalGet, 0, wasmbin.OpI32Eqz, wasmbin.OpIf, wasmbin.BlockEmpty, i32(1), wasmbin.OpReturn, wasmbin.OpEnd, wasmbin.OpLocalGet, 0, wasmbin.OpCall, 1)},
			{1, nil, code(wasmbin.OpLoop, wasmbin.BlockEmpty, wasmbin.OpLocalGet, 0, i32(1), wasmbin.OpI32Sub, wasmbin.OpLocalTee, 0, wasmbin.OpBrIf, 0, wasmbin.OpEnd, i32(0))},
			{1, nil, code(i32(0), wasmbin.OpLocalGet, 0, wasmbin.OpLocalGet, 0, wasmbin.OpMisc, wasmbin.MiscMemoryFill, 0,
				i32(0), i32(0), i32(Piece), wasmbin.OpMisc, wasmbin.MiscMemoryCopy, 0, 0, i32(0))},
			{0, nil, code(i32(0), wasmbin.OpRefNull, wasmbin.TypeFuncref, i32(2), wasmbin.OpNop, wasmbin.OpMisc, wasmbin.MiscTableFill, 0)},
		},
	}
}
