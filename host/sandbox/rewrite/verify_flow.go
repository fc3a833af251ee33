package rewrite

import (
	"errors"
	"fmt"

	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// What functions may assume and may leave open, in units charged since the last check.
const (
	openUnits = openMost / quarters
	// atCall is the most that may be unchecked when a function that is not a small leaf
	// is called; atReturn, when it returns.
	atCall   = 2*openUnits + purse
	atReturn = openUnits + purse
	// helperUnits is what a helper charges before it checks.
	helperUnits = Piece / bytesPerUnit
)

// way is what is known at a point of the code, whatever path led there.
type way struct {
	live   bool
	purse  bool
	torn   bool // some paths to this point have a purse and others do not
	credit int  // quarters charged and not yet used, at least
	open   int  // units charged since the last check, at most
}

// join adds another path to the same point.
func (w *way) join(other way) {
	switch {
	case !other.live:
	case !w.live:
		*w = other
	default:
		w.torn = w.torn || other.torn || w.purse != other.purse
		w.credit, w.open = min(w.credit, other.credit), max(w.open, other.open)
	}
}

// scope is an open block of a function.
type scope struct {
	label   way // of the branches to its end
	other   way // of an if: at the beginning of the else arm
	loop    bool
	isIf    bool
	turn    bool  // the body of a loop that runs while the purse has units
	purse   bool  // whether the head of a loop has a purse
	header  int32 // units that the head of a loop charges
	fills   int32 // units in the purse behind the head, at least
	height  int   // operands below the block and its parameters
	params  int
	results int
}

// flow follows the control flow of one function after the other.
type flow struct {
	*verifier
	piece
	r      wasmbin.Reader
	typ    wasmbin.FuncType
	locals uint64
	scopes []scope
	now    way

	pieces    int  // pieces read
	header    bool // the next piece is the head of a loop
	headCheck bool // the next piece is the check of that head
	entered   bool // the frame was taken off the depth
	left      bool // and given back
	frame     int64
	height    int
	highest   int
	vectors   bool
	constant  int64
	last      way // at the end of the function
	most      int // greatest open at any point
}

func (f *flow) begin(index uint32) {
	own := index - f.imported
	body := &f.m.Bodies[own]
	typ, ok := f.m.TypeAt(f.m.Funcs[own])
	*f = flow{verifier: f.verifier, scopes: f.scopes[:0], typ: typ, locals: body.Locals, constant: noConstant}
	f.r = wasmbin.Reader{Rest: body.Code, Offset: body.Offset}
	if !ok {
		f.r.Fail("its type does not exist")
	}
	f.piece.verifier, f.piece.r, f.purse = f.verifier, &f.r, f.facts[own].purse
	f.lastLocal = uint32(len(typ.Params)) + uint32(body.Locals) - 1
}

// follow follows one function to its end. For small leaves, it returns the most units
// charged without a check, and whether the function returns.
func (f *flow) follow(index uint32) (open int, returns bool, err error) {
	f.begin(index)
	body := &f.m.Bodies[index-f.imported]
	if f.locals > 0 && f.facts[index-f.imported].short {
		f.locals-- // the local for lengths is not charged
	}
	if f.locals > 0 && f.purse != noPurse {
		f.locals-- // the purse is not charged either
	}
	f.now = way{live: true, credit: -costEntry - int(min(f.locals, costMaxLocals)), open: atCall}
	f.scopes = append(f.scopes, scope{results: len(f.typ.Results)})
	for len(f.scopes) > 0 && err == nil && f.r.Err == nil {
		if f.next(); f.err != nil {
			err = f.err
			break
		}
		f.pieces++
		err = f.step()
	}
	if err == nil {
		err = f.r.Err
	}
	if err == nil {
		err = f.ending(index, body)
	}
	if err != nil {
		return 0, false, fmt.Errorf("at byte %d: %w", f.r.Offset, err)
	}
	return f.most - atCall, f.last.live, nil
}

func (f *flow) ending(index uint32, body *wasmbin.Body) error {
	limit := atReturn
	if f.facts[index-f.imported].alone {
		limit = atCall + leafMost/quarters
	}
	switch {
	case f.last.live && f.last.purse:
		return errors.New("a purse is not given back")
	case f.last.live && f.last.open > limit:
		return fmt.Errorf("%d units may be open at the end", f.last.open)
	case f.entered && f.frame < f.bytes(body):
		return fmt.Errorf("the frame of %d bytes is too small for %d", f.frame, f.bytes(body))
	}
	return nil
}

// bytes returns the documented size of the function's frame.
func (f *flow) bytes(body *wasmbin.Body) int64 {
	scanned := function{typ: f.typ, body: body, maxHeight: f.highest, vectors: f.vectors}
	return int64(scanned.frameBytes())
}

// step processes one piece.
func (f *flow) step() error {
	paid := f.header && (f.kind == pieceFill || f.kind == pieceTurn)
	if (f.pieces == 1 || f.header) && f.kind != pieceCharge && !paid {
		return errors.New("a function or loop without its charge")
	}
	if f.headCheck && f.kind != pieceCheck {
		return errors.New("a loop without its check")
	}
	if f.left && f.kind != pieceCheck && (f.kind != pieceInstruction || f.in.Op != wasmbin.OpEnd) {
		return errors.New("code behind the end of the frame")
	}
	header := f.header
	f.header, f.headCheck = false, header && !paid
	switch f.kind {
	case pieceEmpty, pieceFill, pieceTurn, pieceSpend, pieceRefund:
		return f.purseStep(header)
	case pieceInstruction:
		return f.instruction()
	}
	if err := f.noPurseHere(); err != nil {
		return err
	}
	switch f.kind {
	case pieceCharge:
		return f.charge(header)
	case pieceCheck:
		f.now.open = 0
	case pieceEnter:
		if f.pieces > 3 || len(f.scopes) != 1 || f.entered {
			return errors.New("a frame is taken off the depth in the middle of the function")
		}
		f.entered, f.frame = true, f.units
	case pieceLeave:
		if len(f.scopes) != 1 || !f.entered || f.units != f.frame {
			return errors.New("a frame is given back that was not taken")
		}
		f.left = true
	case pieceShort:
		f.constant = noConstant
		f.move(3, 0)
		if err := f.beforeHelper(); err != nil {
			return err
		}
		return f.pay(int(bulkConstant(shortBulk)))
	}
	return nil
}

func (f *flow) charge(header bool) error {
	if !f.now.live {
		return nil
	}
	if header {
		f.scopes[len(f.scopes)-1].header = int32(f.units)
	}
	f.now.credit += int(f.units) * quarters
	return f.add(int(f.units))
}

// add adds units charged without a check.
func (f *flow) add(units int) error {
	f.now.open += units
	f.most = max(f.most, f.now.open)
	if f.now.open > MaxCharge || f.now.credit < 0 {
		return fmt.Errorf("%d units may be open, and %d quarters are paid too much", f.now.open, f.now.credit)
	}
	return nil
}

// pay subtracts an instruction's cost from the credit.
func (f *flow) pay(cost int) error {
	if !f.now.live {
		return nil
	}
	if f.now.credit -= cost; f.now.credit < 0 {
		return fmt.Errorf("%d quarters are not charged", -f.now.credit)
	}
	return nil
}

// beforeHelper handles the call of a helper, which charges and checks at its beginning.
// The helper must not be called behind the comparison of a length.
func (f *flow) beforeHelper() error {
	if f.now.live && f.now.open+helperUnits > MaxCharge {
		return fmt.Errorf("%d units may be open at a bulk instruction", f.now.open)
	}
	return nil
}

func (f *flow) move(pops, pushes int) {
	if !f.now.live {
		return
	}
	f.height = max(f.height-pops, 0) + pushes
	f.highest = max(f.highest, f.height)
}

// instruction handles an instruction of the original.
func (f *flow) instruction() error {
	constant := f.constant
	f.constant = noConstant
	switch op := f.in.Op; op {
	case wasmbin.OpBlock, wasmbin.OpLoop, wasmbin.OpIf:
		return f.open()
	case wasmbin.OpElse:
		return f.otherArm()
	case wasmbin.OpEnd:
		return f.close()
	case wasmbin.OpBr, wasmbin.OpBrIf, wasmbin.OpBrTable, wasmbin.OpReturn, wasmbin.OpUnreachable:
		return f.branch()
	case wasmbin.OpCall, wasmbin.OpCallIndirect:
		return f.call()
	case wasmbin.OpI32Const:
		f.constant = int64(uint32(f.in.Value))
	}
	if !f.now.live {
		return nil
	}
	f.vectors = f.vectors || f.in.Op == wasmbin.OpVector
	f.move(f.in.Effect())
	if !f.in.IsBulk() {
		return f.pay(int(costOf(&f.in)))
	}
	moved, ok := constantBulk(f.m, &f.in, constant)
	if !ok {
		return errors.New("a bulk instruction without bounds")
	}
	return f.pay(int(bulkConstant(moved)))
}

func (f *flow) open() error {
	typ, ok := f.m.BlockType(f.in.Block)
	if !ok {
		return errors.New("a block of a type that does not exist")
	}
	s := scope{loop: f.in.Op == wasmbin.OpLoop, isIf: f.in.Op == wasmbin.OpIf, params: len(typ.Params), results: len(typ.Results)}
	if err := f.pay(int(costOf(&f.in))); err != nil {
		return err
	}
	if s.isIf {
		f.move(1, 0)
		s.other = f.now
	}
	if s.loop && f.now.live {
		f.header, f.now.credit = true, 0
		s.purse = f.now.purse
	}
	s.height = max(f.height-s.params, 0)
	f.scopes = append(f.scopes, s)
	return nil
}

func (f *flow) otherArm() error {
	s := &f.scopes[len(f.scopes)-1]
	if !s.isIf {
		return errors.New("an else without its if")
	}
	s.label.join(f.now)
	f.now, s.other, s.isIf = s.other, way{}, false
	f.height = s.height + s.params
	if s.turn {
		return f.endTurn()
	}
	return nil
}

func (f *flow) close() error {
	s := &f.scopes[len(f.scopes)-1]
	if s.turn && s.isIf {
		return errors.New("a turn without the way back to where the purse is filled")
	}
	s.label.join(f.now)
	s.label.join(s.other)
	f.now = s.label
	if err := f.now.agree(); err != nil {
		return err
	}
	if f.height = s.height + s.results; f.now.live {
		f.highest = max(f.highest, f.height)
	}
	if f.scopes = f.scopes[:len(f.scopes)-1]; len(f.scopes) > 0 {
		return nil
	}
	f.last = f.now
	if f.now.live && f.entered && !f.left {
		return errors.New("the frame is not given back")
	}
	return nil
}

// to handles a branch.
func (f *flow) to(label uint32) error {
	if uint64(label) >= uint64(len(f.scopes)) {
		return errors.New("a branch out of the function")
	}
	at := len(f.scopes) - 1 - int(label)
	s := &f.scopes[at]
	switch {
	case !f.now.live:
	case at == 0 && f.entered:
		return errors.New("a way out that keeps the frame")
	case !s.loop:
		s.label.join(f.now)
	case f.now.purse != s.purse:
		return errors.New("there is a purse at one turn, and none at another")
	case f.now.open+int(s.header) > MaxCharge:
		return fmt.Errorf("%d units may be open at the next turn", f.now.open)
	}
	return nil
}

func (f *flow) branch() error {
	cost := int(costOf(&f.in))
	if f.lastOfTurn() {
		cost = 0
	}
	err := f.pay(cost)
	switch f.in.Op {
	case wasmbin.OpBr, wasmbin.OpBrIf:
		err = errors.Join(err, f.to(f.in.X))
	case wasmbin.OpReturn:
		err = errors.Join(err, f.to(uint32(len(f.scopes)-1)))
	case wasmbin.OpBrTable:
		for n := uint64(f.in.X) + 1; n > 0 && err == nil && f.r.Err == nil; n-- {
			err = f.to(f.r.U32())
		}
	}
	if f.in.Op == wasmbin.OpBrIf {
		f.move(1, 0)
		return err
	}
	f.now = way{}
	return err
}

func (f *flow) call() error {
	if err := f.noPurseHere(); err != nil {
		return err
	}
	if f.in.Op == wasmbin.OpCall && f.in.X >= f.helpers {
		return f.helperCall()
	}
	cost := costCall
	var typ wasmbin.FuncType
	var ok bool
	if f.in.Op == wasmbin.OpCall {
		typ, ok = f.signature(f.in.X)
	} else {
		f.move(1, 0)
		cost = costIndirect
		typ, ok = f.m.TypeAt(f.in.X)
	}
	if !ok {
		return errors.New("a call of a function that does not exist")
	}
	if !f.now.live {
		return nil
	}
	f.move(len(typ.Params), len(typ.Results))
	if err := f.pay(cost + min(len(typ.Params)+len(typ.Results), costMaxParams)); err != nil {
		return err
	}
	if f.in.Op == wasmbin.OpCall {
		if open, ok := f.trapping[f.in.X]; ok {
			if f.now.open+open > MaxCharge {
				return fmt.Errorf("%d units may be open at a call", f.now.open)
			}
			return nil
		}
		if open, ok := f.leaves[f.in.X]; ok {
			return f.add(open)
		}
	}
	return f.callAny()
}

func (f *flow) helperCall() error {
	h, ok := f.signature(f.in.X)
	if !ok {
		return errors.New("a call of a function that does not exist")
	}
	if !f.now.live {
		return nil
	}
	f.move(len(h.Params), len(h.Results))
	if err := errors.Join(f.beforeHelper(), f.pay(costBulk)); err != nil {
		return err
	}
	f.now.open = 0
	return nil
}

// callAny handles the call of a function that checks, or of an unknown function that may
// do nothing.
func (f *flow) callAny() error {
	if !f.entered {
		return errors.New("a call without a frame")
	}
	if f.now.open > atCall {
		return fmt.Errorf("%d units may be open at a call", f.now.open)
	}
	if known := f.in.Op == wasmbin.OpCall && f.in.X >= f.imported; known {
		f.now.open = atReturn
	} else {
		f.now.open = max(f.now.open, atReturn)
	}
	return nil
}
