package scheduler_test

import (
	"sync"

	"github.com/weftrun/weft/host/deaths"
)

// box keeps notes in memory: they outlive the death of a process, and no loss of power.
type box struct {
	mu      sync.Mutex   // guards what follows, in lives too
	left    deaths.Death // by the life before
	now     *boxLife
	noted   map[deaths.CoreKey]int // by all deaths: what held a core
	phases  map[deaths.CorePhase]int
	refuses bool // there are no slots
}

// boxLife is what a scheduler has of a box. After the death of its process nothing
// that its goroutines still do is noted.
type boxLife struct {
	box    *box
	before deaths.Death
	over   bool
	begun  bool
	slots  map[int]deaths.CoreNote
	next   int
	phase  deaths.CorePhase
	deaths.Suspicion
	unnoted uint64
}

func newBox() *box { return &box{noted: map[deaths.CoreKey]int{}, phases: map[deaths.CorePhase]int{}} }

// open begins a life. One that has not died has ended cleanly, or goes on in the same
// process: its suspects stay.
func (b *box) open() *boxLife {
	b.mu.Lock()
	defer b.mu.Unlock()
	if l := b.now; l != nil && l.begun && !l.over {
		b.left = deaths.Death{Suspicion: l.Suspicion}
		l.over = true
	}
	b.now = &boxLife{box: b, before: b.left, slots: map[int]deaths.CoreNote{}}
	return b.now
}

// die ends the process.
func (l *boxLife) die(class deaths.DeathClass) {
	l.box.mu.Lock()
	defer l.box.mu.Unlock()
	if l.over {
		return
	}
	l.over = true
	if !l.begun {
		return // what the life before left is there still
	}
	d := deaths.Death{Class: class, Phase: l.phase, Suspicion: l.Suspicion}
	for _, n := range l.slots {
		d.Noted = append(d.Noted, n)
		l.box.noted[n.Key()]++
	}
	l.box.phases[l.phase]++
	l.box.left = d
}

// lose is a loss of power, or a clean end: nothing is known afterwards.
func (l *boxLife) lose() {
	l.box.mu.Lock()
	defer l.box.mu.Unlock()
	l.over = true
	l.box.left = deaths.Death{}
}

// do changes a life that is not over.
func (l *boxLife) do(change func()) {
	l.box.mu.Lock()
	defer l.box.mu.Unlock()
	if !l.over {
		change()
	}
}

// Before and what follows implement suspects.Notes.
func (l *boxLife) Before() deaths.Death { return l.before }

func (l *boxLife) Begin(s deaths.Suspicion) {
	l.do(func() {
		l.begun, l.Suspicion, l.phase = true, s, deaths.PhaseServing
		if len(s.Suspects) > 0 {
			l.phase = deaths.PhaseApart
		}
	})
}

func (l *boxLife) Enter(n *deaths.CoreNote) (slot int) {
	slot = -1
	l.do(func() {
		if l.box.refuses {
			l.unnoted++
			return
		}
		l.next++
		slot = l.next
		l.slots[slot] = *n
	})
	return slot
}

func (l *boxLife) At(slot int, calls, burnt uint64, newest string) {
	l.do(func() {
		if n, ok := l.slots[slot]; ok {
			n.Calls, n.Burnt = calls, burnt
			if newest != "" {
				n.Import = newest
			}
			l.slots[slot] = n
		}
	})
}

func (l *boxLife) Leave(slot int)                { l.do(func() { delete(l.slots, slot) }) }
func (l *boxLife) Phase(p deaths.CorePhase)      { l.do(func() { l.phase = p }) }
func (l *boxLife) Suspect(list []deaths.Suspect) { l.do(func() { l.Suspects = list }) }
func (l *boxLife) Alive()                        {}
func (l *boxLife) Unnoted() uint64               { return l.unnoted }

// noted tells what holds a core now.
func (l *boxLife) holds(kind deaths.CoreKind, session string) (n int) {
	l.do(func() {
		for _, note := range l.slots {
			if note.Kind == kind && (session == "" || note.Session == session) {
				n++
			}
		}
	})
	return n
}

// in tells the phase.
func (l *boxLife) in() (p deaths.CorePhase) {
	l.do(func() { p = l.phase })
	return p
}
