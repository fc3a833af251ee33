package rewrite

import "math"

// helperCode writes one helper. Its parameters are the operands of the
// instruction; all helpers are
//
//	charge for the rest: n modulo a piece
//	if n is less than a piece
//	    the instruction
//	else
//	    if out of bounds: the instruction, which traps
//	    the instruction on the rest
//	    loop: a charge, the instruction on a piece
type helperCode struct {
	assembler
	helper
	m     *Module
	meter meter
	shift int32 // of a piece: its length is 1 << shift
}

// Parameters and locals of helpers.
const (
	hTo     = 0 // destination
	hFrom   = 1 // source or value
	hLen    = 2
	hPieces = 3 // pieces left to do
	hRest   = 4 // length of the incomplete piece
)

// helperType returns the signature of a helper.
func (m *Module) helperType(h helper) FuncType {
	t, _ := m.tableAt(h.x)
	switch h.sub {
	case miscTableFill:
		return FuncType{Params: string([]byte{TypeI32, t.Type, TypeI32})}
	case miscTableGrow:
		return FuncType{Params: string([]byte{t.Type, TypeI32}), Results: string([]byte{TypeI32})}
	}
	return FuncType{Params: string([]byte{TypeI32, TypeI32, TypeI32})}
}

// tableAt returns the type of a table, and whether the table is the module's own.
func (m *Module) tableAt(index uint32) (t Table, own bool) {
	if uint64(index) < uint64(len(m.importedTables)) {
		return m.importedTables[index], false
	}
	if index -= uint32(len(m.importedTables)); uint64(index) < uint64(len(m.Tables)) {
		return m.Tables[index], true
	}
	return Table{Type: TypeFuncref}, true
}

// helperBody writes the helper's body, with its declarations of locals.
func (m *Module) helperBody(h helper, mt meter) []byte {
	c := &helperCode{helper: h, m: m, meter: mt, shift: 16}
	switch h.sub {
	case miscTableInit, miscTableCopy, miscTableGrow, miscTableFill:
		c.shift = 13
	}
	c.op(1, 2, TypeI32) // the locals: one group of two
	if h.sub == miscTableGrow {
		c.grow()
	} else {
		c.move()
	}
	c.op(opEnd)
	return c.b
}

// mask is the length of a piece minus one.
func (c *helperCode) mask() int32 { return 1<<c.shift - 1 }

// unitShift returns the shift that converts lengths to units.
func (c *helperCode) unitShift() int32 {
	if c.shift == 16 {
		return 4
	}
	return 1
}

// begin charges for the rest and compares the length with a piece.
func (c *helperCode) begin(length uint32) {
	c.with(opGlobalGet, c.meter.fuel)
	c.get(length)
	c.i32(c.mask())
	c.op(opI32And)
	c.i32(c.unitShift())
	c.op(opI32ShrU)
	c.op(opI64ExtendU, opI64Sub)
	c.with(opGlobalSet, c.meter.fuel)
	c.check(c.meter)
	c.get(length)
	c.i32(c.mask())
	c.op(opI32GtU)
}

func (c *helperCode) move() {
	c.begin(hLen)
	c.op(opIf, blockEmpty)
	c.bounds()
	c.get(hLen)
	c.i32(c.mask())
	c.op(opI32And)
	c.set(hRest)
	c.get(hLen)
	c.i32(c.shift)
	c.op(opI32ShrU)
	c.set(hPieces)
	if c.sub == miscMemoryCopy || c.sub == miscTableCopy {
		c.get(hTo, hFrom)
		c.op(opI32GtU, opIf, blockEmpty)
		c.backward()
		c.op(opElse)
		c.forward()
		c.op(opEnd)
	} else {
		c.forward()
	}
	c.op(opElse)
	c.get(hTo, hFrom, hLen)
	c.original()
	c.op(opEnd)
}

// Parameters and locals of the helper of table.grow.
const (
	gInit   = 0 // reference
	gLen    = 1
	gPieces = 2
	gBefore = 3 // size before
)

// grow writes the helper of table.grow. Growing fails as a whole, before anything has
// grown. How far an imported table may grow is unknown here, so one operation grows it,
// although the charge is in pieces.
func (c *helperCode) grow() {
	t, own := c.m.tableAt(c.x)
	c.begin(gLen)
	c.op(opIf, TypeI32)
	c.get(gLen)
	c.i32(c.shift)
	c.op(opI32ShrU)
	c.set(gPieces)
	if own {
		c.growInPieces(t)
	} else {
		c.op(opLoop, blockEmpty)
		c.charge(c.meter, Piece/bytesPerUnit)
		c.check(c.meter)
		c.again(gPieces)
		c.get(gInit, gLen)
		c.original()
	}
	c.op(opElse)
	c.get(gInit, gLen)
	c.original()
	c.op(opEnd)
}

