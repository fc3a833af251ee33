package rewrite

// What instructions cost, in quarters of a unit. A unit is about a third of a nanosecond
// of compiled code. The table in the package comment lists the same values.
const (
	quarters = 4 // per unit

	costFree      = 0  // block, loop, else, end, nop, drop, unreachable, local.get, numeric constants
	costPlain     = 1  // integer arithmetic, comparisons, local.set, br, br_if, if, return, select, globals, references
	costFloat     = 2  // floating-point arithmetic and conversions, vector arithmetic
	costAccess    = 4  // loads and stores
	costHard      = 6  // br_table, table.get and set, truncations, vector instructions that need several machine instructions
	costCall      = 12 // plus 1 for each parameter and result
	costIndirect  = 20
	costDivide    = 20    // division, remainder, square root
	costEntry     = 6     // of a function, plus 1 for each local
	costMaxLocals = 8_000 // most that a function's locals cost
	costMaxParams = 1_000 // most that a call's parameters and results cost
	costBulk      = 40    // a bulk instruction, without the bytes it moves
	costSegment   = 80    // data.drop, elem.drop
	costGrow      = 400   // memory.grow

	// bytesPerUnit is how many bytes bulk instructions move for one unit.
	bytesPerUnit = 16
	// entryBytes is how many bytes an entry of a table counts as.
	entryBytes = 8
)

// plainCost is indexed by the opcodes that have no prefix.
var plainCost = func() (t [256]uint8) {
	set := func(from, to int, cost uint8) {
		for op := from; op <= to; op++ {
			t[op] = cost
		}
	}
	set(0, 255, costPlain)
	for _, op := range []int{opUnreachable, opNop, opBlock, opLoop, opElse, opEnd, opDrop, opLocalGet, opI32Const, opI64Const, opF32Const, opF64Const} {
		t[op] = costFree
	}
	t[opBrTable], t[opCall], t[opCallIndirect] = costHard, costCall, costIndirect
	t[opTableGet], t[opTableSet] = costHard, costHard
	set(opFirstLoad, opLastStore, costAccess)
	set(0x5b, 0x66, costFloat) // comparisons
	set(0x6d, 0x70, costDivide)
	set(0x7f, 0x82, costDivide)
	set(0x8b, 0xa6, costFloat)
	t[0x91], t[0x95], t[0x9f], t[0xa3] = costDivide, costDivide, costDivide, costDivide
	set(0xa8, 0xab, costHard) // i32.trunc
	set(0xae, 0xb1, costHard) // i64.trunc
	set(0xb2, 0xbb, costFloat)
	return t
}()

// cost returns the quarters of an instruction. A bulk instruction costs the call of its
// helper, which charges for the bytes it moves; with a constant length it costs
// bulkConstant. The parameters of calls are not counted.
func (in *instruction) cost() uint32 {
	switch in.op {
	case opMisc:
		switch in.sub {
		case miscDataDrop, miscElemDrop:
			return costSegment
		case miscTableSize:
			return costPlain
		}
		if in.sub <= miscLastTruncate {
			return costHard
		}
		return costBulk
	case opVector:
		return vectorCost(in.sub)
	case opMemoryGrow:
		return costGrow
	}
	return uint32(plainCost[in.op])
}

func vectorCost(op byte) uint32 {
	switch {
	case op <= 11, op >= 84 && op <= 93:
		return costAccess
	case op == vecConst:
		return costPlain
	case op == 227, op == 231, op == 239, op == 243: // square roots and divisions
		return 2 * costDivide
	case op == vecShuffle, op == 98, op >= 107 && op <= 109, op == 141, op == 172, op == 204, op == 205, op == 213,
		op >= 232 && op <= 235, op >= 244:
		return costHard
	}
	return costFloat
}

// bulkConstant returns the quarters of a bulk instruction on a constant number of bytes
// (entries times their size).
func bulkConstant(bytes uint64) uint32 {
	return costBulk + uint32((bytes+bytesPerUnit-1)/bytesPerUnit)*quarters
}

// effect returns how many operands an instruction takes and leaves. It does not cover
// instructions whose numbers depend on types: blocks, branches and calls.
func (in *instruction) effect() (pops, pushes int) {
	switch op := in.op; {
	case op == opMisc:
		return miscEffect(in.sub)
	case op == opVector:
		return vectorEffect(in.sub)
	case op == opDrop, op == opLocalSet, op == opGlobalSet:
		return 1, 0
	case op == opSelect, op == opSelectTyped:
		return 3, 1
	case op == opLocalGet, op == opGlobalGet, op == opMemorySize, op >= opI32Const && op <= opF64Const, op == opRefNull, op == opRefFunc:
		return 0, 1
	case op == opTableSet, op > opLastLoad && op <= opLastStore:
		return 2, 0
	case op == opLocalTee, op == opTableGet, op >= opFirstLoad && op <= opLastLoad, op == opMemoryGrow, op == opRefIsNull:
		return 1, 1
	case op >= opFirstNumeric && op <= opLastNumeric:
		if unary(op) {
			return 1, 1
		}
		return 2, 1
	}
	return 0, 0
}

// unary reports whether a numeric instruction has one operand.
func unary(op byte) bool {
	switch {
	case op == opI32Eqz, op == 0x50: // eqz
	case op >= 0x67 && op <= 0x69, op >= 0x79 && op <= 0x7b: // clz, ctz, popcnt
	case op >= 0x8b && op <= 0x91, op >= 0x99 && op <= 0x9f: // abs to sqrt
	case op >= 0xa7: // conversions
	default:
		return false
	}
	return true
}

func miscEffect(op byte) (pops, pushes int) {
	switch op {
	case miscMemoryInit, miscMemoryCopy, miscMemoryFill, miscTableInit, miscTableCopy, miscTableFill:
		return 3, 0
	case miscDataDrop, miscElemDrop:
		return 0, 0
	case miscTableGrow:
		return 2, 1
	case miscTableSize:
		return 0, 1
	}
	return 1, 1 // truncations
}

// vectorEffect is exact for stores, constants and instructions with three operands. All
// others take one or two operands and leave one.
func vectorEffect(op byte) (pops, pushes int) {
	switch {
	case op == 11, op >= 88 && op <= 91:
		return 2, 0
	case op == vecConst:
		return 0, 1
	case op == 82: // bitselect
		return 3, 1
	case vectorUnary(op):
		return 1, 1
	}
	return 2, 1
}

func vectorUnary(op byte) bool {
	switch {
	case op <= 10, op >= 15 && op <= 20: // loads, splats
	case op >= 21 && op <= 34: // extract or replace a lane
		switch op {
		case 23, 26, 28, 30, 32, 34:
			return false
		}
	case op == 77, op == 83, op >= 92 && op <= 100, op >= 103 && op <= 106, op == 116, op == 117, op == 122:
	case op >= 124 && op <= 129, op == 131, op == 132, op >= 135 && op <= 138, op == 148:
	case op == 160, op == 161, op == 163, op == 164, op >= 167 && op <= 170:
	case op == 192, op == 193, op == 195, op == 196, op >= 199 && op <= 202:
	case op == 224, op == 225, op == 227, op == 236, op == 237, op == 239, op >= 248:
	default:
		return false
	}
	return true
}
