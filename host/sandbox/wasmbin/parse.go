package wasmbin

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Sections and other bytes of the binary form; see the core specification, "Binary
// Format".
const (
	SectionCustom  = 0
	SectionType    = 1
	SectionImport  = 2
	SectionFunc    = 3
	SectionTable   = 4
	SectionMemory  = 5
	SectionGlobal  = 6
	SectionExport  = 7
	SectionStart   = 8
	SectionElement = 9
	SectionCode    = 10
	SectionData    = 11
	SectionCount   = 12 // count of data segments; precedes the code section
	sections       = 13

	limitsHasMax = 1 << 0
	limitsShared = 1 << 1
	limits64     = 1 << 2

	FormFunc = 0x60 // begins a function type
	Header   = "\x00asm\x01\x00\x00\x00"

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
// Module does not change after Parse, unless a caller changes it, and is safe for
// concurrent reading.
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

	Sections [sections][]byte // payloads by id, as views of the module; nil if absent
	Offsets  [sections]int    // where the payloads begin in the module
	Names    []byte           // payload of the first custom section "name", after its name

	DataSizes    []uint32 // bytes of data segments
	DataActive   []bool   // whether instantiation writes the data segment
	ElementSizes []uint32 // entries of element segments

	// Uses holds, for each of certain instructions, 1 plus the index of the first
	// function that uses it, or 0. The index of the array is the byte after OpMisc, or 0
	// for table.set.
	Uses [MiscTableFill + 1]uint32

	importedTables []Table
	refs           []uint32 // functions named as references, in the order of the module
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

// AppendTo appends the binary form.
func (l Limits) AppendTo(b []byte) []byte {
	flags := byte(0)
	if l.HasMax {
		flags |= limitsHasMax
	}
	if l.Shared {
		flags |= limitsShared
	}
	if l.Is64 {
		flags |= limits64
	}
	b = binary.AppendUvarint(append(b, flags), l.Min)
	if l.HasMax {
		b = binary.AppendUvarint(b, l.Max)
	}
	return b
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

// Body has the code of one function, and its sizes.
type Body struct {
	Size    int    // bytes, including the declarations of locals
	Locals  uint64 // declared, without parameters; at most 2^32-1
	Nesting int    // greatest depth of nested blocks
	Targets int    // of the largest br_table, including the default

	Offset int    // where the code begins in the module
	Code   []byte // after the declarations of locals; ends with the last end
	Decl   []byte // the declarations of locals, with their count
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
			return m.TypeAt(m.Imports[i].Type)
		}
		funcIndex--
	}
	if uint64(funcIndex) >= uint64(len(m.Funcs)) {
		return FuncType{}, false
	}
	return m.TypeAt(m.Funcs[funcIndex])
}

// FunctionTypes returns the type indices of all functions, imported ones first.
func (m *Module) FunctionTypes() (list []uint32) {
	for i := range m.Imports {
		if m.Imports[i].Kind == KindFunc {
			list = append(list, m.Imports[i].Type)
		}
	}
	return append(list, m.Funcs...)
}

// TypeAt returns the type with an index, if there is one.
func (m *Module) TypeAt(index uint32) (FuncType, bool) {
	if uint64(index) >= uint64(len(m.Types)) {
		return FuncType{}, false
	}
	return m.Types[index], true
}

// TableAt returns the type of a table, and whether the table is the module's own.
func (m *Module) TableAt(index uint32) (t Table, own bool) {
	if uint64(index) < uint64(len(m.importedTables)) {
		return m.importedTables[index], false
	}
	if index -= uint32(len(m.importedTables)); uint64(index) < uint64(len(m.Tables)) {
		return m.Tables[index], true
	}
	return Table{Type: TypeFuncref}, true
}

// BlockType returns the signature of a block.
func (m *Module) BlockType(block int64) (FuncType, bool) {
	switch {
	case block >= 0:
		return m.TypeAt(uint32(block))
	case block == BlockEmpty-0x80:
		return FuncType{}, true
	}
	return FuncType{Results: string([]byte{byte(block + 0x80)})}, true
}

// Imported counts the imports of a kind.
func (m *Module) Imported(kind byte) (n uint32) {
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
	r := &Reader{Rest: wasm[len(Header):], Offset: len(Header)}
	for last := 0; len(r.Rest) > 0; {
		start := r.Offset
		id, size := r.Byte(), r.Uint(32)
		section := &Reader{Offset: r.Offset}
		section.Rest = r.Take(size)
		if r.Err != nil {
			return nil, r.Err
		}
		if id >= sections {
			return nil, fmt.Errorf("at byte %d: unknown section %d", start, id)
		}
		if id != SectionCustom {
			order := sectionOrder(id)
			if order <= last {
				return nil, fmt.Errorf("at byte %d: section %d is out of order, or there twice", start, id)
			}
			last = order
			m.Sections[id], m.Offsets[id] = section.Rest, section.Offset
		}
		if m.read(id, section); section.Err != nil {
			return nil, section.Err
		}
	}
	if len(m.Bodies) != len(m.Funcs) {
		return nil, fmt.Errorf("%d functions are declared, %d have code", len(m.Funcs), len(m.Bodies))
	}
	return m, m.readCode()
}

func checkHeader(wasm []byte) error {
	magic, version := Header[:4], Header[4:]
	switch {
	case len(wasm) >= maxBytes:
		return fmt.Errorf("%d bytes are too many", len(wasm))
	case len(wasm) < len(magic) || string(wasm[:len(magic)]) != magic:
		return ErrNotWasm
	case len(wasm) < len(Header):
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
	case id == SectionCount:
		return SectionCode
	case id >= SectionCode:
		return int(id) + 1
	}
	return int(id)
}

