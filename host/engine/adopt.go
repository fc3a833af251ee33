package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weftrun/weft/host"
)

// A snapshot in the journal stands for all entries before it: a session is loaded
// from the newest one, and from the entries behind it. One that begins a journal
// makes a session of what was another (see [Session.Fork]).
//
// With the snapshot stand the records of the attempts that are under way, as the
// entries that have them need not be there any more.

type (
	// TakeSnapshot notes what the session holds.
	TakeSnapshot struct {
		// Held are the records of attempts that have not ended.
		Held []HeldAttempt
		// Most is how many bytes the snapshot may have: a longer one is no entry. 0: any.
		Most int
	}
	// Adopt begins an empty session by what [Session.Fork] gave.
	Adopt struct {
		Snapshot []byte
		Held     []HeldAttempt
	}
)

func (TakeSnapshot) tick() {}
func (Adopt) tick()        {}

// HeldAttempt is what was written of an attempt that has not ended.
type HeldAttempt struct {
	Invocation uint64       `cbor:"1,keyasint"`
	Attempt    uint64       `cbor:"2,keyasint"`
	Open       *AttemptOpen `cbor:"3,keyasint,omitempty"` // nil: it has written nothing
	Calls      []CallRecord `cbor:"4,keyasint,omitempty"`
	Crashes    int          `cbor:"5,keyasint,omitempty"` // of older servers, and ignored
	Burnt      *Burnt       `cbor:"6,keyasint,omitempty"` // as its newest entry says; nil: nothing
}

func (s *Session) decideSnapshot(e *Entry, t TakeSnapshot) (decision, error) {
	data, err := s.Snapshot()
	if err == nil && t.Most > 0 && len(data) > t.Most {
		return decision{}, nil
	}
	e.Kind, e.Snapshot, e.Held, e.Ran = EntrySnapshot, data, t.Held, true
	return decision{entry: e}, err
}

// decideAdopt refuses what cannot be restored before it becomes an entry.
func (s *Session) decideAdopt(e *Entry, t Adopt) (decision, error) {
	if s.seq != 0 {
		return decision{}, host.Errorf(host.CodeConflict, "session %s is not empty", clip(s.key.Session))
	}
	probe, err := Restore(s.key, s.graphs, t.Snapshot)
	if err != nil {
		return decision{}, err
	}
	if probe.seq != 0 {
		return decision{}, badSnapshot("it belongs to a session that continues at entry %d", probe.seq+1)
	}
	e.At = max(e.At, probe.now)
	e.Kind, e.Snapshot, e.Held = EntryFork, t.Snapshot, t.Held
	return decision{entry: e}, nil
}

// begins reports whether the entry can be the first that is folded, though others
// may have been before it.
func (e *Entry) begins() bool { return e.Kind == EntrySnapshot || e.Kind == EntryFork }

// Skips reports whether an entry lies before the first that the session can begin
// with: rows of a journal that was cut may have such entries.
func (s *Session) Skips(e *Entry) bool { return s.seq == 0 && e.Seq != 1 && !e.begins() }

// adopt makes an empty session what the entry's snapshot says.
func (s *Session) adopt(e *Entry) error {
	if err := s.restore(e.Snapshot); err != nil {
		return fmt.Errorf("%w: entry %d: %w", errCorrupt, e.Seq, err)
	}
	if s.seq != e.Seq-1 {
		return corrupt(e, "its snapshot is of entry %d", s.seq)
	}
	return nil
}

// foldFork lets the runs of a session that has just begun go on.
func (s *Session) foldFork() {
	for _, id := range sortedKeys(s.runs) {
		s.emit(RunChanged{Run: s.runs[id].rec})
	}
	for _, inv := range s.Open() {
		s.emit(StartAttempt{Invocation: inv})
	}
	for _, inv := range s.OutCalls() {
		s.emit(CallOut{Invocation: inv})
	}
	for _, to := range s.MailTo() {
		s.emit(Mail{To: to})
	}
}

// Needs gives the versions without which the entry, the session's newest, cannot
// be folded, or what it says cannot be done, sorted: those of the runs that it
// begins, here or in another session, and for one that others are loaded from those
// of everything that has not ended, and of the workflows whose schemas the state has
// to keep. Whoever stores the entry keeps them as long as it.
func (s *Session) Needs(e *Entry) []string {
	var out []string
	switch {
	case e.begins(), e.Kind == EntryRetry:
		out = slices.Collect(maps.Values(s.Versions()))
		if e.begins() {
			for _, r := range s.ran {
				out = append(out, r.version)
			}
		}
		for _, c := range s.children {
			if c.start != nil {
				out = append(out, c.start.Version)
			}
		}
		for _, list := range s.outbox.byTarget {
			for i := range list {
				if start := list[i].Start; start != nil {
					out = append(out, start.Version)
				}
			}
		}
	case e.Start != nil:
		out = []string{e.Start.Version}
	case e.Child != nil && e.Child.Start != nil:
		out = []string{e.Child.Start.Version}
	case e.Version != "":
		out = []string{e.Version}
	default:
		return nil
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Versions gives the version of each run that has not ended, queued ones too.
func (s *Session) Versions() map[string]string {
	out := make(map[string]string, s.Active())
	for id, r := range s.runs {
		out[id] = r.rec.Version
	}
	for id := range maps.Keys(s.turns.byRun) {
		q, _ := s.turns.of(id)
		out[id] = q.start.Version
	}
	return out
}
