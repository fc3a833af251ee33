package spectest

import (
	"math"
	"slices"
	"strings"
)

// Opcodes of instructions that the generator spells out.
const (
	opUnreachable  = 0x00
	opNop          = 0x01
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opDrop         = 0x1a
	opSelect       = 0x1b
	opSelectTyped  = 0x1c
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opTableGet     = 0x25
	opTableSet     = 0x26
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Eqz       = 0x45
	opF32Eq        = 0x5b
	opF64Eq        = 0x61
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32And       = 0x71
	opI64Add       = 0x7c
	opF32Add       = 0x92
	opF64Add       = 0xa0
	opRefNull      = 0xd0
	opRefIsNull    = 0xd1
	opRefFunc      = 0xd2
	opBulk         = 0xfc
	opVector       = 0xfd

	blockEmpty = 0x40
)

const (
	maxNesting = 7  // of expressions and blocks
	maxLocals  = 60 // of one function
)

// body writes one function's code. Every method leaves the stack as it says, as
// far as that can be reached: after a branch anything may follow that is valid.
type body struct {
	*generator
	code   code
	sig    signature
	locals []byte // types, the parameters first
	// reserved locals count loops; nothing else may set them.
	reserved []int
	labels   []string // what each enclosing block's branches carry, the innermost last
	nesting  int
	budget   int // instructions, roughly
}

func newBody(g *generator, s signature) *body {
	return &body{generator: g, sig: s, locals: []byte(s.params), budget: one(g.choices, []int{30, 5, 100, 250})}
}

// finish writes the whole function: declarations of locals, and code.
func (b *body) finish() code {
	b.labels = []string{b.sig.results}
	b.count()
	for range 1 + b.below(8) {
		b.statement()
	}
	b.values(b.sig.results)
	b.code.bytes(opEnd)

	var locals vector
	for _, of := range b.locals[len(b.sig.params):] {
		locals.item().op(1, uint32(of)) // one of that type
	}
	var all code
	all.u32(locals.n)
	all.bytes(locals.body...)
	return append(all, b.code...)
}

// count writes the end of patience: a trap if the countdown is zero.
func (b *body) count() {
	b.code.op(opGlobalGet, b.countdown())
	b.code.bytes(opI32Eqz, opIf, blockEmpty, opUnreachable, opEnd)
	b.code.op(opGlobalGet, b.countdown())
	b.code.i32(1)
	b.code.bytes(opI32Sub)
	b.code.op(opGlobalSet, b.countdown())
}

// spent tells whether only the least may be written.
func (b *body) spent() bool {
	b.budget--
	return b.budget < 0 || b.nesting >= maxNesting || b.ended()
}

// deeper runs f one level deeper.
func (b *body) deeper(f func()) {
	b.nesting++
	f()
	b.nesting--
}

// values pushes one value of each type.
func (b *body) values(types string) {
	for _, of := range []byte(types) {
		b.value(of)
	}
}

// value pushes a value of the given type.
func (b *body) value(of byte) {
	if b.spent() {
		b.leaf(of)
		return
	}
	b.deeper(func() {
		switch b.below(14) {
		case 0, 1:
			b.leaf(of)
		case 2:
			b.access(of)
		case 3:
			b.call(of)
		case 4:
			b.blockValue(of)
		case 5:
			b.choice(of)
		case 6:
			b.value(of)
			b.code.op(opLocalTee, b.local(of))
		case 7:
			b.about(of)
		case 8:
			if b.chance(15) {
				b.leave()
			} else {
				b.carried(of)
			}
		default:
			b.compute(of)
		}
	})
}

// leaf pushes a local, a global or a constant.
func (b *body) leaf(of byte) {
	switch b.below(3) {
	case 0:
		if n := slices.Index(b.locals, of); n >= 0 {
			b.code.op(opLocalGet, b.local(of))
			return
		}
	case 1:
		for n, g := range b.globals {
			if g.of == of {
				b.code.op(opGlobalGet, uint32(n))
				return
			}
		}
	}
	b.constant(&b.code, of)
}

// local is the index of a local of that type, a new one at times.
func (b *body) local(of byte) uint32 {
	var all []int
	for n, t := range b.locals {
		if t == of && !slices.Contains(b.reserved, n) {
			all = append(all, n)
		}
	}
	if len(all) == 0 || len(b.locals) < maxLocals && b.chance(10) {
		b.locals = append(b.locals, of)
		return uint32(len(b.locals) - 1)
	}
	return uint32(one(b.choices, all))
}

// compute pushes the result of an operation.
func (b *body) compute(of byte) {
	if len(computing[of]) == 0 { // references
		b.reference(of)
		return
	}
	o := one(b.choices, computing[of])
	if b.careful && o.mayTrap() {
		o = computing[of][0]
	}
	b.values(o.in)
	b.operate(o)
}

// access pushes what is loaded from memory.
func (b *body) access(of byte) {
	if !b.memory || len(accessing[of]) == 0 {
		b.reference(of)
		return
	}
	o := one(b.choices, accessing[of])
	b.address()
	b.values(o.in[1:])
	b.operate(o)
}

// operate writes the instruction, whose operands are on the stack, and makes
// NaNs canonical.
func (b *body) operate(o operation) {
	b.code.bytes(o.code...)
	if o.align >= 0 {
		b.code.u32(uint32(b.below(o.align + 1)))
		b.code.u32(one(b.choices, b.offsets()))
	}
	if o.lanes > 0 {
		b.code.bytes(byte(b.below(o.lanes)))
	}
	b.canonical(o)
}

