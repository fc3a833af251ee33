package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/extism"
	"github.com/weftrun/weft/host/sandbox/wasi"
	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// Codes of the problems of a module that this package finds. The messages say what to
// change.
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

const (
	maxProblems = 50 // problems listed
	maxNameText = 80 // bytes of a module's own name in a message
)

const (
	wasmPageBytes = 65_536
	wasmMaxPages  = 65_536
)

const buildAdvice = "build a reactor: TinyGo -target=wasip1 -buildmode=c-shared, Go GOOS=wasip1 GOARCH=wasm -buildmode=c-shared, Rust a cdylib for wasm32-unknown-unknown"

// reserved are the prefixes of export names that belong to the ABI.
var reserved = []string{"weft:", "weft_"}

const i32 = "\x7f" // a signature's one value

// wanted are the function exports that the host looks up.
var wanted = []struct {
	name     string
	is       wasmbin.FuncType
	optional bool
}{
	{abi.ExportDescribe, wasmbin.FuncType{}, false},
	{abi.ExportStep, wasmbin.FuncType{Params: i32, Results: i32}, false},
	{abi.ExportInitialize, wasmbin.FuncType{}, true},
}

// inspection collects the problems of one module.
type inspection struct {
	m        *wasmbin.Module
	limits   host.Limits
	problems []host.Problem
	extism   *extism.Plugin // set if the module is an Extism plugin
}

func (i *inspection) add(code, format string, args ...any) {
	i.problems = append(i.problems, host.Problem{Code: code, Message: fmt.Sprintf(format, args...)})
}

// inspect reads a module and lists all its problems. If there are problems, the returned
// module may be nil.
func inspect(wasm []byte, limits host.Limits) (*wasmbin.Module, []host.Problem) {
	i := inspection{limits: limits}
	return i.whole(wasm), i.problems
}

// examine is inspect in the server's own process, where the requests of other tenants
// need the cores: a module of 3 MB takes 20 ms. So the modules of one tenant are inspected
// one after the other, and at most two modules at once. The end of a request does not end
// the wait. If the sandbox closes first, the problem says so.
func (s *Sandbox) examine(tenant string, wasm []byte, limits host.Limits) (*wasmbin.Module, []host.Problem) {
	if !s.examining.Take(tenant, len(wasm), nil, s.base.Done()) {
		return nil, problemsOf(errClosed)
	}
	defer s.examining.Leave(tenant)
	return inspect(wasm, limits)
}

func (i *inspection) whole(wasm []byte) *wasmbin.Module {
	if limits := i.limits; len(wasm) > limits.ModuleBytes {
		i.add(problemTooLarge, "the module has %d bytes, at most %d are allowed (limit module_bytes): strip debug information and names", len(wasm), limits.ModuleBytes)
		return nil
	}
	m, err := wasmbin.Parse(wasm)
	if err != nil {
		i.unreadable(err)
		return nil
	}
	i.m = m
	i.counts()
	i.importsAllowed()
	i.memory()
	i.tables()
	if extism.Is(wasm) {
		i.asExtism(wasm)
	} else {
		i.exports()
	}
	if more := len(i.problems) - maxProblems; more > 0 {
		i.problems = i.problems[:maxProblems]
		i.add(problemTooMany, "%d more problems are not listed", more)
	}
	return m
}

func (i *inspection) unreadable(err error) {
	switch {
	case errors.Is(err, wasmbin.ErrNotWasm):
		i.add(problemNotWasm, "%v; upload the binary .wasm file", err)
	case errors.Is(err, wasmbin.ErrComponent):
		i.add(problemComponent, "this is a component, not a core module: %s", buildAdvice)
	case errors.Is(err, wasmbin.ErrTruncated):
		i.add(problemTruncated, "the module ends too early: %v; was it uploaded whole?", err)
	default:
		i.add(problemMalformed, "the module cannot be read: %v", err)
	}
}

// counts compares the module's counts with what the host can compile.
func (i *inspection) counts() {
	for _, excess := range wasmbin.DefaultCaps().Exceeded(i.m) {
		i.add(problemTooMany, "%s", excess)
	}
}

