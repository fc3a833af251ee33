package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// What binary WebAssembly looks like; see the core specification, "Binary
// Format".
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
	sectionCount   = 12 // of data segments

	kindFunc   = 0
	kindTable  = 1
	kindMemory = 2
	kindGlobal = 3
	kindTag    = 4

	limitsHasMax = 1 << 0
	limitsShared = 1 << 1
	limits64     = 1 << 2

	typeI32  = 0x7f
	typeI64  = 0x7e
	typeF32  = 0x7d
	typeF64  = 0x7c
	typeV128 = 0x7b
	formFunc = 0x60

	wasmPageBytes = 65_536
	wasmMaxPages  = 65_536
)

var (
	wasmMagic        = []byte("\x00asm")
	coreVersion      = []byte{1, 0, 0, 0}
	componentVersion = []byte{0x0d, 0, 1, 0}
)

// Errors of readModule: what the bytes are instead.
var (
	errNotWasm   = errors.New("not a WebAssembly binary: it does not begin with \\0asm")
	errComponent = errors.New("a component, not a core module")
	errTruncated = errors.New("truncated")
)

// binaryModule is what the sandbox wants to know of a module before anything
// compiles it. Names are copies; the rest is bounded by the size of the module.
type binaryModule struct {
	types    []funcType
	imports  []binaryImport
	funcs    []uint32 // type indices of the module's own functions
	tables   []binaryLimits
	memories []binaryLimits
	exports  []binaryExport
	globals  uint32
	elements uint32
	data     uint32
	bodies   []binaryBody
	sections [sectionCount + 1]binarySection // by id
}

// binarySection is where a section stands in the module: its id at start, what
// is in it from payload to end. All are 0 when there is none.
type binarySection struct{ start, payload, end int }

// there tells whether the module has the section.
func (s binarySection) there() bool { return s.end > 0 }

// funcType is a signature: value types as their bytes.
type funcType struct{ params, results string }

// String shows the signature as (i32, i32) -> (i64).
func (f funcType) String() string {
	return "(" + valueTypes(f.params) + ") -> (" + valueTypes(f.results) + ")"
}

type binaryImport struct {
	module, name string
	kind         byte
	typeIndex    uint32 // of a function
}

type binaryLimits struct {
	refType  byte // of a table
	flags    byte
	min, max uint64 // max only with limitsHasMax
}

type binaryExport struct {
	name  string
	kind  byte
	index uint32
}

type binaryBody struct {
	size   uint32
	locals uint64
}

// signature finds the type of a function by its index.
func (m *binaryModule) signature(index uint32) (funcType, bool) {
	for _, im := range m.imports {
		if im.kind != kindFunc {
			continue
		}
		if index == 0 {
			return m.typeAt(im.typeIndex)
		}
		index--
	}
	if uint64(index) >= uint64(len(m.funcs)) {
		return funcType{}, false
	}
	return m.typeAt(m.funcs[index])
}

func (m *binaryModule) typeAt(index uint32) (funcType, bool) {
	if uint64(index) >= uint64(len(m.types)) {
		return funcType{}, false
	}
	return m.types[index], true
}

// binaryReader reads one section or the list of sections. After the first
// error it only gives zeros.
type binaryReader struct {
	b   []byte
	off int // of b[0] in the module
	err error
}

func (r *binaryReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("at byte %d: "+format, append([]any{r.off}, args...)...)
	}
	r.b = nil
}

func (r *binaryReader) take(n uint64) []byte {
	if n > uint64(len(r.b)) {
		r.fail("%w", errTruncated)
		return nil
	}
	taken := r.b[:n]
	r.b, r.off = r.b[n:], r.off+int(n)
	return taken
}

func (r *binaryReader) byte() byte {
	b := r.take(1)
	if b == nil {
		return 0
	}
	return b[0]
}

// uint reads an unsigned LEB128 number of at most so many bits.
func (r *binaryReader) uint(bits uint) uint64 {
	var v uint64
	for shift := uint(0); shift < bits; shift += 7 {
		b := r.byte()
		if r.err != nil {
			return 0
		}
		if left := bits - shift; left < 7 && b>>left != 0 {
			break
		}
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return v
		}
	}
	r.fail("a number has more than %d bits", bits)
	return 0
}

func (r *binaryReader) u32() uint32 { return uint32(r.uint(32)) }

func (r *binaryReader) name() string {
	raw := r.take(r.uint(32))
	if !utf8.Valid(raw) {
		r.fail("a name is no UTF-8")
		return ""
	}
	return string(raw)
}

// each calls read for each entry of a vector, and stops at the first error.
// Every entry takes a byte at least, so the loop is bounded by the input.
func (r *binaryReader) each(read func()) {
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		if len(r.b) == 0 {
			r.fail("%w: %d entries are missing", errTruncated, n)
			return
		}
		read()
	}
}

func (r *binaryReader) limits() binaryLimits {
	l := binaryLimits{flags: r.byte()}
	if l.flags > limitsHasMax|limitsShared|limits64 {
		r.fail("unknown kind %#x of limits", l.flags)
		return l
	}
	bits := uint(32)
	if l.flags&limits64 != 0 {
		bits = 64
	}
	l.min = r.uint(bits)
	if l.flags&limitsHasMax != 0 {
		l.max = r.uint(bits)
	}
	return l
}

