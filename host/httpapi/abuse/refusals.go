// Package abuse keeps those who ask for too much from the work of others: it counts wrong
// keys by address, bounds connections and what requests hold at a time, and slows refusals
// down.
//
// It must not know HTTP's routes, nor what a request asks for.
package abuse

import (
	"context"
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
)

const (
	// mostParked bounds the refusals that are held back. They may take a parkedPart of the
	// memory limit, at parkedBytes each; beyond that, connections are closed.
	mostParked  = 4096
	parkedPart  = 4
	parkedBytes = 24 << 10
	// mostPark bounds how long a refusal is held back.
	mostPark = 5 * time.Second
	// refusalShare is the part of the process's time on cores that refusals may take
	// before they are held back. refusalCost is what one refusal takes: mostly to read a
	// request of 23 KB, to write an answer, and to collect the garbage of both, as
	// BenchmarkOverload shows with GOMEMLIMIT=60MiB at twenty times the load.
	refusalShare = 0.1
	refusalCost  = 250 * time.Microsecond
	// refusalBurst is the time for which refusals come at any rate after a quiet time.
	refusalBurst = 200 * time.Millisecond
	// leastCores is the least part of all cores that the process is assumed to get.
	leastCores = 0.25
)

// Refusals holds refusals back, so that they take no more than a part of the cores. Its
// methods may be called from any goroutine.
type Refusals struct {
	cores int
	most  int                  // are held back at a time
	cpu   func() time.Duration // of the process; nil: not known
	now   func() time.Time
	wait  func(ctx context.Context, d time.Duration)

	mu     sync.Mutex    // guards what follows
	read   time.Time     // when cpu was called last
	used   time.Duration // what it said then
	had    float64       // how many cores the process had until then
	next   time.Time     // when the next refusal may be answered
	parked int
}

// NewRefusals makes a Refusals. The end of until ends all waits. cpu gives the time that the
// process has had on cores; nil: it is not known.
func NewRefusals(until context.Context, cpu func() time.Duration) *Refusals {
	most := int64(mostParked)
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		most = min(most, limit/parkedPart/parkedBytes)
	}
	return &Refusals{cores: runtime.GOMAXPROCS(0), most: int(most), cpu: cpu, now: time.Now, wait: func(ctx context.Context, d time.Duration) {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		case <-until.Done():
		}
	}}
}

// Hold holds a refusal back until its turn, but not longer than after, the time for which
// its client waits by Retry-After. held is the time that it took. ok is false if too many are
// held back, and the connection must be closed.
func (f *Refusals) Hold(ctx context.Context, after time.Duration) (held time.Duration, ok bool) {
	f.mu.Lock()
	now := f.now()
	each := time.Duration(float64(refusalCost) / (refusalShare * f.share(now)))
	if earliest := now.Add(-refusalBurst); f.next.Before(earliest) {
		f.next = earliest
	}
	if latest := now.Add(min(after, mostPark)); f.next.Add(each).After(latest) {
		f.next = latest
	} else {
		f.next = f.next.Add(each)
	}
	if held = f.next.Sub(now); held <= 0 {
		f.mu.Unlock()
		return 0, true
	}
	if f.parked >= f.most {
		f.mu.Unlock()
		return 0, false
	}
	f.parked++
	f.mu.Unlock()
	f.wait(ctx, held)
	f.mu.Lock()
	f.parked--
	f.mu.Unlock()
	return held, true
}

// share is the number of cores that the process gets, measured over about a second. The
// caller holds mu.
func (f *Refusals) share(now time.Time) float64 {
	most, least := float64(f.cores), leastCores*float64(f.cores)
	if f.cpu == nil {
		return most
	}
	if passed := now.Sub(f.read); f.read.IsZero() || passed < 0 || passed >= time.Second {
		used := f.cpu()
		if f.had = most; !f.read.IsZero() && passed > 0 {
			f.had = (used - f.used).Seconds() / passed.Seconds()
		}
		f.read, f.used = now, used
	}
	return min(max(f.had, least), most)
}