// importsAllowed checks every import against the two lists of functions.
func (i *inspection) importsAllowed() {
	browser := ""
	if im := i.forBrowser(); im != nil {
		browser = im.Module
		i.add(problemImport, "the module is built for a browser or for Node (it imports %s): %s", importText(*im), buildAdvice)
	}
	for _, im := range i.m.Imports {
		if im.Module == browser {
			continue // reported already
		}
		if im.Kind == wasmbin.KindMemory {
			i.add(problemMemoryImport, "the module imports its memory (%s): it must define and export its own, named %q", importText(im), abi.ExportMemory)
			continue
		}
		if im.Kind != wasmbin.KindFunc {
			i.add(problemImport, "import %s is a %s: only functions can be imported", importText(im), kindName(im.Kind))
			continue
		}
		want, known := importSignature(im.Module, im.Name)
		if !known {
			i.add(problemImport, "import %s is not allowed; %s", importText(im), allowedOf(im.Module))
			continue
		}
		var got wasmbin.FuncType
		if int64(im.Type) < int64(len(i.m.Types)) {
			got = i.m.Types[im.Type]
		}
		if int64(im.Type) >= int64(len(i.m.Types)) || got != want {
			i.add(problemSignature, "import %s must be %s, not %s", importText(im), want, got)
		}
	}
}

// importSignature returns the type of a function that guests may import.
func importSignature(module, name string) (wasmbin.FuncType, bool) {
	switch module {
	case abi.ImportModule:
		f, ok := imports[abi.Import(name)]
		return f.is, ok
	case extism.HostModule:
		f, ok := extismImports[name]
		return f.is, ok
	case wasi.ModuleName:
		params, results, ok := wasi.Signature(name)
		return wasmbin.FuncType{Params: string(params), Results: string(results)}, ok
	}
	return wasmbin.FuncType{}, false
}

// allowedOf says what can be imported from a module.
func allowedOf(module string) string {
	switch module {
	case abi.ImportModule:
		return "allowed of " + module + " are " + strings.Join(importNames(), ", ")
	case extism.HostModule:
		return "allowed of " + module + " are " + strings.Join(extismNames(), ", ")
	case wasi.ModuleName:
		return "allowed of " + module + " are the functions of WASI preview 1"
	}
	if strings.HasPrefix(module, "extism:") {
		return "host functions of an Extism host's own are not available: plugins may import from " + extism.HostModule
	}
	return fmt.Sprintf("imports may come from %s and %s, and those of Extism's plugins from %s", abi.ImportModule, wasi.ModuleName, extism.HostModule)
}

func importText(im wasmbin.Import) string { return short(im.Module) + "." + short(im.Name) }

// memory checks that there is exactly one memory, of the supported kind and size.
func (i *inspection) memory() {
	if len(i.m.Memories) > 1 {
		i.add(problemMemories, "the module has %d memories, one is allowed", len(i.m.Memories))
	}
	for _, mem := range i.m.Memories {
		if mem.Shared || mem.Is64 {
			i.add(problemMemoryKind, "the memory is shared or 64 bits wide: build without threads and memory64")
			continue
		}
		if limit := uint64(i.limits.MemoryBytes); mem.Min*wasmPageBytes > limit {
			i.add(problemTooLarge, "the memory begins with %d bytes, at most %d are allowed (limit memory_bytes): make the stack or the initial heap smaller", mem.Min*wasmPageBytes, limit)
		}
		if mem.Min > wasmMaxPages || mem.HasMax && mem.Max < mem.Min {
			i.add(problemMalformed, "the memory's limits are %d to %d pages", mem.Min, mem.Max)
		}
	}
}

// tables checks the initial sizes of the tables. Their maximum sizes are clamped.
func (i *inspection) tables() {
	total := uint64(0)
	for _, t := range i.m.Tables {
		if t.Shared || t.Is64 {
			i.add(problemMalformed, "a table is shared or 64 bits wide")
		}
		total += min(t.Min, 1<<32)
	}
	if total > uint64(i.limits.TableEntries) {
		i.add(problemTooLarge, "the tables begin with %d entries, at most %d are allowed (limit table_entries)", total, i.limits.TableEntries)
	}
}

