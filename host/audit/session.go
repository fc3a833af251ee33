package audit

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/inspect"
)

// errFault ends the reading of a journal at its first fault.
var errFault = errors.New("a fault was found")

// session is what the journal of one session results in.
type session struct {
	a     *auditor
	row   inspect.Session
	eng   *engine.Session
	fault *Fault
	// missing is the version whose workflow the fold could not find.
	missing string
	runs    map[string]*folded // by id, according to the journal
	streams map[streamOf]*tally
	needs   map[string]uint64 // versions, with the last entry that needs each of them

	// Of a journal that was cut: the number of entries that are gone, the handlers whose
	// runs were active at its beginning, and the first sequence number of each stream
	// that the journal still makes.
	before uint64
	early  map[string]bool
	shown  map[string]uint64
}

// folded is the record of a run according to the journal, without its result.
type folded struct {
	run    host.Run
	result [sha256.Size]byte
	seen   bool // the tables have the run
}

// streamOf identifies the events of a run on the stream of its handler.
type streamOf struct{ handler, run string }

// tally is a checksum of events, in order.
type tally struct {
	first, last int64
	count       int
	sum         [sha256.Size]byte
}

func (t *tally) add(ev *host.StreamEvent) error {
	sum, err := sumOf(ev)
	if err != nil {
		return err
	}
	if t.count == 0 {
		t.first = int64(ev.Seq)
	}
	t.last = int64(ev.Seq)
	t.count++
	t.sum = sha256.Sum256(append(t.sum[:], sum[:]...))
	return nil
}

func (a *auditor) newSession(row inspect.Session) *session {
	s := &session{a: a, row: row, runs: map[string]*folded{}, streams: map[streamOf]*tally{}, needs: map[string]uint64{}}
	s.eng = engine.New(row.Key, s.graph)
	return s
}

func (s *session) graph(version string) (*engine.Graph, error) {
	g, err := s.a.Graph(version)
	if err != nil {
		s.missing = version
	}
	return g, err
}

// fail records the session's fault.
func (s *session) fail(code string, position uint64, advice, format string, args ...any) error {
	s.fault = &Fault{Code: code, Position: position, What: fmt.Sprintf(format, args...), Advice: advice}
	return errFault
}

// fold folds the entries of a journal row.
func (s *session) fold(row host.JournalRow) error {
	next := s.eng.Seq() + 1
	if row.First != next && next > 1 {
		return s.fail(JournalGap, next, adviceSession, "the journal has entry %d after entry %d", row.First, s.eng.Seq())
	}
	array, err := s.a.Row(row.Data)
	switch {
	case errors.Is(err, host.ErrNewer):
		return s.fail(JournalNewer, row.First, adviceNewer, "%v", err)
	case err != nil:
		return s.fail(JournalDamaged, row.First, adviceSession, "%v", err)
	}
	var entries []engine.Entry
	if err := abi.Unmarshal(array, &entries); err != nil {
		return s.fail(JournalDamaged, row.First, adviceSession, "the entries of the row cannot be decoded: %v", err)
	}
	for i := range entries {
		if s.eng.Skips(&entries[i]) {
			continue
		}
		beginning := s.eng.Seq() == 0
		err := s.snapshot(&entries[i])
		var cmds []engine.Command
		if err == nil {
			cmds, err = s.eng.Fold(&entries[i])
		}
		switch {
		case errors.Is(err, errFault):
			return err
		case s.missing != "" && err != nil:
			return s.fail(ModuleMissing, entries[i].Seq, adviceModule, "the workflow of version %s cannot be loaded: %v", s.missing, err)
		case err != nil:
			return s.fail(JournalDamaged, entries[i].Seq, adviceSession, "the entry does not fold: %v", err)
		}
		for _, version := range s.eng.Needs(&entries[i]) {
			s.needs[version] = entries[i].Seq
		}
		if err := s.note(cmds); err != nil {
			return s.fail(JournalDamaged, entries[i].Seq, adviceSession, "the result of the entry cannot be encoded: %v", err)
		}
		if beginning && entries[i].Seq > 1 {
			if err := s.cut(); err != nil {
				return err
			}
		}
	}
	if s.eng.Seq() == 0 && row.First > 1 {
		return s.fail(JournalGap, 1, adviceSession, "the journal begins with entry %d, but has no snapshot of the entries before it", row.First)
	}
	return nil
}

