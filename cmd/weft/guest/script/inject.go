package script

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Section is the name of the custom section that describes the script of a module.
const Section = "weft-script"

// bundleExport is the global of the engine that holds the address of the struct
// {source, source_size, map, map_size}.
const bundleExport = "user_bundle"

// pageSize is the size of a page of WebAssembly's memory in bytes.
const pageSize = 1 << 16

// ErrEngine is the error of a module that is not an engine for scripts.
var ErrEngine = errors.New("the module is not an engine for scripts")

// Sections of a WebAssembly module.
const (
	sectionCustom    = 0
	sectionImport    = 2
	sectionMemory    = 5
	sectionGlobal    = 6
	sectionExport    = 7
	sectionData      = 11
	sectionDataCount = 12
)

// Inject returns the engine with a script in its memory. source is JavaScript in UTF-8,
// lines is a map of [LineMap], and info is the content of the custom section [Section].
// lines and info may be empty. Inject does not change its arguments.
//
// # Errors
//
// ErrEngine, wrapped, if the module is broken or has no place for a script; an error if
// the memory cannot hold the script.
func Inject(engine, source, lines, info []byte) ([]byte, error) {
	m, err := parse(engine)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEngine, err)
	}
	bundle := make([]byte, 0, len(source)+1+len(lines))
	bundle = append(append(append(bundle, source...), 0), lines...)
	base := m.pages * pageSize
	pages := m.pages + (uint64(len(bundle))+pageSize-1)/pageSize
	if pages > m.most {
		return nil, fmt.Errorf("the script has %d bytes: the engine's memory has room for %d", len(source), (m.most-m.pages)*pageSize)
	}
	var header []byte
	for _, n := range []uint64{base, uint64(len(source)), base + uint64(len(source)) + 1, uint64(len(lines))} {
		header = binary.LittleEndian.AppendUint32(header, uint32(n)) // below 4 GiB, as pages are
	}
	out := append(make([]byte, 0, len(engine)+len(bundle)+len(info)+64), engine[:8]...)
	for _, s := range m.sections {
		body := s.body
		switch s.id {
		case sectionMemory:
			body = append(binary.AppendUvarint(bytes.Clone(body[:2]), pages), m.afterMinimum...)
		case sectionDataCount:
			body = binary.AppendUvarint(nil, m.segments+2)
		case sectionData:
			body = append(binary.AppendUvarint(nil, m.segments+2), m.data...)
			body = appendSegment(body, base, bundle)
			body = appendSegment(body, uint64(m.address), header)
		case sectionExport:
			body = m.exports
		}
		out = appendSection(out, s.id, body)
	}
	if len(info) > 0 {
		body := append(binary.AppendUvarint(nil, uint64(len(Section))), Section...)
		out = appendSection(out, sectionCustom, append(body, info...))
	}
	return out, nil
}

// Info returns the content of the custom section [Section] of a module; nil if the module
// is broken or has no such section.
func Info(module []byte) []byte {
	sections, err := split(module)
	if err != nil {
		return nil
	}
	for _, s := range sections {
		r := reader{b: s.body}
		if name := r.bytes(r.u32()); s.id == sectionCustom && r.err == nil && string(name) == Section {
			return s.body[r.at:]
		}
	}
	return nil
}

func appendSection(out []byte, id byte, body []byte) []byte {
	return append(binary.AppendUvarint(append(out, id), uint64(len(body))), body...)
}

// appendSegment appends an active data segment of memory 0.
func appendSegment(out []byte, address uint64, data []byte) []byte {
	out = appendSigned(append(out, 0, opI32Const), int64(int32(uint32(address)))) // an i32 holds addresses of 4 GiB
	return append(binary.AppendUvarint(append(out, opEnd), uint64(len(data))), data...)
}

// Opcodes of constant expressions.
const (
	opEnd      = 0x0b
	opI32Const = 0x41
	opI64Const = 0x42
	opF32Const = 0x43
	opF64Const = 0x44
)

// appendSigned appends a number as signed LEB128.
func appendSigned(out []byte, v int64) []byte {
	for {
		low := byte(v & 0x7f)
		v >>= 7
		if v == 0 && low&0x40 == 0 || v == -1 && low&0x40 != 0 {
			return append(out, low)
		}
		out = append(out, low|0x80)
	}
}

// section is a section of a module.
type section struct {
	id   byte
	body []byte
}

// module is an engine, as far as Inject changes it.
type module struct {
	sections     []section
	pages, most  uint64 // the memory's minimum and the largest that it may have
	afterMinimum []byte // the rest of the memory section
	segments     uint64 // data segments
	data         []byte // the data section without its count
	exports      []byte // the export section without the export of the bundle
	address      uint32 // of the bundle's struct
}

// split reads the sections of a module.
func split(wasm []byte) ([]section, error) {
	if len(wasm) < 8 || string(wasm[:8]) != "\x00asm\x01\x00\x00\x00" {
		return nil, errors.New("the file does not begin as a WebAssembly module")
	}
	r := reader{b: wasm, at: 8}
	var sections []section
	for r.at < len(r.b) && r.err == nil {
		id := r.byte()
		sections = append(sections, section{id, r.bytes(r.u32())})
	}
	return sections, r.err
}

