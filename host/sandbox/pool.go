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

// Pristine instances are kept as a module's spares. An invocation takes one,
// and puts it back when it is reset; those that cannot be reset are replaced
// ahead of use by one goroutine of the sandbox, the filler. All spares share one
// budget of bytes: when it is spent, the module that was used the longest ago
// gives its spares back first, and makes an instance anew when it is used again.
// So does one that was not used for a while.
// Ownership: whoever takes an instance out of the pool puts it back or drops it.

// spareOverhead is about what an instance takes beside its memory: its stack,
// tables and structures.
const spareOverhead = 64 << 10

// pool holds the spares of all modules. All methods may be called from any
// goroutine.
type pool struct {
	mu     sync.Mutex // guards what follows, and the shelves; nothing slow happens under it
	budget int64      // bytes of all spares
	halved bool       // half of the budget is, and of the room of a shelf, one at least
	order  list.List  // of *shelf that have had spares, the last used first
	bytes  int64
	ticks  int // see age
	uses   int // since the last tick
}

// shelf has the spares of one module.
type shelf struct {
	room  int // spares that it holds at most; not changed
	spare []*guest
	place *list.Element // in pool.order; nil before the first spare
	used  int           // the pool's ticks at the last use
	// filling: it is in the filler's queue.
	filling bool
}

// bytes is what a spare takes of the budget.
func (g *guest) bytes() int64 { return int64(len(g.linear.Bytes())) + spareOverhead }

// halve has the pool keep half as much from now on, or as much as before. What it has
// goes as it is used, or not used.
func (p *pool) halve(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.halved = on
}

// bounds are the bytes of all spares and the spares of a shelf. The caller holds mu.
func (p *pool) bounds(s *shelf) (budget int64, room int) {
	if p.halved {
		return p.budget / 2, (s.room + 1) / 2
	}
	return p.budget, s.room
}

// take gives a spare, or nil. The caller owns it.
func (p *pool) take(s *shelf) *guest {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(s.spare) == 0 {
		return nil
	}
	p.touch(s)
	return p.remove(s)
}

// touch notes that a shelf is used. The caller holds mu.
func (p *pool) touch(s *shelf) {
	s.used = p.ticks
	p.uses++
	if s.place == nil {
		s.place = p.order.PushFront(s)
	} else {
		p.order.MoveToFront(s.place)
	}
}

// age lets a tick pass, and drops the spares that were not used for idle ticks. It
// tells how many, and whether all of the pool has rested since the tick before.
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

// remove takes the last spare of a shelf that has one. The caller holds mu.
func (p *pool) remove(s *shelf) *guest {
	last := len(s.spare) - 1
	g := s.spare[last]
	s.spare[last] = nil
	s.spare = s.spare[:last]
	p.bytes -= g.bytes()
	return g
}

// forget gives all spares of a shelf that nobody will use any more.
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

// put keeps a pristine instance, if its shelf has room and the budget too, once
// other modules have given back what they did not use lately.
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

// beginFilling marks the shelf as being filled. It gives false for one that is
// full, or marked already.
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

// acquire gives a pristine instance, which the caller owns and whose memory can
// grow to the given bytes: a spare if there is one, else it makes one. A host
// that is short of memory gives back all spares before it gives up.
//
// # Errors
//
// CodeUnavailable when the host has no memory for it now.
func (m *module) acquire(memoryBytes int) (*guest, error) {
	s := m.sandbox
	if memoryBytes <= s.limits.MemoryBytes {
		memoryBytes = s.limits.MemoryBytes // as any other may want
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

// Spare has the sandbox keep half as many instances for later from now on, or as many as
// before.
func (s *Sandbox) Spare(on bool) { s.pool.halve(on) }

// recycle takes an instance from an invocation: it is reset and kept, or else
// replaced.
func (s *Sandbox) recycle(l lease, g *guest) {
	m := l.module
	switch {
	case m.snapshot == nil || !g.reset():
		s.refill(l, g)
	case !s.pool.put(&m.shelf, g):
		g.drop() // there are enough
	}
}

// filling is work for the filler.
type filling struct {
	lease
	used *guest // to be replaced
}

// refill asks the filler, if it is not asked already, to replace an instance and
// to make the spares whole.
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
	default: // it has enough to do
		used.drop()
		s.pool.endFilling(shelf)
		second.release()
	}
}

// What nobody has used for a while is given back: instances soon, as one is made
// anew in microseconds to milliseconds; modules later, if they are on disk.
const (
	tick         = 15 * time.Second
	idleInstance = 2  // ticks
	idleModule   = 12 // ticks
)

// filler makes spares until the sandbox closes, and gives back what is idle.
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

// age lets a tick pass. What has been given back goes to the operating system when
// nobody works: Go alone would keep it for long.
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

// unfill gives back what nobody will fill any more. New requests do not come,
// as the sandbox is closed before base ends.
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

// fill makes the module's spares whole; the first takes the place of used.
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