func (c *helperCode) growInPieces(t Table) {
	most := int64(math.MaxUint32)
	if t.HasMax {
		most = int64(t.Max)
	}
	c.tableSize(c.x)
	c.get(gLen)
	c.op(opI64ExtendU, opI64Add)
	c.i64(most)
	c.op(opI64GtU, opIf, blockEmpty)
	c.get(gInit, gLen)
	c.original()
	c.op(opReturn, opEnd)
	c.get(gInit, gLen)
	c.i32(c.mask())
	c.op(opI32And)
	c.original()
	c.set(gBefore)
	c.op(opLoop, blockEmpty)
	c.charge(c.meter, Piece/bytesPerUnit)
	c.check(c.meter)
	c.get(gInit)
	c.i32(1 << c.shift)
	c.original()
	c.op(opDrop)
	c.again(gPieces)
	c.get(gBefore)
}

// forward works from the beginning: first the rest, then piece by piece.
func (c *helperCode) forward() {
	c.get(hTo, hFrom, hRest)
	c.original()
	c.advance(hTo, func() { c.get(hRest) })
	if c.hasSource() {
		c.advance(hFrom, func() { c.get(hRest) })
	}
	c.op(opLoop, blockEmpty)
	c.charge(c.meter, Piece/bytesPerUnit)
	c.check(c.meter)
	c.get(hTo, hFrom)
	c.i32(1 << c.shift)
	c.original()
	piece := func() { c.i32(1 << c.shift) }
	c.advance(hTo, piece)
	if c.hasSource() {
		c.advance(hFrom, piece)
	}
	c.again(hPieces)
}

// backward works from the end, for a destination after the source.
func (c *helperCode) backward() {
	c.get(hLen, hRest)
	c.op(opI32Sub)
	c.set(hLen)
	c.offset(hTo)
	c.offset(hFrom)
	c.get(hRest)
	c.original()
	c.op(opLoop, blockEmpty)
	c.charge(c.meter, Piece/bytesPerUnit)
	c.check(c.meter)
	c.get(hLen)
	c.i32(1 << c.shift)
	c.op(opI32Sub)
	c.set(hLen)
	c.offset(hTo)
	c.offset(hFrom)
	c.i32(1 << c.shift)
	c.original()
	c.again(hPieces)
}

// offset pushes the sum of a local and what is still to do.
func (c *helperCode) offset(local uint32) {
	c.get(local, hLen)
	c.op(opI32Add)
}

// again closes the loop, which continues while pieces are left.
func (c *helperCode) again(pieces uint32) {
	c.get(pieces)
	c.i32(1)
	c.op(opI32Sub)
	c.with(opLocalTee, pieces)
	c.op(opBrIf, 0, opEnd)
}

func (c *helperCode) advance(local uint32, by func()) {
	c.get(local)
	by()
	c.op(opI32Add)
	c.set(local)
}

// hasSource reports whether the second operand is an address.
func (c *helperCode) hasSource() bool { return c.sub != miscMemoryFill && c.sub != miscTableFill }

// original writes the original instruction.
func (c *helperCode) original() {
	c.op(opMisc, c.sub)
	switch c.sub {
	case miscMemoryInit:
		c.b = appendUint(c.b, uint64(c.x))
		c.op(0)
	case miscMemoryCopy:
		c.op(0, 0)
	case miscMemoryFill:
		c.op(0)
	case miscTableInit, miscTableCopy:
		c.b = appendUint(c.b, uint64(c.x))
		c.b = appendUint(c.b, uint64(c.y))
	default:
		c.b = appendUint(c.b, uint64(c.x))
	}
}

// bounds runs the whole instruction if it is out of bounds.
func (c *helperCode) bounds() {
	switch c.sub {
	case miscMemoryFill:
		c.beyond(hTo, c.memoryBytes)
	case miscMemoryCopy:
		c.beyond(hTo, c.memoryBytes)
		c.beyond(hFrom, c.memoryBytes)
	case miscMemoryInit:
		size, _ := at(c.m.dataSizes, c.x)
		c.beyond(hTo, c.memoryBytes)
		c.beyond(hFrom, func() { c.i64(int64(size)) })
	case miscTableFill:
		c.beyond(hTo, func() { c.tableSize(c.x) })
	case miscTableCopy:
		c.beyond(hTo, func() { c.tableSize(c.x) })
		c.beyond(hFrom, func() { c.tableSize(c.y) })
	case miscTableInit:
		size, _ := at(c.m.elementSizes, c.x)
		c.beyond(hTo, func() { c.tableSize(c.y) })
		c.beyond(hFrom, func() { c.i64(int64(size)) })
	}
}

// beyond runs the whole instruction, which traps, if the range that starts at a local
// ends beyond limit.
func (c *helperCode) beyond(local uint32, limit func()) {
	c.get(local)
	c.op(opI64ExtendU)
	c.get(hLen)
	c.op(opI64ExtendU, opI64Add)
	limit()
	c.op(opI64GtU, opIf, blockEmpty)
	c.get(hTo, hFrom, hLen)
	c.original()
	c.op(opUnreachable, opEnd)
}

func (c *helperCode) memoryBytes() {
	c.op(opMemorySize, 0, opI64ExtendU)
	c.i64(16)
	c.op(opI64Shl)
}

func (c *helperCode) tableSize(table uint32) {
	c.op(opMisc, miscTableSize)
	c.b = appendUint(c.b, uint64(table))
	c.op(opI64ExtendU)
}
