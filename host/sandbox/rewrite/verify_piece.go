package rewrite

import (
	"errors"

	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// pieceKind distinguishes the code of the meter from the original's.
type pieceKind uint8

const (
	pieceInstruction pieceKind = iota
	pieceCharge
	pieceCheck
	pieceEnter
	pieceLeave
	pieceShort // a bulk instruction behind a comparison of its length
	pieceEmpty // empties the purse, where a region begins
	pieceFill  // fills the purse, and perhaps spends from it
	pieceTurn  // the head of a loop body that runs while the purse has units
	pieceSpend
	pieceRefund // refunds the purse
)

// piece is an instruction of the original, or code added by the meter.
type piece struct {
	*verifier
	r         *wasmbin.Reader
	lastLocal uint32
	in        wasmbin.Instruction
	kind      pieceKind
	units     int64 // of a charge; bytes of a frame
	spent     bool  // whether the units are spent in the filling
	purse     int64 // the local that is the purse; noPurse: unknown
	err       error
}

var errMeter = errors.New("fuel or depth is used otherwise than for charges, checks and frames")

// next reads a piece.
func (p *piece) next() {
	p.r.Next(&p.in)
	p.kind = pieceInstruction
	switch p.in.Op {
	case wasmbin.OpGlobalGet:
		switch p.in.X {
		case p.meter.fuel:
			p.fuel()
		case p.meter.depth:
			p.depth()
		}
	case wasmbin.OpGlobalSet:
		if p.in.X == p.meter.fuel || p.in.X == p.meter.depth {
			p.err = errMeter
		}
	case wasmbin.OpCall:
		if p.in.X == p.meter.refuel || p.in.X == p.meter.overflow {
			p.err = errors.New("a call of refuel or overflow where no check is")
		}
	case wasmbin.OpLocalGet, wasmbin.OpLocalSet, wasmbin.OpLocalTee, wasmbin.OpI64Const:
		if !p.ofPurse() && p.in.Op == wasmbin.OpLocalTee {
			p.short()
		}
	}
}

// step is an instruction in a pattern, with its index, constant or block type.
type step struct {
	op  byte
	arg int64
}

// follows reads instructions while they match the pattern, and reports whether all did.
func (p *piece) follows(steps ...step) bool {
	var in wasmbin.Instruction
	for _, s := range steps {
		p.r.Next(&in)
		arg := int64(0)
		switch in.Op {
		case wasmbin.OpGlobalGet, wasmbin.OpGlobalSet, wasmbin.OpCall, wasmbin.OpLocalGet, wasmbin.OpLocalSet, wasmbin.OpBr:
			arg = int64(in.X)
		case wasmbin.OpI32Const, wasmbin.OpI64Const:
			arg = in.Value
		case wasmbin.OpIf:
			arg = in.Block
		}
		if p.r.Err != nil || in.Op != s.op || arg != s.arg {
			return false
		}
	}
	return true
}

const noResult = wasmbin.BlockEmpty - 0x80 // block type without a result, as decoded

// fuel reads the rest of a charge or a check after its first instruction.
func (p *piece) fuel() {
	number, what := wasmbin.Instruction{}, wasmbin.Instruction{}
	p.r.Next(&number)
	p.r.Next(&what)
	fuel := int64(p.meter.fuel)
	switch {
	case number.Op == wasmbin.OpLocalGet && int64(number.X) == p.purse && what.Op == wasmbin.OpI64Add && p.follows(step{wasmbin.OpGlobalSet, fuel}):
		p.kind = pieceRefund
	case number.Op != wasmbin.OpI64Const:
		p.err = errMeter
	case what.Op == wasmbin.OpI64Sub && number.Value > 0 && number.Value <= MaxCharge && p.follows(step{wasmbin.OpGlobalSet, fuel}):
		p.kind, p.units = pieceCharge, number.Value
	case what.Op == wasmbin.OpI64GeS && number.Value == 0 && p.follows(step{wasmbin.OpIf, noResult}, step{op: wasmbin.OpElse}, step{wasmbin.OpCall, int64(p.meter.refuel)}, step{op: wasmbin.OpEnd}):
		p.kind = pieceCheck
	default:
		p.err = errMeter
	}
}

// depth reads the rest of taking or giving back a frame after its first instruction.
func (p *piece) depth() {
	number, what := wasmbin.Instruction{}, wasmbin.Instruction{}
	p.r.Next(&number)
	p.r.Next(&what)
	depth := int64(p.meter.depth)
	switch {
	case number.Op != wasmbin.OpI32Const || number.Value <= 0 || number.Value > frameMost:
		p.err = errMeter
	case what.Op == wasmbin.OpI32Add && p.follows(step{wasmbin.OpGlobalSet, depth}):
		p.kind, p.units = pieceLeave, number.Value
	case what.Op == wasmbin.OpI32Sub && p.follows(step{wasmbin.OpGlobalSet, depth}, step{wasmbin.OpGlobalGet, depth}, step{op: wasmbin.OpI32Const}, step{op: wasmbin.OpI32LtS},
		step{wasmbin.OpIf, noResult}, step{wasmbin.OpCall, int64(p.meter.overflow)}, step{op: wasmbin.OpUnreachable}, step{op: wasmbin.OpEnd}):
		p.kind, p.units = pieceEnter, number.Value
	default:
		p.err = errMeter
	}
}

// short reads the rest of a bulk instruction with a comparison of its length, if the
// first instruction begins one.
func (p *piece) short() {
	before := *p.r
	var block, call, bulk wasmbin.Instruction
	if p.in.X != p.lastLocal || !p.follows(step{wasmbin.OpLocalGet, int64(p.in.X)}, step{wasmbin.OpI32Const, shortBulk}, step{op: wasmbin.OpI32GtU}) {
		*p.r = before
		return
	}
	p.r.Next(&block)
	p.r.Next(&call)
	if block.Op != wasmbin.OpIf || call.Op != wasmbin.OpCall || call.X < p.helpers || !p.follows(step{op: wasmbin.OpElse}) {
		*p.r = before
		return
	}
	p.r.Next(&bulk)
	ends := p.follows(step{op: wasmbin.OpEnd})
	typ, known := p.m.BlockType(block.Block)
	h, stands := p.helperAt[call.X]
	if !ends || !bulk.IsShort() || !known || !stands || h != helperOf(&bulk) || typ != helperType(p.m, h) {
		p.err = errors.New("a bulk instruction behind a comparison is invalid")
		return
	}
	p.kind = pieceShort
}
