package rewrite

import (
	"bytes"
	"errors"
	"fmt"
	"math"
)

// The binary form of WebAssembly modules; see the core specification, "Binary Format".
const (
	sectionCustom  = 0
	sectionType    = 1
	sectionImport  = 2
	sectionFunc    = 3
	sectionTable   = 4
	sectionMemory  = 5
	sectionGlobal  = 6
	sectionExport  = 7
	sectionStart   = 8
	sectionElement = 9
	sectionCode    = 10
	sectionData    = 11
	sectionCount   = 12 // count of data segments; precedes the code section
	sections       = 13

	limitsHasMax = 1 << 0
	limitsShared = 1 << 1
	limits64     = 1 << 2

	formFunc = 0x60
	header   = "\x00asm\x01\x00\x00\x00"

	// maxBytes is far above what any host accepts. Below it all positions fit.
	maxBytes = 1 << 30
)

// Value types as bytes.
const (
	TypeI32       = 0x7f
	TypeI64       = 0x7e
	TypeF32       = 0x7d
	TypeF64       = 0x7c
	TypeV128      = 0x7b
	TypeFuncref   = 0x70
	TypeExternref = 0x6f
)

// Kinds of imports and exports.
const (
	KindFunc   = 0
	KindTable  = 1
	KindMemory = 2
	KindGlobal = 3
)

// Errors of Parse that say what the bytes are if they are not a core module.
var (
	ErrNotWasm   = errors.New("not a WebAssembly binary: it does not begin with \\0asm")
	ErrComponent = errors.New("a component, not a core module")
	ErrTruncated = errors.New("truncated")
)

var componentVersion = []byte{0x0d, 0, 1, 0}

// Module is what can be known of a module without compiling it. Strings are copies. A
// Module does not change after Parse and is safe for concurrent reading.
type Module struct {
	Types    []FuncType
	Imports  []Import
	Funcs    []uint32 // type indices of the module's own functions
	Tables   []Table  // the module's own
	Memories []Limits // the module's own
	Globals  []GlobalType
	Exports  []Export
	Start    *uint32 // index of the start function
	Elements int     // element segments
	Data     int     // data segments
	Bodies   []Body  // in the order of Funcs
	Custom   []Custom

	sections [sections][]byte // payloads by id, as views of the module; nil if absent
	offsets  [sections]int    // where the payloads begin in the module
	names    []byte           // payload of the first custom section "name", after its name

	importedTables []Table

	dataSizes    []uint32 // bytes of data segments
	dataActive   []bool
	elementSizes []uint32 // entries of element segments
	uses         uses
	refs         []uint32 // functions named as references, in the order of the module
}

// FuncType is a signature: value types as their bytes.
type FuncType struct{ Params, Results string }

// String shows the signature as (i32, i32) -> (i64).
func (f FuncType) String() string {
	return "(" + valueTypes(f.Params) + ") -> (" + valueTypes(f.Results) + ")"
}

// Import is one import. Only the field of its kind is set.
type Import struct {
	Module, Name string
	Kind         byte
	Type         uint32 // type index of a function
	Table        Table
	Memory       Limits
	Global       GlobalType
}

// Limits are the limits of a memory, in pages, or of a table, in entries.
type Limits struct {
	Min, Max uint64
	HasMax   bool // if false, Max is 0
	Shared   bool // Shared and Is64 are not part of WebAssembly 2.0
	Is64     bool
}

// Table is the type of a table.
type Table struct {
	Type byte // TypeFuncref or TypeExternref
	Limits
}

// GlobalType is the type of a global.
type GlobalType struct {
	Type    byte
	Mutable bool
}

// Export is one export.
type Export struct {
	Name  string
	Kind  byte
	Index uint32
}

// Body has the sizes of one function's code.
type Body struct {
	Size    int    // bytes, including the declarations of locals
	Locals  uint64 // declared, without parameters; at most 2^32-1
	Nesting int    // greatest depth of nested blocks
	Targets int    // of the largest br_table, including the default

	offset int    // where the code begins in the module
	code   []byte // after the declarations of locals; ends with the last end
	decl   []byte // the declarations of locals, with their count
}

// Custom is a custom section.
type Custom struct {
	Name  string
	Bytes int // of the payload
}

// Signature returns the type of a function by its index. It returns false if the function
// or its type does not exist.
func (m *Module) Signature(funcIndex uint32) (FuncType, bool) {
	for i := range m.Imports {
		if m.Imports[i].Kind != KindFunc {
			continue
		}
		if funcIndex == 0 {
			return m.typeAt(m.Imports[i].Type)
		}
		funcIndex--
	}
	if uint64(funcIndex) >= uint64(len(m.Funcs)) {
		return FuncType{}, false
	}
	return m.typeAt(m.Funcs[funcIndex])
}

