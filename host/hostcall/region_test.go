package hostcall_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/hostcall"
	"github.com/weftrun/weft/host/limit"
)

// slice is what a guest burns between two of its checkpoints.
const slice = 50_000

// burning is a guest that burns units before each of its calls.
type burning struct {
	*guest
	burnt uint64
}

func (g *burning) call(units uint64, im abi.Import, args ...any) error {
	if err := g.burn(units); err != nil {
		return err
	}
	if args == nil {
		args = []any{}
	}
	_, err := g.guest.call(im, value(args))
	return err
}

func (g *burning) burn(units uint64) error {
	for ; units > 0; units -= min(units, slice) {
		g.burnt += min(units, slice)
		if err := g.a.Burn(min(units, slice)); err != nil {
			return err
		}
	}
	return nil
}

// loop burns until it is ended.
func (g *burning) loop(t *testing.T) error {
	t.Helper()
	for range 1_000_000 {
		if err := g.burn(slice); err != nil {
			return err
		}
	}
	t.Fatal("nothing ends the guest")
	return nil
}

func ofRegionFuel(units uint64) engine.AttemptOpen {
	open := engine.AttemptOpen{Clock: 500, Limits: limit.Default()}
	open.Limits.RegionFuel = units
	return open
}

// A guest that loops in an open edit without host calls is ended. The error names the
// limit and the amount, and is final, because another attempt would do the same.
func TestLoopInAnOpenEditIsEnded(t *testing.T) {
	w := newWorld(t)
	a := w.attempt(ofRegionFuel(1_000_000), nil)
	g := &burning{guest: &guest{a: a}}
	if err := errors.Join(g.burn(5_000_000), g.call(20_000, abi.ImportStateBegin, "")); err != nil {
		t.Fatal(err)
	}
	before := g.burnt
	err := g.loop(t)
	var l *hostcall.LimitError
	if !errors.As(err, &l) || l.Err.Code != host.RunLimitExceeded || l.Err.Retryable == nil || *l.Err.Retryable {
		t.Fatalf("got %v", err)
	}
	if got := g.burnt - before; got != 1_050_000 {
		t.Errorf("ended after %d units", got)
	}
	for _, part := range []string{"an edit burnt 1050000 units", "more than 1000000", "region_fuel"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %q", err, part)
		}
	}
	if w.stateNow() != "{}" {
		t.Error("the cut edit changed the state")
	}
}

