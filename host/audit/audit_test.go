package audit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/audit"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/inspect"
)

// source is a stored host that is empty except for what a test sets.
type source struct {
	problems []string
	loose    []inspect.Loose
	modules  []host.ModuleRecord
	sessions []inspect.Session
	journal  []host.JournalRow // of each session
	versions []host.VersionUse
	runs     []inspect.Run
	graph    *engine.Graph    // of all versions; nil: there is none
	fail     map[string]error // by method
	asked    []string
}

func (s *source) ask(method string) error {
	s.asked = append(s.asked, method)
	return s.fail[method]
}

func each[T any](err error, rows []T, fn func(T) error) error {
	for _, r := range rows {
		if err := fn(r); err != nil {
			return err
		}
	}
	return err
}

func (s *source) Integrity(_ context.Context, found func(string) error) error {
	return each(s.ask("Integrity"), s.problems, found)
}

func (s *source) Loose(_ context.Context, found func(inspect.Loose) error) error {
	return each(s.ask("Loose"), s.loose, found)
}

func (s *source) Modules(_ context.Context, fn func(host.ModuleRecord) error) error {
	return each(s.ask("Modules"), s.modules, fn)
}

func (s *source) CountSessions(context.Context) (int, error) {
	return len(s.sessions), s.ask("CountSessions")
}

func (s *source) Sessions(_ context.Context, after int64, limit int) ([]inspect.Session, error) {
	rows := s.sessions[min(int(after), len(s.sessions)):]
	return rows[:min(limit, len(rows))], s.ask("Sessions")
}

func (s *source) Journal(_ context.Context, _ int64, fn func(host.JournalRow) error) error {
	return each(s.ask("Journal"), s.journal, fn)
}

func (s *source) Versions(_ context.Context, _ int64, fn func(host.VersionUse) error) error {
	return each(s.ask("Versions"), s.versions, fn)
}

func (s *source) Runs(_ context.Context, _ int64, fn func(inspect.Run) error) error {
	return each(s.ask("Runs"), s.runs, fn)
}

func (s *source) Handlers(context.Context, int64, func(inspect.Handler) error) error {
	return s.ask("Handlers")
}

func (s *source) Stream(context.Context, int64, func(inspect.Events) error) error {
	return s.ask("Stream")
}

// audited returns the codes of the faults of a source, in order.
func audited(t *testing.T, s *source) (codes []string, sum audit.Summary, err error) {
	t.Helper()
	sum, err = audit.Run(t.Context(), audit.Config{
		Source: s,
		Row:    func(row []byte) ([]byte, error) { return row, nil },
		Graph: func(string) (*engine.Graph, error) {
			if s.graph == nil {
				return nil, errors.New("there is none")
			}
			return s.graph, nil
		},
		Found: func(f audit.Fault) error {
			if f.What == "" || f.Advice == "" {
				t.Errorf("a fault that says nothing: %+v", f)
			}
			codes = append(codes, f.Code)
			return nil
		},
	})
	return codes, sum, err
}

// sessions returns n sessions at position 0 that never wake.
func sessions(n int) (rows []inspect.Session) {
	for i := range n {
		rows = append(rows, inspect.Session{ID: int64(i + 1), WakeAt: host.WakeNever,
			Key: host.SessionKey{Tenant: "t", Session: fmt.Sprint("s", i)}})
	}
	return rows
}

