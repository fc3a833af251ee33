// Package abuse protects the server from clients that ask for too much: it counts wrong
// keys by address, limits connections and the resources that requests hold, and slows
// refusals down.
//
// It does not depend on the routes of the API, or on what a request asks for.
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
	// mostParked limits the refusals that are held back. They may use the part parkedPart
	// of the memory limit, at parkedBytes each; beyond that, connections are closed.
	mostParked  = 4096
	parkedPart  = 4
	parkedBytes = 24 << 10
	// mostPark limits how long a refusal is held back.
	mostPark = 5 * time.Second
	// refusalShare is the part of the process's CPU time that refusals may use before
	// they are held back. refusalCost is the CPU time of one refusal: mostly to read a
	// request of 23 KB, to write an answer, and to collect the garbage of both, as
	// BenchmarkOverload shows with GOMEMLIMIT=60MiB at twenty times the load.
	refusalShare = 0.1
	refusalCost  = 250 * time.Microsecond
	// refusalBurst is how long refusals are answered at any rate after a quiet time.
	refusalBurst = 200 * time.Millisecond
	// leastCores is the smallest part of all cores that the process is assumed to get.
	leastCores = 0.25
)

// Refusals holds refusals back, so that they use only a part of the cores. Its methods
// may be called from any goroutine.
type Refusals struct {
	cores int
	most  int                  // refusals to hold back at a time
	cpu   func() time.Duration // CPU time of the process; nil: unknown
	now   func() time.Time
	wait  func(ctx context.Context, d time.Duration)

	mu     sync.Mutex    // guards the fields below
	read   time.Time     // when cpu was called last
	used   time.Duration // its result then
	had    float64       // number of cores that the process had in the last measurement
	next   time.Time     // when the next refusal may be answered
	parked int
}

// NewRefusals creates a Refusals. All waits end when until ends. cpu returns the CPU time
// of the process; nil: it is unknown.
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

// Hold holds a refusal back until its turn, but at most for after, the Retry-After time
// of its client. held is how long the refusal was held back. ok is false if too many
// refusals are held back; then the connection must be closed.
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

// share returns the number of cores that the process gets, measured over about a second.
// The caller holds mu.
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
