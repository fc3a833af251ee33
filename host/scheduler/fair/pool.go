package fair

import (
	"sync"
	"sync/atomic"
)

// Pool carries out work on goroutines of its own, as many as there is work. A few
// that have nothing to do stay: their stacks have grown to what a guest needs, and
// to grow a new one costs as much as the rest of a short step. Its methods may be called
// from any goroutine.
type Pool struct {
	workers sync.WaitGroup
	next    chan func()     // to one that waits
	over    <-chan struct{} // closed: no goroutine waits
	idle    atomic.Int32    // workers that wait, or are about to
	most    int32
}

// NewPool makes a pool in which at most so many goroutines wait for work, until over is
// closed.
func NewPool(most int, over <-chan struct{}) *Pool {
	return &Pool{next: make(chan func()), over: over, most: int32(most)}
}

// Do carries out work. It does not wait for the end of the work.
func (p *Pool) Do(work func()) {
	// No goroutine is waiting if nobody receives: a new goroutine does the work.
	select {
	case p.next <- work:
	default:
		p.workers.Go(func() { p.serve(work) })
	}
}

// Wait returns when all work is done and no goroutine is left, after over is closed.
func (p *Pool) Wait() { p.workers.Wait() }

// serve carries out work, and then more, until enough others wait for it.
func (p *Pool) serve(work func()) {
	for {
		work()
		// The count comes before the wait, so that no more than the allowed number wait.
		if p.idle.Add(1) > p.most {
			p.idle.Add(-1)
			return
		}
		select {
		case work = <-p.next:
			p.idle.Add(-1)
		case <-p.over:
			p.idle.Add(-1)
			return
		}
	}
}