// functionTypes returns the type indices of all functions, imported ones first.
func (m *Module) functionTypes() (list []uint32) {
	for i := range m.Imports {
		if m.Imports[i].Kind == KindFunc {
			list = append(list, m.Imports[i].Type)
		}
	}
	return append(list, m.Funcs...)
}

func (m *Module) typeAt(index uint32) (FuncType, bool) {
	if uint64(index) >= uint64(len(m.Types)) {
		return FuncType{}, false
	}
	return m.Types[index], true
}

// imported counts the imports of a kind.
func (m *Module) imported(kind byte) (n uint32) {
	for i := range m.Imports {
		if m.Imports[i].Kind == kind {
			n++
		}
	}
	return n
}

// Parse reads a core module of WebAssembly 2.0: its sections, and each instruction for
// its form. Parse does not validate: it ignores types, indices and the bytes of constant
// expressions. The result refers to the module's memory. Parse allocates at most 150
// bytes for each byte of the module, plus 64 KiB.
//
// # Errors
//
// ErrNotWasm and ErrComponent unchanged; an error that wraps ErrTruncated and names the
// byte; any other error says where the fault is and what it is, as far as known.
func Parse(wasm []byte) (*Module, error) {
	if err := checkHeader(wasm); err != nil {
		return nil, err
	}
	m := &Module{}
	r := &reader{b: wasm[len(header):], off: len(header)}
	for last := 0; len(r.b) > 0; {
		start := r.off
		id, size := r.byte(), r.uint(32)
		section := &reader{off: r.off}
		section.b = r.take(size)
		if r.err != nil {
			return nil, r.err
		}
		if id >= sections {
			return nil, fmt.Errorf("at byte %d: unknown section %d", start, id)
		}
		if id != sectionCustom {
			if order := sectionOrder(id); order <= last {
				return nil, fmt.Errorf("at byte %d: section %d is out of order, or there twice", start, id)
			} else {
				last = order
			}
			m.sections[id], m.offsets[id] = section.b, section.off
		}
		if m.read(id, section); section.err != nil {
			return nil, section.err
		}
	}
	if len(m.Bodies) != len(m.Funcs) {
		return nil, fmt.Errorf("%d functions are declared, %d have code", len(m.Funcs), len(m.Bodies))
	}
	return m, m.readCode()
}

func checkHeader(wasm []byte) error {
	magic, version := header[:4], header[4:]
	switch {
	case len(wasm) >= maxBytes:
		return fmt.Errorf("%d bytes are too many", len(wasm))
	case len(wasm) < len(magic) || string(wasm[:len(magic)]) != magic:
		return ErrNotWasm
	case len(wasm) < len(header):
		return fmt.Errorf("at byte %d: %w in its header", len(wasm), ErrTruncated)
	case bytes.Equal(wasm[4:8], componentVersion):
		return ErrComponent
	case string(wasm[4:8]) != version:
		return fmt.Errorf("of version % x, not 1", wasm[4:8])
	}
	return nil
}

// sectionOrder returns the rank of a section: the count of data segments stands between
// elements and code.
func sectionOrder(id byte) int {
	switch {
	case id == sectionCount:
		return sectionCode
	case id >= sectionCode:
		return int(id) + 1
	}
	return int(id)
}

// read reads one section. A payload with bytes left over is an error, except for
// elements, data and globals: rewriting reads the rest of those.
func (m *Module) read(id byte, r *reader) {
	switch id {
	case sectionCustom:
		m.readCustom(r)
		return
	case sectionType:
		r.each(func() { m.Types = append(m.Types, r.funcType()) })
	case sectionImport:
		r.each(func() {
			im := r.importEntry()
			if im.Kind == KindTable {
				m.importedTables = append(m.importedTables, im.Table)
			}
			m.Imports = append(m.Imports, im)
		})
	case sectionFunc:
		r.each(func() { m.Funcs = append(m.Funcs, r.u32()) })
	case sectionTable:
		r.each(func() { m.Tables = append(m.Tables, r.table()) })
	case sectionMemory:
		r.each(func() { m.Memories = append(m.Memories, r.limits()) })
	case sectionGlobal:
		r.each(func() {
			m.Globals = append(m.Globals, r.globalType())
			r.constantRefs(&m.refs)
		})
	case sectionExport:
		r.each(func() { m.Exports = append(m.Exports, Export{r.name(), r.byte(), r.u32()}) })
	case sectionStart:
		start := r.u32()
		m.Start = &start
	case sectionElement:
		r.each(func() {
			m.elementSizes = append(m.elementSizes, r.element(&m.refs).count)
			m.Elements++
		})
	case sectionCode:
		r.each(func() { m.Bodies = append(m.Bodies, r.body()) })
	case sectionData:
		r.each(func() {
			d := r.data()
			m.dataSizes = append(m.dataSizes, uint32(len(d.bytes)))
			m.dataActive = append(m.dataActive, d.flag != dataPassive)
			m.Data++
		})
	case sectionCount:
		r.u32()
	}
	if r.err == nil && len(r.b) > 0 {
		r.fail("%d bytes are left over in section %d", len(r.b), id)
	}
}

