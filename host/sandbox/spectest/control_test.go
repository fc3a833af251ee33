package spectest

import (
	"slices"
	"strings"
)

// statement writes something that leaves the stack as it was.
func (b *body) statement() {
	if b.spent() {
		if b.chance(20) {
			b.code.bytes(opNop)
		}
		return
	}
	b.deeper(func() {
		switch b.below(17) {
		case 0, 1:
			of := one(b.choices, valueTypes)
			b.value(of)
			b.code.op(opLocalSet, b.local(of))
		case 2, 3:
			b.setGlobal()
		case 4, 5, 6:
			b.store()
		case 7:
			s := b.invoke(b.below(len(b.funcs)))
			b.drop(s.results)
		case 8:
			b.conditional()
		case 9, 10:
			b.countedLoop()
		case 11:
			b.branch()
		case 12:
			b.bulkMemory()
		case 13:
			b.bulkTable()
		case 14:
			b.droppedBlock(one(b.choices, b.types))
		case 15:
			b.straight()
		default:
			b.jumpTable()
		}
	})
}

// straight writes code without any branch, at times so much that it costs more
// than one charge may take.
func (b *body) straight() {
	of := one(b.choices, []byte{tI32, tI64, tF32, tF64})
	local := b.local(of)
	add := map[byte]byte{tI32: opI32Add, tI64: opI64Add, tF32: opF32Add, tF64: opF64Add}[of]
	var turn code
	turn.op(opLocalGet, local)
	b.constant(&turn, of)
	turn.bytes(add)
	turn.op(opLocalSet, local)
	turns := 10
	if b.chance(5) {
		turns = 1000 + b.below(5000)
	}
	for range turns {
		b.code.bytes(turn...)
	}
	if nan := map[byte]nanKind{tF32: nanF32, tF64: nanF64}[of]; nan != "" {
		b.code.op(opLocalGet, local)
		b.canonical(operation{out: of, nan: nan})
		b.code.op(opLocalSet, local)
	}
}