// parse reads what Inject needs of an engine.
func parse(wasm []byte) (*module, error) {
	sections, err := split(wasm)
	if err != nil {
		return nil, err
	}
	m := &module{sections: sections}
	bodies := map[byte][]byte{}
	for _, s := range sections {
		if s.id == sectionCustom {
			continue
		}
		if _, twice := bodies[s.id]; twice {
			return nil, fmt.Errorf("section %d is there twice", s.id)
		}
		bodies[s.id] = s.body
	}
	for _, id := range []byte{sectionMemory, sectionGlobal, sectionExport, sectionData} {
		if bodies[id] == nil {
			return nil, fmt.Errorf("section %d is missing", id)
		}
	}
	if err := functionsOnly(bodies[sectionImport]); err != nil {
		return nil, err
	}
	if err := m.readMemory(bodies[sectionMemory]); err != nil {
		return nil, err
	}
	global, err := m.readExports(bodies[sectionExport])
	if err != nil {
		return nil, err
	}
	if m.address, err = constant(bodies[sectionGlobal], global); err != nil {
		return nil, err
	}
	if uint64(m.address)+16 > m.pages*pageSize {
		return nil, fmt.Errorf("%s lies outside of the memory", bundleExport)
	}
	r := reader{b: bodies[sectionData]}
	m.segments = r.u32()
	m.data = r.b[r.at:]
	if n, ok := bodies[sectionDataCount]; ok && r.err == nil {
		count := reader{b: n}
		if count.u32() != m.segments {
			return nil, errors.New("the data count is not the number of data segments")
		}
	}
	return m, r.err
}

// functionsOnly checks that a module imports functions only, because an imported global
// or memory would change the numbers of the engine's own.
func functionsOnly(imports []byte) error {
	r := reader{b: imports}
	if imports == nil {
		return nil
	}
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		r.bytes(r.u32())
		r.bytes(r.u32())
		if kind := r.byte(); kind != 0 {
			return errors.New("the module imports something that is not a function")
		}
		r.u32()
	}
	return r.err
}

// readMemory reads the limits of the only memory.
func (m *module) readMemory(body []byte) error {
	r := reader{b: body}
	if r.byte() != 1 {
		return errors.New("the module does not have one memory")
	}
	flags := r.byte()
	if flags > 1 {
		return errors.New("the memory is shared or has 64-bit addresses")
	}
	m.pages, m.most = r.u32(), 1<<16-1
	m.afterMinimum = r.b[r.at:]
	if flags == 1 {
		m.most = min(m.most, r.u32())
	}
	if r.err == nil && m.pages > m.most {
		return errors.New("the memory's minimum is above its maximum")
	}
	return r.err
}

// readExports returns the number of the global that holds the bundle's address, and
// collects the other exports.
func (m *module) readExports(body []byte) (global uint64, err error) {
	const kindGlobal = 3
	r := reader{b: body}
	found := false
	var kept []byte
	count := r.u32()
	for i := uint64(0); i < count && r.err == nil; i++ {
		begin := r.at
		name := string(r.bytes(r.u32()))
		kind, index := r.byte(), r.u32()
		if name == bundleExport && kind == kindGlobal {
			global, found = index, true
			continue
		}
		kept = append(kept, r.b[begin:r.at]...)
	}
	if r.err == nil && !found {
		return 0, fmt.Errorf("there is no global %s", bundleExport)
	}
	m.exports = append(binary.AppendUvarint(nil, count-1), kept...)
	return global, r.err
}

// constant returns the value of a global of type i32 that is a constant.
func constant(body []byte, index uint64) (uint32, error) {
	r := reader{b: body}
	count := r.u32()
	for i := uint64(0); i < count && r.err == nil; i++ {
		r.bytes(2) // its type, and whether it may change
		var v int64
		op := r.byte()
		switch op {
		case opI32Const, opI64Const:
			v = r.signed()
		case opF32Const:
			r.bytes(4)
		case opF64Const:
			r.bytes(8)
		default:
			return 0, fmt.Errorf("global %d is not a constant", i)
		}
		if r.byte() != opEnd {
			return 0, fmt.Errorf("global %d is not a constant", i)
		}
		if i == index && r.err == nil {
			if op != opI32Const || v < math.MinInt32 || v > math.MaxInt32 {
				return 0, fmt.Errorf("%s is not an address", bundleExport)
			}
			return uint32(int32(v)), nil // an address is unsigned
		}
	}
	if r.err != nil {
		return 0, r.err
	}
	return 0, fmt.Errorf("there is no global %d", index)
}

// reader reads the primitives of the binary format. After an error it gives zeros.
type reader struct {
	b   []byte
	at  int
	err error
}

var errShort = errors.New("the module ends early")

func (r *reader) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// bytes reads n bytes; nil after an error.
func (r *reader) bytes(n uint64) []byte {
	if r.err != nil {
		return nil
	}
	if n > uint64(len(r.b)-r.at) {
		r.err = errShort
		return nil
	}
	b := r.b[r.at : r.at+int(n) : r.at+int(n)] // n is at most the length
	r.at += int(n)                             // n is at most the length
	return b
}

func (r *reader) u32() uint64 {
	if r.err != nil {
		return 0
	}
	v, n := binary.Uvarint(r.b[r.at:])
	if n <= 0 || v > math.MaxUint32 {
		r.err = errors.New("the module has a broken number")
		return 0
	}
	r.at += n
	return v
}

// signed reads signed LEB128 of at most 64 bits.
func (r *reader) signed() (v int64) {
	for shift := 0; shift < 70 && r.err == nil; shift += 7 {
		low := r.byte()
		v |= int64(low&0x7f) << shift
		if low&0x80 == 0 {
			if low&0x40 != 0 && shift+7 < 64 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
	if r.err == nil {
		r.err = errors.New("the module has a broken number")
	}
	return 0
}
