package rewrite

import (
	"slices"

	"github.com/weftrun/weft/host/sandbox/wasmbin"
)

// regions_emit.go writes regions: the blocks around them, the charges paid from the
// purse, and the ways out.

// spend subtracts units from the purse.
func (a *assembler) spend(local, units uint32) {
	a.get(local)
	a.i64(int64(units))
	a.op(wasmbin.OpI64Sub)
	a.set(local)
}

// lacks compares the purse with the units to spend.
func (a *assembler) lacks(local, units uint32) {
	a.get(local)
	a.i64(int64(units))
	a.op(wasmbin.OpI64LtS)
}

// fill fills the purse if it has fewer than the given units, and checks.
func (a *assembler) fill(m meter, local, units uint32) {
	a.lacks(local, units)
	a.op(wasmbin.OpIf, wasmbin.BlockEmpty)
	a.with(wasmbin.OpGlobalGet, m.fuel)
	a.get(local)
	a.op(wasmbin.OpI64Add)
	a.i64(purse)
	a.op(wasmbin.OpI64Sub)
	a.with(wasmbin.OpGlobalSet, m.fuel)
	a.check(m)
	a.i64(purse)
	a.set(local)
	a.op(wasmbin.OpEnd)
}

// turn opens the body of a loop that is paid from the purse. The body runs while the
// purse has the units of a turn, and spends them.
func (a *assembler) turn(local, units uint32) {
	a.get(local)
	a.i64(int64(units))
	a.op(wasmbin.OpI64GeS, wasmbin.OpIf, wasmbin.BlockEmpty)
	a.spend(local, units)
}

// refund returns the contents of the purse to the fuel.
func (a *assembler) refund(m meter, local uint32) {
	a.with(wasmbin.OpGlobalGet, m.fuel)
	a.get(local)
	a.op(wasmbin.OpI64Add)
	a.with(wasmbin.OpGlobalSet, m.fuel)
}

// opened is an open block of the original.
type opened struct {
	typ  int32  // block type as decoded; a module is too short for more types than fit
	at   uint32 // number of open blocks including this block, as written
	end  uint32 // for a loop that pays from the purse: the same for the block at its end
	loop bool
}

// written is a region that is being written.
type written struct {
	*region        // nil: none
	loop    int    // index of its loop among the open blocks
	base    uint32 // open blocks around it
}

// exit returns the number of open blocks at the block of a way out, including that block.
func (w *written) exit(i int) uint32 { return w.base + 1 + uint32(len(w.exits)-i) }

// open handles the beginning of a block.
func (e *emitter) open(start int) {
	block := opened{typ: int32(e.in.Block), loop: e.in.Op == wasmbin.OpLoop}
	if e.dead > 0 {
		e.dead++
	} else if block.loop {
		if e.nextRegion < len(e.regions) && e.regions[e.nextRegion].first == e.next {
			e.region = written{&e.regions[e.nextRegion], len(e.blocks), e.height}
			e.nextRegion++
			e.result.Stats.Regions++
		}
		if e.region.region != nil {
			e.flush(start)
			e.openTurns(&block)
			return
		}
	}
	e.height++
	if len(e.regions) > 0 {
		block.at = e.height
		e.blocks = append(e.blocks, block)
	}
}

// openTurns writes a loop that is paid from the purse: a block that replaces the loop's
// end as a target, and around the loop a second loop, which fills the purse. A region
// begins with blocks for its ways out, the first one innermost, and an empty purse.
func (e *emitter) openTurns(block *opened) {
	block.end = e.height + 1
	e.b = appendInt(append(e.b, wasmbin.OpBlock), int64(block.typ))
	if len(e.blocks) == e.region.loop {
		exits := e.region.exits
		for i := len(exits) - 1; i >= 0; i-- {
			e.b = appendInt(append(e.b, wasmbin.OpBlock), e.carried(exits[i]))
		}
		e.height += uint32(len(exits))
		e.i64(0)
		e.set(e.purse)
	}
	units := uint32(e.events[e.next].amount)
	e.op(wasmbin.OpLoop, wasmbin.BlockEmpty)
	e.fill(e.meter, e.purse, units)
	e.result.Stats.Checks++
	e.op(wasmbin.OpLoop, wasmbin.BlockEmpty)
	e.turn(e.purse, units)
	e.height += 4 // includes the block and the if of turn
	block.at = e.height - 1
	e.blocks = append(e.blocks, *block)
	e.copied = e.at()
}

