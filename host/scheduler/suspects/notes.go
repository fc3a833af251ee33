package suspects

import "github.com/weftrun/weft/host/deaths"

// Notes are what the next process knows of this one if this one ends without a word:
// what held a core. Work is noted for as long as it can end the process: a run of a
// guest with what its end does, a resource call while it is made, a session while it
// is loaded.
//
// Methods may be called from any goroutine; a slot belongs to one goroutine at a time.
// None of them waits or fails: notes that cannot be taken are left out.
type Notes interface {
	// Before tells how the process before ended.
	Before() deaths.Death
	// Begin begins this life, with suspects in phase apart, else in phase serving. If
	// the process ends before, the next one hears of the end before once more.
	Begin(s deaths.Suspicion)
	// Enter notes work that begins to hold a core; the slot is below 0 if there is
	// none. The note is not kept.
	Enter(n *deaths.CoreNote) (slot int)
	// At notes how far the guest of a slot has come; newest is "" if the newest host
	// call is still the same. Leave notes that the work is over.
	At(slot int, calls, burnt uint64, newest string)
	Leave(slot int)
	// Phase notes what the server does from now on, and Suspect who is suspected.
	Phase(p deaths.CorePhase)
	Suspect(list []deaths.Suspect)
	// Alive is called every few seconds.
	Alive()
	// Unnoted counts the work that found no slot.
	Unnoted() uint64
}

// Noted is work that is noted while this process works on it, and not while the work waits
// for others: it may wait for minutes, and cannot end the process then. One goroutine at a
// time uses it.
type Noted struct {
	notes Notes
	note  deaths.CoreNote
	slot  int
}

// Note notes that work begins.
func Note(notes Notes, note deaths.CoreNote) *Noted {
	n := &Noted{notes: notes, note: note}
	n.enter()
	return n
}

func (n *Noted) enter() { n.slot = n.notes.Enter(&n.note) }

// Leave notes that the work is over.
func (n *Noted) Leave() { n.notes.Leave(n.slot) }

// Wait notes that the work waits for others from now on, and back that it does not any more.
func (n *Noted) Wait() (back func()) {
	n.Leave()
	return n.enter
}

// NoNotes returns Notes that are not taken.
func NoNotes() Notes { return noNotes{} }

type noNotes struct{}

func (noNotes) Before() deaths.Death           { return deaths.Death{} }
func (noNotes) Begin(deaths.Suspicion)         {}
func (noNotes) Enter(*deaths.CoreNote) int     { return -1 }
func (noNotes) At(int, uint64, uint64, string) {}
func (noNotes) Leave(int)                      {}
func (noNotes) Phase(deaths.CorePhase)         {}
func (noNotes) Suspect([]deaths.Suspect)       {}
func (noNotes) Alive()                         {}
func (noNotes) Unnoted() uint64                { return 0 }
