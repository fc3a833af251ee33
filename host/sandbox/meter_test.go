package sandbox

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/sandbox/rewrite"
)

// cell is a global as the meter sees it.
type cell struct {
	api.MutableGlobal
	value uint64
}

func (c *cell) Get() uint64  { return c.value }
func (c *cell) Set(v uint64) { c.value = v }

// testMeter is a meter whose globals are here.
func testMeter(budget uint64, limit time.Duration) *meter {
	m := &meter{}
	m.left, m.depth = &cell{}, &cell{}
	m.reset(budget, limit, 1000)
	return m
}

// Budgets end at the same unit, however the slices fall.
func TestMeterCountsExactly(t *testing.T) {
	const budget = 3*rewrite.Slice + 17
	for _, charge := range []uint64{1, 7, 1000, rewrite.MaxCharge} {
		m := testMeter(budget, time.Hour)
		burnt := uint64(0)
		for !m.exhausted() {
			before := m.burnt()
			m.charge(charge)
			burnt += charge
			if m.burnt() != burnt || before+charge != burnt {
				t.Fatalf("charge %d: burnt %d, the meter says %d", charge, burnt, m.burnt())
			}
			if int64(m.left.Get()) < 0 && !m.exhausted() {
				m.grant()
			}
			if left := int64(m.left.Get()); !m.exhausted() && (left < 0 || left > rewrite.Slice || uint64(left) > budget-burnt) {
				t.Fatalf("charge %d: %d units are left of a slice, of %d in all", charge, left, budget-burnt)
			}
		}
		if want := (budget/charge + 1) * charge; burnt != want {
			t.Errorf("charge %d: exhausted after %d units, want %d", charge, burnt, want)
		}
	}
}

func TestMeterOfTheLargestBudget(t *testing.T) {
	m := testMeter(math.MaxUint64, time.Hour)
	m.charge(100)
	if m.exhausted() || m.burnt() != 100 {
		t.Errorf("burnt %d", m.burnt())
	}
}

// Time spent waiting for the run token is not time of holding it, and a replay
// takes as long as it takes.
func TestMeterTime(t *testing.T) {
	const limit = time.Hour
	tests := []struct {
		name              string
		started, waited   time.Duration
		replaying, before bool
		over              bool
	}{
		{"at once", 0, 0, false, false, false},
		{"has held it", 2 * limit, 0, false, false, true},
		{"has waited", 10 * limit, 9*limit + limit/2, false, false, false},
		{"has waited, and held it", 10 * limit, 8 * limit, false, false, true},
		{"replays", 10 * limit, 0, true, false, false},
		{"has replayed", 10 * limit, 0, true, true, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m := testMeter(1, limit)
			m.start, m.waited, m.replaying = m.start.Add(-tt.started), tt.waited, tt.replaying
			if tt.before {
				m.live()
			}
			if m.overdue() != tt.over {
				t.Errorf("overdue = %v", m.overdue())
			}
		})
	}
}

// The time and the units of a checkpoint.
func TestMeterCheckpoint(t *testing.T) {
	m := testMeter(rewrite.Slice, time.Hour)
	refused := errors.New("no core")
	s := &script{checkpoint: func(uint64) error { return refused }}
	m.charge(5)
	if err := m.checkpoint(s); !errors.Is(err, refused) || s.units != 5 || m.waited <= 0 {
		t.Errorf("checkpoint: %v, %d units, waited %v", err, s.units, m.waited)
	}
	m.charge(7)
	if err := m.checkpoint(s); !errors.Is(err, refused) || s.units != 12 {
		t.Errorf("checkpoint: %v, %d units", err, s.units)
	}
	m.left.Set(m.left.Get() + 10) // a loop gives back what it had paid in advance
	if err := m.checkpoint(s); !errors.Is(err, refused) || s.units != 12 {
		t.Errorf("checkpoint: %v, %d units", err, s.units)
	}
	m.charge(13)
	if err := m.checkpoint(s); !errors.Is(err, refused) || s.units != 15 {
		t.Errorf("checkpoint: %v, %d units", err, s.units)
	}
	if err := m.checkpoint(nil); err != nil {
		t.Error(err)
	}
}

// A guest that calls nobody is stopped at a refuel: by its time, by its context,
// by its token; and its units are the same each time.
func TestRefuelStopsAGuest(t *testing.T) {
	b := newBench(t, nil)
	digest := b.library.add(hostile(t, "loop"))
	for _, tt := range []struct {
		name  string
		setup func(*host.Invocation)
		code  string
		text  string
	}{
		{"fuel", func(inv *host.Invocation) { inv.Limits.Fuel = 1_000_000 }, codeFuel, "more than 1000000 units"},
		{"time", func(inv *host.Invocation) { inv.Limits.WallTime = time.Millisecond }, codeDeadline, "more than 1ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inv := b.invocation(digest, nil)
			tt.setup(&inv)
			res, err := b.Invoke(suite.Context(t), inv)
			if err != nil || res.Err == nil || res.Err.Code != tt.code || !strings.Contains(res.Err.Message, tt.text) {
				t.Fatalf("Invoke = %+v, %v", res, err)
			}
			if tt.code != codeFuel {
				return
			}
			if res.Fuel <= 1_000_000 || res.Fuel > 1_000_000+rewrite.MaxCharge {
				t.Errorf("burnt %d units", res.Fuel)
			}
			if again, err := b.Invoke(suite.Context(t), inv); err != nil || !same(res, again) {
				t.Errorf("again: %+v, %v, want %+v", again, err, res)
			}
		})
	}
	t.Run("context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(suite.Context(t))
		inv := b.invocation(digest, nil)
		inv.Token = &script{checkpoint: func(uint64) error { cancel(); return nil }}
		if _, err := b.Invoke(ctx, inv); !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v", err)
		}
	})
	t.Run("token", func(t *testing.T) {
		gone := errors.New("cancelled")
		largest, turns := uint64(0), 0
		inv := b.invocation(digest, nil)
		inv.Token = &script{checkpoint: func(units uint64) error {
			largest, turns = max(largest, units), turns+1
			if turns == 1000 {
				return gone
			}
			return nil
		}}
		if _, err := b.Invoke(suite.Context(t), inv); !errors.Is(err, gone) {
			t.Errorf("error = %v", err)
		}
		if largest > rewrite.Slice+rewrite.MaxCharge {
			t.Errorf("%d units between two checkpoints, at most %d are allowed", largest, rewrite.Slice+rewrite.MaxCharge)
		}
	})
}

// Work of the host on the guest's behalf burns fuel too.
func TestHostCallsBurnFuel(t *testing.T) {
	b := newBench(t, nil)
	inv := b.invocation(b.library.add(hostile(t, "call_flood")), nil)
	inv.Limits.HostCalls = 1000
	s := inv.Calls.(*script)
	s.call = func(_ abi.Import, _ []byte, clock int64) ([]byte, abi.Status, int64, error) {
		return abi.Null, abi.StatusOK, clock, nil
	}
	res, err := b.Invoke(suite.Context(t), inv)
	if err != nil || res.Err == nil || res.Err.Code != codeLimit {
		t.Fatalf("Invoke = %+v, %v", res, err)
	}
	if res.Fuel < 1000*callFuel || s.units > res.Fuel {
		t.Errorf("1,000 host calls burnt %d units; the token knows of %d", res.Fuel, s.units)
	}
}
