package rewrite

import "errors"

// verify_purse.go reads and follows the code that pays for the turns of loops from a
// purse. The purse is the local named by the first filling in a function. Whether there
// is a purse is part of the state of each path, and paths that join must agree. The
// contents of the purse were charged when it was filled. A spending counts as a charge.

const noPurse = -1

var errPurse = errors.New("the purse is used otherwise than to be emptied, filled, spent from and given back")

// attempt reads a pattern, or nothing.
func (p *piece) attempt(steps ...step) bool {
	before := *p.r
	if p.follows(steps...) {
		return true
	}
	*p.r = before
	return false
}

// ofPurse reads code for the purse after its first instruction. It reports whether the
// code is for the purse.
func (p *piece) ofPurse() bool {
	if p.in.op == opI64Const {
		if p.in.val == 0 && p.purse != noPurse && p.attempt(step{opLocalSet, p.purse}) {
			p.kind = pieceEmpty
			return true
		}
		return false
	}
	known := p.purse != noPurse
	if known && int64(p.in.x) != p.purse {
		return false
	}
	if p.in.op == opLocalGet && p.amount(int64(p.in.x)) {
		return true
	}
	if known {
		p.err = errPurse
	}
	return known
}

// amount reads a filling, the head of a turn or a spending.
func (p *piece) amount(local int64) bool {
	before := *p.r
	number, what := instruction{}, instruction{}
	p.r.next(&number)
	p.r.next(&what)
	known, units := p.purse != noPurse, number.val
	switch {
	case number.op != opI64Const || units <= 0 || p.r.err != nil:
	case what.op == opI64LtS && units <= purse && local <= int64(p.lastLocal) && p.filling(local):
		p.kind, p.units, p.purse = pieceFill, units, local
		p.spent = p.spending(local, units)
		return true
	case known && what.op == opI64GeS && units <= purse && p.follows(step{opIf, noResult}) && p.spending(local, units):
		p.kind, p.units = pieceTurn, units
		return true
	case known && what.op == opI64Sub && units <= MaxCharge && p.follows(step{opLocalSet, local}):
		p.kind, p.units = pieceSpend, units
		return true
	}
	*p.r = before
	return false
}

// filling reads what follows the comparison of a filling.
func (p *piece) filling(local int64) bool {
	fuel := int64(p.meter.fuel)
	return p.follows(
		step{opIf, noResult}, step{opGlobalGet, fuel}, step{opLocalGet, local}, step{op: opI64Add},
		step{opI64Const, purse}, step{op: opI64Sub}, step{opGlobalSet, fuel},
		step{opGlobalGet, fuel}, step{op: opI64Const}, step{op: opI64GeS}, step{opIf, noResult},
		step{op: opElse}, step{opCall, int64(p.meter.refuel)}, step{op: opEnd},
		step{opI64Const, purse}, step{opLocalSet, local}, step{op: opEnd})
}

func (p *piece) spending(local, units int64) bool {
	return p.attempt(step{opLocalGet, local}, step{opI64Const, units}, step{op: opI64Sub}, step{opLocalSet, local})
}

// noPurseHere fails if there is a purse.
func (f *flow) noPurseHere() error {
	if f.now.live && f.now.purse {
		return errors.New("a charge, a frame or a call in a region")
	}
	return nil
}

// purseStep processes a piece that concerns the purse. header reports whether the piece
// is the first of a loop.
func (f *flow) purseStep(header bool) error {
	if f.now.live && f.now.purse == (f.kind == pieceEmpty) {
		return errors.New("a purse where none is, or where one is already")
	}
	switch f.kind {
	case pieceEmpty:
		f.now.purse = true
	case pieceFill:
		return f.fill(header)
	case pieceTurn:
		return f.turn(header)
	case pieceSpend:
		return f.charge(false)
	case pieceRefund:
		return f.refund()
	}
	return nil
}

// fill: everything in the purse may be spent until the next filling.
func (f *flow) fill(header bool) error {
	if !f.now.live {
		return nil
	}
	if header {
		s := &f.scopes[len(f.scopes)-1]
		s.header, s.fills = 2*purse, int32(f.units)
	}
	if err := f.add(purse); err != nil {
		return err
	}
	f.now.open = purse
	if f.spent {
		f.now.credit += int(f.units) * quarters
	}
	return nil
}

// turn opens the body of a loop, which runs if the purse has the units of a turn.
// Otherwise control returns to the enclosing loop, which must begin by filling at least
// that much.
func (f *flow) turn(header bool) error {
	top := len(f.scopes) - 1
	if top < 2 || !f.scopes[top].loop || !f.scopes[top-1].loop || f.now.live && (!header || f.scopes[top-1].fills < int32(f.units)) {
		return errors.New("a turn is paid from a purse that is not filled")
	}
	f.scopes[top].header = 2 * purse
	f.scopes = append(f.scopes, scope{isIf: true, turn: true, other: f.now, height: f.height})
	if f.now.live {
		f.now.open = purse
		f.now.credit += int(f.units) * quarters
	}
	return nil
}

// endTurn handles the else of a turn.
func (f *flow) endTurn() error {
	if !f.follows(step{opBr, 2}, step{op: opEnd}, step{op: opEnd}, step{op: opEnd}) {
		return errors.New("the way back to where the purse is filled is invalid")
	}
	if err := f.to(2); err != nil {
		return err
	}
	f.now = way{}
	for range 3 {
		if err := f.close(); err != nil {
			return err
		}
	}
	return nil
}

// lastOfTurn reports whether a branch ends the turns. That branch belongs to the meter.
func (f *flow) lastOfTurn() bool {
	return f.in.op == opBr && f.scopes[len(f.scopes)-1].turn && len(f.r.b) > 0 && f.r.b[0] == opElse
}

// refund: a branch directly after it belongs to the meter.
func (f *flow) refund() error {
	f.now.purse = false
	if len(f.r.b) == 0 || f.r.b[0] != opBr {
		return nil
	}
	f.r.next(&f.in)
	err := f.to(f.in.x)
	f.now = way{}
	return err
}

// agree reports whether all paths to this point have a purse, or none has.
func (w *way) agree() error {
	if w.live && w.torn {
		return errors.New("there is a purse on one way, and none on another")
	}
	return nil
}