func (b *body) setGlobal() {
	var all []int
	for n, g := range b.globals {
		if g.mutable {
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		b.store()
		return
	}
	n := one(b.choices, all)
	b.value(b.globals[n].of)
	b.code.op(opGlobalSet, uint32(n))
}

func (b *body) store() {
	if !b.memory {
		b.value(tI32)
		b.code.bytes(opDrop)
		return
	}
	o := one(b.choices, accessing[0])
	b.address()
	b.values(o.in[1:])
	b.operate(o)
}

// conditional writes an if, with or without an else.
func (b *body) conditional() {
	b.value(tI32)
	b.code.bytes(opIf, blockEmpty)
	b.inside("", b.statements)
	if b.chance(50) {
		b.code.bytes(opElse)
		b.inside("", b.statements)
	}
	b.code.bytes(opEnd)
}

// inside writes what is in a block whose branches carry those types.
func (b *body) inside(carry string, f func()) {
	b.labels = append(b.labels, carry)
	b.deeper(f)
	b.labels = b.labels[:len(b.labels)-1]
}

func (b *body) statements() {
	for range 1 + b.below(4) {
		b.statement()
	}
}

// countedLoop turns a number of times that a local of its own counts, so that
// it needs no other end, unless a branch to it does not count.
func (b *body) countedLoop() {
	b.locals = append(b.locals, tI32)
	counter := len(b.locals) - 1
	b.reserved = append(b.reserved, counter)
	b.code.i32(int32(one(b.choices, []int{3, 1, 10, 40})))
	b.code.op(opLocalSet, uint32(counter))
	b.code.bytes(opLoop, blockEmpty)
	b.count()
	b.inside("", b.statements)
	b.code.op(opLocalGet, uint32(counter))
	b.code.i32(1)
	b.code.bytes(opI32Sub)
	b.code.op(opLocalTee, uint32(counter))
	b.code.op(opBrIf, 0)
	b.code.bytes(opEnd)
}

// blockValue pushes the value of a block, a loop or an if.
func (b *body) blockValue(of byte) {
	var all []signature
	for _, s := range b.types {
		if strings.IndexByte(s.results, of) >= 0 {
			all = append(all, s)
		}
	}
	if len(all) == 0 || b.chance(40) {
		b.code.bytes(opBlock, of)
		b.inside(string(of), func() {
			b.statements()
			b.value(of)
		})
		b.code.bytes(opEnd)
		return
	}
	s := one(b.choices, all)
	b.typedBlock(s)
	b.keep(s.results, strings.IndexByte(s.results, of))
}

// droppedBlock writes a block of that type, and drops its results.
func (b *body) droppedBlock(s signature) {
	b.typedBlock(s)
	b.drop(s.results)
}

// typedBlock writes a block, a loop or an if of that type: parameters are pushed
// before it, results are on the stack after it.
func (b *body) typedBlock(s signature) {
	kind := one(b.choices, []byte{opBlock, opLoop, opIf})
	b.values(s.params)
	carry := s.results
	switch kind {
	case opLoop:
		carry = s.params
	case opIf:
		b.value(tI32)
	}
	b.code.op(kind)
	b.code.signed(int64(slices.Index(b.types, s)))
	arm := func() {
		b.drop(s.params)
		b.statements()
		b.values(s.results)
	}
	if kind == opLoop {
		b.count()
	}
	b.inside(carry, arm)
	if kind == opIf {
		b.code.bytes(opElse)
		b.inside(carry, arm)
	}
	b.code.bytes(opEnd)
}

// label is the depth of a block whose branches carry those types, and whether
// there is one.
func (b *body) label(carry string) (depth uint32, there bool) {
	var all []uint32
	for n, l := range b.labels {
		if l == carry {
			all = append(all, uint32(len(b.labels)-1-n))
		}
	}
	if len(all) == 0 {
		return 0, false
	}
	return one(b.choices, all), true
}

// branch writes a branch that may be taken or not.
func (b *body) branch() {
	depth := b.below(len(b.labels))
	carry := b.labels[len(b.labels)-1-depth]
	b.values(carry)
	b.value(tI32)
	b.code.op(opBrIf, uint32(depth))
	b.drop(carry)
}

// carried pushes a value that a branch would have carried away.
func (b *body) carried(of byte) {
	depth, there := b.label(string(of))
	b.value(of)
	if there {
		b.value(tI32)
		b.code.op(opBrIf, depth)
	}
}

// leave writes an end of the block: nothing after it is reached.
func (b *body) leave() {
	how := b.below(4)
	if b.careful {
		how %= 3
	}
	switch how {
	case 0, 1:
		depth := b.below(len(b.labels))
		b.values(b.labels[len(b.labels)-1-depth])
		b.code.op(opBr, uint32(depth))
	case 2:
		b.values(b.sig.results)
		b.code.bytes(opReturn)
	default:
		b.code.bytes(opUnreachable)
	}
}

// jumpTable writes a br_table out of some blocks, with code after each.
func (b *body) jumpTable() {
	depth := b.below(len(b.labels))
	carry := b.labels[len(b.labels)-1-depth]
	arms := 1 + b.below(4)
	for range arms {
		b.code.bytes(opBlock, blockEmpty)
		b.labels = append(b.labels, "")
	}
	if carry == "" || b.chance(70) {
		carry = ""
	}
	b.values(carry)
	b.value(tI32)
	var targets vector
	for range b.below(9) {
		if to, there := b.label(carry); there {
			targets.item().u32(to)
		}
	}
	b.code.bytes(opBrTable)
	b.code.u32(targets.n)
	b.code.bytes(targets.body...)
	to, _ := b.label(carry)
	b.code.u32(to)
	for range arms {
		b.code.bytes(opEnd)
		b.labels = b.labels[:len(b.labels)-1]
		b.deeper(b.statement)
	}
}

// length pushes how much is to be done in bulk: a constant or not, little or
// more than one piece.
func (b *body) length() {
	switch b.below(6) {
	case 0, 1:
		b.code.i32(int32(b.below(100)))
	case 2:
		b.code.i32(one(b.choices, []int32{0, 65_535, 65_536, 65_537, 131_072, 200_000, 70_000}))
	case 3:
		b.value(tI32)
		b.code.i32(0x1ffff)
		b.code.bytes(opI32And)
	case 4:
		b.value(tI32)
		b.code.i32(0xff)
		b.code.bytes(opI32And)
	default:
		b.value(tI32)
		if b.careful {
			b.code.i32(0x7fff)
			b.code.bytes(opI32And)
		}
	}
}

func (b *body) bulkMemory() {
	if !b.memory {
		return
	}
	switch b.below(4) {
	case 0:
		b.initMemory()
	case 1:
		if len(b.segments) > 0 && !b.restorable {
			b.bulk(9, uint32(b.below(len(b.segments)))) // data.drop
		}
	case 2:
		b.address()
		b.address()
		b.length()
		b.bulk(10, 0, 0) // memory.copy
	default:
		b.address()
		b.value(tI32)
		b.length()
		b.bulk(11, 0) // memory.fill
	}
}

// initMemory copies from a passive data segment. Active ones are empty once the
// module is instantiated: the engine forgets that, what was extracted does not.
func (b *body) initMemory() {
	n := slices.Index(b.segments, true)
	if n < 0 {
		return
	}
	b.address()
	b.code.i32(int32(b.below(20)))
	b.code.i32(int32(b.below(20)))
	b.bulk(8, uint32(n), 0) // memory.init
}

func (b *body) bulkTable() {
	if len(b.tables) == 0 || b.restorable {
		return
	}
	n := b.below(len(b.tables))
	of := b.tables[n].of
	b.entry(n)
	switch b.below(5) {
	case 0:
		b.value(of)
		b.code.op(opTableSet, uint32(n))
	case 1:
		b.value(of)
		b.code.i32(int32(b.below(4)))
		b.bulk(17, uint32(n)) // table.fill
	case 2:
		other := b.tableOf(of)
		b.entry(other)
		b.code.i32(int32(b.below(4)))
		b.bulk(14, uint32(n), uint32(other)) // table.copy
	default:
		b.segment(n, of)
	}
}

// segment copies from an element segment to a place that is on the stack, or
// drops one.
func (b *body) segment(n int, of byte) {
	from := slices.Index(b.elements, of)
	if from < 0 || b.chance(20) {
		b.code.bytes(opDrop)
		if from >= 0 {
			b.bulk(13, uint32(from)) // elem.drop
		}
		return
	}
	b.code.i32(int32(b.below(4)))
	b.code.i32(int32(b.below(4)))
	b.bulk(12, uint32(from), uint32(n)) // table.init
}
