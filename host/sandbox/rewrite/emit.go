package rewrite

import "github.com/weftrun/weft/host/sandbox/wasmbin"

// emit.go writes functions anew: with charges, with their frame taken off the depth and
// given back, with functions renumbered, and with bulk instructions replaced by calls of
// helpers.

// code writes the entries of the code section, helpers included.
func (w *rewriter) code() ([]byte, error) {
	stats := &w.result.Stats
	stats.Functions = len(w.m.Funcs)
	section := make([]byte, 0, len(w.m.Sections[wasmbin.SectionCode])*5/4)
	e := &emitter{rewriter: w, function: &w.scanner.function}
	if w.origins != nil {
		e.noted = w.origins.note
	}
	if err := w.findLeaves(); err != nil {
		return nil, err
	}
	for own := range w.m.Funcs {
		if err := w.scanner.scan(own); err != nil {
			return nil, err
		}
		w.placer.place(&w.scanner.function)
		if w.placer.purse {
			w.scanner.findRegions()
		}
		e.unchecked = e.unchecked || w.scanner.leaf[e.index]
		e.body()
		section = appendBytes(section, e.b)
		if w.origins != nil {
			w.origins.function(len(section)-len(e.b), len(section), e.function.body.Offset)
		}
	}
	for _, h := range w.helpers {
		section = appendBytes(section, helperBody(w.m, h, w.meter))
	}
	stats.Helpers = len(w.helpers)
	return section, nil
}

// findLeaves finds the small leaves: short functions without calls, loops and checks that
// only direct calls can reach. A leaf charges without a check, and its callers count that
// charge as their own. Many calls in a row meet a check of the caller. Each turn of a
// loop or recursion meets a check in any case.
func (w *rewriter) findLeaves() error {
	s := &w.scanner
	s.leaf = make([]bool, len(s.funcTypes))
	referenced := w.m.Referenced()
	for own := range w.m.Funcs {
		index := w.result.imported + uint32(own)
		if referenced[index] || w.m.Bodies[own].Size > leafBytes {
			continue
		}
		if err := s.scan(own); err != nil {
			return err
		}
		if s.calls || s.leaves || s.bulk || s.loops > 0 { // the charges of leaves that call leaves would add up
			continue
		}
		w.placer.place(&s.function)
		s.leaf[index] = !s.checks && s.size <= leafMost
	}
	return nil
}

// emitter writes the functions one after the other.
type emitter struct {
	*rewriter
	*function
	assembler // the function being written

	in       wasmbin.Instruction
	r        wasmbin.Reader
	dead     uint32     // open blocks in unreachable code, plus 1
	constant int64      // value of the i32.const directly before, or noConstant
	length   uint32     // local that holds the length of bulk instructions
	copied   int        // bytes of the original already written or replaced
	next     int        // index of the next event
	noted    func(kept) // if not nil, receives where the original's code is written

	blocks     []opened // open blocks of the original
	height     uint32   // number of open blocks, as written
	region     written
	nextRegion int    // the first region not yet written
	purse      uint32 // index of the local
}

// body writes the function after scan and place.
func (e *emitter) body() {
	e.locals()
	e.r = wasmbin.Reader{Rest: e.function.body.Code}
	e.dead, e.constant, e.copied, e.next = 0, noConstant, 0, 0
	e.blocks, e.height, e.region, e.nextRegion = e.blocks[:0], 0, written{}, 0
	e.put(e.entry, !e.unchecked)
	frame := uint32(0)
	e.result.Stats.Loops += e.loops
	if e.calls {
		frame = e.frameBytes()
		e.result.Stats.MaxFrame = max(e.result.Stats.MaxFrame, int(frame))
		e.enter(e.meter, frame)
		if e.returns {
			e.openResults()
		}
	} else {
		e.result.Stats.LeafFunctions++
	}
	for len(e.r.Rest) > 0 && e.r.Err == nil {
		e.instruction()
	}
	if !e.calls {
		e.flush(e.at())
		return
	}
	e.flush(e.at() - 1) // all except the last end
	if e.returns {
		e.op(wasmbin.OpEnd)
	}
	e.leave(e.meter, frame)
	if e.tested {
		e.look()
	}
	e.op(wasmbin.OpEnd)
}

// locals writes the declarations of locals. A purse and the length of bulk instructions
// each take one more local, if needed.
func (e *emitter) locals() {
	r := wasmbin.Reader{Rest: e.function.body.Decl}
	groups := uint64(r.U32())
	next := uint32(len(e.typ.Params)) + uint32(e.function.body.Locals)
	var more []byte
	for _, l := range []struct {
		needed bool
		local  *uint32
		typ    byte
	}{{len(e.regions) > 0, &e.purse, wasmbin.TypeI64}, {e.short, &e.length, wasmbin.TypeI32}} {
		if l.needed {
			*l.local = next
			next++
			groups++
			more = append(more, 1, l.typ)
		}
	}
	e.b = append(append(appendUint(e.b[:0], groups), r.Rest...), more...)
}

