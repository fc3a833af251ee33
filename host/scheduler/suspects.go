package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weftrun/weft/host"
)

// What ends the process is found by what held a core when it ended, and by nothing
// else: an attempt that was open and waited is not suspected.
//
// At the next start the suspects run one after the other, before anything else does
// (see apart.go). Who comes back to the host, in whatever way, is suspected no more.
// Who is there at death after death, alone, is to blame. A guest is deterministic and
// ends the process at one place, but somebody who kills the process at random hits a
// long innocent step alone just as well. So a death tells against a suspect only if
// the class of the death is the process's own, or the place is the same; and before a
// suspect runs alone again there is a pause in which nothing holds a core. Somebody
// who kills at random hits the pauses too, and then nobody is suspected of the deaths
// before.

// Deaths at which a suspect was alone until it is blamed: of a class that is the
// process's own, or at one place; and at any places.
const (
	blameAfter     = 3
	blameAnywhere  = 10
	samePlaceUnits = 30_000_000 // within which two places are one: about 10 ms
)

// maxBlames bounds the blames that are remembered.
const maxBlames = 64

// Two deaths of class memory within memoryWindow make the server run half as many
// guests at a time, and keep half as many instances for them, for as long.
const memoryWindow = 10 * time.Minute

// judge gives what is suspected after a death, at a time in Unix nanoseconds.
func judge(d host.Death, now int64) host.Suspicion {
	out := host.Suspicion{Suspects: slices.Clone(d.Suspects), MemoryDeaths: d.MemoryDeaths}
	if d.Class == host.DeathNone {
		return out
	}
	if d.Class == host.DeathMemory {
		out.MemoryDeaths = [2]int64{now, out.MemoryDeaths[0]}
	}
	if len(d.Noted) == 0 { // it was somebody else
		for i := range out.Suspects {
			if s := &out.Suspects[i]; !s.Blamed {
				s.Noted, s.Alone, s.Hard, s.Same = min(s.Noted, 1), 0, 0, 0
			}
		}
		return out
	}
	alone := d.Phase == host.PhaseApart && len(d.Noted) == 1
	for i := range d.Noted {
		n := &d.Noted[i]
		at := slices.IndexFunc(out.Suspects, func(s host.Suspect) bool { return s.Key() == n.Key() })
		if at < 0 {
			at = len(out.Suspects)
			out.Suspects = append(out.Suspects, host.Suspect{CoreNote: *n})
		}
		s := &out.Suspects[at]
		s.Noted++
		if alone {
			diedAlone(s, n, d.Class)
		} else if s.Alone == 0 {
			s.CoreNote = *n
		}
	}
	for i := range out.Suspects {
		if s := &out.Suspects[i]; !s.Blamed {
			s.Blamed = toBlame(s, out.Suspects)
		}
	}
	return out
}

// diedAlone counts a death at which nothing else held a core. A suspect that has got
// further since the one before, durably, begins anew. One that has died at the same place
// has not: how much of its record the journal took before the process was gone says
// something of the disk alone.
func diedAlone(s *host.Suspect, n *host.CoreNote, class host.DeathClass) {
	there := s.Alone > 0 && n.Calls == s.Calls && max(n.Burnt, s.Burnt)-min(n.Burnt, s.Burnt) <= samePlaceUnits
	if !there && n.Kept > s.Kept {
		s.Alone, s.Hard = 0, 0
	}
	if !there {
		s.Same = 0
	}
	s.Same++
	s.Alone++
	if class == host.DeathCrash || class == host.DeathMemory {
		s.Hard++
	}
	s.CoreNote = *n
}

// toBlame reports whether a suspect ends the process.
func toBlame(s *host.Suspect, all []host.Suspect) bool {
	switch {
	case s.Alone >= blameAfter && s.Hard == s.Alone, s.Same >= blameAfter, s.Alone >= blameAnywhere:
		return true
	case s.Alone == 0 || s.Kind != host.CoreRun:
		return false
	}
	return slices.ContainsFunc(all, func(b host.Suspect) bool { // its like was blamed
		return b.Blamed && likenessOf(&b.CoreNote) == likenessOf(&s.CoreNote)
	})
}

// settled reports whether a suspect is only the memory of a blame: what is known of
// the version and the step.
func settled(s *host.Suspect) bool { return s.Session == "" }

// settle makes a suspect the memory of its blame.
func settle(s *host.Suspect) host.Suspect {
	return host.Suspect{CoreNote: host.CoreNote{Kind: s.Kind, Digest: s.Digest, Step: s.Step}, Blamed: true}
}

// inOrder sorts suspects as they are to be tried: who is blamed first, then loads, and
// who was noted least often before the others.
func inOrder(list []host.Suspect) {
	slices.SortStableFunc(list, func(a, b host.Suspect) int {
		return cmp.Or(
			-cmp.Compare(truth(a.Blamed), truth(b.Blamed)), -cmp.Compare(truth(a.Kind == host.CoreLoad), truth(b.Kind == host.CoreLoad)),
			cmp.Compare(a.Noted, b.Noted), strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Session, b.Session),
			cmp.Compare(a.Invocation, b.Invocation), cmp.Compare(a.Kind, b.Kind))
	})
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// suspectAtStart takes up what the process before left, and begins this life.
func (s *Scheduler) suspectAtStart() {
	d := s.cfg.Notes.Before()
	next := judge(d, s.boot)
	inOrder(next.Suspects)
	s.suspects = map[host.CoreKey]*host.Suspect{}
	s.gone = map[likeness]bool{}
	a := &apart{over: make(chan struct{}), held: map[host.CoreKey]*attempt{}}
	for i := range next.Suspects {
		sus := &next.Suspects[i]
		switch {
		case settled(sus):
			s.remember(*sus)
			continue
		case sus.Blamed && sus.Kind == host.CoreLoad:
			s.isolateLoad(host.SessionKey{Tenant: sus.Tenant, Session: sus.Session})
		default:
			a.waiting = append(a.waiting, sus.Key())
		}
		s.suspects[sus.Key()] = sus
	}
	if len(a.waiting) > 0 {
		s.apart = a
		s.queue.Speed.Pause(true)
	}
	s.cfg.Notes.Begin(host.Suspicion{Suspects: s.listSuspects(), MemoryDeaths: next.MemoryDeaths})
	if s.apart == nil {
		s.cfg.Notes.Phase(host.PhaseServing) // blames of before are no reason to go apart
	}
	s.lessMemory(next.MemoryDeaths)
	s.death = d.Class
	if d.Class != host.DeathNone {
		s.logDeath(&d, next.Suspects)
	}
}

