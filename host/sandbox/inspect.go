package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/sandbox/wasi"
)

// Codes of the problems of a module, as far as this package finds them. The
// messages say what to change.
const (
	problemTooLarge      = "too_large"
	problemNotWasm       = "not_wasm"
	problemTruncated     = "truncated"
	problemMalformed     = "malformed"
	problemComponent     = "component"
	problemCommand       = "command_module"
	problemMissingExport = "missing_export"
	problemSignature     = "wrong_signature"
	problemImport        = "forbidden_import"
	problemReserved      = "reserved_name"
	problemMemories      = "several_memories"
	problemMemoryImport  = "imported_memory"
	problemMemoryKind    = "memory_kind"
	problemTooMany       = "too_many"
	problemInvalid       = "invalid_module"
)

// Counts that no module of a toolchain comes near; beyond them compiling takes
// memory and time out of proportion to the module's size.
const (
	maxTypes     = 10_000
	maxImports   = 1_000
	maxFunctions = 200_000
	maxTables    = 16
	maxGlobals   = 10_000
	maxExports   = 10_000
	maxSegments  = 100_000
	maxParams    = 100 // parameters or results of one type
	maxBodyBytes = 4 << 20
	maxLocals    = 10_000

	maxProblems = 50 // that are listed
	maxNameText = 80 // bytes of a module's own names in a message
)

const buildAdvice = "build a reactor: TinyGo -target=wasip1 -buildmode=c-shared, Go GOOS=wasip1 GOARCH=wasm -buildmode=c-shared, Rust a cdylib for wasm32-unknown-unknown"

// reserved are the beginnings of export names that belong to the ABI.
var reserved = []string{"weft:", "weft_"}

// wanted are the function exports that the host looks up.
var wanted = []struct {
	name     string
	is       funcType
	optional bool
}{
	{abi.ExportDescribe, funcType{}, false},
	{abi.ExportStep, funcType{string([]byte{typeI32}), string([]byte{typeI32})}, false},
	{abi.ExportInitialize, funcType{}, true},
}

// inspection collects the problems of one module.
type inspection struct {
	m        *binaryModule
	limits   host.Limits
	problems []host.Problem
}

func (i *inspection) add(code, format string, args ...any) {
	i.problems = append(i.problems, host.Problem{Code: code, Message: fmt.Sprintf(format, args...)})
}

// inspect reads a module and lists all that the sandbox has against it; with
// problems the module may be nil.
func inspect(wasm []byte, limits host.Limits) (*binaryModule, []host.Problem) {
	i := &inspection{limits: limits}
	if len(wasm) > limits.ModuleBytes {
		i.add(problemTooLarge, "the module has %d bytes, at most %d are allowed: strip debug information and names", len(wasm), limits.ModuleBytes)
		return nil, i.problems
	}
	m, err := readModule(wasm)
	if err != nil {
		i.unreadable(err)
		return nil, i.problems
	}
	i.m = m
	i.counts()
	i.importsAllowed()
	i.memory()
	i.tables()
	i.exports()
	if more := len(i.problems) - maxProblems; more > 0 {
		i.problems = i.problems[:maxProblems]
		i.add(problemTooMany, "%d more problems are not listed", more)
	}
	return m, i.problems
}

func (i *inspection) unreadable(err error) {
	switch {
	case errors.Is(err, errNotWasm):
		i.add(problemNotWasm, "%v; upload the binary .wasm file", err)
	case errors.Is(err, errComponent):
		i.add(problemComponent, "this is a component, not a core module: %s", buildAdvice)
	case errors.Is(err, errTruncated):
		i.add(problemTruncated, "the module ends too early: %v; was it uploaded whole?", err)
	default:
		i.add(problemMalformed, "the module cannot be read: %v", err)
	}
}

// counts compares the module's counts with what the host compiles.
func (i *inspection) counts() {
	m := i.m
	for _, c := range []struct {
		what string
		n    int
		max  int
	}{
		{"types", len(m.types), maxTypes},
		{"imports", len(m.imports), maxImports},
		{"functions", len(m.funcs), maxFunctions},
		{"tables", len(m.tables), maxTables},
		{"globals", int(m.globals), maxGlobals},
		{"exports", len(m.exports), maxExports},
		{"element segments", int(m.elements), maxSegments},
		{"data segments", int(m.data), maxSegments},
	} {
		if c.n > c.max {
			i.add(problemTooMany, "the module has %d %s, at most %d are allowed", c.n, c.what, c.max)
		}
	}
	for n, t := range m.types {
		if len(t.params) > maxParams || len(t.results) > maxParams {
			i.add(problemTooMany, "type %d has %d parameters and %d results, at most %d each are allowed", n, len(t.params), len(t.results), maxParams)
		}
	}
	for n, b := range m.bodies {
		if b.size > maxBodyBytes {
			i.add(problemTooMany, "function %d of the module has %d bytes of code, at most %d are allowed", n, b.size, maxBodyBytes)
		}
		if b.locals > maxLocals {
			i.add(problemTooMany, "function %d of the module has %d locals, at most %d are allowed", n, b.locals, maxLocals)
		}
	}
}

