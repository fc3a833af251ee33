package rewrite
import "os"

// place.go decides where a function is charged, and how much. It goes through
// the events backward and keeps what the code from there on needs: the least and
// the greatest units on any way to the next charge. Each charge takes the
// greatest, so nothing runs unpaid; where a cheap way would pay much for a dear
// one, the dear one gets a charge of its own for the difference.

// need is the units from a point to the next charge or the end.
type need struct {
	lo uint32 // on the cheapest way that counts; cold if none does
	hi uint32 // on the dearest
}

// cold is the lo of ways that are rare: those that end in a trap, or leave a
// loop by a branch.
const cold = 1<<32 - 1

// policy says how much a way may pay for others.
type policy struct {
	slack uint32 // units that any way may pay too much
	ratio uint32 // and so many times its own
	exit  uint32 // units that staying in a loop may pay for leaving it
	least uint32 // smallest charge that is worth it
	cold  bool   // whether cold ways need not be exact
}

// placed is the policy in use; its figures are in the package comment.
var placed = policy{slack: 16, ratio: 1, exit: 2, least: 4, cold: true}

// exact charges every way for itself. It is what tests compare with.
var exact = policy{least: 1}

const (
	// maxRounds bounds how often ends are marked anew.
	maxRounds = 8
	// needMost is where a charge is put whatever the policy says, so that the
	// greatest is needMost and the greatest straight code.
	needMost = 1_000
)

// label is a block that is open while going backward, which is from its end.
type label struct {
	branch need // behind the label, for branches to it
	after  need // behind the end
	other  need // of the else arm
	end    int  // event
	orElse int  // event of the else
	inner  int  // the innermost loop around what is in it; -1: none
}

// placer goes through the events of one function.
type placer struct {
	policy
	f      *function
	labels []label
	marked bool // in this round
}

// place sets the amounts of the events, and of the entry.
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
	var now need
	for i := len(p.f.events) - 1; i >= 0; i-- {
		e := &p.f.events[i]
		e.amount = 0
		now = p.before(i, e, now)
		if minimal && e.kind != eventLoop { e.amount = 0; e.mark=noMark; p.marked=false }
		if minimal && now.hi > 5000 {now.hi=5000}
		now.hi += e.cost
		if now.lo != cold {
			now.lo += e.cost
		}
	}
	p.f.entry = uint16(max(now.hi, 1))
}

// before turns the need behind an event into the one before its instruction.
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
		p.charge(e, max(now.hi, 1))
		p.labels = p.labels[:top]
		return need{}
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
		return need{}
	case eventTrap:
		return p.rare(need{})
	}
	return p.most(e, now) // a split
}

// charge puts a charge behind an event.
func (p *placer) charge(e *event, amount uint32) { e.amount = uint16(amount) }

// most puts a charge behind the event if the need is too great to hand on.
func (p *placer) most(e *event, now need) need {
	if now.hi > needMost {
		p.charge(e, now.hi)
		return need{}
	}
	return now
}

// rare marks a need as one of a cold way.
func (p *placer) rare(n need) need {
	if p.policy.cold {
		n.lo = cold
	}
	return n
}

// reduce charges what a need has above so many units.
func (p *placer) reduce(e *event, n need, to uint32) need {
	by := n.hi - to
	p.charge(e, by)
	n.hi = to
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
			p.charge(e, now.hi)
			now = need{}
		}
		l.after, l.branch, l.inner = now, need{}, len(p.labels)
		now = p.rare(now)
	}
	p.labels = append(p.labels, l)
	return now
}

// target gives the label of a branch and what it needs. Leaving a loop is rare.
func (p *placer) target(depth uint32) (*label, need) {
	top := len(p.labels) - 1
	at := top - int(depth)
	l := &p.labels[at]
	if p.labels[top].inner > at {
		return l, p.rare(l.branch)
	}
	return l, l.branch
}

// tooMuch tells whether a way that needs b would pay too much for one that
// needs a.
func (p *placer) tooMuch(a, b need) bool {
	switch {
	case a.hi < b.hi+p.least, b.lo == cold:
		return false
	case a.lo == cold:
		return a.hi > b.hi+p.exit
	}
	return a.hi > b.lo*(1+p.ratio)+p.slack
}

// either is the need before a fork.
func either(a, b need) need { return need{min(a.lo, b.lo), max(a.hi, b.hi)} }

// mark makes the code behind the end of a label charge, from the next round on,
// what it needs above so many units.
func (p *placer) mark(l *label, to uint32) {
	if e := &p.f.events[l.end]; to < uint32(e.mark) && e.kind != eventEndFunc {
		e.mark, p.marked = uint16(to), true
	}
}

// arms is the fork of an if; now is the need of its first arm.
func (p *placer) arms(e *event, l *label, now need) need {
	if l.orElse < 0 { // the other way has no place for a charge before the end
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

// branchIf is the fork of a br_if; now is the need of staying.
func (p *placer) branchIf(e *event, now need) need {
	l, there := p.target(e.label)
	if p.tooMuch(now, there) {
		now = p.reduce(e, now, there.hi)
	} else if p.tooMuch(there, now) {
		p.mark(l, now.hi)
	}
	return either(now, there)
}

// table is the fork of a br_table: dear targets are marked if any is too dear.
func (p *placer) table(e *event) need {
	all, cheapest := need{lo: cold}, need{lo: cold, hi: cold}
	p.eachTarget(e, func(_ *label, n need) {
		all = either(all, n)
		if n.lo != cold {
			cheapest = need{min(cheapest.lo, n.lo), min(cheapest.hi, n.hi)}
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
	r := reader{b: p.f.body.code[e.label:]}
	for range uint64(r.u32()) + 1 {
		visit(p.target(r.u32()))
	}
}

var minimal = os.Getenv("MINIMAL") != ""
