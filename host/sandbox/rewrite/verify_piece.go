package rewrite

import "errors"

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
	r         *reader
	lastLocal uint32
	in        instruction
	kind      pieceKind
	units     int64 // of a charge; bytes of a frame
	spent     bool  // whether the units are spent in the filling
	purse     int64 // the local that is the purse; noPurse: unknown
	err       error
}

var errMeter = errors.New("fuel or depth is used otherwise than for charges, checks and frames")

// next reads a piece.
func (p *piece) next() {
	p.r.next(&p.in)
	p.kind = pieceInstruction
	switch p.in.op {
	case opGlobalGet:
		switch p.in.x {
		case p.meter.fuel:
			p.fuel()
		case p.meter.depth:
			p.depth()
		}
	case opGlobalSet:
		if p.in.x == p.meter.fuel || p.in.x == p.meter.depth {
			p.err = errMeter
		}
	case opCall:
		if p.in.x == p.meter.refuel || p.in.x == p.meter.overflow {
			p.err = errors.New("a call of refuel or overflow where no check is")
		}
	case opLocalGet, opLocalSet, opLocalTee, opI64Const:
		if !p.ofPurse() && p.in.op == opLocalTee {
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
	var in instruction
	for _, s := range steps {
		p.r.next(&in)
		arg := int64(0)
		switch in.op {
		case opGlobalGet, opGlobalSet, opCall, opLocalGet, opLocalSet, opBr:
			arg = int64(in.x)
		case opI32Const, opI64Const:
			arg = in.val
		case opIf:
			arg = in.block
		}
		if p.r.err != nil || in.op != s.op || arg != s.arg {
			return false
		}
	}
	return true
}

const noResult = blockEmpty - 0x80 // block type without a result, as decoded

// fuel reads the rest of a charge or a check after its first instruction.
func (p *piece) fuel() {
	number, what := instruction{}, instruction{}
	p.r.next(&number)
	p.r.next(&what)
	fuel := int64(p.meter.fuel)
	switch {
	case number.op == opLocalGet && int64(number.x) == p.purse && what.op == opI64Add && p.follows(step{opGlobalSet, fuel}):
		p.kind = pieceRefund
	case number.op != opI64Const:
		p.err = errMeter
	case what.op == opI64Sub && number.val > 0 && number.val <= MaxCharge && p.follows(step{opGlobalSet, fuel}):
		p.kind, p.units = pieceCharge, number.val
	case what.op == opI64GeS && number.val == 0 && p.follows(step{opIf, noResult}, step{op: opElse}, step{opCall, int64(p.meter.refuel)}, step{op: opEnd}):
		p.kind = pieceCheck
	default:
		p.err = errMeter
	}
}

// depth reads the rest of taking or giving back a frame after its first instruction.
func (p *piece) depth() {
	number, what := instruction{}, instruction{}
	p.r.next(&number)
	p.r.next(&what)
	depth := int64(p.meter.depth)
	switch {
	case number.op != opI32Const || number.val <= 0 || number.val > frameMost:
		p.err = errMeter
	case what.op == opI32Add && p.follows(step{opGlobalSet, depth}):
		p.kind, p.units = pieceLeave, number.val
	case what.op == opI32Sub && p.follows(step{opGlobalSet, depth}, step{opGlobalGet, depth}, step{op: opI32Const}, step{op: opI32LtS},
		step{opIf, noResult}, step{opCall, int64(p.meter.overflow)}, step{op: opUnreachable}, step{op: opEnd}):
		p.kind, p.units = pieceEnter, number.val
	default:
		p.err = errMeter
	}
}

// short reads the rest of a bulk instruction with a comparison of its length, if the
// first instruction begins one.
func (p *piece) short() {
	before := *p.r
	var block, call, bulk instruction
	if p.in.x != p.lastLocal || !p.follows(step{opLocalGet, int64(p.in.x)}, step{opI32Const, shortBulk}, step{op: opI32GtU}) {
		*p.r = before
		return
	}
	p.r.next(&block)
	p.r.next(&call)
	if block.op != opIf || call.op != opCall || call.x < p.helpers || !p.follows(step{op: opElse}) {
		*p.r = before
		return
	}
	p.r.next(&bulk)
	ends := p.follows(step{op: opEnd})
	typ, known := p.m.blockType(block.block)
	h, stands := p.helperAt[call.x]
	if !ends || !bulk.isShort() || !known || !stands || h != helperOf(&bulk) || typ != p.m.helperType(h) {
		p.err = errors.New("a bulk instruction behind a comparison is invalid")
		return
	}
	p.kind = pieceShort
}
