package spectest

import (
	"fmt"
	"strings"
)

// signature is a function's type, value types as their bytes.
type signature struct{ params, results string }

// table is a table of a generated module.
type table struct {
	of   byte
	size int
}

// global is a global of a generated module.
type global struct {
	of      byte
	mutable bool
}

// countdownName is the export of the global that lets a generated module end.
const countdownName = "countdown"

// generator makes one valid module of WebAssembly 2.0 that ends whatever is
// called: the functions and loops that could go on for ever count down a global,
// and trap at its end. Everything is exported.
type generator struct {
	*choices
	types    []signature
	imported []int // types of the functions that are imported, from "env"
	funcs    []int // types of all functions, the imported first
	tables   []table
	globals  []global
	memory   bool
	pages    int
	most     int    // pages; negative: no maximum
	segments []bool // of data: whether it is passive
	elements []byte
	passive  []bool // for each of elements
	// restorable modules change nothing but memory and numeric globals, so that
	// their segments are extracted.
	restorable bool
	// careful modules avoid what mostly traps, so that more of their code runs.
	careful bool
}

// hostFunctions are what the modules of both generators may import from "env".
var hostFunctions = []signature{
	{"", ""}, {I32, I32}, {I64 + F64, F32}, {I32 + I32 + I32, I32 + I64}, {F32, F64}, {"\x6f", "\x6f"}, {I64, ""},
}

var valueTypes = []byte{tI32, tI64, tF32, tF64, tI32, tI64, tV128, tFuncref, tExternref}

// generate makes a module.
func generate(c *choices) []byte {
	g := &generator{choices: c}
	g.plan()
	return g.module()
}

// plan decides what there is in the module, before any code refers to it.
func (g *generator) plan() {
	g.careful, g.restorable = !g.chance(40), !g.chance(60)
	g.types = append(g.types, signature{}, signature{"", I32})
	for range 2 + g.below(8) {
		g.types = append(g.types, signature{g.some(5), g.some(4)})
	}
	for n, s := range hostFunctions {
		if g.chance(30) {
			g.types = append(g.types, s)
			g.imported = append(g.imported, n)
			g.funcs = append(g.funcs, len(g.types)-1)
		}
	}
	for range 1 + g.below(7) {
		g.funcs = append(g.funcs, g.below(len(g.types)))
	}
	g.memory = !g.chance(10)
	g.pages, g.most = one(g.choices, []int{1, 2, 0, 4}), -1
	if g.careful {
		g.pages = max(1, g.pages)
	}
	if g.chance(50) {
		g.most = g.pages + g.below(4)
	}
	for range g.below(4) {
		g.tables = append(g.tables, table{one(g.choices, []byte{tFuncref, tFuncref, tExternref}), g.below(20)})
	}
	for range g.below(9) {
		of := one(g.choices, valueTypes)
		numeric := strings.IndexByte(I32+I64+F32+F64, of) >= 0
		g.globals = append(g.globals, global{of, g.chance(80) && (numeric || !g.restorable)})
	}
	if g.memory && g.pages > 0 {
		for range g.below(4) {
			g.segments = append(g.segments, g.chance(50))
		}
	}
	for range g.below(5) {
		g.elements = append(g.elements, one(g.choices, []byte{tFuncref, tFuncref, tExternref}))
		g.passive = append(g.passive, g.chance(50))
	}
}

// some is a list of fewer than n value types.
func (g *generator) some(n int) string {
	var list []byte
	for range g.below(n) {
		list = append(list, one(g.choices, valueTypes))
	}
	return string(list)
}

// countdown is the index of the global that lets the module end.
func (g *generator) countdown() uint32 { return uint32(len(g.globals)) }

// signature is that of a function.
func (g *generator) signature(function int) signature { return g.types[g.funcs[function]] }

// own tells how many functions have code.
func (g *generator) own() int { return len(g.funcs) - len(g.imported) }