// put writes a charge.
func (e *emitter) put(units uint16, check bool) {
	e.count(units)
	e.charge(e.meter, uint32(units))
	if check {
		e.look()
	}
}

func (e *emitter) count(units uint16) {
	e.result.Stats.Charges++
	e.result.Stats.MaxCharge = max(e.result.Stats.MaxCharge, int(units))
}

// putEvent writes the charge of an event.
func (e *emitter) putEvent(at *event) {
	if e.region.region == nil {
		e.put(at.amount, at.check)
		return
	}
	e.count(at.amount)
	units := uint32(at.amount)
	if at.kind == eventLoop {
		return // the instruction runs in place
	}
	if at.check {
		e.fill(e.meter, e.purse, units)
		e.result.Stats.Checks++
	}
	e.spend(e.purse, units)
}

// look writes a check.
func (e *emitter) look() {
	e.check(e.meter)
	e.result.Stats.Checks++
}

// openResults opens the block around the body. The block replaces the function as the
// target of branches.
func (e *emitter) openResults() {
	e.op(wasmbin.OpBlock)
	switch results := e.typ.Results; len(results) {
	case 0:
		e.op(wasmbin.BlockEmpty)
	case 1:
		e.op(results[0])
	default:
		e.b = appendInt(e.b, int64(e.typeIndex(wasmbin.FuncType{Results: results})))
	}
}

// at returns the position in the original code.
func (e *emitter) at() int { return len(e.function.body.Code) - len(e.r.Rest) }

// flush copies the original code up to a position.
func (e *emitter) flush(to int) {
	if e.noted != nil {
		e.noted(kept{len(e.b), e.copied, to - e.copied})
	}
	e.b = append(e.b, e.function.body.Code[e.copied:to]...)
	e.copied = to
}

func (e *emitter) instruction() {
	start := e.at()
	for e.next < len(e.events) && int(e.events[e.next].pos) == start {
		if at := &e.events[e.next]; at.amount > 0 {
			e.flush(start)
			e.putEvent(at)
		}
		e.next++
	}
	e.r.Next(&e.in)
	last := e.constant
	e.constant = noConstant
	switch e.in.Op {
	case wasmbin.OpBlock, wasmbin.OpLoop, wasmbin.OpIf:
		e.open(start)
	case wasmbin.OpElse:
		if e.dead == 1 {
			e.dead = 0
		}
	case wasmbin.OpEnd:
		e.end(start)
	case wasmbin.OpBrIf:
		e.branch(start)
	case wasmbin.OpBr, wasmbin.OpBrTable, wasmbin.OpReturn, wasmbin.OpUnreachable:
		e.away(start)
	case wasmbin.OpI32Const:
		e.constant = int64(uint32(e.in.Value))
	case wasmbin.OpCall, wasmbin.OpRefFunc:
		e.flush(start)
		e.with(e.in.Op, e.rewriter.function(e.in.X))
		e.copied = e.at()
	case wasmbin.OpMisc:
		e.bulk(start, last)
	}
}

// away handles an instruction after which control does not continue.
func (e *emitter) away(start int) {
	switch e.in.Op {
	case wasmbin.OpBr:
		e.branch(start)
	case wasmbin.OpBrTable:
		e.table(start)
	case wasmbin.OpReturn:
		e.leaves(start)
	}
	if e.dead == 0 {
		e.dead = 1
	}
}

// bulk replaces a bulk instruction by the call of its helper, unless the instruction
// moves little or is unreachable.
func (e *emitter) bulk(start int, length int64) {
	if !e.in.IsBulk() || e.dead > 0 {
		return
	}
	e.result.Stats.BulkSites++
	if _, small := constantBulk(e.m, &e.in, length); small {
		e.result.Stats.BulkConst++
		return
	}
	h := helperOf(&e.in)
	e.flush(start)
	if e.short && e.in.IsShort() {
		e.with(wasmbin.OpLocalTee, e.length)
		e.get(e.length)
		e.i32(shortBulk)
		e.op(wasmbin.OpI32GtU, wasmbin.OpIf)
		e.b = appendInt(e.b, int64(e.typeIndex(helperType(e.m, h))))
		e.with(wasmbin.OpCall, e.helper(h))
		e.op(wasmbin.OpElse)
		e.b = append(e.b, e.function.body.Code[start:e.at()]...)
		e.op(wasmbin.OpEnd)
	} else {
		e.with(wasmbin.OpCall, e.helper(h))
	}
	e.copied = e.at()
}
