package engine

import (
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// A run that an older server began behaves as it did there, so that its journal folds: it
// stays active when nothing is left to do, and its timeout counts that time.
func TestRunsOfOlderServers(t *testing.T) {
	g := mustGraph(t, chainManifest)
	find := func(string) (*Graph, error) { return g, nil }
	live := &machine{t: t, s: New(host.SessionKey{Tenant: "t", Session: "s"}, find)}
	old := New(live.s.Key(), find)
	fold := func(e *Entry) {
		t.Helper()
		stored := recoded(t, e)
		if stored.Start != nil {
			stored.Start.Work, stored.Start.Stalls = false, false
		}
		if _, err := old.Fold(stored); err != nil {
			t.Fatal(err)
		}
	}
	began := live.reduce(StartRun{RunID: "r", HandlerID: "h", Version: "v", Event: abi.Event{Type: abi.TypeStart}, Timeout: 1000, Work: true})
	fold(began.Entry)
	fold(live.finish(live.opened(began), abi.StepOutput{}).Entry)
	if rec, _ := live.s.Record("r"); rec.ErrorCode != host.RunStalled {
		t.Errorf("a new run: %+v", rec)
	}
	if rec, _ := old.Record("r"); rec.Status != host.StatusRunning || old.NextTimer() != 1001 {
		t.Errorf("%+v, next timer %d", rec, old.NextTimer())
	}
	data, err := old.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Restore(old.Key(), find, data)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Session{old, again} {
		if _, err := s.Reduce(1001, Timer{}); err != nil {
			t.Fatal(err)
		}
		if rec, _ := s.Record("r"); rec.ErrorCode != host.RunTimeout {
			t.Errorf("%+v", rec)
		}
	}
}
