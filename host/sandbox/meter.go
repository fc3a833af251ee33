package sandbox

import (
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/sandbox/rewrite"
)

// What the host charges for its own work, in units of fuel (see the cost table of package
// rewrite; a unit is about a third of a nanosecond).
const (
	callFuel     = 2_000 // a host call
	wasiFuel     = 200   // a function of WASI
	itemFuel     = 16    // an item of a list that a WASI function processes
	bytesPerUnit = 16    // for copies
	printFuel    = 300   // a call that prints
	lineFuel     = 600   // a printed line, plus a unit for each byte
	loadFuel     = 16    // a byte of a loaded module; the token is charged
)

// bytesFuel returns the charge for n bytes that the host copies.
func bytesFuel(n int) uint64 { return uint64(n) / bytesPerUnit }

// meter counts what one call into a guest burns. The guest's code takes its charges from
// a slice of fuel, which is a global of the instance. The meter looks at the global only
// when the global is below zero or at a host call. Equal calls therefore burn equal units
// at equal places, however slow or busy the host is.
//
// Only the guest's goroutine uses the meter.
type meter struct {
	left  api.MutableGlobal // of the slice; signed
	depth api.MutableGlobal // bytes of stack frames left

	budget  uint64 // units that the call may burn
	granted uint64 // units given in slices, including what is left of the last
	told    uint64 // units reported to the token

	limit     time.Duration // of time on a core
	start     time.Time
	waited    time.Duration // time spent waiting for the token
	replaying bool          // answers come from a record: time does not count
}

// reset prepares the meter for a call.
func (m *meter) reset(budget uint64, limit time.Duration, depth int) {
	m.budget, m.granted, m.told = budget, 0, 0
	m.limit, m.start, m.waited = limit, time.Now(), 0
	if m.left != nil {
		m.depth.Set(uint64(depth))
		m.left.Set(0)
		m.grant()
	}
}

// bind finds the globals in an instance. The instance may still be under construction.
func (m *meter) bind(instance api.Module) {
	if m.left == nil {
		m.left = instance.ExportedGlobal(rewrite.ExportFuel).(api.MutableGlobal)
		m.depth = instance.ExportedGlobal(rewrite.ExportDepth).(api.MutableGlobal)
		m.granted += m.left.Get() // the global is negative: units charged before the first grant
	}
}

// burnt returns what the call has burnt so far. While a loop runs that pays in advance,
// this includes what the loop will give back (see Regions in package rewrite).
func (m *meter) burnt() uint64 {
	if m.left == nil {
		return 0
	}
	return m.granted - m.left.Get()
}

// exhausted reports whether the budget is spent.
func (m *meter) exhausted() bool { return m.burnt() > m.budget }

// remaining returns what the call may still burn.
func (m *meter) remaining() uint64 { return m.budget - min(m.budget, m.burnt()) }

// grant refills the slice, within the budget. The budget must not be exhausted.
func (m *meter) grant() {
	next := min(rewrite.Slice, m.budget-m.burnt())
	m.granted += next - m.left.Get()
	m.left.Set(next)
}

// charge burns units for work of the host.
func (m *meter) charge(units uint64) {
	if m.left == nil {
		return // a start function called an import before bind
	}
	m.left.Set(m.left.Get() - units)
}

// overdue reports whether the guest has held its core for too long.
func (m *meter) overdue() bool {
	return !m.replaying && time.Since(m.start)-m.waited > m.limit
}

// checkpoint reports to the token what was burnt since the last report, and may wait for
// the token. That wait does not count.
func (m *meter) checkpoint(token host.Token) error {
	// The difference can be negative, because a loop gives back what it paid in advance.
	units, burnt := uint64(0), m.burnt()
	if burnt > m.told {
		units, m.told = burnt-m.told, burnt
	}
	if token == nil {
		return nil
	}
	began := time.Now()
	err := token.Checkpoint(units)
	m.waited += time.Since(began)
	return err
}

// live ends the replay: from now on time counts.
func (m *meter) live() {
	m.start, m.waited, m.replaying = time.Now(), 0, false
}
