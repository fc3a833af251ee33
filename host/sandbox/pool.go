package sandbox

import (
	"container/list"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/sandbox/memory"
)

// The sandbox keeps pristine instances as spares of their module. An invocation takes a
// spare and puts it back after a reset. A goroutine of the sandbox, the filler, replaces
// in advance the instances that cannot be reset. All spares share one budget of bytes.
// When the budget is spent, the least recently used module gives up its spares first and
// makes instances anew when it is used again; so does a module that has been idle for a
// while. Ownership: whoever takes an instance out of the pool must put it back or drop
// it.

// spareOverhead is approximately what an instance needs in addition to its memory: stack,
// tables and structures.
const spareOverhead = 64 << 10

// pool holds the spares of all modules. All methods may be called from any
// goroutine.
type pool struct {
	mu     sync.Mutex // guards the fields below and the shelves; held only briefly
	budget int64      // bytes of all spares
	halved bool       // half of the budget and half of each shelf's room (at least one) are in use
	order  list.List  // of *shelf that have had spares, most recently used first
	bytes  int64
	ticks  int // see method age
	uses   int // since the last tick
}

// shelf holds the spares of one module.
type shelf struct {
	room  int // most spares that it holds; constant
	spare []*guest
	place *list.Element // in pool.order; nil before the first spare
	used  int           // the pool's ticks at the last use
	// filling: the shelf is in the filler's queue.
	filling bool
}

// bytes returns how much of the budget a spare uses.
func (g *guest) bytes() int64 { return int64(len(g.linear.Bytes())) + spareOverhead }

// halve sets whether the pool keeps half as many spares as configured. Present spares
// beyond the bound leave the pool when they are used or idle.
func (p *pool) halve(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.halved = on
}

// bounds returns the bounds on the bytes of all spares and on the spares of a shelf. The
// caller holds mu.
func (p *pool) bounds(s *shelf) (budget int64, room int) {
	if p.halved {
		return p.budget / 2, (s.room + 1) / 2
	}
	return p.budget, s.room
}

// take returns a spare, or nil. The caller owns the spare.
func (p *pool) take(s *shelf) *guest {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(s.spare) == 0 {
		return nil
	}
	p.touch(s)
	return p.remove(s)
}

// touch records that a shelf is used. The caller holds mu.
func (p *pool) touch(s *shelf) {
	s.used = p.ticks
	p.uses++
	if s.place == nil {
		s.place = p.order.PushFront(s)
	} else {
		p.order.MoveToFront(s.place)
	}
}

// age advances the tick count, and drops the spares not used for idle ticks. It returns
// how many it dropped, and whether the whole pool was unused since the previous tick.
func (p *pool) age(idle int) (dropped int, rested bool) {
	var surplus []*guest
	p.mu.Lock()
	p.ticks++
	rested = p.uses == 0
	p.uses = 0
	for place := p.order.Back(); place != nil; place = place.Prev() {
		s := place.Value.(*shelf)
		if s.used > p.ticks-idle {
			break
		}
		for len(s.spare) > 0 {
			surplus = append(surplus, p.remove(s))
		}
	}
	p.mu.Unlock()
	for _, g := range surplus {
		g.drop()
	}
	return len(surplus), rested
}

// remove takes the last spare from a shelf that has one. The caller holds mu.
func (p *pool) remove(s *shelf) *guest {
	last := len(s.spare) - 1
	g := s.spare[last]
	s.spare[last] = nil
	s.spare = s.spare[:last]
	p.bytes -= g.bytes()
	return g
}

// forget removes and returns all spares of a shelf that will not be used again.
func (p *pool) forget(s *shelf) []*guest {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := s.spare
	for _, g := range all {
		p.bytes -= g.bytes()
	}
	s.spare = nil
	if s.place != nil {
		p.order.Remove(s.place)
		s.place = nil
	}
	return all
}

// put keeps a pristine instance if its shelf has room and the budget allows it. If the
// budget is spent, other modules first give up spares that they have not used lately.
func (p *pool) put(s *shelf, g *guest) bool {
	size := g.bytes()
	var surplus []*guest
	defer func() {
		for _, g := range surplus {
			g.drop()
		}
	}()
	p.mu.Lock()
	defer p.mu.Unlock()
	budget, room := p.bounds(s)
	if len(s.spare) >= room || size > budget {
		return false
	}
	for place := p.order.Back(); place != nil && p.bytes+size > budget; {
		last := place.Value.(*shelf)
		if last == s {
			return false
		}
		if len(last.spare) == 0 {
			place = place.Prev()
			continue
		}
		surplus = append(surplus, p.remove(last))
	}
	p.bytes += size
	s.spare = append(s.spare, g)
	p.touch(s)
	return true
}

// beginFilling marks the shelf as being filled. It returns false if the shelf is full or
// already marked.
func (p *pool) beginFilling(s *shelf) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, room := p.bounds(s); s.filling || len(s.spare) >= room {
		return false
	}
	s.filling = true
	return true
}

