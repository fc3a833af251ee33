// Package work counts what the host does natively for a guest or a request, so
// that the work can be charged, bounded and interrupted.
//
// The counts are units of fuel and depend on the work alone, never on the machine:
// about three units stand for a nanosecond of a core. The package is pure, and so is
// everything that is written on a Meter; what a look at the world needs (a context, a
// clock, a run token) is behind the meter's hook.
package work

import (
	"fmt"
	"math"
	"math/bits"
)

const (
	// Look is how many units pass between two calls of a meter's hook: about 0.1 ms.
	Look = 300_000
	// Piece is the longest work, in units, that holds a core without a yield: about
	// 5 ms. A hook that holds a run token gives way to others that often.
	Piece = 15_000_000
)

// Meter counts the units of a piece of work. It is for one goroutine at a time. A
// nil Meter takes everything and counts nothing.
type Meter struct {
	spent uint64
	limit uint64
	seen  uint64 // spent when the hook last looked
	next  uint64 // spent when the hook looks again
	hook  func(units uint64) error
	err   error
}

// New makes a meter that fails beyond limit units; 0 is no limit. The hook is called
// at least once for each [Look] units spent, with the units since its last call; its
// error ends the work. A nil hook never ends it.
func New(limit uint64, hook func(units uint64) error) *Meter {
	if limit == 0 {
		limit = math.MaxUint64
	}
	return &Meter{limit: limit, hook: hook, next: Look}
}

// LookAfter has the hook called for the first time when so many units are spent.
func (m *Meter) LookAfter(units uint64) { m.next = units }

// Anew makes a meter with the same hook and no limit, for work that was done and is to
// be done again.
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

// Spend charges units. It is called before the work that they stand for.
//
// The error is an [*Exceeded], or that of the hook. From the first error on Spend
// gives that error at once and counts nothing more.
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

// Check calls the hook with what was spent since, however little that is: within work
// that was charged before it began. The error is Spend's.
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

// Owe charges units of work that is done already and cannot be refused. It does not
// call the hook. Beyond the limit the next call of Spend fails.
func (m *Meter) Owe(units uint64) {
	switch {
	case m == nil || m.err != nil:
	case units > m.limit-m.spent:
		m.spent, m.err = m.limit, &Exceeded{m.limit}
	default:
		m.spent += units
	}
}

// Spent is what was charged, in units.
func (m *Meter) Spent() uint64 {
	if m == nil {
		return 0
	}
	return m.spent
}

// Left is what may still be charged, in units; 0 after an error.
func (m *Meter) Left() uint64 {
	switch {
	case m == nil:
		return math.MaxUint64
	case m.err != nil:
		return 0
	}
	return m.limit - m.spent
}

// Err is the error that ended the work, or nil.
func (m *Meter) Err() error {
	if m == nil {
		return nil
	}
	return m.err
}

// Bytes is the price of n bytes at units for each 8 of them.
func Bytes(n, units int) uint64 {
	hi, lo := bits.Mul64(uint64(max(n, 0)), uint64(units))
	if hi != 0 {
		return math.MaxUint64
	}
	return lo / 8
}
