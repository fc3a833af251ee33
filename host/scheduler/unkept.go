package scheduler

import (
	"slices"
	"time"

	"github.com/weftrun/weft/host"
)

// A run may have a core before its start is durable, as nobody is told of the start
// before. If the guest ends the server then, the next server does not find the run, and
// the client starts another one: death after death, and nobody is ever alone. So a step
// like one that was gone after the death, or like one that was blamed, begins only when
// the journal has all of its session:
//
//	death, the suspect is gone -> likes
//	ready: alike and not durable -> unkept -> durable -> queue, or its trial

// goneFor is how long after its start a server remembers suspects that were gone.
const goneFor = 10 * time.Minute

// likeness is what the runs of one step have in common, or their resource calls.
type likeness struct {
	kind         host.CoreKind
	digest, step [8]byte
}

func likenessOf(n *host.CoreNote) likeness { return likeness{n.Kind, n.Digest, n.Step} }

// unkeptItem is an attempt that wants a token when the journal has what is up to pos.
type unkeptItem struct {
	it  readyItem
	pos uint64
}

// waitsForJournal reports whether work of a step is to begin only when it is durable.
// Called with mu held.
func (s *Scheduler) waitsForJournal(kind host.CoreKind, version, step string) bool {
	if len(s.gone)+len(s.blames) == 0 {
		return false
	}
	like := likeness{kind, hashOf(version), hashOf(step)}
	if s.gone[like] && s.now()-s.boot < goneFor.Nanoseconds() {
		return true
	}
	return slices.ContainsFunc(s.blames, func(b host.Suspect) bool { return likenessOf(&b.CoreNote) == like })
}

// keepFirst holds an attempt back that is to begin when it is durable. Called with the
// session's mu and mu held.
func (s *Scheduler) keepFirst(at *attempt) bool {
	if !s.waitsForJournal(host.CoreRun, at.view.Version, at.view.Step) || at.ss.lastPos <= s.cfg.Journal.Durable() {
		return false
	}
	s.unkept = append(s.unkept, unkeptItem{s.itemOf(at), at.ss.lastPos})
	return true
}

// letKept lets those attempts go on that are durable by now. Called with mu held.
func (s *Scheduler) letKept() {
	if len(s.unkept) == 0 {
		return
	}
	durable := s.cfg.Journal.Durable()
	s.unkept = slices.DeleteFunc(s.unkept, func(u unkeptItem) bool {
		if u.pos > durable {
			return false
		}
		s.enqueue(u.it)
		return true
	})
}

// awaitsJournal reports whether a suspect's attempt is held back. Called with mu held.
func (s *Scheduler) awaitsJournal(key host.CoreKey) bool {
	return slices.ContainsFunc(s.unkept, func(u unkeptItem) bool { return u.it.Of.suspectKey() == key })
}
