// Package lines finds the source lines of instructions of a module. It reads the line
// tables (.debug_line of DWARF 2 to 5) that compilers can write to custom sections.
//
// The sections are hostile input. The package reads them once from beginning to end, in
// time and memory bounded by their size. Invalid data ends the reading; places found
// before stay valid. The package reads nothing else of DWARF, because no such bounds are
// known for the rest.
//
// The package must not depend on why or how a module is run.
package lines

// Section is the name of the custom section that line tables require.
const Section = ".debug_line"

const (
	headerBytes   = 8 // of a module's header
	sectionCustom = 0
	maxName       = 1024 // bytes of a file's name
)

// Place is a line of a source file. The zero Place means unknown.
type Place struct {
	File string // as the compiler names it, usually a full path
	Line int
}

// Find returns the place of each offset in a module's code section, or the zero Place if
// it is unknown. Offsets are counted from the section's number of functions.
func Find(wasm []byte, offsets []uint32) []Place {
	places := make([]Place, len(offsets))
	tables := sections(wasm)
	r := &reader{b: tables[Section]}
	for len(r.b) > 0 && r.ok() {
		size := r.fixed(4)
		if size >= 0xfffffff0 { // the 64-bit format, which no compiler writes for 32-bit modules
			return places
		}
		u := &unit{reader: reader{b: r.take(size)}, tables: tables, offsets: offsets, places: places}
		if r.ok() {
			u.find()
		}
	}
	return places
}

// sections returns the custom sections that hold line tables, the last of each name.
func sections(wasm []byte) map[string][]byte {
	found := map[string][]byte{}
	r := &reader{b: wasm[min(len(wasm), headerBytes):]}
	for len(r.b) > 0 && r.ok() {
		id, payload := r.fixed(1), &reader{}
		payload.b = r.take(r.uleb())
		if id != sectionCustom || !r.ok() {
			continue
		}
		switch name := string(payload.take(payload.uleb())); name {
		case Section, ".debug_line_str", ".debug_str":
			found[name] = payload.b
		}
	}
	return found
}

// unit is the table of one compilation unit.
type unit struct {
	reader
	tables  map[string][]byte
	offsets []uint32
	places  []Place

	version     uint64
	least       uint64 // smallest length of an instruction in bytes
	base        int64
	width       uint64
	opcodes     uint64
	arguments   []byte // numbers of arguments of the standard opcodes, from 1 on
	names       reader // directories and files
	state, last row
	dead        bool // the sequence belongs to a function that the linker removed
	hits        []hit
}

// row is the state of the machine that computes a table.
type row struct {
	address, file uint64
	line          int64
	set           bool // the row is valid
}

// hit is an offset that was found; its file name is read later.
type hit struct {
	offset int
	file   uint64
}

// find runs the program of the table.
func (u *unit) find() {
	if !u.header() {
		return
	}
	u.restart()
	for len(u.b) > 0 && u.ok() {
		switch op := u.fixed(1); {
		case op >= u.opcodes:
			op -= u.opcodes
			u.state.address += op / u.width * u.least
			u.state.line += u.base + int64(op%u.width)
			u.emit(false)
		case op == 0:
			u.extended()
		default:
			u.standard(op)
		}
	}
	u.nameHits()
}

// header reads up to the program, and records where the names are.
func (u *unit) header() bool {
	if u.version = u.fixed(2); u.version < 2 || u.version > 5 {
		return false
	}
	if u.version == 5 {
		u.fixed(1) // bytes of an address
		u.fixed(1) // bytes of a segment's selector
	}
	size := u.fixed(4)
	program := u.b[min(uint64(len(u.b)), size):]
	u.b = u.b[:len(u.b)-len(program)]
	u.least = u.fixed(1)
	if u.version >= 4 {
		u.fixed(1) // operations per instruction
	}
	u.fixed(1) // is_stmt
	u.base, u.width, u.opcodes = int64(int8(u.fixed(1))), u.fixed(1), u.fixed(1)
	if !u.ok() || u.width == 0 || u.opcodes == 0 {
		return false
	}
	u.arguments = u.take(u.opcodes - 1)
	u.names = reader{b: u.b}
	u.b = program
	return u.ok()
}

func (u *unit) restart() {
	u.state, u.last, u.dead = row{line: 1, file: 1}, row{}, false
}

// Opcodes.
const (
	opCopy = iota + 1
	opAdvancePC
	opAdvanceLine
	opSetFile
	_
	_
	_
	opConstAddPC
	opFixedAdvancePC

	opEndSequence = 1
	opSetAddress  = 2
)

func (u *unit) standard(op uint64) {
	switch op {
	case opCopy:
		u.emit(false)
	case opAdvancePC:
		u.state.address += u.uleb() * u.least
	case opAdvanceLine:
		u.state.line += u.sleb()
	case opSetFile:
		u.state.file = u.uleb()
	case opConstAddPC:
		u.state.address += (255 - u.opcodes) / u.width * u.least
	case opFixedAdvancePC:
		u.state.address += u.fixed(2)
	default:
		for range u.arguments[op-1] {
			u.uleb()
		}
	}
}

func (u *unit) extended() {
	body := reader{b: u.take(u.uleb())}
	switch op := body.fixed(1); op {
	case opEndSequence:
		u.emit(true)
		u.restart()
	case opSetAddress:
		u.state.address = body.fixed(min(len(body.b), 8))
		// Linkers give the tables of removed functions such addresses.
		u.dead = u.state.address == 0 || u.state.address >= 0xfffffffe
	}
}

// emit ends a row. The row's line holds for all addresses up to the next row.
func (u *unit) emit(ends bool) {
	if from := u.last; from.set && !u.dead && from.line > 0 && from.line < 1<<31 {
		for i, offset := range u.offsets {
			if at := uint64(offset); from.address <= at && at < u.state.address && u.places[i].Line == 0 {
				u.places[i].Line = int(from.line)
				u.hits = append(u.hits, hit{i, from.file})
			}
		}
	}
	u.last = u.state
	u.last.set = !ends
}
