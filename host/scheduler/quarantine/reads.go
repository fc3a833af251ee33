package quarantine

import (
	"sync"
	"time"
)

// readWindow is how long reads of the store are counted together, in nanoseconds.
const readWindow = int64(10 * time.Second)

// Reads counts reads of sessions and of what resources keep, in the current
// window and the previous one. Its methods may be called from any goroutine.
type Reads struct {
	mu      sync.Mutex // guards what follows
	began   int64      // of the window
	now     [2]uint64  // tries, and those of them that failed
	earlier [2]uint64
}

// Note counts a read at a time in Unix nanoseconds.
func (r *Reads) Note(now int64, failed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn(now)
	r.now[0]++
	if failed {
		r.now[1]++
	}
}

// turn begins a new window when the current one is over, or the clock was set back. The caller
// holds mu.
func (r *Reads) turn(now int64) {
	switch since := now - r.began; {
	case since >= 0 && since < readWindow:
	case since >= 0 && since < 2*readWindow:
		r.earlier, r.now, r.began = r.now, [2]uint64{}, now
	default:
		r.earlier, r.now, r.began = [2]uint64{}, [2]uint64{}, now
	}
}

// Counts returns how many reads were tried in the current window and the one before, and how
// many of them failed.
func (r *Reads) Counts(now int64) (tries, failed uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn(now)
	return r.now[0] + r.earlier[0], r.now[1] + r.earlier[1]
}