// carried returns the type of a block whose results are the operands of branches to a
// label.
func (e *emitter) carried(label uint32) int64 {
	values := e.typ.Results
	if at := len(e.blocks) - 1 - int(label); at >= 0 {
		typ, _ := e.m.BlockType(int64(e.blocks[at].typ))
		if values = typ.Results; e.blocks[at].loop {
			values = typ.Params
		}
	}
	switch len(values) {
	case 0:
		return noResult
	case 1:
		return int64(values[0]) - 0x80
	}
	return int64(e.typeIndex(wasmbin.FuncType{Results: values}))
}

// end closes a block or the function.
func (e *emitter) end(start int) {
	if e.dead > 0 {
		e.dead--
	}
	top := len(e.blocks) - 1
	if top < 0 {
		e.height--
		return
	}
	block := e.blocks[top]
	e.blocks = e.blocks[:top]
	if block.end == 0 {
		e.height--
		return
	}
	e.flush(start)
	e.copied = e.at()
	e.with(wasmbin.OpBr, e.height-block.end)
	e.op(wasmbin.OpElse)
	e.with(wasmbin.OpBr, 2)
	e.op(wasmbin.OpEnd, wasmbin.OpEnd, wasmbin.OpEnd, wasmbin.OpUnreachable) // unreachable yields any results that the enclosing block needs
	e.height -= 3
	if top == e.region.loop {
		e.closeRegion()
	}
	e.op(wasmbin.OpEnd)
	e.height--
	if top == e.region.loop {
		e.refund(e.meter, e.purse)
		e.region = written{}
	}
}

// closeRegion writes the ways out of a region: each refunds the purse and continues to
// its original target.
func (e *emitter) closeRegion() {
	exits := e.region.exits
	e.region.region = nil
	for _, label := range exits {
		e.op(wasmbin.OpEnd)
		e.height--
		e.refund(e.meter, e.purse)
		e.with(wasmbin.OpBr, e.label(label))
	}
}

// label returns the label of a branch as written. In a region, this may be the label of a
// way out.
func (e *emitter) label(label uint32) uint32 {
	if len(e.regions) == 0 {
		return label
	}
	at := len(e.blocks) - 1 - int(label)
	if e.region.region != nil && at < e.region.loop {
		if i := slices.Index(e.region.exits, uint32(e.region.loop-1-at)); i >= 0 {
			return e.height - e.region.exit(i)
		}
	}
	if at < 0 {
		return e.height
	}
	return e.height - e.blocks[at].at
}

// outermost returns the label of the function, or of the block in its place.
func (e *emitter) outermost() uint32 {
	if len(e.regions) == 0 {
		return e.height
	}
	return e.label(uint32(len(e.blocks)))
}

// branch handles br and br_if.
func (e *emitter) branch(start int) {
	if label := e.label(e.in.X); label != e.in.X {
		e.flush(start)
		e.with(e.in.Op, label)
		e.copied = e.at()
	}
}

// table handles br_table.
func (e *emitter) table(start int) {
	changes := e.region.region != nil
	if changes {
		e.flush(start)
		e.with(wasmbin.OpBrTable, e.in.X)
	}
	for range uint64(e.in.X) + 1 {
		label := e.r.U32()
		if changes {
			e.b = appendUint(e.b, uint64(e.label(label)))
		}
	}
	if changes {
		e.copied = e.at()
	}
}

// leaves handles return: it becomes a branch to the function's end if something must be
// done there or on the way.
func (e *emitter) leaves(start int) {
	if e.calls || e.region.region != nil {
		e.flush(start)
		e.with(wasmbin.OpBr, e.outermost())
		e.copied = e.at()
	}
}