func TestFaults(t *testing.T) {
	damage := fmt.Errorf("page 7: %w", host.ErrUnreadable)
	emptyRow := host.JournalRow{First: 1, Data: []byte{0x80}}
	one := sessions(1)
	woken := sessions(1)
	woken[0].WakeAt = 0
	ahead := sessions(1)
	ahead[0].Last = 3
	for name, tt := range map[string]struct {
		source *source
		want   []string
	}{
		"nothing":           {&source{}, nil},
		"clean":             {&source{sessions: sessions(1000), journal: []host.JournalRow{emptyRow}}, nil},
		"file":              {&source{problems: []string{"row 1 missing from index", "page 3"}}, []string{audit.DatabaseDamaged, audit.DatabaseDamaged}},
		"file, cut short":   {&source{fail: map[string]error{"Integrity": damage}}, []string{audit.DatabaseDamaged}},
		"references":        {&source{loose: []inspect.Loose{{What: "a row"}}}, []string{audit.RowLoose}},
		"module":            {&source{modules: []host.ModuleRecord{{Digest: "d", Bytes: []byte{1}}, {Digest: "e"}}}, []string{audit.ModuleDamaged, audit.ModuleDamaged}},
		"list of sessions":  {&source{sessions: one, fail: map[string]error{"Sessions": damage}}, []string{audit.DatabaseDamaged}},
		"journal's pages":   {&source{sessions: sessions(2), fail: map[string]error{"Journal": damage}}, []string{audit.JournalDamaged, audit.JournalDamaged}},
		"row out of place":  {&source{sessions: one, journal: []host.JournalRow{{First: 2, Data: []byte{0x80}}}}, []string{audit.JournalGap}},
		"no entries":        {&source{sessions: one, journal: []host.JournalRow{{First: 1, Data: []byte{0xff}}}}, []string{audit.JournalDamaged}},
		"entry of no kind":  {&source{sessions: one, journal: []host.JournalRow{{First: 1, Data: []byte{0x81, 0xa3, 1, 1, 2, 1, 3, 0x18, 99}}}}, []string{audit.JournalDamaged}},
		"end":               {&source{sessions: ahead}, []string{audit.JournalGap}},
		"wake time":         {&source{sessions: woken}, []string{audit.WakeDiffers}},
		"run of no entry":   {&source{sessions: one, runs: []inspect.Run{{Run: host.Run{RunID: "r"}}}}, []string{audit.RecordDiffers}},
		"tables of session": {&source{sessions: sessions(2), fail: map[string]error{"Stream": damage}}, []string{audit.DatabaseDamaged, audit.DatabaseDamaged}},
	} {
		t.Run(name, func(t *testing.T) {
			codes, sum, err := audited(t, tt.source)
			if err != nil || !slices.Equal(codes, tt.want) || sum.Faults != len(tt.want) {
				t.Errorf("faults %q, %+v, %v; want %q", codes, sum, err, tt.want)
			}
			if tt.source.fail["Sessions"] == nil && sum.Sessions != len(tt.source.sessions) {
				t.Errorf("%d sessions were gone over, of %d", sum.Sessions, len(tt.source.sessions))
			}
		})
	}
}

// snapshots returns two entries that hold only what their session holds, made at a time.
func snapshots(t *testing.T, at int64) [2]host.JournalRow {
	t.Helper()
	eng := engine.New(host.SessionKey{Tenant: "t", Session: "s0"}, nil)
	var rows [2]host.JournalRow
	for i := range rows {
		res, err := eng.Reduce(at, engine.TakeSnapshot{})
		if err != nil {
			t.Fatal(err)
		}
		if rows[i].Data, err = abi.Marshal([]*engine.Entry{res.Entry}); err != nil {
			t.Fatal(err)
		}
		rows[i].First = res.Entry.Seq
	}
	return rows
}

func TestSnapshots(t *testing.T) {
	early, late := snapshots(t, 1), snapshots(t, 2)
	for name, tt := range map[string]struct {
		journal []host.JournalRow
		entries uint64
		want    []string
	}{
		"whole":             {early[:], 2, nil},
		"cut":               {early[1:], 1, nil},
		"snapshot of other": {[]host.JournalRow{early[0], late[1]}, 1, []string{audit.SnapshotDiffers}},
	} {
		t.Run(name, func(t *testing.T) {
			one := sessions(1)
			one[0].Last = 2
			codes, sum, err := audited(t, &source{sessions: one, journal: tt.journal})
			if err != nil || !slices.Equal(codes, tt.want) || sum.Entries != tt.entries {
				t.Errorf("faults %q, %+v, %v; want %q", codes, sum, err, tt.want)
			}
		})
	}
}

