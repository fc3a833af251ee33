package rewrite

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// ErrReserved is wrapped by the error for a module that uses a name reserved for the
// rewriting.
var ErrReserved = errors.New("reserved name")

// Version is part of the digest of rewritten bytes. It changes whenever a module would
// become different bytes.
const Version = "weft-rewrite-7"

// Names in rewritten modules.
const (
	MeterModule  = "weft:meter"   // the module of the two imports
	FuncRefuel   = "refuel"       // () -> (): the fuel global is below zero
	FuncOverflow = "overflow"     // () -> (): the stack depth is exhausted; never returns
	ExportFuel   = "weft:fuel"    // mutable i64: units left in the slice
	ExportDepth  = "weft:depth"   // mutable i32: bytes of frames left; DefaultDepth in a new instance
	ExportStart  = "weft:start"   // the start function, with Options.Extract
	GlobalPrefix = "weft:global:" // followed by the index of a mutable global of the original
)

// Bounds that hold for every rewritten module.
const (
	MaxCharge    = 10_000   // most units that one charge takes
	Slice        = 40_000   // most units that a host may put into the fuel global
	Piece        = 64 << 10 // most bytes of bulk work between two charges
	DefaultDepth = 1 << 20  // bytes of frames
)

// Options say what Rewrite does besides metering.
type Options struct {
	TableEntries int    // total that all tables are clamped to; 0: not clamped
	MemoryPages  uint32 // maximum that the memory is clamped to; 0: not clamped
	Extract      bool   // extract active data segments and the size of the memory (if restorable), and the start function
}

// Result is a rewritten module and what a host must know about it.
type Result struct {
	Wasm       []byte
	Restorable bool
	Fallback   []string
	HasStart   bool
	Globals    []Global
	Segments   []Segment
	// MemoryPages is the initial size of the memory if the segments are extracted. The
	// rewritten module then begins with no memory, so that modules that differ only in
	// data become the same bytes.
	MemoryPages uint32
	Stats       Stats

	imported, functions uint32     // functions of the original
	exports, names      []funcName // of the original, by its indices
	helpers             []helper
}

// Global is a mutable global that the module exports.
type Global struct {
	Name  string
	Type  byte
	Index uint32
}

// Segment is a part of the initial contents of a memory.
type Segment struct {
	Offset uint32
	Data   []byte
}

// Stats are counts of one rewriting.
type Stats struct {
	BytesIn, BytesOut int
	Functions         int
	LeafFunctions     int
	Loops             int
	Regions           int // loops that pay from a purse, including loops in them
	Charges           int
	Checks            int // charges that may call refuel
	BulkSites         int
	BulkConst         int
	Helpers           int
	MaxCharge         int
	MaxFrame          int
	Dropped           int
	DroppedBytes      int
}

// FuncName names the function of the rewritten module with the given index: by an export
// of the original, otherwise by the original's name section, otherwise "function N" with
// its index in the original.
func (r *Result) FuncName(rewrittenIndex uint32) string {
	switch helper := rewrittenIndex - r.imported - added - r.functions; {
	case rewrittenIndex == r.imported:
		return MeterModule + "." + FuncRefuel
	case rewrittenIndex == r.imported+1:
		return MeterModule + "." + FuncOverflow
	case rewrittenIndex < r.imported:
	case rewrittenIndex-r.imported-added < r.functions:
		rewrittenIndex -= added
	case uint64(helper) < uint64(len(r.helpers)):
		return r.helpers[helper].name()
	default:
		return "function " + strconv.FormatUint(uint64(rewrittenIndex), 10) + " of the rewritten module"
	}
	for _, names := range [][]funcName{r.exports, r.names} {
		for i := range names {
			if names[i].index == rewrittenIndex {
				return names[i].name
			}
		}
	}
	return "function " + strconv.FormatUint(uint64(rewrittenIndex), 10)
}

// added is the number of imports that the rewriting adds.
const added = 2

// rewriter is the state of one rewriting.
type rewriter struct {
	Options
	m           *wasmbin.Module
	result      *Result
	scanner     scanner
	placer      placer
	meter       meter
	types       map[wasmbin.FuncType]uint32
	typesBefore int // number of types in the original
	plainType   uint32
	helpers     []helper
	helperAt    map[helper]uint32 // index in helpers
	own         []wasmbin.Export  // exports that the rewriting adds
	extracts    bool              // extracts the data segments
	origins     *origins          // nil: origins are not requested
}

// Rewrite reads a valid module of WebAssembly 2.0 and writes the metered module. The
// result shares with wasm only the data of its segments.
//
// # Errors
//
// Those of Parse; ErrReserved; other errors say where the module is invalid. An invalid
// module may also produce garbage, so the caller must validate first. Rewrite never
// panics. It allocates at most 300 bytes for each byte of the module, plus 64 KiB.
func Rewrite(wasm []byte, o Options) (*Result, error) {
	return rewriteWith(wasm, o, placed)
}

