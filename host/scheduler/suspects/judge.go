// Package suspects finds what ends the process: work that held a core when the process
// before ended is suspected, and tried alone until it has come back or is blamed.
//
// It must not depend on sessions, guests or the journal's entries. Its types have no mutex: the
// caller holds its lock.
package suspects

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/deaths"
)

// What ends the process is found by what held a core when it ended, and by nothing
// else: an attempt that was open and waited is not suspected.
//
// At the next start the suspects run one after the other, before anything else does
// (see [Trials]). A suspect that returns to the host, in any way, is no longer
// suspected. A suspect that alone held a core at several deaths is blamed. A guest is
// deterministic and ends the process at one place, but somebody who kills the process at
// random hits a long innocent step alone just as well. So a death tells against a suspect only
// if the class of the death is the process's own, or the place is the same; and before a
// suspect runs alone again there is a pause in which nothing holds a core. Somebody who kills
// at random hits the pauses too, and then nobody is suspected of the deaths before.

// Deaths at which a suspect was alone until it is blamed: of a class that is the
// process's own, or at one place; and at any places.
const (
	blameAfter     = 3
	blameAnywhere  = 10
	samePlaceUnits = 30_000_000 // within which two places are one: about 10 ms
)

// Judge gives what is suspected after a death, at a time in Unix nanoseconds.
func Judge(d deaths.Death, now int64) deaths.Suspicion {
	out := deaths.Suspicion{Suspects: slices.Clone(d.Suspects), MemoryDeaths: d.MemoryDeaths}
	if d.Class == deaths.DeathNone {
		return out
	}
	if d.Class == deaths.DeathMemory {
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
	// A death tells most if nothing else had a core, by intent and in fact.
	alone := d.Phase == deaths.PhaseApart && len(d.Noted) == 1
	for i := range d.Noted {
		n := &d.Noted[i]
		at := slices.IndexFunc(out.Suspects, func(s deaths.Suspect) bool { return s.Key() == n.Key() })
		if at < 0 {
			at = len(out.Suspects)
			out.Suspects = append(out.Suspects, deaths.Suspect{CoreNote: *n})
		}
		s := &out.Suspects[at]
		s.Noted++
		if alone {
			diedAlone(s, n, d.Class)
			// The place of a death in company may be anywhere: it does not replace a place
			// that was found alone.
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
func diedAlone(s *deaths.Suspect, n *deaths.CoreNote, class deaths.DeathClass) {
	there := s.Alone > 0 && n.Calls == s.Calls && max(n.Burnt, s.Burnt)-min(n.Burnt, s.Burnt) <= samePlaceUnits
	// The suspect has got further: the death before was at another place of its work.
	if !there && n.Kept > s.Kept {
		s.Alone, s.Hard = 0, 0
	}
	if !there {
		s.Same = 0
	}
	s.Same++
	s.Alone++
	if class == deaths.DeathCrash || class == deaths.DeathMemory {
		s.Hard++
	}
	s.CoreNote = *n
}

// toBlame reports whether a suspect ends the process.
func toBlame(s *deaths.Suspect, all []deaths.Suspect) bool {
	switch {
	case s.Alone >= blameAfter && s.Hard == s.Alone, s.Same >= blameAfter, s.Alone >= blameAnywhere:
		return true
	case s.Alone == 0 || s.Kind != deaths.CoreRun:
		return false
	}
	return slices.ContainsFunc(all, func(b deaths.Suspect) bool { // its like was blamed
		return b.Blamed && LikenessOf(&b.CoreNote) == LikenessOf(&s.CoreNote)
	})
}

// Settled reports whether a suspect is only the memory of a blame: what is known of
// the version and the step.
func Settled(s *deaths.Suspect) bool { return s.Session == "" }

// settle makes a suspect the memory of its blame.
func settle(s *deaths.Suspect) deaths.Suspect {
	return deaths.Suspect{CoreNote: deaths.CoreNote{Kind: s.Kind, Digest: s.Digest, Step: s.Step}, Blamed: true}
}

// inOrder sorts suspects in the order of their trials: blamed ones first, then loads,
// then the others by how often they were noted, fewest first.
func inOrder(list []deaths.Suspect) {
	slices.SortStableFunc(list, func(a, b deaths.Suspect) int {
		return cmp.Or(
			-cmp.Compare(truth(a.Blamed), truth(b.Blamed)), -cmp.Compare(truth(a.Kind == deaths.CoreLoad), truth(b.Kind == deaths.CoreLoad)),
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

// Reason is why a run is blocked whose step ended the server.
func Reason(sus *deaths.Suspect, step string, class deaths.DeathClass) host.Blocked {
	what := fmt.Sprintf("step %q of this run alone ran", step)
	if sus.Kind == deaths.CoreCall {
		what = fmt.Sprintf("a resource call of step %q of this run alone was made", step)
	}
	times := "once, as it did for another run of this step,"
	if sus.Alone > 1 {
		times = fmt.Sprintf("%d times", sus.Alone)
	}
	where := "before the first host call"
	if sus.Kind == deaths.CoreCall {
		where = "during the call"
	} else if sus.Calls > 0 {
		where = fmt.Sprintf("at host call %d (%s)", sus.Calls, sus.Import)
	}
	return host.Blocked{Code: host.BlockedHostCrash, Message: fmt.Sprintf("the server ended %s while %s, last %s, class %s", times, what, where, class)}
}

// Name says in words what a note is of.
func Name(n *deaths.CoreNote) string {
	return fmt.Sprintf("%s of tenant %s, session %s, invocation %d", kindNames[n.Kind], n.Tenant, n.Session, n.Invocation)
}

var kindNames = map[deaths.CoreKind]string{deaths.CoreRun: "a step", deaths.CoreCall: "a resource call", deaths.CoreLoad: "the load"}
