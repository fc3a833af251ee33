// Package buildqueue decides whose module is built next.
package buildqueue

import (
	"sync"

	"github.com/weftrun/weft/host/turns"
)

// Queue allows a few builds at a time, because a compiler cannot be interrupted. It shares
// its places by virtual time, like the run tokens. Virtual time is counted, not measured:
// a tenant's clock advances by the bytes of its modules, and the tenant with the lowest
// clock goes first. A tenant that was idle starts at the lowest clock of the active
// tenants, so that idleness earns no credit.
//
// A build that has begun runs to its end. One tenant therefore never gets all places: a
// free place remains for others. All methods may be called from any goroutine.
type Queue struct {
	mu      sync.Mutex // guards the fields below; held only briefly
	places  int
	free    int // free places
	most    int // places that one tenant may hold
	tenants map[string]*buildsOf
	clock   uint64 // clock of the tenant that was served last, at that moment
}

// buildsOf is a tenant with waiting or running builds.
type buildsOf struct {
	waiting []waitingBuild // in the order of arrival
	running int
	clock   uint64
}

// waitingBuild is a build that waits.
type waitingBuild struct {
	bytes int
	begin chan struct{} // closed when the build may begin
}

// New makes a queue that runs at most the given number of builds at a time, but
// at least two.
func New(places int) *Queue {
	places = max(2, places)
	return &Queue{places: places, free: places, most: places / 2, tenants: map[string]*buildsOf{}}
}

// Take waits for a place to build a tenant's module of the given size. It returns false
// if done is closed first. A caller that got true must call Leave. turn may be nil; it
// receives the number of builds ahead.
func (q *Queue) Take(tenant string, bytes int, turn *turns.Turn, done <-chan struct{}) bool {
	begin := make(chan struct{})
	q.mu.Lock()
	b := q.tenants[tenant]
	if b == nil {
		b = &buildsOf{clock: q.level()}
		q.tenants[tenant] = b
	}
	b.waiting = append(b.waiting, waitingBuild{bytes, begin})
	q.next()
	q.mu.Unlock()
	turn.Set(func() turns.Stage { return q.stage(tenant, begin) })
	select {
	case <-begin:
		return true
	case <-done: // the sandbox closes: nobody gets a place any more
		return false
	}
}

// stage reports whether a build of a tenant waits, and how many builds go before it if no
// other build arrives.
func (q *Queue) stage(tenant string, begin chan struct{}) turns.Stage {
	q.mu.Lock()
	defer q.mu.Unlock()
	mine, ahead := q.tenants[tenant], 0
	if mine == nil {
		return turns.Stage{Name: turns.StageCompiling} // all of the tenant's builds have ended
	}
	clock := mine.clock
	for ahead < len(mine.waiting) && mine.waiting[ahead].begin != begin {
		clock += uint64(mine.waiting[ahead].bytes)
		ahead++
	}
	if ahead == len(mine.waiting) {
		return turns.Stage{Name: turns.StageCompiling}
	}
	for name, b := range q.tenants {
		if b == mine {
			continue
		}
		for theirs, i := b.clock, 0; i < len(b.waiting) && (theirs < clock || theirs == clock && name < tenant); i++ {
			theirs += uint64(b.waiting[i].bytes)
			ahead++
		}
	}
	return turns.Stage{Name: turns.StageWaiting, Ahead: ahead}
}

// Leave returns a tenant's place.
func (q *Queue) Leave(tenant string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free++
	q.tenants[tenant].running--
	q.next()
	if b := q.tenants[tenant]; b.running == 0 && len(b.waiting) == 0 {
		q.clock = max(q.clock, q.level())
		delete(q.tenants, tenant)
	}
}

// Running returns the number of running builds.
func (q *Queue) Running() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.places - q.free
}

// level returns the clock at which an idle tenant begins. The caller holds mu.
func (q *Queue) level() uint64 {
	least, busy := q.clock, false
	for _, b := range q.tenants {
		if !busy || b.clock < least {
			least, busy = b.clock, true
		}
	}
	return max(least, q.clock)
}

// next assigns the free places. The caller holds mu.
func (q *Queue) next() {
	for q.free > 0 {
		var best *buildsOf
		var name string
		for n, b := range q.tenants {
			if len(b.waiting) == 0 || n != "" && b.running >= q.most { // the server itself may use all places
				continue
			}
			if best == nil || b.clock < best.clock || b.clock == best.clock && n < name {
				best, name = b, n
			}
		}
		if best == nil {
			return
		}
		t := best.waiting[0]
		best.waiting[0] = waitingBuild{}
		best.waiting = best.waiting[1:]
		best.running++
		q.free--
		q.clock = max(q.clock, best.clock)
		best.clock += uint64(t.bytes)
		close(t.begin)
	}
}