// snapshot checks that the entry's snapshot is what the entries before it result in.
func (s *session) snapshot(e *engine.Entry) error {
	if e.Kind != engine.EntrySnapshot || s.eng.Seq() == 0 || s.eng.Seq() != e.Seq-1 {
		return nil // it begins the journal, or Fold will refuse it
	}
	if !e.Ran {
		s.eng.ForgetRan() // as folding the entry does
	}
	want, err := s.eng.Snapshot()
	if err != nil {
		return err
	}
	stored, err := engine.Restore(s.row.Key, s.graph, e.Snapshot)
	if err != nil {
		return err
	}
	got, err := stored.Snapshot() // encode it again: the stored bytes may have an older form
	if err == nil && !bytes.Equal(got, want) {
		return s.fail(SnapshotDiffers, e.Seq, adviceSnapshot, "the snapshot at entry %d is not the result of the entries before it", e.Seq)
	}
	return err
}

// cut records what a session holds at the beginning of a journal that was cut.
func (s *session) cut() error {
	s.before = s.eng.Seq() - 1
	s.early, s.shown = map[string]bool{}, s.eng.Streams()
	for id := range s.eng.Versions() {
		run, _ := s.eng.Record(id)
		if err := s.changed(run); err != nil {
			return err
		}
		s.early[run.HandlerID] = true
	}
	return nil
}

