package hostcall_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/hostcall"
)

// A replay departs by its import alone, with the same request, and by a request that is too
// long for the record to keep and differs in one byte.
func TestReplayComparesImportAndLongRequests(t *testing.T) {
	text := strings.Repeat("x", 5_000)
	for _, tt := range []struct {
		name     string
		was, is  abi.Import
		req, now any
		departs  bool
	}{
		{"another import", abi.ImportNow, abi.ImportStateAbort, []any{}, []any{}, true},
		{"another long request", abi.ImportLog, abi.ImportLog, []any{0, text}, []any{0, text[1:] + "y"}, true},
		{"the same long request", abi.ImportLog, abi.ImportLog, []any{0, text}, []any{0, text}, false},
	} {
		w := newWorld(t)
		a := w.attempt(engine.AttemptOpen{}, nil)
		if _, _, _, err := a.Call(tt.was, value(tt.req), 0); err != nil {
			t.Fatal(err)
		}
		a.Restart()
		_, _, _, err := a.Call(tt.is, value(tt.now), 0)
		if m := (*hostcall.Mismatch)(nil); errors.As(err, &m) != tt.departs {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

// Waits without an id have the same names in a replay, so that each finds its own answer.
func TestReplayedWaitsKeepTheirNames(t *testing.T) {
	w := newWorldOf(t, asksAll)
	a := w.attempt(engine.AttemptOpen{}, nil)
	wait := value(map[string]any{"type": "HumanResponseEvent"})
	names := []string{"HumanResponseEvent #1", "HumanResponseEvent #2", "HumanResponseEvent #3"}
	for n, name := range names {
		a.Restart()
		for i := range n {
			resp, status, _, err := a.Call(abi.ImportWait, wait, 0)
			if err != nil || status != abi.StatusOK || !strings.Contains(abi.Diag(resp), names[i]) {
				t.Fatalf("wait %d of %d: %s, %d, %v", i+1, n, abi.Diag(resp), status, err)
			}
		}
		if _, _, _, err := a.Call(abi.ImportWait, wait, 0); !errors.Is(err, hostcall.ErrSuspended) {
			t.Fatalf("wait %d: %v", n+1, err)
		}
		if p, ok := w.eng.Pending(w.invID); !ok || p.Waiter != name {
			t.Fatalf("wait %d is %+v, want %s", n+1, p, name)
		}
		if _, err := w.reduce(engine.PostEvent{RunID: "r", Event: abi.Event{Type: "HumanResponseEvent", Body: value(map[string]any{"to": name})}}); err != nil {
			t.Fatal(err)
		}
	}
}

// The fields that a wait asks for are bounded. An attempt from before prices began without
// the bound, and its replay must not find another.
func TestRequirementsAreBounded(t *testing.T) {
	wait := value(map[string]any{"type": "HumanResponseEvent", "requirements": map[string]any{"x": strings.Repeat("x", 64<<10)}})
	for _, old := range []bool{false, true} {
		w := newWorldOf(t, asksAll)
		open := priced()
		if old {
			open.Prices = 0
		}
		a := w.attempt(open, nil)
		a.Afford(1e12, nil)
		_, status, _, err := a.Call(abi.ImportWait, wait, 0)
		if !old && (err != nil || status != abi.StatusLimitExceeded) || old && !errors.Is(err, hostcall.ErrSuspended) {
			t.Errorf("before prices %t: status %d, %v", old, status, err)
		}
	}
}

// The losses that make an attempt ask for the write ticket are those in a row: a commit
// that wins ends the row.
func TestLossesCountAnewAfterACommit(t *testing.T) {
	w := newWorld(t)
	w.edit("n", 1)
	a := w.attempt(engine.AttemptOpen{}, nil)
	increments := func(times int) error {
		a.Restart()
		g := &guest{a: a}
		for i := range times {
			if _, err := g.call(abi.ImportStateBegin, value([]any{"n"})); err != nil {
				return err
			}
			if _, err := g.call(abi.ImportStateCommit, value([]any{100 * (i + 1)})); err != nil {
				return err
			}
		}
		return nil
	}
	for loss := range 3 {
		w.rival = func() { w.edit("n", 1) }
		if err := increments(1); !errors.Is(err, engine.ErrConflict) || w.wanted {
			t.Fatalf("loss %d: %v, ticket %t", loss, err, w.wanted)
		}
	}
	if err := increments(1); err != nil || !w.wanted {
		t.Fatalf("after three losses: %v, ticket %t", err, w.wanted)
	}
	w.rival = func() { w.edit("n", 1) }
	if err := increments(2); !errors.Is(err, engine.ErrConflict) || w.wanted {
		t.Errorf("the next edit: %v, ticket %t", err, w.wanted)
	}
	if err := increments(2); err != nil || w.wanted || w.stateNow() != `{"n": 200}` {
		t.Errorf("after one loss: %v, ticket %t, %s", err, w.wanted, w.stateNow())
	}
}

// A call that suspends takes the record of the calls before it into its entry: the guest has
// seen their answers, and a crash must not give it others.
func TestSuspensionKeepsTheCallsBefore(t *testing.T) {
	w := newWorldOf(t, asksAll)
	draw, wait := value([]any{16}), value(map[string]any{"type": "HumanResponseEvent"})
	a := w.attempt(engine.AttemptOpen{}, nil)
	drawn, _, _, err := a.Call(abi.ImportRandom, draw, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := a.Call(abi.ImportWait, wait, 0); !errors.Is(err, hostcall.ErrSuspended) {
		t.Fatal(err)
	}
	open, record := w.crash()
	if len(record) != 1 || len(a.Record()) != 1 || open.Seed != a.Open().Seed || open.Clock != a.Open().Clock {
		t.Fatalf("%d calls in the journal, %d in memory; the attempt began with %+v", len(record), len(a.Record()), open)
	}
	if again, _, _, err := w.attempt(open, record).Call(abi.ImportRandom, draw, 0); err != nil || !bytes.Equal(again, drawn) {
		t.Errorf("after a crash: %x, %v, want %x", again, err, drawn)
	}
}

// The clock of a guest does not go back when the clock of the host does, as after a move to
// another machine.
func TestGuestsClockNeverGoesBack(t *testing.T) {
	w := newWorld(t)
	a := w.attempt(engine.AttemptOpen{}, nil)
	ahead := w.clock + 1_000_000
	resp, _, clock, err := a.Call(abi.ImportNow, value([]any{}), ahead)
	if err != nil || clock != ahead || must(abi.DecodeValue(resp)) != ahead {
		t.Errorf("clock %d, answer %s, %v, want %d", clock, abi.Diag(resp), err, ahead)
	}
}
