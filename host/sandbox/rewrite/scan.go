package rewrite

import (
	"fmt"

	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// scan.go reads a function forward. It finds where the function can be charged, how high
// its operand stack grows, and what prevents an image.

// eventKind is the kind of an event: a point at which control may branch, or at which
// straight code has become so long that it is charged again.
type eventKind uint8

const (
	eventSplit eventKind = iota // before an instruction of straight code
	eventBlock
	eventLoop
	eventIf
	eventElse
	eventEndBlock
	eventEndLoop
	eventEndIf   // without an else
	eventEndElse // of an if with an else
	eventEndFunc
	eventBr
	eventBrIf
	eventBrTable
	eventReturn
	eventTrap // unreachable
	eventLeaf // behind the call of a small leaf
)

// event is a point at which code can be charged. A charge is placed behind its
// instruction, at pos.
type event struct {
	pos    uint32 // in code, behind the instruction
	cost   uint32 // cost of the code since the previous event, including the instruction
	label  uint32 // label of a branch; for a br_table, the position behind the opcode; for a loop that may be a region, its end
	amount uint16 // units of the charge placed here; 0: none
	mark   uint16 // quarters that the code after an end may require of the branches to it
	kind   eventKind
	check  bool // whether the charge has a check
	called bool // whether a call may precede the event
	doing  doing
}

// doing says what kinds of work the code since the previous event does.
type doing uint8

const (
	doingPlain doing = iota
	doingBusy        // it calls small leaves or helpers, or contains something else that excludes a region
	doingCalls       // it calls other functions
)

// noMark lets the code after an end require all it needs.
const noMark = 1<<16 - 1

// function is one function as scan finds it; the value is reused.
type function struct {
	index  uint32 // index in the original
	typ    wasmbin.FuncType
	body   *wasmbin.Body
	events []event // events of reachable code

	calls     bool // calls a function other than a small leaf or a bulk helper
	leaves    bool // calls small leaves
	bulk      bool // moves an unknown number of bytes or entries
	short     bool // some of these instructions run in place if they are short
	returns   bool // leaves before its end, by return or a branch to its outermost label
	vectors   bool
	maxHeight int // greatest number of operands
	loops     int
	entry     uint16 // the charge at the entry
	size      uint32 // quarters charged from the entry to the end or the first check
	checks    bool   // whether any charge after the entry has a check
	unchecked bool   // whether the entry has no check
	tested    bool   // whether the end has a check

	regions []region // regions that pay from the purse

	frames []frame  // used while scanning
	blocks []uint32 // used while finding regions: the events of open blocks
}

// frame is an open block during scanning.
type frame struct {
	end     eventKind // kind of the event that closes it
	height  int       // operands below the block and its parameters
	params  int
	results int
}

// straightMost bounds the quarters of straight code without an event, which keeps charges
// far below MaxCharge.
const straightMost = 1_000 * quarters

// scanner reads the functions of one module.
type scanner struct {
	m         *wasmbin.Module
	funcTypes []uint32 // type indices of all functions, imports first
	leaf      []bool   // by function: whether it is a small leaf
	function

	in       wasmbin.Instruction
	r        wasmbin.Reader
	dead     int // blocks opened in unreachable code, plus 1
	height   int
	straight uint32 // quarters since the previous event
	doing    doing  // since the previous event
	constant int64  // value of the i32.const directly before, or noConstant
}

// scan reads the module's own function with the given number.
func (s *scanner) scan(own int) error {
	f := &s.function
	*f = function{events: f.events[:0], frames: f.frames[:0], regions: f.regions[:0], blocks: f.blocks[:0], body: &s.m.Bodies[own]}
	f.index = uint32(len(s.funcTypes) - len(s.m.Funcs) + own)
	typ, ok := s.m.TypeAt(s.m.Funcs[own])
	if !ok {
		return fmt.Errorf("function %d has no type", f.index)
	}
	f.typ = typ
	s.r = wasmbin.Reader{Rest: f.body.Code, Offset: f.body.Offset}
	s.dead, s.height, s.doing, s.constant = 0, 0, doingPlain, noConstant
	s.straight = costEntry + uint32(min(f.body.Locals, costMaxLocals))
	s.push(eventEndFunc, 0, len(typ.Results))
	for len(f.frames) > 0 && s.r.Err == nil {
		start := s.at()
		s.r.Next(&s.in)
		s.step(start)
	}
	if s.r.Err != nil {
		return fmt.Errorf("function %d: %w", f.index, s.r.Err)
	}
	return nil
}

// at returns the reader's position in the code.
func (s *scanner) at() uint32 { return uint32(len(s.body.Code) - len(s.r.Rest)) }

func (s *scanner) step(start uint32) {
	if s.dead > 0 {
		s.skipDead()
		return
	}
	cost := s.cost()
	s.constant = noConstant
	if s.straight > 0 && s.straight+cost > straightMost {
		s.events = append(s.events, event{pos: start, cost: s.straight, kind: eventSplit, mark: noMark, called: s.calls, doing: s.doing})
		s.straight, s.doing = 0, doingPlain
	}
	s.straight += cost
	switch s.in.Op {
	case wasmbin.OpBlock, wasmbin.OpLoop, wasmbin.OpIf:
		s.open()
	case wasmbin.OpElse:
		s.otherArm()
	case wasmbin.OpEnd:
		s.close()
	case wasmbin.OpBr, wasmbin.OpBrIf, wasmbin.OpBrTable, wasmbin.OpReturn, wasmbin.OpUnreachable:
		s.branch(start)
	case wasmbin.OpCall, wasmbin.OpCallIndirect:
		s.call()
	default:
		s.plain()
	}
}

// cost returns the quarters of the instruction, without the parameters of calls.
func (s *scanner) cost() uint32 {
	if !s.in.IsBulk() {
		return costOf(&s.in)
	}
	if bytes, ok := constantBulk(s.m, &s.in, s.constant); ok {
		return bulkConstant(bytes)
	}
	s.bulk, s.doing = true, max(s.doing, doingBusy)
	if s.in.IsShort() && s.body.Locals < maxShortLocals {
		s.short = true
		return bulkConstant(shortBulk)
	}
	return costBulk
}

// plain handles an instruction without control flow.
func (s *scanner) plain() {
	switch s.in.Op {
	case wasmbin.OpI32Const:
		s.constant = int64(uint32(s.in.Value))
	case wasmbin.OpVector:
		s.vectors = true
	}
	s.move(s.in.Effect())
}

// move pops and pushes operands. An invalid module may pop operands that do not exist.
func (s *scanner) move(pops, pushes int) {
	s.height = max(s.height-pops, 0) + pushes
	s.maxHeight = max(s.maxHeight, s.height)
}

// event records a point behind the instruction just read.
func (s *scanner) event(kind eventKind, label uint32) {
	s.events = append(s.events, event{pos: s.at(), cost: s.straight, label: label, kind: kind, mark: noMark, called: s.calls, doing: s.doing})
	s.straight, s.doing = 0, doingPlain
}

func (s *scanner) push(end eventKind, params, results int) {
	s.frames = append(s.frames, frame{end: end, height: max(s.height-params, 0), params: params, results: results})
}

func (s *scanner) open() {
	if s.in.Op == wasmbin.OpIf {
		s.move(1, 0)
	}
	typ, ok := s.m.BlockType(s.in.Block)
	if !ok {
		s.r.Fail("a block of a type that does not exist")
		return
	}
	params, results := len(typ.Params), len(typ.Results)
	switch s.in.Op {
	case wasmbin.OpBlock:
		s.event(eventBlock, 0)
		s.push(eventEndBlock, params, results)
	case wasmbin.OpLoop:
		s.loops++
		label := uint32(0)
		if params > 0 {
			label, s.doing = noRegion, max(s.doing, doingBusy)
		}
		s.event(eventLoop, label)
		s.push(eventEndLoop, params, results)
	case wasmbin.OpIf:
		s.event(eventIf, 0)
		s.push(eventEndIf, params, results)
	}
}

func (s *scanner) otherArm() {
	f := &s.frames[len(s.frames)-1]
	if f.end != eventEndIf {
		s.r.Fail("an else without its if")
		return
	}
	s.event(eventElse, 0)
	f.end = eventEndElse
	s.height = f.height + f.params
}

func (s *scanner) close() {
	f := s.frames[len(s.frames)-1]
	s.event(f.end, 0)
	s.frames = s.frames[:len(s.frames)-1]
	s.height = f.height
	s.move(0, f.results)
}

func (s *scanner) branch(start uint32) {
	depth := uint32(len(s.frames) - 1)
	out := func(label uint32) {
		if label > depth {
			s.r.Fail("a branch out of %d blocks, of %d", label, depth)
		}
		s.returns = s.returns || label == depth
	}
	switch s.in.Op {
	case wasmbin.OpBrIf:
		out(s.in.X)
		s.event(eventBrIf, s.in.X)
		s.move(1, 0)
		return
	case wasmbin.OpBr:
		out(s.in.X)
		s.event(eventBr, s.in.X)
	case wasmbin.OpBrTable:
		labels := start + 1
		for range uint64(s.in.X) + 1 {
			if out(s.r.U32()); s.r.Err != nil {
				return
			}
		}
		s.event(eventBrTable, labels)
	case wasmbin.OpReturn:
		s.returns = true
		s.event(eventReturn, 0)
	case wasmbin.OpUnreachable:
		s.event(eventTrap, 0)
	}
	s.dead = 1
}

func (s *scanner) call() {
	var typ wasmbin.FuncType
	var ok bool
	if s.in.Op == wasmbin.OpCall {
		if uint64(s.in.X) < uint64(len(s.funcTypes)) {
			typ, ok = s.m.TypeAt(s.funcTypes[s.in.X])
		}
	} else {
		s.move(1, 0)
		typ, ok = s.m.TypeAt(s.in.X)
	}
	if !ok {
		s.r.Fail("a call of a function that does not exist")
		return
	}
	s.straight += uint32(min(len(typ.Params)+len(typ.Results), costMaxParams))
	s.move(len(typ.Params), len(typ.Results))
	if s.in.Op == wasmbin.OpCall && s.leaf[s.in.X] {
		s.leaves, s.doing = true, max(s.doing, doingBusy)
		s.event(eventLeaf, 0)
		return
	}
	s.calls, s.doing = true, doingCalls
}

// skipDead passes unreachable code, up to the end or else that makes code reachable
// again.
func (s *scanner) skipDead() {
	switch s.in.Op {
	case wasmbin.OpBlock, wasmbin.OpLoop, wasmbin.OpIf:
		s.dead++
	case wasmbin.OpBrTable:
		for n := uint64(s.in.X) + 1; n > 0 && s.r.Err == nil; n-- {
			s.r.U32()
		}
	case wasmbin.OpElse:
		if s.dead == 1 {
			s.dead = 0
			s.otherArm()
		}
	case wasmbin.OpEnd:
		if s.dead--; s.dead == 0 {
			s.close()
		}
	}
}

// frameBytes returns how much the function takes off the depth: 8 bytes for each
// parameter, result, local and operand, 16 for each vector (and for every operand of a
// function with vector instructions), plus the cost of a call.
func (f *function) frameBytes() uint32 {
	bytes := uint64(frameBase)
	for _, types := range []string{f.typ.Params, f.typ.Results} {
		for i := range len(types) {
			bytes += valueBytes(types[i])
		}
	}
	r := wasmbin.Reader{Rest: f.body.Decl}
	r.Each(func() {
		n := uint64(r.U32())
		bytes += n * valueBytes(r.Byte())
	})
	operand := uint64(8)
	if f.vectors {
		operand = 16
	}
	bytes += uint64(f.maxHeight) * operand
	if f.short {
		bytes += valueBytes(wasmbin.TypeI32)
	}
	if len(f.regions) > 0 {
		bytes += valueBytes(wasmbin.TypeI64)
	}
	return uint32(min(bytes, frameMost))
}

const (
	frameBase = 48
	// frameMost keeps the depth from wrapping around.
	frameMost = 1 << 30
)

func valueBytes(t byte) uint64 {
	if t == wasmbin.TypeV128 {
		return 16
	}
	return 8
}