// exports checks the names that the host looks up and the reserved names.
func (i *inspection) exports() {
	byName := map[string]wasmbin.Export{}
	for _, ex := range i.m.Exports {
		byName[ex.Name] = ex
	}
	for _, w := range wanted {
		ex, there := byName[w.name]
		switch {
		case !there && !w.optional:
			i.add(problemMissingExport, "export %s %s is missing: a plugin made with an SDK has it; did you forget weft.Define?", w.name, w.is)
		case there && ex.Kind != wasmbin.KindFunc:
			i.add(problemSignature, "export %s must be a function %s, not a %s", w.name, w.is, kindName(ex.Kind))
		case there:
			if got, ok := i.m.Signature(ex.Index); !ok || got != w.is {
				i.add(problemSignature, "export %s must be %s, not %s", w.name, w.is, got)
			}
		}
	}
	i.exportedMemory(byName)
	_, start := byName["_start"]
	_, initialize := byName[abi.ExportInitialize]
	if start && !initialize {
		i.add(problemCommand, "the module is a command (it exports _start and no %s): %s", abi.ExportInitialize, buildAdvice)
	}
	i.reservedNames(abi.ExportDescribe, abi.ExportStep)
}

// forBrowser returns the first import that only the loaders of Go or wasm-bindgen serve,
// or nil. All such imports have the same cause: the module was built for the wrong
// target.
func (i *inspection) forBrowser() *wasmbin.Import {
	for k := range i.m.Imports {
		im := &i.m.Imports[k]
		if im.Module == "gojs" || im.Module == "wbg" || strings.HasPrefix(im.Module, "__wbindgen") {
			return im
		}
	}
	return nil
}

// exportedMemory checks that the memory is exported under its required name.
func (i *inspection) exportedMemory(byName map[string]wasmbin.Export) {
	if ex, there := byName[abi.ExportMemory]; !there {
		i.add(problemMissingExport, "export %s is missing: the module must export its memory under this name", abi.ExportMemory)
	} else if ex.Kind != wasmbin.KindMemory {
		i.add(problemSignature, "export %s must be the memory, not a %s", abi.ExportMemory, kindName(ex.Kind))
	}
}

// reservedNames checks that no export has a reserved name, except the given ones.
func (i *inspection) reservedNames(but ...string) {
	for _, ex := range i.m.Exports {
		if !slices.Contains(but, ex.Name) && slices.ContainsFunc(reserved, func(prefix string) bool { return strings.HasPrefix(ex.Name, prefix) }) {
			i.add(problemReserved, "export %s: names that begin with %s are reserved", short(ex.Name), strings.Join(reserved, " or "))
		}
	}
}

// asExtism checks an Extism plugin. It needs a manifest section, because it does not
// describe itself.
func (i *inspection) asExtism(wasm []byte) {
	byName := map[string]wasmbin.Export{}
	var functions []extism.Function
	for _, ex := range i.m.Exports {
		byName[ex.Name] = ex
		if is, ok := i.m.Signature(ex.Index); ex.Kind == wasmbin.KindFunc && ok {
			functions = append(functions, extism.Function{Name: ex.Name, Params: is.Params, Results: is.Results})
		}
	}
	var imported []string
	for _, im := range i.m.Imports {
		switch im.Module {
		case extism.HostModule:
			imported = append(imported, im.Name)
		case abi.ImportModule:
			i.add(problemImport, "import %s is not for a plugin of Extism's: it has what is in %s", importText(im), extism.HostModule)
		}
	}
	i.exportedMemory(byName)
	i.reservedNames(abi.ExportDescribe)
	plugin, problems := extism.Read(wasm, functions, imported)
	i.extism = plugin
	i.problems = append(i.problems, problems...)
}

// importList lists the functions that a module imports, as module.name, sorted.
func importList(m *wasmbin.Module) []string {
	var names []string
	for _, im := range m.Imports {
		names = append(names, im.Module+"."+im.Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func kindName(kind byte) string {
	names := [...]string{wasmbin.KindFunc: "function", wasmbin.KindTable: "table", wasmbin.KindMemory: "memory", wasmbin.KindGlobal: "global", 4: "tag"}
	if int(kind) < len(names) {
		return names[kind]
	}
	return fmt.Sprintf("thing of kind %d", kind)
}

// short fits a name of the module into a message.
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
