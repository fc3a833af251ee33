// Package work counts the work that the host does natively for a guest or a request, so
// that the work can be charged, bounded and interrupted.
//
// The counts are units of fuel. They depend only on the work, never on the machine: about
// three units correspond to a nanosecond of a core. The package is pure, and so is all
// code that uses a Meter. Access to the outside (a context, a clock, a run token) is
// behind the meter's hook.
package work

import (
	"fmt"
	"math"
	"math/bits"
)

const (
	// Look is the number of units between two calls of a meter's hook: about 0.1 ms.
	Look = 300_000
	// UnitsPerNanosecond is the number of units that a core is assumed to do in a nanosecond.
	UnitsPerNanosecond = 3
	// Piece is the longest work, in units, that holds a core without yielding: about 5
	// ms. A hook that holds a run token yields to others that often.
	Piece = 15_000_000
)

// Meter counts the units of a piece of work. Only one goroutine may use it at a time. A
// nil Meter accepts everything and counts nothing.
type Meter struct {
	spent uint64
	limit uint64
	seen  uint64 // spent when the hook was last called
	next  uint64 // spent when the hook is called next
	hook  func(units uint64) error
	err   error
}

// New returns a meter that fails beyond limit units; 0 means no limit. The hook is called
// at least once for each [Look] units spent, with the units since its last call. An error
// of the hook ends the work. A nil hook is never called.
func New(limit uint64, hook func(units uint64) error) *Meter {
	if limit == 0 {
		limit = math.MaxUint64
	}
	return &Meter{limit: limit, hook: hook, next: Look}
}

// LookAfter sets the number of spent units at which the hook is called first.
func (m *Meter) LookAfter(units uint64) { m.next = units }

// Anew returns a meter with the same hook and no limit, for work that must be repeated.
func (m *Meter) Anew() *Meter {
	if m == nil {
		return nil
	}
	return New(0, m.hook)
}

// Exceeded is the error of a meter that has reached its limit.
type Exceeded struct {
	Limit uint64 // in units
}

// Error implements error.
func (e *Exceeded) Error() string {
	return fmt.Sprintf("the work takes more than %d units", e.Limit)
}

// Spend charges units. Call it before the work that they stand for.
//
// The error is an [*Exceeded] or that of the hook. After the first error Spend always
// returns that error and counts nothing.
func (m *Meter) Spend(units uint64) error {
	if m == nil {
		return nil
	}
	if m.err != nil {
		return m.err
	}
	if units > m.limit-m.spent {
		m.spent = m.limit
		m.err = &Exceeded{m.limit}
		return m.err
	}
	m.spent += units
	if m.spent >= m.next && m.hook != nil {
		m.look()
	}
	return m.err
}

// Check calls the hook with the units since its last call, however few: for long work
// that was charged before it began. It returns the same errors as Spend.
func (m *Meter) Check() error {
	if m != nil && m.err == nil && m.hook != nil {
		m.look()
	}
	return m.Err()
}

// look calls the hook.
func (m *Meter) look() {
	since := m.spent - m.seen
	m.seen, m.next = m.spent, m.spent+min(Look, math.MaxUint64-m.spent)
	m.err = m.hook(since)
}

// Owe charges units of work that is done already and cannot be refused. It does not call
// the hook. If the limit is exceeded, the next call of Spend fails.
func (m *Meter) Owe(units uint64) {
	switch {
	case m == nil || m.err != nil:
	case units > m.limit-m.spent:
		m.spent, m.err = m.limit, &Exceeded{m.limit}
	default:
		m.spent += units
	}
}

// Spent returns the units charged.
func (m *Meter) Spent() uint64 {
	if m == nil {
		return 0
	}
	return m.spent
}

// Left returns the units that may still be charged; 0 after an error.
func (m *Meter) Left() uint64 {
	switch {
	case m == nil:
		return math.MaxUint64
	case m.err != nil:
		return 0
	}
	return m.limit - m.spent
}

// Err returns the error that ended the work, or nil.
func (m *Meter) Err() error {
	if m == nil {
		return nil
	}
	return m.err
}

// Bytes is the price of n bytes, at the given units for each 8 bytes.
func Bytes(n, units int) uint64 {
	hi, lo := bits.Mul64(uint64(max(n, 0)), uint64(units))
	if hi != 0 {
		return math.MaxUint64
	}
	return lo / 8
}