// note records what the tables must contain after an entry.
func (s *session) note(cmds []engine.Command) error {
	for _, c := range cmds {
		switch c := c.(type) {
		case engine.Publish:
			key := streamOf{c.HandlerID, c.Event.RunID}
			if s.streams[key] == nil {
				s.streams[key] = &tally{}
			}
			if err := s.streams[key].add(&c.Event); err != nil {
				return err
			}
		case engine.RunChanged:
			if err := s.changed(c.Run); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *session) changed(run host.Run) error {
	sum, err := sumOf(run.Result)
	if err != nil {
		return err
	}
	f := &folded{run: run, result: sum}
	f.run.Result = nil
	f.run.WaitingFor = slices.Clone(run.WaitingFor)
	s.runs[run.RunID] = f
	return nil
}

// differs reports a difference between the tables and the journal.
func (s *session) differs(code, advice, format string, args ...any) error {
	return s.a.found(Fault{Code: code, Tenant: s.row.Key.Tenant, Session: s.row.Key.Session, Position: s.eng.Seq(),
		What: fmt.Sprintf(format, args...), Advice: advice})
}

// compare compares the tables with the result of the journal.
func (s *session) compare(ctx context.Context) error {
	if at := s.eng.WakeAt(); at != s.row.WakeAt {
		if err := s.differs(WakeDiffers, adviceWake, "the session says that it wakes at %s, its journal says %s",
			wakeTime(s.row.WakeAt), wakeTime(at)); err != nil {
			return err
		}
	}
	if err := s.compareVersions(ctx); err != nil {
		return err
	}
	latest := map[string]string{} // handler -> run, according to the tables
	if err := s.a.Source.Runs(ctx, s.row.ID, func(r inspect.Run) error {
		s.a.sum.Runs++
		if r.Latest {
			latest[r.Run.HandlerID] = r.Run.RunID
		}
		return s.compareRun(&r.Run)
	}); err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(s.runs)) {
		f := s.runs[id]
		if f.seen || f.run.Status.Final() { // a run that has ended may have been deleted
			continue
		}
		if err := s.differs(RecordDiffers, adviceRecord, "run %s is running, and has no record", id); err != nil {
			return err
		}
	}
	if err := s.compareHandlers(ctx, latest); err != nil {
		return err
	}
	return s.compareStreams(ctx)
}

// compareVersions checks that the versions that the journal needs are stored and listed.
// A version that is not listed would be deleted with its name. More versions may be
// listed than the fold needs, because the rows of a journal that was cut may have entries
// before its first snapshot.
func (s *session) compareVersions(ctx context.Context) error {
	noted := map[string]uint64{}
	if err := s.a.Source.Versions(ctx, s.row.ID, func(v host.VersionUse) error {
		noted[v.Digest] = v.Seq
		if _, err := s.a.Graph(v.Digest); err != nil { // perhaps of a child in another session: Fold does not ask for that
			return s.differs(ModuleMissing, adviceModule, "the workflow of version %s, which entry %d needs, cannot be loaded: %v", v.Digest, v.Seq, err)
		}
		return nil
	}); err != nil {
		return err
	}
	for _, version := range slices.Sorted(maps.Keys(s.needs)) {
		at := s.needs[version]
		if at <= noted[version] || at <= s.row.Unlisted {
			continue
		}
		if err := s.differs(VersionsDiffer, adviceVersions, "entry %d needs version %s, and the session says that none behind entry %d does",
			at, version, noted[version]); err != nil {
			return err
		}
	}
	return nil
}

func wakeTime(at int64) string {
	switch at {
	case host.WakeNever:
		return "never"
	case 0:
		return "now"
	}
	return fmt.Sprint(at)
}

// compareRun compares a run's record with the journal's.
func (s *session) compareRun(r *host.Run) error {
	f := s.runs[r.RunID]
	if f == nil && s.before > 0 && r.Status.Final() {
		return nil // the run ended before the journal begins
	}
	if f == nil {
		return s.differs(RecordDiffers, adviceRecord, "run %s has a record, and no entry in the journal", r.RunID)
	}
	f.seen = true
	if r.Blocked != nil && r.Blocked.Code == host.BlockedUnreadable {
		return s.differs(RecordDiffers, adviceRecord, "run %s: %s", r.RunID, r.Blocked.Message)
	}
	sum, err := sumOf(r.Result)
	if err != nil {
		return err
	}
	wrong := differences(r, &f.run)
	if sum != f.result {
		wrong = append(wrong, "result")
	}
	if len(wrong) == 0 {
		return nil
	}
	return s.differs(RecordDiffers, adviceRecord, "the record of run %s (%s) differs from the journal's (%s) in %s",
		r.RunID, r.Status, f.run.Status, strings.Join(wrong, ", "))
}

// differences names the fields in which two records differ, except the result.
func differences(a, b *host.Run) []string {
	var names []string
	for _, field := range []struct {
		name string
		same bool
	}{
		{"handler_id", a.HandlerID == b.HandlerID},
		{"workflow", a.Workflow == b.Workflow},
		{"version", a.Version == b.Version || a.Version == ""}, // the record may be older than the field
		{"status", a.Status == b.Status},
		{"error", a.Error == b.Error && a.ErrorCode == b.ErrorCode},
		{"error_step", a.ErrorStep == "" || a.ErrorStep == b.ErrorStep && a.ErrorAttempt == b.ErrorAttempt}, // the record may be older than the fields
		{"times", a.Started == b.Started && a.Updated == b.Updated && a.Completed == b.Completed},
		{"paused", a.Paused == b.Paused},
		{"blocked", a.Blocked == b.Blocked || a.Blocked != nil && b.Blocked != nil && *a.Blocked == *b.Blocked},
		{"waiting_for", slices.Equal(a.WaitingFor, b.WaitingFor)},
		{"parent", a.ParentRun == b.ParentRun && a.ParentStep == b.ParentStep},
		{"origin", a.ForkedFrom == b.ForkedFrom && a.ForkedAt == b.ForkedAt && a.RetriedFrom == b.RetriedFrom},
		{"steps", a.Steps == b.Steps},
		{"fuel", a.Fuel == b.Fuel},
	} {
		if !field.same {
			names = append(names, field.name)
		}
	}
	return names
}

// compareHandlers checks that each handler points to its latest run according to the
// journal, and to the beginning of that run's events.
func (s *session) compareHandlers(ctx context.Context, latest map[string]string) error {
	return s.a.Source.Handlers(ctx, s.row.ID, func(h inspect.Handler) error {
		want, _, known := s.eng.HandlerRun(h.HandlerID)
		if got := latest[h.HandlerID]; !known || got != want {
			return s.differs(RecordDiffers, adviceRecord, "handler %s has %q as its latest run, its journal says %q", h.HandlerID, got, want)
		}
		t := s.streams[streamOf{h.HandlerID, want}]
		if t != nil && !s.early[h.HandlerID] && (h.FirstSeq > t.first || h.FirstSeq < t.first && s.shows(h.HandlerID, h.FirstSeq, t.first)) {
			return s.differs(StreamDiffers, adviceRecord, "handler %s says that its latest run's events begin at %d, its journal says %d",
				h.HandlerID, h.FirstSeq, t.first)
		}
		return nil
	})
}

// shows reports whether a stored run has events of a handler with numbers from first to
// before end. For a queued run, which has no events yet, the store assumes the number
// after the handler's stored events. This number is lower than the journal's if older
// runs were deleted. Readers do not notice the difference.
func (s *session) shows(handler string, first, end int64) bool {
	for key, t := range s.streams {
		if f := s.runs[key.run]; key.handler == handler && f != nil && f.seen && t.last >= first && t.first < end {
			return true
		}
	}
	return false
}

// compareStreams checks that the stream rows of every run that has a record hold exactly
// the events of the journal.
func (s *session) compareStreams(ctx context.Context) error {
	stored := map[streamOf]*tally{}
	end, handler := int64(-1), ""
	err := s.a.Source.Stream(ctx, s.row.ID, func(r inspect.Events) error {
		if r.HandlerID != handler {
			end, handler = -1, r.HandlerID
		}
		t := stored[streamOf{r.HandlerID, r.RunID}]
		if t == nil {
			t = &tally{}
			stored[streamOf{r.HandlerID, r.RunID}] = t
		}
		n := len(r.Events)
		switch {
		case r.Err != nil:
			return s.differs(StreamDiffers, adviceRecord, "events %d to %d of handler %s cannot be read: %v", r.First, r.Last, r.HandlerID, r.Err)
		case n == 0 || int64(r.Events[0].Seq) != r.First || int64(r.Events[n-1].Seq) != r.Last || r.First <= end:
			return s.differs(StreamDiffers, adviceRecord, "a row of handler %s says that it holds events %d to %d, and does not", r.HandlerID, r.First, r.Last)
		}
		end = r.Last
		for i := range r.Events {
			if r.Events[i].Seq < s.shown[r.HandlerID] {
				continue // the event came before the journal begins
			}
			if err := t.add(&r.Events[i]); err != nil {
				return err
			}
		}
		s.a.sum.Events += uint64(n)
		return nil
	})
	if err != nil {
		return err
	}
	return s.compareTallies(stored)
}

func (s *session) compareTallies(stored map[streamOf]*tally) error {
	for _, key := range sorted(s.streams) {
		want, f := s.streams[key], s.runs[key.run]
		if f == nil || !f.seen {
			continue // the run was deleted with its events
		}
		got := stored[key]
		if got == nil {
			got = &tally{}
		}
		if *got != *want {
			if err := s.differs(StreamDiffers, adviceRecord, "the stream of handler %s has %d events of run %s, to number %d; the journal makes %d, to number %d%s",
				key.handler, got.count, key.run, got.last, want.count, want.last, unlike(got, want)); err != nil {
				return err
			}
		}
	}
	for _, key := range sorted(stored) {
		if s.streams[key] == nil && stored[key].count > 0 {
			if err := s.differs(StreamDiffers, adviceRecord, "the stream of handler %s has events of run %s, which the journal does not make", key.handler, key.run); err != nil {
				return err
			}
		}
	}
	return nil
}

// sorted returns the names of the streams in a fixed order.
func sorted(m map[streamOf]*tally) []streamOf {
	return slices.SortedFunc(maps.Keys(m), func(a, b streamOf) int {
		return cmp.Or(strings.Compare(a.handler, b.handler), strings.Compare(a.run, b.run))
	})
}

// unlike describes a difference that the numbers do not show.
func unlike(got, want *tally) string {
	if got.count == want.count && got.last == want.last {
		return ", with other contents"
	}
	return ""
}
