package rewrite

import "github.com/weftrun/weft/host/sandbox/wasmbin"

// place.go decides where a function is charged, and how much. It walks the events
// backward and keeps what the code after each point needs: the least and the most units
// on any path to the next charge. Each charge takes the most, so no code runs without a
// charge. Where a cheap path would overpay for an expensive one, the expensive path gets
// a separate charge for the difference.

// need is what the code after a point needs, in quarters of a unit.
type need struct {
	lo    uint32 // to the next charge, on the cheapest path that counts; cold if no path counts
	hi    uint32 // the same on the most expensive path
	open  uint32 // charges without a check, up to the next check, on the most expensive path
	exits bool   // whether a path leaves the function without a check
	calls bool   // whether a path calls without a check
}

// cold is the lo of rare paths: paths that end in a trap or leave a loop by a branch.
const cold = 1<<32 - 1

// policy says how much a path may overpay, in quarters of a unit.
type policy struct {
	slack uint32 // that any path may overpay
	ratio uint32 // plus this many times the path's own cost
	exit  uint32 // that staying in a loop may pay for leaving it
	least uint32 // smallest worthwhile charge
	cold  bool   // whether cold paths need not be exact
	fine  bool   // charges count quarters as units
	purse bool   // whether loops without calls pay from a purse
}

// placed is the policy in use; the package comment explains its figures.
var placed = policy{slack: 32, ratio: 1, exit: 2, least: 4, cold: true, purse: true}

const (
	// maxRounds bounds how often ends are marked anew.
	maxRounds = 8
	// needMost is the need at which a check is placed whatever the policy says. It bounds
	// the largest charge to needMost plus the longest straight code.
	needMost = 1_000 * quarters
	// openMost bounds the charges without a check on any path, not counting the contents
	// of a purse. Twice openMost, a purse, entryMost and the largest charge together stay
	// within MaxCharge: what a function leaves unchecked at its end, what its caller
	// adds, an entry without a check, and the charge whose check finds it all.
	openMost = 1_200 * quarters
	// entryMost bounds the charges of functions that have no check at their entry but
	// check before they call or end.
	entryMost = 400 * quarters
	// leafMost bounds the charges of small leaves, which never check: their callers count
	// this much as unchecked. leafBytes bounds their code.
	leafMost  = 100 * quarters
	leafBytes = 300
)

// label is a block that is open in the backward walk, which enters a block at its end.
type label struct {
	branch need // need at the label, for branches to it
	after  need // need after the end
	other  need // need of the else arm
	end    int  // index of the end's event
	orElse int  // index of the else's event
	inner  int  // innermost loop around the block's contents; -1: none
}

// placer walks the events of one function.
type placer struct {
	policy
	f      *function
	labels []label
	marked bool // in this round
}

// place sets the amounts of the events and of the entry.
func (p *placer) place(f *function) {
	p.f = f
	for round := 1; ; round++ {
		p.marked = false
		p.pass()
		if !p.marked || round == maxRounds {
			return
		}
	}
}

func (p *placer) pass() {
	p.labels = p.labels[:0]
	p.f.tested, p.f.checks = false, false
	now := need{exits: true}
	for i := len(p.f.events) - 1; i >= 0; i-- {
		e := &p.f.events[i]
		e.amount, e.check = 0, false
		now = p.before(i, e, now)
		now.hi += e.cost
		now.calls = now.calls || e.doing == doingCalls
		if now.lo != cold {
			now.lo += e.cost
		}
	}
	p.f.entry = p.units(max(now.hi, 1))
	p.f.size = uint32(p.f.entry)*quarters + now.open
	p.f.unchecked = !now.exits && !now.calls && now.hi+now.open <= entryMost
}

// before converts the need after an event to the need before its instruction.
func (p *placer) before(i int, e *event, now need) need {
	top := len(p.labels) - 1
	switch e.kind {
	case eventEndFunc, eventEndBlock, eventEndIf, eventEndElse, eventEndLoop:
		return p.end(i, e, now)
	case eventElse:
		now = p.most(e, now)
		p.labels[top].other, p.labels[top].orElse = now, i
		return p.labels[top].after
	case eventIf:
		now = p.most(e, now)
		now = p.arms(e, &p.labels[top], now)
		p.labels = p.labels[:top]
		return now
	case eventLoop:
		p.labels = p.labels[:top]
		return p.check(e, now)
	case eventBlock:
		p.labels = p.labels[:top]
		return p.most(e, now)
	case eventBr:
		_, there := p.target(e.label)
		return there
	case eventBrIf:
		return p.branchIf(e, p.most(e, now))
	case eventBrTable:
		return p.table(e)
	case eventReturn:
		return need{exits: true}
	case eventTrap:
		return p.rare(need{})
	}
	if e.kind == eventLeaf {
		return p.leaf(e, now)
	}
	return p.most(e, now) // eventSplit
}

// units converts quarters to the units of a charge.
func (p *placer) units(by uint32) uint16 {
	if p.fine {
		return uint16(by)
	}
	return uint16((by + quarters - 1) / quarters)
}

// check puts a charge with a check behind an event, for the whole need.
func (p *placer) check(e *event, now need) need {
	e.amount, e.check = p.units(max(now.hi, 1)), true // a charge of 0 would not be written
	p.f.checks = true
	return need{}
}