func (p *pool) endFilling(s *shelf) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.filling = false
}

// wants reports whether the shelf has room.
func (p *pool) wants(s *shelf) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, room := p.bounds(s)
	return len(s.spare) < room
}

// clear drops the spares of all modules.
func (p *pool) clear() {
	var all []*guest
	p.mu.Lock()
	for place := p.order.Front(); place != nil; place = place.Next() {
		for s := place.Value.(*shelf); len(s.spare) > 0; {
			all = append(all, p.remove(s))
		}
	}
	p.mu.Unlock()
	for _, g := range all {
		g.drop()
	}
}

// acquire returns a pristine instance whose memory can grow to the given bytes: a spare
// if there is one, otherwise a new instance. The caller owns the instance. If the host is
// short of memory, acquire drops all spares before it fails.
//
// # Errors
//
// CodeUnavailable if the host has no memory for an instance now.
func (m *module) acquire(memoryBytes int) (*guest, error) {
	s := m.sandbox
	if memoryBytes <= s.limits.MemoryBytes {
		memoryBytes = s.limits.MemoryBytes // as large as any other invocation may want
		if g := s.pool.take(&m.shelf); g != nil {
			return g, nil
		}
	}
	g, err := m.pristine(memoryBytes)
	if errors.Is(err, memory.ErrHostMemory) {
		s.log.Warn("the host is short of memory: all spare instances are given back", "error", err)
		s.pool.clear()
		if g, err = m.pristine(memoryBytes); errors.Is(err, memory.ErrHostMemory) {
			return nil, host.Errorf(host.CodeUnavailable, "the host has no memory for an instance now: %w", err)
		}
	}
	return g, err
}

// Spare sets whether the sandbox keeps only half as many instances in reserve as
// configured.
func (s *Sandbox) Spare(on bool) { s.pool.halve(on) }

// recycle takes back an instance from an invocation. It resets and keeps the instance, or
// replaces it.
func (s *Sandbox) recycle(l lease, g *guest) {
	m := l.module
	switch {
	case m.snapshot == nil || !g.reset():
		s.refill(l, g)
	case !s.pool.put(&m.shelf, g):
		g.drop() // the shelf is full
	}
}

// filling is work for the filler.
type filling struct {
	lease
	used *guest // the instance to replace
}

// refill asks the filler to replace an instance and to fill the shelf, unless the filler
// was already asked.
func (s *Sandbox) refill(l lease, used *guest) {
	shelf := &l.module.shelf
	if !s.pool.beginFilling(shelf) {
		used.drop()
		return
	}
	second, err := l.again()
	if err != nil {
		used.drop()
		return // closing
	}
	select {
	case s.fill <- filling{second, used}:
	default: // the filler has enough to do
		used.drop()
		s.pool.endFilling(shelf)
		second.release()
	}
}

// The sandbox frees what has not been used for a while: instances early, because making
// an instance takes microseconds to milliseconds; modules later, and only if they are on
// disk.
const (
	tick         = 15 * time.Second
	idleInstance = 2  // ticks
	idleModule   = 12 // ticks
)

// filler makes spares until the sandbox closes, and frees what is idle.
func (s *Sandbox) filler() {
	passed := time.NewTicker(tick)
	defer passed.Stop()
	for {
		select {
		case <-passed.C:
			s.age()
		case f := <-s.fill:
			f.module.fill(f.used)
			f.release()
		case <-s.base.Done():
			s.unfill()
			return
		}
	}
}

// age advances the tick count. When nobody works, freed memory is returned to the
// operating system; the Go runtime alone would keep it for a long time.
func (s *Sandbox) age() {
	given, rested := s.pool.age(idleInstance)
	if s.cacheDir != "" {
		given += s.modules.age(idleModule)
	}
	if s.given += given; s.given > 0 && rested {
		debug.FreeOSMemory()
		s.given = 0
	}
}

// unfill releases the work that the filler will not do any more. No requests arrive,
// because the sandbox is closed before base ends.
func (s *Sandbox) unfill() {
	for {
		select {
		case f := <-s.fill:
			f.used.drop()
			f.release()
		default:
			return
		}
	}
}

// fill fills the module's shelf with spares; the first one replaces used.
func (m *module) fill(used *guest) {
	pool := &m.sandbox.pool
	defer pool.endFilling(&m.shelf)
	defer func() {
		if used != nil {
			used.drop()
		}
	}()
	for pool.wants(&m.shelf) && m.sandbox.base.Err() == nil {
		g, err := m.replaced(used)
		used = nil
		if errors.Is(err, errClosed) {
			return
		}
		if err != nil {
			m.sandbox.log.Warn("making an instance ahead failed", "digest", m.digest, "error", err)
			return
		}
		if !pool.put(&m.shelf, g) {
			g.drop()
			return
		}
	}
}