// canonical replaces a NaN on top of the stack, of a kind that may have any
// bits: both ways of running may choose others.
func (b *body) canonical(o operation) {
	if o.nan == "" {
		return
	}
	local := b.local(o.out)
	b.code.op(opLocalTee, local)
	switch o.nan {
	case nanF32:
		b.code.f32(math.Float32frombits(canonicalF32))
	case nanF64:
		b.code.f64(floatOf(canonicalF64))
	case nanF32x4:
		b.code.v128(canonicalF32<<32|canonicalF32, canonicalF32<<32|canonicalF32)
	case nanF64x2:
		b.code.v128(canonicalF64, canonicalF64)
	}
	b.code.op(opLocalGet, local)
	b.code.op(opLocalGet, local)
	switch o.nan {
	case nanF32:
		b.code.bytes(opF32Eq, opSelect)
	case nanF64:
		b.code.bytes(opF64Eq, opSelect)
	case nanF32x4:
		b.code.bytes(opVector, 65, opVector, 82) // f32x4.eq, bitselect
	case nanF64x2:
		b.code.bytes(opVector, 71, opVector, 82)
	}
}

func floatOf(bits uint64) float64 { return math.Float64frombits(bits) }

// offsets are those to choose from: in a careful module, they stay near.
func (b *body) offsets() []uint32 {
	if b.careful {
		return []uint32{0, 1, 8, 100, 1000}
	}
	return []uint32{0, 1, 8, 100, 65_530, 0, 0, 0, 1 << 31, math.MaxUint32}
}

// address pushes a place in memory: often one that is there, often at an edge.
func (b *body) address() {
	if b.careful {
		b.value(tI32)
		b.code.i32(0x7fff)
		b.code.bytes(opI32And)
		return
	}
	switch b.below(5) {
	case 0, 1:
		b.code.i32(int32(b.below(1 << 12)))
	case 2:
		b.code.i32(int32(b.below(5)<<16 - b.below(20)))
	case 3:
		b.value(tI32)
		b.code.i32(0xffff)
		b.code.bytes(opI32And)
	default:
		b.value(tI32)
	}
}

// choice pushes one of two values.
func (b *body) choice(of byte) {
	b.value(of)
	b.value(of)
	b.value(tI32)
	if of == tFuncref || of == tExternref || b.chance(20) {
		b.code.bytes(opSelectTyped, 1, of)
	} else {
		b.code.bytes(opSelect)
	}
}

// about pushes what is known about memory, tables and references, and at times
// makes them larger.
func (b *body) about(of byte) {
	switch {
	case of == tFuncref || of == tExternref:
		b.reference(of)
		return
	case of != tI32:
		b.compute(of)
		return
	}
	n := -1
	if len(b.tables) > 0 {
		n = b.below(len(b.tables))
	}
	switch b.below(5) {
	case 0:
		b.value(one(b.choices, []byte{tFuncref, tExternref}))
		b.code.bytes(opRefIsNull)
	case 1, 2:
		if b.memory {
			b.code.bytes(opMemorySize, 0)
			return
		}
		b.leaf(of)
	case 3:
		if b.memory {
			b.code.i32(int32(b.below(3)))
			b.code.bytes(opMemoryGrow, 0)
			return
		}
		b.leaf(of)
	default:
		switch {
		case n < 0:
			b.leaf(of)
		case b.restorable || b.chance(60):
			b.bulk(16, uint32(n)) // table.size
		default:
			b.value(b.tables[n].of)
			b.entry(n)
			b.bulk(15, uint32(n)) // table.grow
		}
	}
}

// reference pushes what is in a table, or null.
func (b *body) reference(of byte) {
	if of != tFuncref && of != tExternref {
		b.leaf(of)
		return
	}
	n := b.tableOf(of)
	if n < 0 {
		b.leaf(of)
		return
	}
	b.entry(n)
	b.code.op(opTableGet, uint32(n))
}

// entry pushes the number of a table's entry, mostly one that is there.
func (b *body) entry(n int) {
	switch {
	case b.careful:
		b.code.i32(int32(b.below(max(1, b.tables[n].size))))
	case b.chance(15):
		b.value(tI32)
	default:
		b.code.i32(int32(b.below(b.tables[n].size + 2)))
	}
}

// bulk writes an instruction after the prefix 0xfc.
func (b *body) bulk(op uint32, immediates ...uint32) {
	b.code.op(opBulk, append([]uint32{op}, immediates...)...)
}

// keep leaves of the results on the stack the one at the given place: those
// above it go, those below too.
func (b *body) keep(results string, at int) {
	b.drop(results[at+1:])
	if at == 0 {
		return
	}
	local := b.local(results[at])
	b.code.op(opLocalSet, local)
	b.drop(results[:at])
	b.code.op(opLocalGet, local)
}

// drop takes values of the given types off the stack: into locals, or nowhere.
func (b *body) drop(types string) {
	for n := len(types) - 1; n >= 0; n-- {
		if b.chance(40) {
			b.code.op(opLocalSet, b.local(types[n]))
		} else {
			b.code.bytes(opDrop)
		}
	}
}

// call pushes one result of a function, if one has such a result.
func (b *body) call(of byte) {
	var all []int
	for n := range b.funcs {
		if strings.IndexByte(b.signature(n).results, of) >= 0 {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		b.compute(of)
		return
	}
	s := b.invoke(one(b.choices, all))
	b.keep(s.results, strings.IndexByte(s.results, of))
}

// invoke calls a function, directly or through a table, and leaves its results.
func (b *body) invoke(function int) signature {
	s := b.signature(function)
	b.values(s.params)
	n := b.tableOf(tFuncref)
	if n < 0 || b.chance(60) || b.careful && b.chance(90) {
		b.code.op(opCall, uint32(function))
		return s
	}
	b.entry(n)
	b.code.op(opCallIndirect, uint32(b.funcs[function]), uint32(n))
	return s
}