// read reads one section. A payload with bytes left over is an error, except for
// elements, data and globals: rewriting reads the rest of those.
func (m *Module) read(id byte, r *Reader) {
	switch id {
	case SectionCustom:
		m.readCustom(r)
		return
	case SectionType:
		r.Each(func() { m.Types = append(m.Types, r.funcType()) })
	case SectionImport:
		r.Each(func() {
			im := r.importEntry()
			if im.Kind == KindTable {
				m.importedTables = append(m.importedTables, im.Table)
			}
			m.Imports = append(m.Imports, im)
		})
	case SectionFunc:
		r.Each(func() { m.Funcs = append(m.Funcs, r.U32()) })
	case SectionTable:
		r.Each(func() { m.Tables = append(m.Tables, r.table()) })
	case SectionMemory:
		r.Each(func() { m.Memories = append(m.Memories, r.limits()) })
	case SectionGlobal:
		r.Each(func() {
			m.Globals = append(m.Globals, r.globalType())
			r.constantRefs(&m.refs)
		})
	case SectionExport:
		r.Each(func() { m.Exports = append(m.Exports, Export{r.Name(), r.Byte(), r.U32()}) })
	case SectionStart:
		start := r.U32()
		m.Start = &start
	case SectionElement:
		r.Each(func() {
			m.ElementSizes = append(m.ElementSizes, r.Element(&m.refs).Count)
			m.Elements++
		})
	case SectionCode:
		r.Each(func() { m.Bodies = append(m.Bodies, r.body()) })
	case SectionData:
		r.Each(func() {
			d := r.Data()
			m.DataSizes = append(m.DataSizes, uint32(len(d.Bytes)))
			m.DataActive = append(m.DataActive, d.Flag != DataPassive)
			m.Data++
		})
	case SectionCount:
		r.U32()
	}
	if r.Err == nil && len(r.Rest) > 0 {
		r.Fail("%d bytes are left over in section %d", len(r.Rest), id)
	}
}

func (m *Module) readCustom(r *Reader) {
	size := len(r.Rest)
	name := r.Name()
	if name == "name" && m.Names == nil {
		m.Names = append([]byte{}, r.Rest...)
	}
	m.Custom = append(m.Custom, Custom{name, size})
}

func (r *Reader) limits() Limits {
	flags := r.Byte()
	if flags > limitsHasMax|limitsShared|limits64 {
		r.Fail("unknown kind %#x of limits", flags)
		return Limits{}
	}
	l := Limits{HasMax: flags&limitsHasMax != 0, Shared: flags&limitsShared != 0, Is64: flags&limits64 != 0}
	bits := uint(32)
	if l.Is64 {
		bits = 64
	}
	l.Min = r.Uint(bits)
	if l.HasMax {
		l.Max = r.Uint(bits)
	}
	return l
}

// table reads a table's type. Tables with an initial element belong to a later version of
// WebAssembly.
func (r *Reader) table() Table {
	refType := r.Byte()
	if refType != TypeFuncref && refType != TypeExternref {
		r.Fail("tables of type %#x are not supported (WebAssembly 2.0)", refType)
		return Table{}
	}
	return Table{refType, r.limits()}
}

func (r *Reader) globalType() GlobalType {
	g := GlobalType{Type: r.Byte()}
	if !isValueType(g.Type) {
		r.Fail("a global of unknown type %#x", g.Type)
	}
	mutability := r.Byte()
	if mutability > 1 {
		r.Fail("a global of unknown mutability %d", mutability)
	}
	g.Mutable = mutability == 1
	return g
}

func (r *Reader) funcType() FuncType {
	if form := r.Byte(); form != FormFunc {
		r.Fail("types of form %#x are not supported (WebAssembly 2.0)", form)
		return FuncType{}
	}
	return FuncType{r.valueTypes(), r.valueTypes()}
}

func (r *Reader) valueTypes() string {
	types := r.Take(r.Uint(32))
	for _, t := range types {
		if !isValueType(t) {
			r.Fail("unknown value type %#x", t)
			return ""
		}
	}
	return string(types)
}

func (r *Reader) importEntry() Import {
	im := Import{Module: r.Name(), Name: r.Name(), Kind: r.Byte()}
	switch im.Kind {
	case KindFunc:
		im.Type = r.U32()
	case KindTable:
		im.Table = r.table()
	case KindMemory:
		im.Memory = r.limits()
	case KindGlobal:
		im.Global = r.globalType()
	default:
		r.Fail("imports of kind %d are not supported (WebAssembly 2.0)", im.Kind)
	}
	return im
}

// body reads the head of a function's code.
func (r *Reader) body() Body {
	size := r.U32()
	code := &Reader{Offset: r.Offset}
	code.Rest = r.Take(uint64(size))
	if r.Err != nil {
		return Body{}
	}
	body := Body{Size: int(size)}
	all := code.Rest
	code.Each(func() {
		body.Locals += uint64(code.U32())
		if t := code.Byte(); !isValueType(t) {
			code.Fail("a local of unknown type %#x", t)
		}
	})
	if code.Err != nil {
		r.Fail("locals of a function: %w", code.Err)
	}
	body.Locals = min(body.Locals, math.MaxUint32)
	body.Offset, body.Code, body.Decl = code.Offset, code.Rest, all[:len(all)-len(code.Rest)]
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