// most puts a check behind the event if the need is too large to pass on.
func (p *placer) most(e *event, now need) need {
	if now.hi > needMost {
		return p.check(e, now)
	}
	return now
}

// leaf handles the call of a small leaf, which charges without a check.
func (p *placer) leaf(e *event, now need) need {
	if now.hi > needMost || now.open+leafMost > openMost {
		now = p.check(e, now)
	}
	p.f.tested = p.f.tested || now.exits && e.called
	now.open += leafMost
	return now
}

// rare marks a need as that of a cold path.
func (p *placer) rare(n need) need {
	if p.cold {
		n.lo = cold
	}
	return n
}

// reduce charges, behind an event, the part of a need above to. The charge has no check
// unless the unchecked charges after it add up to too much. A function that charges this
// way after a call checks at its end, because the ends of many nested calls may follow
// each other.
func (p *placer) reduce(e *event, n need, to uint32) need {
	by := n.hi - to
	if n.open+by > openMost {
		return p.check(e, n)
	}
	e.amount = p.units(by)
	p.f.tested = p.f.tested || n.exits && e.called
	n.hi = to
	n.open += uint32(e.amount) * quarters
	if n.lo != cold {
		n.lo -= min(n.lo, by)
	}
	return n
}

func (p *placer) end(i int, e *event, now need) need {
	now = p.most(e, now)
	if e.amount == 0 && now.hi > uint32(e.mark) {
		now = p.reduce(e, now, uint32(e.mark))
	}
	l := label{branch: now, after: now, end: i, orElse: -1, inner: -1}
	if top := len(p.labels) - 1; top >= 0 {
		l.inner = p.labels[top].inner
	}
	if e.kind == eventEndLoop {
		if e.amount == 0 && now.hi > p.exit {
			now = p.reduce(e, now, 0)
		}
		l.after, l.branch, l.inner = now, need{}, len(p.labels)
		now = p.rare(now)
	}
	p.labels = append(p.labels, l)
	return now
}

// target returns the label of a branch and the need at the label. Leaving a loop is rare.
func (p *placer) target(depth uint32) (*label, need) {
	top := len(p.labels) - 1
	at := top - int(depth)
	l := &p.labels[at]
	if p.labels[top].inner > at {
		return l, p.rare(l.branch)
	}
	return l, l.branch
}

// tooMuch reports whether a path that needs b would overpay for a path that needs a.
func (p *placer) tooMuch(a, b need) bool {
	switch {
	case a.hi < b.hi+p.least, b.lo == cold:
		return false
	case a.lo == cold:
		return a.hi > b.hi+p.exit
	}
	return a.hi > b.lo*(1+p.ratio)+p.slack
}

// either returns the need before a fork.
func either(a, b need) need {
	return need{min(a.lo, b.lo), max(a.hi, b.hi), max(a.open, b.open), a.exits || b.exits, a.calls || b.calls}
}

// mark makes the code after the end of a label charge, from the next round on, what it
// needs above to.
func (p *placer) mark(l *label, to uint32) {
	if e := &p.f.events[l.end]; to < uint32(e.mark) && e.kind != eventEndFunc {
		e.mark, p.marked = uint16(to), true
	}
}

// arms handles the fork of an if; now is the need of its first arm.
func (p *placer) arms(e *event, l *label, now need) need {
	if l.orElse < 0 { // the path without an else has no place for a charge before the end
		if p.tooMuch(now, l.after) {
			now = p.reduce(e, now, l.after.hi)
		} else if p.tooMuch(l.after, now) {
			p.mark(l, now.hi)
		}
		return either(now, l.after)
	}
	if p.tooMuch(now, l.other) {
		now = p.reduce(e, now, l.other.hi)
	} else if p.tooMuch(l.other, now) {
		l.other = p.reduce(&p.f.events[l.orElse], l.other, now.hi)
	}
	return either(now, l.other)
}

// branchIf handles the fork of a br_if; now is the need of not branching.
func (p *placer) branchIf(e *event, now need) need {
	l, there := p.target(e.label)
	if p.tooMuch(now, there) {
		now = p.reduce(e, now, there.hi)
	} else if p.tooMuch(there, now) {
		p.mark(l, now.hi)
	}
	return either(now, there)
}

// table handles the fork of a br_table. It marks the expensive targets if any target is
// too expensive.
func (p *placer) table(e *event) need {
	all, cheapest := need{lo: cold}, need{lo: cold, hi: cold}
	p.eachTarget(e, func(_ *label, n need) {
		all = either(all, n)
		if n.lo != cold {
			cheapest.lo, cheapest.hi = min(cheapest.lo, n.lo), min(cheapest.hi, n.hi)
		}
	})
	if cheapest.lo != cold {
		p.eachTarget(e, func(l *label, n need) {
			if p.tooMuch(n, cheapest) {
				p.mark(l, cheapest.hi)
			}
		})
	}
	return all
}

func (p *placer) eachTarget(e *event, visit func(*label, need)) {
	r := wasmbin.Reader{Rest: p.f.body.Code[e.label:]}
	for range uint64(r.U32()) + 1 {
		visit(p.target(r.U32()))
	}
}