// table reads a table's type; tables with an initial element are of a later
// version of WebAssembly.
func (r *binaryReader) table() binaryLimits {
	refType := r.byte()
	if refType != typeFuncref && refType != typeExternref {
		r.fail("tables of type %#x are not supported (WebAssembly 2.0)", refType)
		return binaryLimits{}
	}
	l := r.limits()
	l.refType = refType
	return l
}

// readModule reads the parts of a core module that the sandbox checks itself.
// The compiler validates everything; this is to refuse by name what it would
// take, and to explain what it would not.
//
// # Errors
//
// errNotWasm, errComponent, one that is errTruncated, or one that says where
// and what.
func readModule(wasm []byte) (*binaryModule, error) {
	if !bytes.HasPrefix(wasm, wasmMagic) {
		return nil, errNotWasm
	}
	if len(wasm) < len(wasmMagic)+len(coreVersion) {
		return nil, fmt.Errorf("%w in its header", errTruncated)
	}
	switch version := wasm[4:8]; {
	case bytes.Equal(version, componentVersion):
		return nil, errComponent
	case !bytes.Equal(version, coreVersion):
		return nil, fmt.Errorf("of version % x, not 1", version)
	}
	m := &binaryModule{}
	r := &binaryReader{b: wasm[8:], off: 8}
	for len(r.b) > 0 && r.err == nil {
		start := r.off
		id, size := r.byte(), r.uint(32)
		payload := r.off
		section := &binaryReader{off: payload, b: r.take(size)}
		if r.err != nil {
			break
		}
		if id != sectionCustom && int(id) < len(m.sections) {
			if m.sections[id].there() {
				return nil, fmt.Errorf("at byte %d: section %d is there twice", start, id)
			}
			m.sections[id] = binarySection{start, payload, r.off}
		}
		m.read(id, section)
		if section.err != nil {
			return nil, section.err
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

// read reads one section; those that are of no interest here are left to the
// compiler.
func (m *binaryModule) read(id byte, r *binaryReader) {
	switch id {
	case sectionType:
		r.each(func() { m.types = append(m.types, r.funcType()) })
	case sectionImport:
		r.each(func() { m.imports = append(m.imports, r.importEntry()) })
	case sectionFunc:
		r.each(func() { m.funcs = append(m.funcs, r.u32()) })
	case sectionTable:
		r.each(func() { m.tables = append(m.tables, r.table()) })
	case sectionMemory:
		r.each(func() { m.memories = append(m.memories, r.limits()) })
	case sectionGlobal:
		m.globals = r.u32()
	case sectionExport:
		r.each(func() { m.exports = append(m.exports, binaryExport{r.name(), r.byte(), r.u32()}) })
	case sectionElement:
		m.elements = r.u32()
	case sectionCode:
		r.each(func() { m.bodies = append(m.bodies, r.body()) })
	case sectionData:
		m.data = r.u32()
	}
}

func (r *binaryReader) funcType() funcType {
	if form := r.byte(); form != formFunc {
		r.fail("types of form %#x are not supported (WebAssembly 2.0)", form)
		return funcType{}
	}
	params := r.take(r.uint(32))
	results := r.take(r.uint(32))
	return funcType{string(params), string(results)}
}

func (r *binaryReader) importEntry() binaryImport {
	im := binaryImport{module: r.name(), name: r.name(), kind: r.byte()}
	switch im.kind {
	case kindFunc:
		im.typeIndex = r.u32()
	case kindTable:
		r.table()
	case kindMemory:
		r.limits()
	case kindGlobal:
		r.take(2) // type and mutability
	case kindTag:
		r.take(1)
		r.u32()
	default:
		r.fail("unknown kind %d of import", im.kind)
	}
	return im
}

// body reads the head of a function's code.
func (r *binaryReader) body() binaryBody {
	size := r.u32()
	code := &binaryReader{off: r.off, b: r.take(uint64(size))}
	if r.err != nil {
		return binaryBody{}
	}
	body := binaryBody{size: size}
	code.each(func() {
		body.locals += uint64(code.u32())
		code.byte() // their type
	})
	if code.err != nil {
		r.fail("locals of a function: %w", code.err)
	}
	if body.locals > math.MaxUint32 {
		body.locals = math.MaxUint32
	}
	return body
}

// valueTypes names value types, given as their bytes.
func valueTypes(types string) string {
	var text []byte
	for i := range len(types) {
		if i > 0 {
			text = append(text, ", "...)
		}
		text = append(text, valueType(types[i])...)
	}
	return string(text)
}

const (
	typeFuncref   = 0x70
	typeExternref = 0x6f
)

func valueType(b byte) string {
	switch b {
	case typeI32:
		return "i32"
	case typeI64:
		return "i64"
	case typeF32:
		return "f32"
	case typeF64:
		return "f64"
	case typeV128:
		return "v128"
	case typeFuncref:
		return "funcref"
	case typeExternref:
		return "externref"
	}
	return fmt.Sprintf("type %#x", b)
}
