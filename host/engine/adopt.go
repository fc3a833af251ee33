package engine

import (
	"fmt"
	"maps"
	"slices"

	"github.com/weftrun/weft/host"
)

// A snapshot in the journal replaces all entries before it. A session is loaded from the
// newest snapshot and the entries behind it. A snapshot that begins a journal turns the
// past of one session into another session (see [Session.Fork]).
//
// Beside the snapshot the entry holds the records of open attempts, because the entries
// that carry these records may have been removed.

type (
	// TakeSnapshot asks for an entry with everything that the session holds.
	TakeSnapshot struct {
		// Held are the records of the attempts that have not ended.
		Held []HeldAttempt
		// Most is the largest permitted size of the snapshot in bytes; no entry is made
		// for a larger snapshot. 0: no bound.
		Most int
	}
	// Adopt begins an empty session with a snapshot that [Session.Fork] prepared.
	Adopt struct {
		Snapshot []byte
		Held     []HeldAttempt
	}
)

func (TakeSnapshot) tick() {}
func (Adopt) tick()        {}

// HeldAttempt is the journaled part of an attempt that has not ended.
type HeldAttempt struct {
	Invocation uint64       `cbor:"1,keyasint"`
	Attempt    uint64       `cbor:"2,keyasint"`
	Open       *AttemptOpen `cbor:"3,keyasint,omitempty"` // nil: no entry of the attempt has been journaled
	Calls      []CallRecord `cbor:"4,keyasint,omitempty"`
	Crashes    int          `cbor:"5,keyasint,omitempty"` // written by older servers, ignored
	Burnt      *Burnt       `cbor:"6,keyasint,omitempty"` // from the attempt's newest entry; nil: nothing burnt
}

func (s *Session) decideSnapshot(e *Entry, t TakeSnapshot) (decision, error) {
	data, err := s.Snapshot()
	// A snapshot only saves loading time, so one that is too large is not worth an error.
	if err == nil && t.Most > 0 && len(data) > t.Most {
		return decision{}, nil
	}
	e.Kind, e.Snapshot, e.Held, e.Ran = EntrySnapshot, data, t.Held, true
	return decision{entry: e}, err
}

// decideAdopt refuses a snapshot that cannot be restored, before it becomes an entry.
func (s *Session) decideAdopt(e *Entry, t Adopt) (decision, error) {
	if s.seq != 0 {
		return decision{}, host.Errorf(host.CodeConflict, "session %s is not empty", clip(s.key.Session))
	}
	// An entry that cannot be folded would make the new session unreadable for ever.
	probe, err := Restore(s.key, s.graphs, t.Snapshot)
	if err != nil {
		return decision{}, err
	}
	if probe.seq != 0 {
		return decision{}, badSnapshot("it belongs to a session that continues at entry %d", probe.seq+1)
	}
	// The times in the snapshot must not lie after the entry.
	e.At = max(e.At, probe.now)
	e.Kind, e.Snapshot, e.Held = EntryFork, t.Snapshot, t.Held
	return decision{entry: e}, nil
}

// begins reports whether the entry can be the first that a session folds, even if its
// journal once had earlier entries.
func (e *Entry) begins() bool { return e.Kind == EntrySnapshot || e.Kind == EntryFork }

// Skips reports whether the entry lies before the first entry that the session can begin
// with. A row of a journal that was cut may contain such entries.
func (s *Session) Skips(e *Entry) bool { return s.seq == 0 && e.Seq != 1 && !e.begins() }

// adopt fills an empty session from the entry's snapshot.
func (s *Session) adopt(e *Entry) error {
	if err := s.restore(e.Snapshot); err != nil {
		return fmt.Errorf("%w: entry %d: %w", errCorrupt, e.Seq, err)
	}
	if s.seq != e.Seq-1 {
		return corrupt(e, "its snapshot was made at entry %d", s.seq)
	}
	return nil
}

// foldFork restarts the runs of a fork.
func (s *Session) foldFork() {
	// The caller knows nothing of the restored runs: announce them, and ask for all open
	// work.
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

// Needs returns the versions that the entry, the session's newest, depends on, sorted.
// The store keeps these versions as long as the entry. They are the versions of the runs
// that the entry begins, in this session or in another. A snapshot also needs the
// versions of everything that has not ended, and of the workflows whose schemas the state
// must satisfy.
func (s *Session) Needs(e *Entry) []string {
	var out []string
	switch {
	// The entry stands for everything in the session, not for one run.
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

// Versions returns the version of each run that has not ended, queued runs included.
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
