package sandbox

import (
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/sandbox/rewrite"
)

// What the host charges for its own work, in units of fuel (see the cost table
// of package rewrite; a unit is about a third of a nanosecond).
const (
	callFuel     = 2_000 // a host call
	wasiFuel     = 200   // a function of WASI
	itemFuel     = 16    // an item of a list that WASI goes through
	bytesPerUnit = 16    // of what is copied
	printFuel    = 300   // something that is printed
	lineFuel     = 600   // a line of it; and a unit for each byte
	loadFuel     = 16    // a byte of a module that is loaded; the token is charged for it
)

// bytesFuel is the charge for n bytes that the host copies.
func bytesFuel(n int) uint64 { return uint64(n) / bytesPerUnit }

// meter counts what one call into a guest burns. The guest's code takes its
// charges from a slice of fuel in a global of its own; only when that is below
// zero, or at a host call, the meter learns of it. So the same call burns the
// same units at the same places, however slow or busy the host is.
//
// The guest's goroutine uses it.
type meter struct {
	left  api.MutableGlobal // of the slice, signed
	depth api.MutableGlobal // bytes of frames left

	budget  uint64 // units that the call may burn
	granted uint64 // units given in slices; what is left of the last counts
	told    uint64 // units that the token knows of

	limit     time.Duration // of holding a core
	start     time.Time
	waited    time.Duration // for the token
	replaying bool          // answers come from a record: no time counts
}

// reset readies the meter for a call.
func (m *meter) reset(budget uint64, limit time.Duration, depth int) {
	m.budget, m.granted, m.told = budget, 0, 0
	m.limit, m.start, m.waited = limit, time.Now(), 0
	if m.left != nil {
		m.depth.Set(uint64(depth))
		m.left.Set(0)
		m.grant()
	}
}

// bind finds the globals in an instance, which may still be in the making.
func (m *meter) bind(instance api.Module) {
	if m.left == nil {
		m.left = instance.ExportedGlobal(rewrite.ExportFuel).(api.MutableGlobal)
		m.depth = instance.ExportedGlobal(rewrite.ExportDepth).(api.MutableGlobal)
		m.granted += m.left.Get() // the rest is negative: charged before anything was granted
	}
}

// burnt is what the call has burnt so far: where a loop pays in advance, with what
// it will give back (see Regions in package rewrite).
func (m *meter) burnt() uint64 {
	if m.left == nil {
		return 0
	}
	return m.granted - m.left.Get()
}

// exhausted reports whether the budget is spent.
func (m *meter) exhausted() bool { return m.burnt() > m.budget }

// remaining is what the call may still burn.
func (m *meter) remaining() uint64 { return m.budget - min(m.budget, m.burnt()) }

// grant fills the slice up, but not beyond the budget. It must not be exhausted.
func (m *meter) grant() {
	next := min(rewrite.Slice, m.budget-m.burnt())
	m.granted += next - m.left.Get()
	m.left.Set(next)
}

// charge burns units for work of the host.
func (m *meter) charge(units uint64) {
	if m.left == nil {
		return // the start function is an import, and the instance in the making
	}
	m.left.Set(m.left.Get() - units)
}

// overdue reports whether the guest has held its core for too long.
func (m *meter) overdue() bool {
	return !m.replaying && time.Since(m.start)-m.waited > m.limit
}

// checkpoint tells the token what was burnt since it was told last, and may
// wait there; that time does not count.
func (m *meter) checkpoint(token host.Token) error {
	// What a loop had taken in advance and given back since may make it less.
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