// The record of a run that was active at the beginning of its cut journal is compared
// with the snapshot there.
func TestRunUnderWayAtTheCut(t *testing.T) {
	raw, err := abi.FromJSON([]byte(`{"abi": 1, "workflow": "w", "events": {"Work": {}}, "steps": [
		{"name": "begin", "accepts": ["StartEvent"], "emits": ["Work"]},
		{"name": "end", "accepts": ["Work"], "emits": ["StopEvent"]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := abi.DecodeManifest(raw)
	if err != nil {
		t.Fatal(err)
	}
	graph, problems := engine.Compile(&manifest)
	if problems != nil {
		t.Fatal(problems)
	}
	one := sessions(1)
	eng := engine.New(one[0].Key, func(string) (*engine.Graph, error) { return graph, nil })
	var record host.Run
	var last *engine.Entry
	for _, tick := range []engine.Tick{
		engine.StartRun{RunID: "r", HandlerID: "h", Version: "v", Event: abi.Event{Type: "StartEvent", Body: abi.EmptyMap}},
		engine.Finish{Invocation: 1, Attempt: 1, Fuel: 5, Output: abi.StepOutput{Events: []abi.Event{{Type: "Work", Body: abi.EmptyMap}}}},
		engine.TakeSnapshot{},
	} {
		res, err := eng.Reduce(1, tick)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range res.Commands {
			if c, ok := c.(engine.RunChanged); ok {
				record = c.Run
			}
		}
		last = res.Entry
	}
	data, err := abi.Marshal([]*engine.Entry{last})
	if err != nil {
		t.Fatal(err)
	}
	one[0].Last, one[0].WakeAt = last.Seq, eng.WakeAt()
	for _, tt := range []struct {
		steps, noted, unlisted uint64
		want                   []string
	}{
		{steps: record.Steps, noted: last.Seq},
		{steps: record.Steps + 1, noted: last.Seq, want: []string{audit.RecordDiffers}},
		{steps: record.Steps, noted: last.Seq - 1, want: []string{audit.VersionsDiffer}},
		{steps: record.Steps, noted: 0, unlisted: last.Seq},
		{steps: record.Steps, noted: 0, unlisted: last.Seq - 1, want: []string{audit.VersionsDiffer}},
	} {
		record.Steps, one[0].Unlisted = tt.steps, tt.unlisted
		stored := &source{sessions: one, graph: graph, journal: []host.JournalRow{{First: last.Seq, Data: data}},
			versions: []host.VersionUse{{Digest: "v", Seq: tt.noted}, {Digest: "other", Seq: 1}}, runs: []inspect.Run{{Run: record, Latest: true}}}
		if codes, _, err := audited(t, stored); err != nil || !slices.Equal(codes, tt.want) {
			t.Errorf("%+v: %q, %v", tt, codes, err)
		}
	}
}

// An error that is not a fault of the stored data ends the audit.
func TestErrorsEndTheAudit(t *testing.T) {
	broken := errors.New("the disk is gone")
	for _, method := range []string{"Integrity", "Loose", "Modules", "CountSessions", "Sessions", "Journal", "Versions", "Runs", "Handlers", "Stream"} {
		s := &source{sessions: sessions(2), fail: map[string]error{method: broken}}
		codes, _, err := audited(t, s)
		if !errors.Is(err, broken) || len(codes) > 0 || s.asked[len(s.asked)-1] != method {
			t.Errorf("%s fails: %v, faults %q, asked %q", method, err, codes, s.asked)
		}
	}
}

func TestFoundMayEndTheAudit(t *testing.T) {
	enough := errors.New("enough")
	n := 0
	sum, err := audit.Run(t.Context(), audit.Config{
		Source: &source{problems: []string{"a", "b", "c"}},
		Found: func(audit.Fault) error {
			n++
			return enough
		},
	})
	if !errors.Is(err, enough) || n != 1 || sum.Faults != 1 {
		t.Errorf("%v after %d faults, %+v", err, n, sum)
	}
}
