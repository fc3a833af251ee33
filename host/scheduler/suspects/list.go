package suspects

import (
	"hash/fnv"
	"slices"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/deaths"
)

// maxBlames bounds the blames that are remembered.
const maxBlames = 64

// Likeness is what the runs of one step have in common, or their resource calls.
type Likeness struct {
	kind         deaths.CoreKind
	digest, step [8]byte
}

// LikenessOf gives the likeness of noted work.
func LikenessOf(n *deaths.CoreNote) Likeness { return Likeness{n.Kind, n.Digest, n.Step} }

// Like gives the likeness of the work of a step.
func Like(kind deaths.CoreKind, version, step string) Likeness {
	return Likeness{kind, Hash(version), Hash(step)}
}

// Hash is a short name for a text.
func Hash(text string) (sum [8]byte) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text)) // never fails
	h.Sum(sum[:0])
	return sum
}

// List has what held a core at deaths and has not come back since, and what is known of
// the steps that ended the server.
type List struct {
	suspects map[deaths.CoreKey]*deaths.Suspect
	blames   []deaths.Suspect
	gone     map[Likeness]bool // suspects of this start that the journal did not have
}

// Take begins with suspects as [Judge] gives them, and returns the keys of the suspects to
// try, in order. It calls load with each session whose load is blamed.
func (l *List) Take(suspects []deaths.Suspect, load func(host.SessionKey)) (trials []deaths.CoreKey) {
	l.suspects = map[deaths.CoreKey]*deaths.Suspect{}
	l.gone = map[Likeness]bool{}
	inOrder(suspects)
	for i := range suspects {
		s := &suspects[i]
		switch {
		case Settled(s):
			l.Remember(*s)
			continue
		case s.Blamed && s.Kind == deaths.CoreLoad:
			load(host.SessionKey{Tenant: s.Tenant, Session: s.Session})
		default:
			trials = append(trials, s.Key())
		}
		l.suspects[s.Key()] = s
	}
	return trials
}

// Len is the number of suspects.
func (l *List) Len() int { return len(l.suspects) }

// Find returns a suspect; nil if it is no longer suspected.
func (l *List) Find(key deaths.CoreKey) *deaths.Suspect { return l.suspects[key] }

// Remember keeps a blame for others of its like.
func (l *List) Remember(b deaths.Suspect) {
	like := func(o deaths.Suspect) bool { return LikenessOf(&o.CoreNote) == LikenessOf(&b.CoreNote) }
	l.blames = append(slices.DeleteFunc(l.blames, like), b)
	l.blames = l.blames[max(0, len(l.blames)-maxBlames):]
}

// Blame keeps of a suspect whose run is blocked what tells its like.
func (l *List) Blame(key deaths.CoreKey) {
	if s := l.suspects[key]; s != nil && s.Kind == deaths.CoreRun {
		l.Remember(settle(s))
	}
}

// Acquit forgets a suspect, and reports whether it was suspected.
func (l *List) Acquit(key deaths.CoreKey) bool {
	if l.suspects[key] == nil {
		return false
	}
	delete(l.suspects, key)
	return true
}

// Gone notes that the journal did not have a suspect.
func (l *List) Gone(key deaths.CoreKey) {
	if s := l.suspects[key]; s != nil {
		l.gone[LikenessOf(&s.CoreNote)] = true
	}
}

// Quiet reports whether no work is like one that was gone or to blame.
func (l *List) Quiet() bool { return len(l.gone)+len(l.blames) == 0 }

// WasGone reports whether a suspect of its like was gone at this start.
func (l *List) WasGone(like Likeness) bool { return l.gone[like] }

// WasBlamed reports whether one of its like was to blame.
func (l *List) WasBlamed(like Likeness) bool {
	return slices.ContainsFunc(l.blames, func(b deaths.Suspect) bool { return LikenessOf(&b.CoreNote) == like })
}

// All returns the suspects and the blames, for the next process.
func (l *List) All() []deaths.Suspect {
	list := slices.Clone(l.blames)
	for _, s := range l.suspects {
		list = append(list, *s)
	}
	inOrder(list)
	return list
}
