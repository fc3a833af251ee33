package rewrite

import (
	"errors"

	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

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
	if p.in.Op == wasmbin.OpI64Const {
		if p.in.Value == 0 && p.purse != noPurse && p.attempt(step{wasmbin.OpLocalSet, p.purse}) {
			p.kind = pieceEmpty
			return true
		}
		return false
	}
	known := p.purse != noPurse
	if known && int64(p.in.X) != p.purse {
		return false
	}
	if p.in.Op == wasmbin.OpLocalGet && p.amount(int64(p.in.X)) {
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
	number, what := wasmbin.Instruction{}, wasmbin.Instruction{}
	p.r.Next(&number)
	p.r.Next(&what)
	known, units := p.purse != noPurse, number.Value
	switch {
	case number.Op != wasmbin.OpI64Const || units <= 0 || p.r.Err != nil:
	case what.Op == wasmbin.OpI64LtS && units <= purse && local <= int64(p.lastLocal) && p.filling(local):
		p.kind, p.units, p.purse = pieceFill, units, local
		p.spent = p.spending(local, units)
		return true
	case known && what.Op == wasmbin.OpI64GeS && units <= purse && p.follows(step{wasmbin.OpIf, noResult}) && p.spending(local, units):
		p.kind, p.units = pieceTurn, units
		return true
	case known && what.Op == wasmbin.OpI64Sub && units <= MaxCharge && p.follows(step{wasmbin.OpLocalSet, local}):
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
		step{wasmbin.OpIf, noResult}, step{wasmbin.OpGlobalGet, fuel}, step{wasmbin.OpLocalGet, local}, step{op: wasmbin.OpI64Add},
		step{wasmbin.OpI64Const, purse}, step{op: wasmbin.OpI64Sub}, step{wasmbin.OpGlobalSet, fuel},
		step{wasmbin.OpGlobalGet, fuel}, step{op: wasmbin.OpI64Const}, step{op: wasmbin.OpI64GeS}, step{wasmbin.OpIf, noResult},
		step{op: wasmbin.OpElse}, step{wasmbin.OpCall, int64(p.meter.refuel)}, step{op: wasmbin.OpEnd},
		step{wasmbin.OpI64Const, purse}, step{wasmbin.OpLocalSet, local}, step{op: wasmbin.OpEnd})
}

func (p *piece) spending(local, units int64) bool {
	return p.attempt(step{wasmbin.OpLocalGet, local}, step{wasmbin.OpI64Const, units}, step{op: wasmbin.OpI64Sub}, step{wasmbin.OpLocalSet, local})
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
	if !f.follows(step{wasmbin.OpBr, 2}, step{op: wasmbin.OpEnd}, step{op: wasmbin.OpEnd}, step{op: wasmbin.OpEnd}) {
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
	return f.in.Op == wasmbin.OpBr && f.scopes[len(f.scopes)-1].turn && len(f.r.Rest) > 0 && f.r.Rest[0] == wasmbin.OpElse
}

// refund: a branch directly after it belongs to the meter.
func (f *flow) refund() error {
	f.now.purse = false
	if len(f.r.Rest) == 0 || f.r.Rest[0] != wasmbin.OpBr {
		return nil
	}
	f.r.Next(&f.in)
	err := f.to(f.in.X)
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