// Everything between the begin and the end of an edit counts, including the last piece
// before the commit.
func TestRegionFuelIsOfOneEdit(t *testing.T) {
	for name, c := range map[string]struct {
		last uint64
		ends bool
	}{"at the limit": {400_000, false}, "one more": {400_001, true}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			g := &burning{guest: &guest{a: w.attempt(ofRegionFuel(1_000_000), nil)}}
			for _, end := range []abi.Import{abi.ImportStateAbort, abi.ImportStateCommit} {
				args := []any{map[string]any{"n": 1}}
				if end == abi.ImportStateAbort {
					args = nil
				}
				if err := errors.Join(g.call(3_000_000, abi.ImportStateBegin, ""), g.call(600_000, abi.ImportNow), g.call(400_000, end, args...)); err != nil {
					t.Fatal(err)
				}
			}
			err := errors.Join(g.call(0, abi.ImportStateBegin, ""), g.call(600_000, abi.ImportStateGet, "n"), g.burn(c.last))
			if (err != nil) != c.ends {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// No edit is open in a replay, so no limit can end it. An edit that was interrupted is
// counted from its begin, and ends at the same unit.
func TestRegionFuelAndReplay(t *testing.T) {
	w := newWorld(t)
	open := ofRegionFuel(1_000_000)
	a := w.attempt(open, nil)
	program := func(a *hostcall.Attempt, inside uint64) (g *burning, err error) {
		g = &burning{guest: &guest{a: a}}
		for _, call := range []func() error{
			func() error { return g.call(10, abi.ImportStateBegin, "") },
			func() error { return g.call(inside, abi.ImportStateCommit, map[string]any{"n": 1}) },
			func() error { return g.call(2_000_000, abi.ImportStateBegin, "") },
		} {
			if err := call(); err != nil {
				return g, err
			}
		}
		return g, nil
	}
	first, err := program(a, 900_000)
	if err != nil {
		t.Fatal(err)
	}
	err = first.loop(t)
	ended := first.burnt
	for name, again := range map[string]func() *hostcall.Attempt{
		"another run": func() *hostcall.Attempt { a.Restart(); return a },
		"after a crash": func() *hostcall.Attempt {
			was, record := w.crash()
			if was.Limits != open.Limits || len(record) != 2 {
				t.Fatalf("%+v, %d calls in the record", was.Limits, len(record))
			}
			return w.attempt(was, record)
		},
	} {
		g, err2 := program(again(), 900_000)
		if err2 != nil {
			t.Fatalf("%s: %v", name, err2)
		}
		err2 = g.loop(t)
		if g.burnt != ended || err2.Error() != err.Error() {
			t.Errorf("%s: ended after %d units by %v, the first after %d by %v", name, g.burnt, err2, ended, err)
		}
	}
	// A limit below what the recorded edit burnt does not end a replay.
	was, record := w.crash()
	was.Limits.RegionFuel = 5
	if _, err := program(w.attempt(was, record), 900_000); err != nil {
		t.Errorf("a limit ends a replay: %v", err)
	}
}

// Time in which an open edit waits for its run token does not count.
func TestRegionTimeIsWithoutWaiting(t *testing.T) {
	w := newWorld(t)
	open := ofRegionFuel(1_000_000)
	open.Limits.RegionTime = time.Second
	g := &burning{guest: &guest{a: w.attempt(open, nil)}}
	g.a.Idle(time.Hour) // there is no edit yet
	if err := g.call(10, abi.ImportStateBegin, ""); err != nil {
		t.Fatal(err)
	}
	w.clock += int64(time.Hour)
	g.a.Idle(time.Hour)
	if err := errors.Join(g.burn(10), g.call(10, abi.ImportNow)); err != nil {
		t.Fatal(err)
	}
	w.clock += int64(2 * time.Second)
	if err := g.burn(10); err == nil || !strings.Contains(err.Error(), "region_time") {
		t.Fatalf("got %v", err)
	}
}

// What the call costs that opens an edit is not part of the edit: a guest that begins with a
// large value has as much left as any other.
func TestRegionFuelIsWithoutTheBegin(t *testing.T) {
	w := newWorld(t)
	large := map[string]any{"l": make([]any, 20_000)}
	if _, err := w.reduce(engine.Call{Invocation: w.invID, Attempt: 1, N: 1, Request: engine.EditState{Edits: []abi.Edit{{Op: abi.OpMerge, Value: value(large)}}}}); err != nil {
		t.Fatal(err)
	}
	open := priced()
	open.Limits.RegionFuel = 50_000
	a := w.attempt(open, nil)
	a.Afford(1e12, func(uint64) error { return nil })
	if _, status, _, err := a.Call(abi.ImportStateBegin, value([]any{""}), 0); err != nil || status != abi.StatusOK {
		t.Fatal(status, err)
	}
	if a.Charged() < 100_000 {
		t.Fatalf("the begin costs %d units only", a.Charged())
	}
	if err := errors.Join(a.Burn(a.Charged()), a.Burn(50_000)); err != nil {
		t.Fatal(err)
	}
	if err := a.Burn(1); err == nil || !strings.Contains(err.Error(), "region_fuel") {
		t.Errorf("one unit more: %v", err)
	}
}

// An edit that does not begin, or comes to nothing, gives its ticket back: others wait for
// the ticket.
func TestEditThatComesToNothingGivesItsTicketBack(t *testing.T) {
	open := engine.AttemptOpen{Clock: 500, Limits: limit.Default()}
	open.Limits.CallBytes = 100
	for _, tt := range []struct {
		name string
		make func(g *burning) error
		ends int
	}{
		{"of nothing", func(g *burning) error { return g.call(0, abi.ImportStateBegin, "none") }, 1},
		{"of too much", func(g *burning) error { return g.call(0, abi.ImportStateBegin, "long") }, 1},
		{"that is aborted", func(g *burning) error {
			return errors.Join(g.call(0, abi.ImportStateBegin, "n"), g.call(0, abi.ImportStateAbort))
		}, 1},
		{"whose value is refused", func(g *burning) error {
			return errors.Join(g.call(0, abi.ImportStateBegin, "n"), g.call(0, abi.ImportStateCommit))
		}, 1},
		{"that is open", func(g *burning) error { return g.call(0, abi.ImportStateBegin, "n") }, 0},
	} {
		w := newWorld(t)
		edits := []abi.Edit{{Op: abi.OpSet, Path: "n", Value: value(1)}, {Op: abi.OpSet, Path: "long", Value: value(strings.Repeat("x", 200))}}
		if _, err := w.reduce(engine.Call{Invocation: w.invID, Attempt: 1, N: 1, Request: engine.EditState{Edits: edits}}); err != nil {
			t.Fatal(err)
		}
		if err := tt.make(&burning{guest: &guest{a: w.attempt(open, nil)}}); err != nil {
			t.Fatalf("an edit %s: %v", tt.name, err)
		}
		if w.ended != tt.ends {
			t.Errorf("an edit %s gives its ticket back %d times, want %d", tt.name, w.ended, tt.ends)
		}
	}
}
