package work_test

import (
	"errors"
	"math"
	"testing"

	"github.com/weftrun/weft/host/work"
)

func TestMeterFailsAtItsLimitAndStaysFailed(t *testing.T) {
	m := work.New(100, nil)
	if err := m.Spend(100); err != nil {
		t.Fatal(err)
	}
	var over *work.Exceeded
	if err := m.Spend(1); !errors.As(err, &over) || over.Limit != 100 {
		t.Fatalf("got %v", err)
	}
	if err := m.Spend(0); !errors.Is(err, over) {
		t.Errorf("a failed meter takes more work: %v", err)
	}
	if m.Spent() != 100 || m.Left() != 0 || !errors.Is(m.Err(), over) {
		t.Errorf("spent %d, left %d, %v", m.Spent(), m.Left(), m.Err())
	}
}

func TestMeterDoesNotOverflow(t *testing.T) {
	m := work.New(0, nil)
	if err := errors.Join(m.Spend(math.MaxUint64-1), m.Spend(1)); err != nil {
		t.Fatal(err)
	}
	if err := m.Spend(math.MaxUint64); err == nil {
		t.Error("the count began anew")
	}
	if got := work.Bytes(math.MaxInt, 1000); got != math.MaxUint64 {
		t.Errorf("a price beyond all counts is %d", got)
	}
	if got := work.Bytes(17, 4); got != 8 {
		t.Errorf("17 bytes at 4 for 8: %d", got)
	}
}

func TestMeterLooksOftenAndTellsAll(t *testing.T) {
	var told, calls uint64
	m := work.New(0, func(units uint64) error {
		if units < work.Look || units > work.Look+99 {
			t.Errorf("a look after %d units", units)
		}
		told += units
		calls++
		return nil
	})
	for range 1_000_000 {
		if err := m.Spend(99); err != nil {
			t.Fatal(err)
		}
	}
	if calls < 99_000_000/(work.Look+99) || m.Spent()-told >= work.Look {
		t.Errorf("%d calls, %d of %d told", calls, told, m.Spent())
	}
}

func TestHookEndsTheWork(t *testing.T) {
	stop := errors.New("stop")
	calls := 0
	m := work.New(0, func(uint64) error { calls++; return stop })
	if err := m.Spend(work.Look - 1); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := m.Spend(1); !errors.Is(err, stop) {
			t.Fatalf("got %v", err)
		}
	}
	if calls != 1 || m.Left() != 0 {
		t.Errorf("%d calls, %d left", calls, m.Left())
	}
}

func TestNilMeterTakesAll(t *testing.T) {
	var m *work.Meter
	if err := m.Spend(math.MaxUint64); err != nil || m.Err() != nil || m.Spent() != 0 || m.Left() != math.MaxUint64 {
		t.Errorf("%v, %v, %d, %d", err, m.Err(), m.Spent(), m.Left())
	}
}

// Debts count without a call of the hook. The next Spend finds them.
func TestOwing(t *testing.T) {
	calls := 0
	m := work.New(2*work.Look, func(units uint64) error { calls++; return nil })
	m.LookAfter(10)
	m.Owe(work.Look)
	if calls != 0 || m.Spent() != work.Look {
		t.Fatalf("%d calls, %d units", calls, m.Spent())
	}
	if err := m.Spend(0); err != nil || calls != 1 {
		t.Fatalf("%v, %d calls", err, calls)
	}
	m.Owe(2 * work.Look)
	if err := m.Spend(0); err == nil || m.Spent() != 2*work.Look {
		t.Errorf("%v, %d units", err, m.Spent())
	}
}