// importsAllowed checks every import against the two lists of functions.
func (i *inspection) importsAllowed() {
	for _, im := range i.m.imports {
		if im.kind == kindMemory {
			i.add(problemMemoryImport, "the module imports its memory (%s): it must define and export its own, named %q", im.text(), abi.ExportMemory)
			continue
		}
		if im.kind != kindFunc {
			i.add(problemImport, "import %s is a %s: only functions can be imported", im.text(), kindName(im.kind))
			continue
		}
		want, known := importSignature(im.module, im.name)
		if !known {
			i.add(problemImport, "import %s is not allowed; %s", im.text(), allowedOf(im.module))
			continue
		}
		if got, ok := i.m.typeAt(im.typeIndex); !ok || got != want {
			i.add(problemSignature, "import %s must be %s, not %s", im.text(), want, got)
		}
	}
}

// importSignature gives the type of a function that guests may import.
func importSignature(module, name string) (funcType, bool) {
	switch module {
	case abi.ImportModule:
		f, ok := imports[abi.Import(name)]
		return f.is, ok
	case wasi.ModuleName:
		params, results, ok := wasi.Signature(name)
		return funcType{string(params), string(results)}, ok
	}
	return funcType{}, false
}

// allowedOf says what can be imported from a module.
func allowedOf(module string) string {
	switch module {
	case abi.ImportModule:
		return "allowed of " + module + " are " + strings.Join(importNames(), ", ")
	case wasi.ModuleName:
		return "allowed of " + module + " are the functions of WASI preview 1"
	}
	return fmt.Sprintf("imports may come from %s and %s", abi.ImportModule, wasi.ModuleName)
}

func (im binaryImport) text() string { return short(im.module) + "." + short(im.name) }

// memory checks that there is one memory of the one kind, not too large.
func (i *inspection) memory() {
	if len(i.m.memories) > 1 {
		i.add(problemMemories, "the module has %d memories, one is allowed", len(i.m.memories))
	}
	for _, mem := range i.m.memories {
		if mem.flags&(limitsShared|limits64) != 0 {
			i.add(problemMemoryKind, "the memory is shared or 64 bits wide: build without threads and memory64")
			continue
		}
		if limit := uint64(i.limits.MemoryBytes); mem.min*wasmPageBytes > limit {
			i.add(problemTooLarge, "the memory begins with %d bytes, at most %d are allowed: make the stack or the initial heap smaller", mem.min*wasmPageBytes, limit)
		}
		if mem.min > wasmMaxPages || mem.flags&limitsHasMax != 0 && mem.max < mem.min {
			i.add(problemMalformed, "the memory's limits are %d to %d pages", mem.min, mem.max)
		}
	}
}

// tables checks the tables' initial sizes; their maxima are clamped.
func (i *inspection) tables() {
	total := uint64(0)
	for _, t := range i.m.tables {
		if t.flags&(limitsShared|limits64) != 0 {
			i.add(problemMalformed, "a table is shared or 64 bits wide")
		}
		total += min(t.min, 1<<32)
	}
	if total > uint64(i.limits.TableEntries) {
		i.add(problemTooLarge, "the tables begin with %d entries, at most %d are allowed", total, i.limits.TableEntries)
	}
}

// exports checks the names that the host looks up and those it keeps for itself.
func (i *inspection) exports() {
	byName := map[string]binaryExport{}
	for _, ex := range i.m.exports {
		byName[ex.name] = ex
	}
	for _, w := range wanted {
		ex, there := byName[w.name]
		switch {
		case !there && !w.optional:
			i.add(problemMissingExport, "export %s %s is missing: a plugin made with an SDK has it", w.name, w.is)
		case there && ex.kind != kindFunc:
			i.add(problemSignature, "export %s must be a function %s, not a %s", w.name, w.is, kindName(ex.kind))
		case there:
			if got, ok := i.m.signature(ex.index); !ok || got != w.is {
				i.add(problemSignature, "export %s must be %s, not %s", w.name, w.is, got)
			}
		}
	}
	if ex, there := byName[abi.ExportMemory]; !there {
		i.add(problemMissingExport, "export %s is missing: the module must export its memory under this name", abi.ExportMemory)
	} else if ex.kind != kindMemory {
		i.add(problemSignature, "export %s must be the memory, not a %s", abi.ExportMemory, kindName(ex.kind))
	}
	_, start := byName["_start"]
	_, initialize := byName[abi.ExportInitialize]
	if start && !initialize {
		i.add(problemCommand, "the module is a command (it exports _start and no %s): %s", abi.ExportInitialize, buildAdvice)
	}
	for _, ex := range i.m.exports {
		if ex.name != abi.ExportDescribe && ex.name != abi.ExportStep && slices.ContainsFunc(reserved, func(prefix string) bool { return strings.HasPrefix(ex.name, prefix) }) {
			i.add(problemReserved, "export %s: names that begin with %s are reserved", short(ex.name), strings.Join(reserved, " or "))
		}
	}
}

// importList lists the functions that a module imports, as module.name, sorted.
func importList(m *binaryModule) []string {
	var names []string
	for _, im := range m.imports {
		names = append(names, im.module+"."+im.name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func kindName(kind byte) string {
	names := [...]string{kindFunc: "function", kindTable: "table", kindMemory: "memory", kindGlobal: "global", kindTag: "tag"}
	if int(kind) < len(names) {
		return names[kind]
	}
	return fmt.Sprintf("thing of kind %d", kind)
}

// short makes a name of the module's own fit into a message.
func short(name string) string {
	if len(name) > maxNameText {
		name = name[:maxNameText] + "..."
	}
	quoted := fmt.Sprintf("%q", strings.ToValidUTF8(name, "?"))
	if inner := quoted[1 : len(quoted)-1]; inner == name && name != "" {
		return name
	}
	return quoted
}