func (m *Module) readCustom(r *reader) {
	size := len(r.b)
	name := r.name()
	if name == "name" && m.names == nil {
		m.names = append([]byte{}, r.b...)
	}
	m.Custom = append(m.Custom, Custom{name, size})
}

func (r *reader) limits() Limits {
	flags := r.byte()
	if flags > limitsHasMax|limitsShared|limits64 {
		r.fail("unknown kind %#x of limits", flags)
		return Limits{}
	}
	l := Limits{HasMax: flags&limitsHasMax != 0, Shared: flags&limitsShared != 0, Is64: flags&limits64 != 0}
	bits := uint(32)
	if l.Is64 {
		bits = 64
	}
	l.Min = r.uint(bits)
	if l.HasMax {
		l.Max = r.uint(bits)
	}
	return l
}

// table reads a table's type. Tables with an initial element belong to a later version of
// WebAssembly.
func (r *reader) table() Table {
	refType := r.byte()
	if refType != TypeFuncref && refType != TypeExternref {
		r.fail("tables of type %#x are not supported (WebAssembly 2.0)", refType)
		return Table{}
	}
	return Table{refType, r.limits()}
}

func (r *reader) globalType() GlobalType {
	g := GlobalType{Type: r.byte()}
	if !isValueType(g.Type) {
		r.fail("a global of unknown type %#x", g.Type)
	}
	mutability := r.byte()
	if mutability > 1 {
		r.fail("a global of unknown mutability %d", mutability)
	}
	g.Mutable = mutability == 1
	return g
}

func (r *reader) funcType() FuncType {
	if form := r.byte(); form != formFunc {
		r.fail("types of form %#x are not supported (WebAssembly 2.0)", form)
		return FuncType{}
	}
	return FuncType{r.valueTypes(), r.valueTypes()}
}

func (r *reader) valueTypes() string {
	types := r.take(r.uint(32))
	for _, t := range types {
		if !isValueType(t) {
			r.fail("unknown value type %#x", t)
			return ""
		}
	}
	return string(types)
}

func (r *reader) importEntry() Import {
	im := Import{Module: r.name(), Name: r.name(), Kind: r.byte()}
	switch im.Kind {
	case KindFunc:
		im.Type = r.u32()
	case KindTable:
		im.Table = r.table()
	case KindMemory:
		im.Memory = r.limits()
	case KindGlobal:
		im.Global = r.globalType()
	default:
		r.fail("imports of kind %d are not supported (WebAssembly 2.0)", im.Kind)
	}
	return im
}

// body reads the head of a function's code.
func (r *reader) body() Body {
	size := r.u32()
	code := &reader{off: r.off}
	code.b = r.take(uint64(size))
	if r.err != nil {
		return Body{}
	}
	body := Body{Size: int(size)}
	all := code.b
	code.each(func() {
		body.Locals += uint64(code.u32())
		if t := code.byte(); !isValueType(t) {
			code.fail("a local of unknown type %#x", t)
		}
	})
	if code.err != nil {
		r.fail("locals of a function: %w", code.err)
	}
	body.Locals = min(body.Locals, math.MaxUint32)
	body.offset, body.code, body.decl = code.off, code.b, all[:len(all)-len(code.b)]
	return body
}

// valueTypes names value types, given as bytes.
func valueTypes(types string) string {
	var text []byte
	for i := range len(types) {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = append(text, TypeName(types[i])...)
	}
	return string(text)
}

// TypeName names a value type.
func TypeName(t byte) string {
	switch t {
	case TypeI32:
		return "i32"
	case TypeI64:
		return "i64"
	case TypeF32:
		return "f32"
	case TypeF64:
		return "f64"
	case TypeV128:
		return "v128"
	case TypeFuncref:
		return "funcref"
	case TypeExternref:
		return "externref"
	}
	return fmt.Sprintf("type %#x", t)
}

func isValueType(b byte) bool {
	return b >= TypeV128 && b <= TypeI32 || b == TypeFuncref || b == TypeExternref
}
