package rewrite

import (
	"slices"
	"testing"
)

// guest is a small module that tests write.
type guest struct {
	types    []FuncType
	imports  []Import
	tables   []Table
	memories []Limits
	globals  []GlobalType // all zero
	exports  []Export
	start    *uint32
	elements []uint32 // functions, from entry 0 of table 0
	funcs    []guestFunc
	data     []dataSegment
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

func i32(v int64) []byte  { return appendInt([]byte{opI32Const}, v) }
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

func appendGlobalType(b []byte, g GlobalType) []byte {
	if b = append(b, g.Type, 0); g.Mutable {
		b[len(b)-1] = 1
	}
	return b
}

func (g guest) wasm() []byte {
	b := []byte(header)
	section := func(id byte, payload []byte) { b = appendSection(b, id, payload) }
	section(sectionType, entries(g.types, func(b []byte, t FuncType) []byte {
		return appendBytes(appendBytes(append(b, formFunc), t.Params), t.Results)
	}))
	section(sectionImport, entries(g.imports, func(b []byte, im Import) []byte {
		b = append(appendBytes(appendBytes(b, im.Module), im.Name), im.Kind)
		switch im.Kind {
		case KindFunc:
			return appendUint(b, uint64(im.Type))
		case KindTable:
			return appendLimits(append(b, im.Table.Type), im.Table.Limits)
		case KindMemory:
			return appendLimits(b, im.Memory)
		}
		return appendGlobalType(b, im.Global)
	}))
	section(sectionFunc, entries(g.funcs, func(b []byte, f guestFunc) []byte { return appendUint(b, uint64(f.typ)) }))
	section(sectionTable, entries(g.tables, func(b []byte, t Table) []byte { return appendLimits(append(b, t.Type), t.Limits) }))
	section(sectionMemory, entries(g.memories, appendLimits))
	section(sectionGlobal, entries(g.globals, func(b []byte, g GlobalType) []byte {
		zero := map[byte][]byte{
			TypeI32: {opI32Const, 0}, TypeI64: {opI64Const, 0}, TypeF32: {opF32Const, 0, 0, 0, 0},
			TypeFuncref: {opRefNull, TypeFuncref}, TypeV128: append([]byte{opVector, vecConst}, make([]byte, 16)...),
		}
		return append(append(appendGlobalType(b, g), zero[g.Type]...), opEnd)
	}))
	section(sectionExport, entries(g.exports, appendExport))
	if g.start != nil {
		section(sectionStart, leb(uint64(*g.start)))
	}
	if len(g.elements) > 0 {
		section(sectionElement, append([]byte{1, 0, opI32Const, 0, opEnd}, entries(g.elements, func(b []byte, f uint32) []byte { return appendUint(b, uint64(f)) })...))
	}
	if g.counted {
		section(sectionCount, leb(uint64(len(g.data))))
	}
	section(sectionCode, entries(g.funcs, func(b []byte, f guestFunc) []byte {
		if f.decl == nil {
			f.decl = []byte{0}
		}
		return appendBytes(b, append(slices.Concat(f.decl, f.code), opEnd))
	}))
	section(sectionData, entries(g.data, func(b []byte, d dataSegment) []byte {
		return appendBytes(append(appendUint(b, uint64(d.flag)), d.offset...), d.bytes)
	}))
	for _, name := range g.custom {
		section(sectionCustom, append(appendBytes(nil, name), 0, 0))
	}
	return b
}

// assembled puts a parsed module together again, after a test has changed its
// parts.
func (m *Module) assembled() []byte {
	m.sections[sectionCode] = entries(m.Bodies, func(b []byte, body Body) []byte { return appendBytes(b, slices.Concat(body.decl, body.code)) })
	if len(m.Exports) > 0 {
		m.sections[sectionExport] = entries(m.Exports, appendExport)
	}
	b := []byte(header)
	for _, id := range []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 10, 11} {
		b = appendSection(b, id, m.sections[id])
	}
	return b
}

func mustParse(tb testing.TB, wasm []byte) *Module {
	tb.Helper()
	m, err := Parse(wasm)
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
		types:    []FuncType{{}, {string([]byte{TypeI32}), string([]byte{TypeI32})}},
		imports:  []Import{{Module: "env", Name: "f"}},
		tables:   []Table{{TypeFuncref, Limits{Min: 4}}},
		memories: []Limits{{Min: 1}},
		globals:  []GlobalType{{TypeI32, true}, {TypeF32, false}},
		exports:  []Export{{"go", KindFunc, 2}, {"loop", KindFunc, 3}, {"fill", KindFunc, 4}},
		elements: []uint32{5},
		funcs: []guestFunc{
			{1, nil, code(opLocalGet, 0, i32(3), opI32Add)},
			{1, nil, code(opCall, 0, opLocalGet, 0, opI32Eqz, opIf, blockEmpty, i32(1), opReturn, opEnd, opLocalGet, 0, opCall, 1)},
			{1, nil, code(opLoop, blockEmpty, opLocalGet, 0, i32(1), opI32Sub, opLocalTee, 0, opBrIf, 0, opEnd, i32(0))},
			{1, nil, code(i32(0), opLocalGet, 0, opLocalGet, 0, opMisc, miscMemoryFill, 0,
				i32(0), i32(0), i32(Piece), opMisc, miscMemoryCopy, 0, 0, i32(0))},
			{0, nil, code(i32(0), opRefNull, TypeFuncref, i32(2), opNop, opMisc, miscTableFill, 0)},
		},
	}
}
