package rewrite

import "github.com/weftrun/weft/host/sandbox/wasmbin"

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
	for _, op := range []int{
		wasmbin.OpUnreachable, wasmbin.OpNop, wasmbin.OpBlock, wasmbin.OpLoop,
		wasmbin.OpElse, wasmbin.OpEnd, wasmbin.OpDrop, wasmbin.OpLocalGet,
		wasmbin.OpI32Const, wasmbin.OpI64Const, wasmbin.OpF32Const, wasmbin.OpF64Const,
	} {
		t[op] = costFree
	}
	t[wasmbin.OpBrTable], t[wasmbin.OpCall], t[wasmbin.OpCallIndirect] = costHard, costCall, costIndirect
	t[wasmbin.OpTableGet], t[wasmbin.OpTableSet] = costHard, costHard
	set(wasmbin.OpFirstLoad, wasmbin.OpLastStore, costAccess)
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

// costOf returns the quarters of an instruction. A bulk instruction costs the call of its
// helper, which charges for the bytes it moves; with a constant length it costs
// bulkConstant. The parameters of calls are not counted.
func costOf(in *wasmbin.Instruction) uint32 {
	switch in.Op {
	case wasmbin.OpMisc:
		switch in.Sub {
		case wasmbin.MiscDataDrop, wasmbin.MiscElemDrop:
			return costSegment
		case wasmbin.MiscTableSize:
			return costPlain
		}
		if in.Sub <= wasmbin.MiscLastTruncate {
			return costHard
		}
		return costBulk
	case wasmbin.OpVector:
		return vectorCost(in.Sub)
	case wasmbin.OpMemoryGrow:
		return costGrow
	}
	return uint32(plainCost[in.Op])
}

func vectorCost(op byte) uint32 {
	switch {
	case op <= 11, op >= 84 && op <= 93:
		return costAccess
	case op == wasmbin.VecConst:
		return costPlain
	case op == 227, op == 231, op == 239, op == 243: // square roots and divisions
		return 2 * costDivide
	case op == wasmbin.VecShuffle, op == 98, op >= 107 && op <= 109, op == 141, op == 172, op == 204, op == 205, op == 213,
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