// module writes down what was planned.
func (g *generator) module() []byte {
	var types, imports, funcs, tables, memories, globals, exports, bodies vector
	for _, s := range g.types {
		types.item().signature(s.params, s.results)
	}
	for n, host := range g.imported {
		c := imports.item()
		c.name("env")
		c.name(fmt.Sprintf("f%d", host))
		c.op(kFunc, uint32(g.funcs[n]))
	}
	for n := len(g.imported); n < len(g.funcs); n++ {
		funcs.item().u32(uint32(g.funcs[n]))
		exports.export(fmt.Sprintf("f%d", n), kFunc, uint32(n))
		b := newBody(g, g.signature(n))
		body := b.finish()
		c := bodies.item()
		c.name(string(body))
	}
	for n, t := range g.tables {
		c := tables.item()
		c.bytes(t.of)
		c.limits(uint32(t.size), t.size+30)
		exports.export(fmt.Sprintf("t%d", n), kTable, uint32(n))
	}
	if g.memory {
		memories.item().limits(uint32(g.pages), g.most)
		exports.export("memory", kMemory, 0)
	}
	for n, global := range g.globals {
		g.global(globals.item(), global)
		exports.export(fmt.Sprintf("g%d", n), kGlobal, uint32(n))
	}
	count := globals.item()
	count.bytes(tI32, 1)
	count.i32(patience)
	count.bytes(opEnd)
	exports.export(countdownName, kGlobal, g.countdown())

	wasm := header()
	wasm.section(1, types)
	wasm.section(2, imports)
	wasm.section(3, funcs)
	wasm.section(4, tables)
	wasm.section(5, memories)
	wasm.section(6, globals)
	wasm.section(7, exports)
	g.start(&wasm)
	wasm.section(9, g.elementSection())
	if len(g.segments) > 0 {
		var count code
		count.u32(uint32(len(g.segments)))
		wasm.rawSection(12, count)
	}
	wasm.section(10, bodies)
	wasm.section(11, g.dataSection())
	return wasm
}

// start names a start function, at times, if there is one of the right type.
func (g *generator) start(wasm *code) {
	for n := len(g.imported); n < len(g.funcs); n++ {
		if g.signature(n) == (signature{}) && g.chance(15) {
			var index code
			index.u32(uint32(n))
			wasm.rawSection(8, index)
			return
		}
	}
}

// global writes one global with a constant.
func (g *generator) global(c *code, global global) {
	c.bytes(global.of, 0)
	if global.mutable {
		(*c)[len(*c)-1] = 1
	}
	g.constant(c, global.of)
	c.bytes(opEnd)
}

// constant writes an instruction that gives a constant of that type.
func (g *generator) constant(c *code, of byte) {
	switch of {
	case tI32:
		c.i32(int32(g.integer()))
	case tI64:
		c.i64(int64(g.integer()))
	case tF32:
		c.f32(float32(floatOf(one(g.choices, floats))))
	case tF64:
		c.f64(floatOf(one(g.choices, floats)))
	case tV128:
		if g.chance(50) {
			c.v128(one(g.choices, floats), one(g.choices, floats))
		} else {
			c.v128(g.integer(), g.integer())
		}
	case tFuncref:
		if g.chance(70) {
			c.op(opRefFunc, uint32(len(g.imported)+g.below(g.own())))
			return
		}
		fallthrough
	case tExternref:
		c.bytes(opRefNull, of)
	}
}

// elementSection has active, passive and declared segments, as indices and as
// expressions.
func (g *generator) elementSection() vector {
	var section vector
	for n, of := range g.elements {
		index := g.tableOf(of)
		active := !g.passive[n] && index >= 0
		expressions := of == tExternref || g.chance(50)
		flags, c := uint32(0), section.item()
		if expressions {
			flags |= 4
		}
		switch {
		case active:
			flags |= 2 // with the table's index
		case g.chance(20):
			flags |= 3 // declared
		default:
			flags |= 1
		}
		c.u32(flags)
		entries := g.below(12)
		if active {
			c.u32(uint32(index))
			c.i32(int32(g.below(max(1, g.tables[index].size-entries+g.below(3)))))
			c.bytes(opEnd)
		}
		g.entries(c, of, entries, expressions)
	}
	return section
}

// entries writes the type and the entries of an element segment.
func (g *generator) entries(c *code, of byte, n int, expressions bool) {
	if expressions {
		c.bytes(of)
	} else {
		c.bytes(kFunc)
	}
	c.u32(uint32(n))
	for range n {
		if expressions {
			g.constant(c, of)
			c.bytes(opEnd)
		} else {
			c.u32(uint32(len(g.imported) + g.below(g.own())))
		}
	}
}

// tableOf is the index of a table of that type; negative if there is none.
func (g *generator) tableOf(of byte) int {
	var all []int
	for n, t := range g.tables {
		if t.of == of {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		return -1
	}
	return one(g.choices, all)
}

// dataSection has active and passive segments; at times one does not fit.
func (g *generator) dataSection() vector {
	var section vector
	for _, passive := range g.segments {
		c := section.item()
		bytes := make([]byte, g.below(60))
		for n := range bytes {
			bytes[n] = byte(g.below(256))
		}
		if passive {
			c.bytes(1)
		} else {
			c.bytes(0)
			room := g.pages<<16 - len(bytes)
			offset := g.below(room + 1)
			if g.chance(2) {
				offset += 1 << 20
			}
			c.i32(int32(offset))
			c.bytes(opEnd)
		}
		c.name(string(bytes))
	}
	return section
}
