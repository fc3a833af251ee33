package sandbox

import (
	"sync"

	"github.com/weftrun/weft/host/turns"
)

// buildQueue says whose module is built next: a few are at a time, and a compiler cannot
// be interrupted. Like run tokens, places are given by virtual time, which is counted
// and not measured: a tenant's clock advances by the bytes of its modules, and the
// tenant that is behind goes first. One that comes back from idling starts at the
// clock of the one that is furthest behind, so that idleness is no credit.
//
// As what has begun goes on to its end, no tenant has all places: whoever else comes
// finds one that a single tenant cannot have taken. All methods may be called from
// any goroutine.
type buildQueue struct {
	mu      sync.Mutex // guards what follows; nothing waits under it
	places  int
	free    int // of the places
	most    int // of one tenant
	tenants map[string]*buildsOf
	clock   uint64 // of the tenant that had the last turn, when it had it
}

// buildsOf is a tenant with builds that wait or run.
type buildsOf struct {
	waiting []waitingBuild // first come first
	running int
	clock   uint64
}

// waitingBuild is a build that waits.
type waitingBuild struct {
	bytes int
	begin chan struct{} // closed when it may begin
}

// newBuildQueue makes a queue for so many builds at a time, at least two.
func newBuildQueue(places int) *buildQueue {
	places = max(2, places)
	return &buildQueue{places: places, free: places, most: places / 2, tenants: map[string]*buildsOf{}}
}

// take waits for a place for a tenant's module of so many bytes; false if done is
// closed first. Who has one gives it back by leave. turn, which may be nil, says how
// many go before.
func (q *buildQueue) take(tenant string, bytes int, turn *turns.Turn, done <-chan struct{}) bool {
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
	case <-done: // for all: nobody has a turn any more
		return false
	}
}

// stage says whether a build of a tenant waits, and how many builds go before it if
// nobody else comes.
func (q *buildQueue) stage(tenant string, begin chan struct{}) turns.Stage {
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

// leave gives a tenant's place back.
func (q *buildQueue) leave(tenant string) {
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

// running is how many builds are under way.
func (q *buildQueue) running() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.places - q.free
}

// level is where a tenant begins that was idle. The caller holds mu.
func (q *buildQueue) level() uint64 {
	least, busy := q.clock, false
	for _, b := range q.tenants {
		if !busy || b.clock < least {
			least, busy = b.clock, true
		}
	}
	return max(least, q.clock)
}

// next gives the free places. The caller holds mu.
func (q *buildQueue) next() {
	for q.free > 0 {
		var best *buildsOf
		var name string
		for n, b := range q.tenants {
			if len(b.waiting) == 0 || n != "" && b.running >= q.most { // the server itself may have all
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
