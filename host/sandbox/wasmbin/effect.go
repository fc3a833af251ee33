package wasmbin

// Effect returns how many operands an instruction takes and leaves. It does not cover
// instructions whose numbers depend on types: blocks, branches and calls.
func (in *Instruction) Effect() (pops, pushes int) {
	switch op := in.Op; {
	case op == OpMisc:
		return miscEffect(in.Sub)
	case op == OpVector:
		return vectorEffect(in.Sub)
	case op == OpDrop, op == OpLocalSet, op == OpGlobalSet:
		return 1, 0
	case op == opSelect, op == opSelectTyped:
		return 3, 1
	case op == OpLocalGet, op == OpGlobalGet, op == OpMemorySize, op >= OpI32Const && op <= OpF64Const, op == OpRefNull, op == OpRefFunc:
		return 0, 1
	case op == OpTableSet, op > opLastLoad && op <= OpLastStore:
		return 2, 0
	case op == OpLocalTee, op == OpTableGet, op >= OpFirstLoad && op <= opLastLoad, op == OpMemoryGrow, op == opRefIsNull:
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
	case op == OpI32Eqz, op == 0x50: // eqz
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
	case MiscMemoryInit, MiscMemoryCopy, MiscMemoryFill, MiscTableInit, MiscTableCopy, MiscTableFill:
		return 3, 0
	case MiscDataDrop, MiscElemDrop:
		return 0, 0
	case MiscTableGrow:
		return 2, 1
	case MiscTableSize:
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
	case op == VecConst:
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