// remember keeps a blame for others of its like. Called with mu held, or before
// anybody else has the scheduler.
func (s *Scheduler) remember(b host.Suspect) {
	like := func(o host.Suspect) bool { return likenessOf(&o.CoreNote) == likenessOf(&b.CoreNote) }
	s.blames = append(slices.DeleteFunc(s.blames, like), b)
	s.blames = s.blames[max(0, len(s.blames)-maxBlames):]
}

// listSuspects are the suspects, as the next process is to know them. Called with mu
// held, or before anybody else has the scheduler.
func (s *Scheduler) listSuspects() []host.Suspect {
	list := slices.Clone(s.blames)
	for _, sus := range s.suspects {
		list = append(list, *sus)
	}
	inOrder(list)
	return list
}

// cameBack notes that work has come back to the host: nobody suspects it any more.
func (s *Scheduler) cameBack(key host.CoreKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acquit(key)
}

// acquit forgets a suspect. Called with mu held.
func (s *Scheduler) acquit(key host.CoreKey) {
	if s.suspects[key] == nil {
		return
	}
	delete(s.suspects, key)
	s.cfg.Notes.Suspect(s.listSuspects())
	if s.apart != nil && s.apart.now.is(key) {
		s.apart.now.over = true
		s.signal()
	}
}

// blamed is why a run is blocked whose step ended the server.
func blamed(sus *host.Suspect, step string, class host.DeathClass) host.Blocked {
	what := fmt.Sprintf("step %q of this run alone ran", step)
	if sus.Kind == host.CoreCall {
		what = fmt.Sprintf("a resource call of step %q of this run alone was made", step)
	}
	times := "once, as it did for another run of this step,"
	if sus.Alone > 1 {
		times = fmt.Sprintf("%d times", sus.Alone)
	}
	where := "before the first host call"
	if sus.Kind == host.CoreCall {
		where = "during the call"
	} else if sus.Calls > 0 {
		where = fmt.Sprintf("at host call %d (%s)", sus.Calls, sus.Import)
	}
	return host.Blocked{Code: host.BlockedHostCrash, Message: fmt.Sprintf("the server ended %s while %s, last %s, class %s", times, what, where, class)}
}

// logDeath says how the process before ended, and what is done about that.
func (s *Scheduler) logDeath(d *host.Death, suspects []host.Suspect) {
	noted := make([]string, 0, len(d.Noted))
	for i := range d.Noted {
		n := &d.Noted[i]
		noted = append(noted, fmt.Sprintf("%s of tenant %s, session %s, invocation %d", kindNames[n.Kind], n.Tenant, n.Session, n.Invocation))
	}
	blame := 0
	for i := range suspects {
		if sus := &suspects[i]; sus.Blamed && !settled(sus) {
			blame++
		}
	}
	s.cfg.Log.Warn("the server before ended without a word", "class", string(d.Class), "held_a_core", noted,
		"suspects", len(s.suspects), "to_blame", blame)
}

var kindNames = map[host.CoreKind]string{host.CoreRun: "a step", host.CoreCall: "a resource call", host.CoreLoad: "the load"}

// lessMemory runs half as many guests at a time, one at least, and keeps half as many
// instances, if the system has ended the process twice in a short time for its memory.
func (s *Scheduler) lessMemory(deaths [2]int64) {
	until := time.Unix(0, deaths[0]).Add(memoryWindow)
	if deaths[1] == 0 || time.Duration(deaths[0]-deaths[1]) > memoryWindow || !until.After(s.cfg.Now()) {
		return
	}
	s.spared = s.queue.Size() / 2
	s.queue.Resize(-s.spared)
	s.sparedUntil = until
	s.cfg.Spare(true)
	s.cfg.Log.Warn("the system has ended the server twice for its memory: fewer steps run at a time, and fewer instances are kept", "at_a_time", s.queue.Size(), "until", until)
}

// Reduced says in what way, and why, less is done at a time than could be; "" if all is.
func (s *Scheduler) Reduced() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sparedUntil.IsZero() {
		return ""
	}
	return fmt.Sprintf("%d of %d steps run at a time and half of the instances are kept, until %s: the system has ended the server twice for its memory",
		s.queue.Size(), s.queue.Size()+s.spared, s.sparedUntil.UTC().Format(time.RFC3339))
}

// spareNoMore gives back what lessMemory took, and says when to look again. Called
// with mu held.
func (s *Scheduler) spareNoMore(now time.Time) (next time.Time) {
	if s.sparedUntil.IsZero() || now.Before(s.sparedUntil) {
		return s.sparedUntil
	}
	s.queue.Resize(s.spared)
	s.spared, s.sparedUntil = 0, time.Time{}
	s.cfg.Spare(false)
	s.cfg.Log.Info("as many steps run at a time as before, and as many instances are kept")
	return time.Time{}
}
