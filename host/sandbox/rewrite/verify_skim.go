package rewrite

import "github.com/weftrun/weft/host/sandbox/wasmbin"

// verify_skim.go finds what must be known of a function before its control flow is
// followed.

// facts is what must be known of a function before its control flow is followed.
type facts struct {
	alone bool // has no calls, loops and checks
	short bool // has bulk instructions behind a comparison
	purse int64
}

// skim finds the facts of a function.
func (f *flow) skim(index uint32) error {
	f.begin(index)
	found := &f.facts[index-f.imported]
	found.alone, f.purse = true, noPurse
	dead := 0
	for len(f.r.Rest) > 0 {
		if f.next(); f.err != nil {
			return f.err
		}
		if f.kind == pieceInstruction && f.in.Op == wasmbin.OpBrTable {
			for range uint64(f.in.X) + 1 {
				f.r.U32()
			}
		}
		reached := dead == 0
		switch f.kind {
		case pieceInstruction:
			dead = deadAfter(dead, f.in.Op)
		case pieceTurn:
			dead = deadAfter(dead, wasmbin.OpIf)
		}
		switch {
		case !reached:
		case f.kind == pieceCheck, f.kind == pieceEnter, f.kind == pieceFill:
			found.alone = false
		case f.kind == pieceShort:
			found.alone, found.short = false, true
		case f.kind != pieceInstruction:
		case f.in.Op == wasmbin.OpCall, f.in.Op == wasmbin.OpCallIndirect, f.in.Op == wasmbin.OpLoop:
			found.alone = false
		}
	}
	found.purse = f.purse
	return f.r.Err
}

// deadAfter counts the open blocks of unreachable code, plus one; 0 in reachable code. It
// uses the order of the code alone: code after a block counts as reachable.
func deadAfter(dead int, op byte) int {
	switch op {
	case wasmbin.OpBlock, wasmbin.OpLoop, wasmbin.OpIf:
		if dead > 0 {
			return dead + 1
		}
	case wasmbin.OpElse:
		if dead == 1 {
			return 0
		}
	case wasmbin.OpEnd:
		return max(dead-1, 0)
	case wasmbin.OpBr, wasmbin.OpBrTable, wasmbin.OpReturn, wasmbin.OpUnreachable:
		return max(dead, 1)
	}
	return dead
}
