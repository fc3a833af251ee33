package fair

// Unserved counts the time in which something wants a core and has none: a run, or one of its
// attempts. The zero value has counted nothing. The caller of all methods holds the lock.
type Unserved struct {
	open, served int   // attempts, and those of them that have a core
	since        int64 // of the newest change, Unix nanoseconds
	sum          int64 // nanoseconds
}

func (u *Unserved) change(open, served int, now int64) {
	if u.open > 0 && u.served == 0 {
		u.sum += max(now-u.since, 0)
	}
	u.open, u.served, u.since = u.open+open, u.served+served, now
}

// Take returns the count in nanoseconds, which begins anew.
func (u *Unserved) Take(now int64) int64 {
	u.change(0, 0, now)
	sum := u.sum
	u.sum = 0
	return sum
}

// Sum returns the count at the newest change, in nanoseconds.
func (u *Unserved) Sum() int64 { return u.sum }

// Drop begins the count anew.
func (u *Unserved) Drop() { u.sum = 0 }

// Service is whether an attempt has a core. It counts the time in which the attempt has none,
// for the attempt and for its run. The caller of all methods holds the lock. The methods of a
// nil *Service, and of one that has not begun, do nothing.
type Service struct {
	is    service
	own   Unserved
	ofRun *Unserved
}

type service uint8

const (
	serviceNone service = iota // it has not begun
	serviceOpen                // it wants a core
	serviceCore                // it has one
	serviceOver                // it no longer wants one
)

// Begin says that the attempt of a run wants a core since a time, and that it had none before
// for so long; both in Unix nanoseconds.
func (s *Service) Begin(run *Unserved, before, since int64) {
	s.own.sum, s.ofRun = before, run
	s.change(serviceOpen, since)
}

// Wants says that the attempt wants a core and has none.
func (s *Service) Wants(now int64) { s.change(serviceOpen, now) }

// Has says that the attempt has a core.
func (s *Service) Has(now int64) { s.change(serviceCore, now) }

// End says that the attempt no longer wants a core, and returns the time without one that
// nobody has taken.
func (s *Service) End(now int64) (untaken int64) {
	s.change(serviceOver, now)
	return s.own.sum
}

// Take returns the attempt's own count in nanoseconds, which begins anew.
func (s *Service) Take(now int64) int64 { return s.own.Take(now) }

func (s *Service) change(to service, now int64) {
	if s == nil || s.ofRun == nil || s.is == serviceOver || s.is == to {
		return
	}
	one := func(is bool) int {
		if is {
			return 1
		}
		return 0
	}
	isOpen := func(s service) bool { return s == serviceOpen || s == serviceCore }
	open := one(isOpen(to)) - one(isOpen(s.is))
	served := one(to == serviceCore) - one(s.is == serviceCore)
	s.is = to
	s.own.change(open, served, now)
	s.ofRun.change(open, served, now)
}
