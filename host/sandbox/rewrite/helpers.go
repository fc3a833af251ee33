package rewrite

import (
	"math"

	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

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
	m     *wasmbin.Module
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
func helperType(m *wasmbin.Module, h helper) wasmbin.FuncType {
	t, _ := m.TableAt(h.x)
	switch h.sub {
	case wasmbin.MiscTableFill:
		return wasmbin.FuncType{Params: string([]byte{wasmbin.TypeI32, t.Type, wasmbin.TypeI32})}
	case wasmbin.MiscTableGrow:
		return wasmbin.FuncType{Params: string([]byte{t.Type, wasmbin.TypeI32}), Results: string([]byte{wasmbin.TypeI32})}
	}
	return wasmbin.FuncType{Params: string([]byte{wasmbin.TypeI32, wasmbin.TypeI32, wasmbin.TypeI32})}
}

// helperBody writes the helper's body, with its declarations of locals.
func helperBody(m *wasmbin.Module, h helper, mt meter) []byte {
	c := &helperCode{helper: h, m: m, meter: mt, shift: 16}
	switch h.sub {
	case wasmbin.MiscTableInit, wasmbin.MiscTableCopy, wasmbin.MiscTableGrow, wasmbin.MiscTableFill:
		c.shift = 13
	}
	c.op(1, 2, wasmbin.TypeI32) // the locals: one group of two
	if h.sub == wasmbin.MiscTableGrow {
		c.grow()
	} else {
		c.move()
	}
	c.op(wasmbin.OpEnd)
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
	c.with(wasmbin.OpGlobalGet, c.meter.fuel)
	c.get(length)
	c.i32(c.mask())
	c.op(wasmbin.OpI32And)
	c.i32(c.unitShift())
	c.op(wasmbin.OpI32ShrU)
	c.op(wasmbin.OpI64ExtendU, wasmbin.OpI64Sub)
	c.with(wasmbin.OpGlobalSet, c.meter.fuel)
	c.check(c.meter)
	c.get(length)
	c.i32(c.mask())
	c.op(wasmbin.OpI32GtU)
}

func (c *helperCode) move() {
	c.begin(hLen)
	c.op(wasmbin.OpIf, wasmbin.BlockEmpty)
	c.bounds()
	c.get(hLen)
	c.i32(c.mask())
	c.op(wasmbin.OpI32And)
	c.set(hRest)
	c.get(hLen)
	c.i32(c.shift)
	c.op(wasmbin.OpI32ShrU)
	c.set(hPieces)
	if c.sub == wasmbin.MiscMemoryCopy || c.sub == wasmbin.MiscTableCopy {
		c.get(hTo, hFrom)
		c.op(wasmbin.OpI32GtU, wasmbin.OpIf, wasmbin.BlockEmpty)
		c.backward()
		c.op(wasmbin.OpElse)
		c.forward()
		c.op(wasmbin.OpEnd)
	} else {
		c.forward()
	}
	c.op(wasmbin.OpElse)
	c.get(hTo, hFrom, hLen)
	c.original()
	c.op(wasmbin.OpEnd)
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
	t, own := c.m.TableAt(c.x)
	c.begin(gLen)
	c.op(wasmbin.OpIf, wasmbin.TypeI32)
	c.get(gLen)
	c.i32(c.shift)
	c.op(wasmbin.OpI32ShrU)
	c.set(gPieces)
	if own {
		c.growInPieces(t)
	} else {
		c.op(wasmbin.OpLoop, wasmbin.BlockEmpty)
		c.charge(c.meter, Piece/bytesPerUnit)
		c.check(c.meter)
		c.again(gPieces)
		c.get(gInit, gLen)
		c.original()
	}
	c.op(wasmbin.OpElse)
	c.get(gInit, gLen)
	c.original()
	c.op(wasmbin.OpEnd)
}

func (c *helperCode) growInPieces(t wasmbin.Table) {
	most := int64(math.MaxUint32)
	if t.HasMax {
		most = int64(t.Max)
	}
	c.tableSize(c.x)
	c.get(gLen)
	c.op(wasmbin.OpI64ExtendU, wasmbin.OpI64Add)
	c.i64(most)
	c.op(wasmbin.OpI64GtU, wasmbin.OpIf, wasmbin.BlockEmpty)
	c.get(gInit, gLen)
	c.original()
	c.op(wasmbin.OpReturn, wasmbin.OpEnd)
	c.get(gInit, gLen)
	c.i32(c.mask())
	c.op(wasmbin.OpI32And)
	c.original()
	c.set(gBefore)
	c.op(wasmbin.OpLoop, wasmbin.BlockEmpty)
	c.charge(c.meter, Piece/bytesPerUnit)
	c.check(c.meter)
	c.get(gInit)
	c.i32(1 << c.shift)
	c.original()
	c.op(wasmbin.OpDrop)
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
	c.op(wasmbin.OpLoop, wasmbin.BlockEmpty)
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
	c.op(wasmbin.OpI32Sub)
	c.set(hLen)
	c.offset(hTo)
	c.offset(hFrom)
	c.get(hRest)
	c.original()
	c.op(wasmbin.OpLoop, wasmbin.BlockEmpty)
	c.charge(c.meter, Piece/bytesPerUnit)
	c.check(c.meter)
	c.get(hLen)
	c.i32(1 << c.shift)
	c.op(wasmbin.OpI32Sub)
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
	c.op(wasmbin.OpI32Add)
}

// again closes the loop, which continues while pieces are left.
func (c *helperCode) again(pieces uint32) {
	c.get(pieces)
	c.i32(1)
	c.op(wasmbin.OpI32Sub)
	c.with(wasmbin.OpLocalTee, pieces)
	c.op(wasmbin.OpBrIf, 0, wasmbin.OpEnd)
}

func (c *helperCode) advance(local uint32, by func()) {
	c.get(local)
	by()
	c.op(wasmbin.OpI32Add)
	c.set(local)
}

// hasSource reports whether the second operand is an address.
func (c *helperCode) hasSource() bool {
	return c.sub != wasmbin.MiscMemoryFill && c.sub != wasmbin.MiscTableFill
}

// original writes the original instruction.
func (c *helperCode) original() {
	c.op(wasmbin.OpMisc, c.sub)
	switch c.sub {
	case wasmbin.MiscMemoryInit:
		c.b = appendUint(c.b, uint64(c.x))
		c.op(0)
	case wasmbin.MiscMemoryCopy:
		c.op(0, 0)
	case wasmbin.MiscMemoryFill:
		c.op(0)
	case wasmbin.MiscTableInit, wasmbin.MiscTableCopy:
		c.b = appendUint(c.b, uint64(c.x))
		c.b = appendUint(c.b, uint64(c.y))
	default:
		c.b = appendUint(c.b, uint64(c.x))
	}
}

// bounds runs the whole instruction if it is out of bounds.
func (c *helperCode) bounds() {
	switch c.sub {
	case wasmbin.MiscMemoryFill:
		c.beyond(hTo, c.memoryBytes)
	case wasmbin.MiscMemoryCopy:
		c.beyond(hTo, c.memoryBytes)
		c.beyond(hFrom, c.memoryBytes)
	case wasmbin.MiscMemoryInit:
		size, _ := at(c.m.DataSizes, c.x)
		c.beyond(hTo, c.memoryBytes)
		c.beyond(hFrom, func() { c.i64(int64(size)) })
	case wasmbin.MiscTableFill:
		c.beyond(hTo, func() { c.tableSize(c.x) })
	case wasmbin.MiscTableCopy:
		c.beyond(hTo, func() { c.tableSize(c.x) })
		c.beyond(hFrom, func() { c.tableSize(c.y) })
	case wasmbin.MiscTableInit:
		size, _ := at(c.m.ElementSizes, c.x)
		c.beyond(hTo, func() { c.tableSize(c.y) })
		c.beyond(hFrom, func() { c.i64(int64(size)) })
	}
}

// beyond runs the whole instruction, which traps, if the range that starts at a local
// ends beyond limit.
func (c *helperCode) beyond(local uint32, limit func()) {
	c.get(local)
	c.op(wasmbin.OpI64ExtendU)
	c.get(hLen)
	c.op(wasmbin.OpI64ExtendU, wasmbin.OpI64Add)
	limit()
	c.op(wasmbin.OpI64GtU, wasmbin.OpIf, wasmbin.BlockEmpty)
	c.get(hTo, hFrom, hLen)
	c.original()
	c.op(wasmbin.OpUnreachable, wasmbin.OpEnd)
}

func (c *helperCode) memoryBytes() {
	c.op(wasmbin.OpMemorySize, 0, wasmbin.OpI64ExtendU)
	c.i64(16)
	c.op(wasmbin.OpI64Shl)
}

func (c *helperCode) tableSize(table uint32) {
	c.op(wasmbin.OpMisc, wasmbin.MiscTableSize)
	c.b = appendUint(c.b, uint64(table))
	c.op(wasmbin.OpI64ExtendU)
}
