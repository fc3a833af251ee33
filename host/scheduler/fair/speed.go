package fair

import "time"

// Speed measures how many units all cores together get done in a second: the units
// booked in windows of speedWindow in which there was no free token for nine tenths of
// the time. What the host itself does beside the guests, and a machine that is
// throttled or shared, make this number less: it is what a wait is worked out with.
type Speed struct {
	now    func() time.Time
	paused bool    // see Pause
	rate   float64 // units a second
	seen   bool
	least  float64
	booked uint64        // in this window
	began  time.Time     // this window
	full   time.Duration // time of this window in which no token was free
	since  time.Time     // that none is free; zero: one is
}

const (
	speedWindow = time.Second
	// speedUnknown is taken for a core of which nothing has been measured, and
	// speedLeast is never gone below: a guest that waits on its core burns nothing.
	speedUnknown = 2e9
	speedLeast   = 2e6
)

// Init begins the measurement for so many tokens, by the clock now.
func (v *Speed) Init(tokens int, now func() time.Time) {
	v.now, v.began = now, now()
	v.rate, v.least = speedUnknown*float64(tokens), speedLeast*float64(tokens)
}

// wanted notes that an item wants a token. From then on until Rest there is none free for
// those who want one.
func (v *Speed) wanted() {
	if v.since.IsZero() && v.now != nil && !v.paused {
		v.since = v.now()
	}
}

// Rest notes that a token is free and that nobody can use it.
func (v *Speed) Rest() {
	if !v.since.IsZero() {
		// Only time in which every token was in use counts as full.
		v.full += v.now().Sub(v.since)
		v.since = time.Time{}
	}
}

// Pause has nothing be learnt for a while, in which cores are idle by intent.
func (v *Speed) Pause(on bool) {
	v.Rest()
	v.paused = on
}

// Book counts units that were used on cores.
func (v *Speed) Book(units uint64) { v.booked += units }

// Rate ends the window if its time is over, and gives the units a second.
func (v *Speed) Rate() float64 {
	now := v.now()
	passed := now.Sub(v.began)
	if passed < 0 { // the clock was set back
		v.booked, v.full, v.began = 0, 0, now
		if !v.since.IsZero() {
			v.since = now
		}
	}
	// A short window says little: one long turn decides its result.
	if passed < speedWindow {
		return v.rate
	}
	if !v.since.IsZero() {
		v.full += now.Sub(v.since)
		v.since = now
	}
	// In a window with idle tokens the units show the demand, and not the speed.
	if v.full >= passed*9/10 {
		rate := max(float64(v.booked)/passed.Seconds(), v.least)
		// The first measurement replaces the assumed speed, and later ones adjust it slowly.
		if !v.seen {
			v.rate, v.seen = rate, true
		}
		v.rate += (rate - v.rate) / 4
	}
	v.booked, v.full, v.began = 0, 0, now
	return v.rate
}