func rewriteWith(wasm []byte, o Options, p policy) (*Result, error) {
	m, err := wasmbin.Parse(wasm)
	if err != nil {
		return nil, err
	}
	if err := reserved(m); err != nil {
		return nil, err
	}
	w := newRewriter(m, o, p)
	w.result.Stats.BytesIn = len(wasm)
	w.clamp()
	w.judge()
	code, err := w.code()
	if err != nil {
		return nil, err
	}
	w.result.Wasm = w.module(code)
	w.result.Stats.BytesOut = len(w.result.Wasm)
	w.result.helpers = w.helpers
	return w.result, nil
}

// reserved refuses modules that use names added by the rewriting.
func reserved(m *wasmbin.Module) error {
	for i := range m.Imports {
		if m.Imports[i].Module == MeterModule {
			return fmt.Errorf("%w: an import from %s", ErrReserved, MeterModule)
		}
	}
	for i := range m.Exports {
		if name := m.Exports[i].Name; name == ExportFuel || name == ExportDepth || name == ExportStart || strings.HasPrefix(name, GlobalPrefix) {
			return fmt.Errorf("%w: an export %s", ErrReserved, name)
		}
	}
	return nil
}

func newRewriter(m *wasmbin.Module, o Options, p policy) *rewriter {
	imported, globals := m.Imported(wasmbin.KindFunc), m.Imported(wasmbin.KindGlobal)+uint32(len(m.Globals))
	w := &rewriter{
		Options: o, m: m, placer: placer{policy: p},
		result:      &Result{imported: imported, functions: uint32(len(m.Funcs))},
		types:       make(map[wasmbin.FuncType]uint32, len(m.Types)),
		typesBefore: len(m.Types),
		helperAt:    map[helper]uint32{},
		meter:       meter{refuel: imported, overflow: imported + 1, fuel: globals, depth: globals + 1},
	}
	for i := len(m.Types) - 1; i >= 0; i-- { // the first of equal types wins
		w.types[m.Types[i]] = uint32(i)
	}
	w.plainType = w.typeIndex(wasmbin.FuncType{})
	w.scanner.m = m
	w.scanner.funcTypes = m.FunctionTypes()
	w.nameFunctions()
	return w
}

// typeIndex finds or adds a type.
func (w *rewriter) typeIndex(t wasmbin.FuncType) uint32 {
	index, there := w.types[t]
	if !there {
		index = uint32(len(w.m.Types))
		w.types[t] = index
		w.m.Types = append(w.m.Types, t)
	}
	return index
}

// function returns the new index of a function of the original.
func (w *rewriter) function(index uint32) uint32 {
	if index >= w.result.imported {
		index += added
	}
	return index
}

// helper returns the index of a helper, and adds the helper if it is new.
func (w *rewriter) helper(h helper) uint32 {
	n, there := w.helperAt[h]
	if !there {
		n = uint32(len(w.helpers))
		w.helperAt[h] = n
		w.helpers = append(w.helpers, h)
	}
	return w.result.imported + added + w.result.functions + n
}

// module assembles the sections.
func (w *rewriter) module(code []byte) []byte {
	w.own = w.ownExports()
	functions := w.funcSection() // before the type section, because it adds types
	b := make([]byte, 0, len(code)+len(code)/8+1<<10)
	b = append(b, wasmbin.Header...)
	b = appendSection(b, wasmbin.SectionType, w.typeSection())
	b = appendSection(b, wasmbin.SectionImport, w.importSection())
	b = appendSection(b, wasmbin.SectionFunc, functions)
	b = appendSection(b, wasmbin.SectionTable, w.tableSection())
	b = appendSection(b, wasmbin.SectionMemory, w.memorySection())
	b = appendSection(b, wasmbin.SectionGlobal, w.globalSection())
	b = appendSection(b, wasmbin.SectionExport, w.exportSection())
	b = appendSection(b, wasmbin.SectionStart, w.startSection())
	b = appendSection(b, wasmbin.SectionElement, w.elementSection())
	count, data := w.dataSections()
	b = appendSection(b, wasmbin.SectionCount, count)
	if n := len(w.m.Funcs) + len(w.helpers); n > 0 {
		number := appendUint(nil, uint64(n))
		b = appendUint(append(b, wasmbin.SectionCode), uint64(len(number)+len(code)))
		b = append(append(b, number...), code...)
	}
	b = appendSection(b, wasmbin.SectionData, data)
	return appendSection(b, wasmbin.SectionCustom, w.nameSection())
}

// Copy copies len(to) bytes in pieces. The garbage collector can stop the goroutine between
// pieces.
func Copy(to, from []byte) {
	for len(to) > 0 {
		n := copy(to[:min(len(to), Piece)], from)
		to, from = to[n:], from[n:]
	}
}
