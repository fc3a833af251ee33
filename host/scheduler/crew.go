package scheduler

import (
	"sync"
	"sync/atomic"
)

// crew carries out work on goroutines of its own, as many as there is work. A few
// that have nothing to do stay: their stacks have grown to what a guest needs, and
// to grow one anew costs as much as the rest of a short step.
type crew struct {
	wg   sync.WaitGroup
	next chan func()     // to one that waits
	over <-chan struct{} // closed: nobody waits any more
	idle atomic.Int32    // those that wait, or are about to
	most int32
}

// do carries out work. It does not wait for its end.
func (c *crew) do(work func()) {
	select {
	case c.next <- work:
	default:
		c.wg.Go(func() { c.serve(work) })
	}
}

// serve carries out work, and then more, until enough others wait for it.
func (c *crew) serve(work func()) {
	for {
		work()
		if c.idle.Add(1) > c.most {
			c.idle.Add(-1)
			return
		}
		select {
		case work = <-c.next:
			c.idle.Add(-1)
		case <-c.over:
			c.idle.Add(-1)
			return
		}
	}
}
