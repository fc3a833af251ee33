package sandbox

import (
	"bytes"
	"maps"
	"slices"

	"github.com/tetratelabs/wazero/api"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/extism"
	"github.com/weftrun/weft/host/sandbox/arena"
	"github.com/weftrun/weft/host/sandbox/rewrite"
	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// An Extism plugin runs unmodified. An arena serves its imports. What would be variables,
// configuration and requests in an Extism host are host calls of the ABI, so recording,
// replay and billing work as for any guest.

// extismCall is the state of a plugin's call that other guests do not have.
type extismCall struct {
	plugin *extism.Plugin
	arena  arena.Arena
	config map[string]string // configuration of the step, over the plugin's
	staged map[string][]byte // variables set by the call; nil: removed
	order  []string          // names in staged, in the order they were first set
	bytes  int               // approximate size of staged
	status uint32            // HTTP status of the last answer
	header []byte            // headers of the last answer, as JSON
	exited bool              // the plugin called proc_exit(0)
}

// begin prepares for a call.
func (e *extismCall) begin() {
	e.arena.Clear()
	e.staged, e.order, e.config, e.bytes = nil, nil, nil, 0
	e.status, e.header, e.exited = 0, nil, false
}

// The signatures of Extism's functions.
var (
	takes0gives64  = signature("", "I")
	takes0gives32  = signature("", "i")
	takes64        = signature("I", "")
	takes64gives32 = signature("I", "i")
	takes64gives64 = signature("I", "I")
	takesTwo       = signature("II", "")
	takesTwoGives  = signature("II", "I")
)

// signature makes a function type from letters: i for i32, I for i64.
func signature(params, results string) wasmbin.FuncType {
	types := func(letters string) string {
		b := make([]byte, len(letters))
		for i := range letters {
			if b[i] = api.ValueTypeI32; letters[i] == 'I' {
				b[i] = api.ValueTypeI64
			}
		}
		return string(b)
	}
	return wasmbin.FuncType{Params: types(params), Results: types(results)}
}

// extismImports are the functions of extism:host/env.
var extismImports = map[string]hostFunc{
	"alloc":            {takes64gives64, func(g *guest, a []uint64) { a[0] = g.alloc(a[0]) }},
	"free":             {takes64, func(g *guest, a []uint64) { g.extismArena(blockFuel).Drop(a[0]) }},
	"length":           {takes64gives64, func(g *guest, a []uint64) { a[0] = g.extismArena(blockFuel).Length(a[0]) }},
	"length_unsafe":    {takes64gives64, func(g *guest, a []uint64) { a[0] = g.extismArena(blockFuel).Length(a[0]) }},
	"load_u8":          {takes64gives32, loadByte},
	"load_u64":         {takes64gives64, loadWord},
	"store_u8":         {signature("Ii", ""), storeByte},
	"store_u64":        {takesTwo, storeWord},
	"input_load_u8":    {takes64gives32, inputByte},
	"input_load_u64":   {takes64gives64, inputWord},
	"input_length":     {takes0gives64, func(g *guest, a []uint64) { a[0] = g.extismArena(moveFuel).Input.Length }},
	"input_offset":     {takes0gives64, func(g *guest, a []uint64) { a[0] = g.extismArena(moveFuel).Input.At }},
	"input_set":        {takesTwo, func(g *guest, a []uint64) { g.setSpan(&g.extism.arena.Input, a) }},
	"output_length":    {takes0gives64, func(g *guest, a []uint64) { a[0] = g.extismArena(moveFuel).Output.Length }},
	"output_offset":    {takes0gives64, func(g *guest, a []uint64) { a[0] = g.extismArena(moveFuel).Output.At }},
	"output_set":       {takesTwo, func(g *guest, a []uint64) { g.setSpan(&g.extism.arena.Output, a) }},
	"reset":            {signature("", ""), resetArena},
	"error_set":        {takes64, setError},
	"error_get":        {takes0gives64, func(g *guest, a []uint64) { a[0] = g.extismArena(moveFuel).Err }},
	"memory_bytes":     {takes0gives64, func(g *guest, a []uint64) { a[0] = g.extismArena(moveFuel).End() }},
	"config_get":       {takes64gives64, func(g *guest, a []uint64) { a[0] = g.configGet(a[0]) }},
	"var_get":          {takes64gives64, func(g *guest, a []uint64) { a[0] = g.varGet(a[0]) }},
	"var_set":          {takesTwo, func(g *guest, a []uint64) { g.varSet(a[0], a[1]) }},
	"http_request":     {takesTwoGives, func(g *guest, a []uint64) { a[0] = g.httpRequest(a[0], a[1]) }},
	"http_status_code": {takes0gives32, func(g *guest, a []uint64) { a[0] = uint64(g.extism.status) }},
	"http_headers":     {takes0gives64, func(g *guest, a []uint64) { a[0] = g.httpHeaders() }},
	"get_log_level":    {takes0gives32, func(g *guest, a []uint64) { a[0] = uint64(g.extism.plugin.HostLevel()) }},
	"log_trace":        {takes64, func(g *guest, a []uint64) { g.extismLog(0, a[0]) }},
	"log_debug":        {takes64, func(g *guest, a []uint64) { g.extismLog(1, a[0]) }},
	"log_info":         {takes64, func(g *guest, a []uint64) { g.extismLog(2, a[0]) }},
	"log_warn":         {takes64, func(g *guest, a []uint64) { g.extismLog(3, a[0]) }},
	"log_error":        {takes64, func(g *guest, a []uint64) { g.extismLog(4, a[0]) }},
}

func extismNames() []string { return slices.Sorted(maps.Keys(extismImports)) }

// extismArena returns the arena and charges for an access.
func (g *guest) extismArena(fuel uint64) *arena.Arena {
	g.charge(fuel)
	return &g.extism.arena
}

// alloc allocates a block, if the limit on the arena and the guest's memory together
// allows it.
func (g *guest) alloc(n uint64) uint64 {
	a := g.extismArena(blockFuel)
	limit := uint64(g.limits.MemoryBytes)
	if g.mem != nil {
		limit -= min(limit, uint64(g.mem.Size()))
	}
	if n > limit || a.Bytes()+a.Takes(n) > limit {
		g.giveUp(codeLimit, "alloc: %d bytes more, beside the %d that were allocated and the module's own memory, are more than %d (limit memory_bytes)",
			n, a.Bytes(), g.limits.MemoryBytes)
	}
	g.charge(bytesFuel(int(3 * n)))
	return a.Alloc(n)
}

// extismBytes copies the block at an offset. It returns nothing if there is no block.
func (g *guest) extismBytes(at uint64) []byte {
	a := g.extismArena(blockFuel)
	view := a.View(at, a.Length(at))
	g.charge(bytesFuel(len(view)))
	return clone(view, nil)
}

// give allocates a block with the given content.
func (g *guest) give(content []byte) uint64 {
	at := g.alloc(uint64(len(content)))
	rewrite.Copy(g.extism.arena.View(at, uint64(len(content))), content)
	return at
}

func loadByte(g *guest, args []uint64) {
	b := g.extismArena(moveFuel).View(args[0], 1)
	if args[0] = 0; len(b) > 0 {
		args[0] = uint64(b[0])
	}
}

func storeByte(g *guest, args []uint64) {
	if b := g.extismArena(moveFuel).View(args[0], 1); len(b) > 0 {
		b[0] = byte(args[1])
	}
}

// loadWord and storeWord fail where Extism's Go host fails.
func loadWord(g *guest, args []uint64) {
	a := g.extismArena(moveFuel)
	if !a.Has(args[0], 8) {
		g.giveUp(codeTrap, "load_u64: could not read 8 bytes at offset %d", args[0])
	}
	args[0] = a.Load(args[0])
}

func storeWord(g *guest, args []uint64) {
	a := g.extismArena(moveFuel)
	if !a.Has(args[0], 8) {
		g.giveUp(codeTrap, "store_u64: could not write 8 bytes at offset %d", args[0])
	}
	a.Store(args[0], args[1])
}

func inputByte(g *guest, args []uint64) {
	a, at := g.extismArena(moveFuel), args[0]
	if args[0] = 0; at < a.Input.Length {
		if b := a.View(a.Input.At+at, 1); len(b) > 0 {
			args[0] = uint64(b[0])
		}
	}
}

func inputWord(g *guest, args []uint64) {
	a := g.extismArena(moveFuel)
	if args[0] > a.End() {
		g.giveUp(codeTrap, "input_load_u64: could not read 8 bytes at offset %d of the input", args[0])
	}
	args[0] = a.Load(a.Input.At + args[0])
}

// setSpan records where the input or the output is. A range out of bounds counts as none.
func (g *guest) setSpan(s *arena.Span, args []uint64) {
	if a := g.extismArena(moveFuel); args[1] == 0 || a.Has(args[0], args[1]) {
		*s = arena.Span{At: args[0], Length: args[1]}
	}
}

func setError(g *guest, args []uint64) {
	if a := g.extismArena(moveFuel); args[0] == 0 || a.Has(args[0], 1) {
		a.Err = args[0]
	}
}

func resetArena(g *guest, _ []uint64) {
	a := g.extismArena(blockFuel)
	content, blocks := a.Size()
	g.charge(bytesFuel(content) + uint64(blocks))
	a.Clear()
}

// onlyInStep unwinds a guest that calls a function available only in a step.
func (g *guest) onlyInStep(name string) {
	if g.phase != phaseStep {
		g.giveUp(codeForbidden, "%s called %s.%s; before its first step a plugin may only allocate and log, because every run begins with the resulting state",
			g.phase.entry(), extism.HostModule, name)
	}
}

func (g *guest) configGet(at uint64) uint64 {
	g.onlyInStep("config_get")
	name := string(g.extismBytes(at))
	value, ok := g.extism.config[name]
	if !ok {
		if value, ok = g.extism.plugin.Config[name]; !ok {
			return 0
		}
	}
	return g.give([]byte(value))
}

// extismLog logs a line, if its level is enabled.
func (g *guest) extismLog(level int, at uint64) {
	defer g.extism.arena.Drop(at)
	if level < g.extism.plugin.Level {
		g.charge(blockFuel)
		return
	}
	text := bytes.ToValidUTF8(g.extismBytes(at), []byte("\ufffd"))
	g.countLog(len(text), 1)
	if g.phase != phaseStep {
		return // the line belongs to no invocation
	}
	request, err := abi.Log{Level: max(int64(4*level)-8, -4), Message: string(text)}.Encode()
	if err != nil {
		g.giveUp(codeLimit, "log: %v", err)
	}
	g.ask(abi.ImportLog, request)
}

// extismExit ends a plugin that calls proc_exit. Exit code 0 means success.
func (g *guest) extismExit(code uint32) {
	if code == 0 && g.phase == phaseStep {
		g.extism.exited = true
		panic(unwound)
	}
}
