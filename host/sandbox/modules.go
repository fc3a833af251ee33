package sandbox

import (
	"container/list"
	"context"
	"errors"
	"sync"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/behalf"
	"github.com/weftrun/weft/host/sandbox/flight"
	"github.com/weftrun/weft/host/turns"
)

// moduleKey identifies a module: the SHA-256 of the original in hex, and the size its
// tables are clamped to, because the clamped size is part of the rewritten code.
type moduleKey struct {
	digest string
	tables int
}

// modules holds the compiled modules: the modules in use, and the most recently used
// others within a budget. All methods may be called from any goroutine.
type modules struct {
	budget int // sum of the sizes of the modules not in use

	mu    sync.Mutex // guards the fields below; held only briefly
	byKey map[moduleKey]*slot
	order list.List // of *slot with a module, most recently used first
	bytes int       // bytes of the modules without users
	ticks int       // see method age
}

// slot is the place of one module, compiled or being compiled.
type slot struct {
	key    moduleKey
	flight flight.Flight[*module]

	// Guarded by modules.mu.
	users  int           // leases, plus the goroutine that compiles
	used   int           // tick count when the last user left
	place  *list.Element // element of order
	module *module       // nil until it is compiled
}

// lease is the right to use a module until release. The holder may pass it on.
type lease struct {
	module *module
	slot   *slot
	work   uint64 // work of loading the module, in units; 0: it was loaded already
}

// lease returns a module that is ready to run. If wasm is nil, the source is asked. The
// limits bound the build, if the module is not built yet.
//
// # Errors
//
// [*host.Error] with CodeInvalidPlugin and problems for the module's own faults; the
// source's error; the error of ctx.
func (s *Sandbox) lease(ctx context.Context, key moduleKey, wasm []byte, limits *host.Limits) (lease, error) {
	return s.leaseFor(ctx, behalf.Of(ctx), key, wasm, limits)
}

// leaseFor is lease on behalf of a tenant. If the module must be built, the build waits
// for the tenant's turn.
func (s *Sandbox) leaseFor(ctx context.Context, tenant string, key moduleKey, wasm []byte, limits *host.Limits) (lease, error) {
	if err := s.enter(); err != nil {
		return lease{}, err
	}
	e, m := s.modules.use(key)
	there := m != nil
	for m == nil {
		var err error
		if m, err = s.compiled(ctx, tenant, e, wasm, limits); err != nil {
			var b *breach
			if errors.As(err, &b) && b.below(limits) {
				continue // another caller had it built, perhaps under lower limits
			}
			s.modules.leave(e)
			s.work.Done()
			return lease{}, err
		}
	}
	l := lease{module: m, slot: e}
	if !there {
		l.work = uint64(m.loaded) * loadFuel
	}
	return l, nil
}

// breach is the error of a module that could not be built within limits.
type breach struct {
	error
	limits *host.Limits
}

// Unwrap returns the error of the module.
func (b *breach) Unwrap() error { return b.error }

// below reports whether the limits l allow a build to use more.
func (b *breach) below(l *host.Limits) bool {
	return b.limits.MemoryBytes < l.MemoryBytes || b.limits.DescribeFuel < l.DescribeFuel || b.limits.DescribeTime < l.DescribeTime ||
		b.limits.CompileTime < l.CompileTime || b.limits.CompileBytes < l.CompileBytes
}

// compiled waits for the module of a slot, and starts its compilation if nobody else has.
// The compiling goroutine counts as a user of the slot.
func (s *Sandbox) compiled(ctx context.Context, tenant string, e *slot, wasm []byte, limits *host.Limits) (*module, error) {
	start := func(load func()) error {
		s.modules.use(e.key)
		err := s.start(func() {
			load()
			s.modules.leave(e)
		})
		if err != nil {
			s.modules.leave(e)
		}
		return err
	}
	return e.flight.Get(ctx, start, func() (*module, error) {
		m, err := s.load(tenant, e.key, wasm, limits, turns.Of(ctx))
		if err == nil {
			s.modules.put(e, m)
		}
		return m, err
	})
}

// start runs f in a goroutine that Close waits for.
func (s *Sandbox) start(f func()) error {
	if err := s.enter(); err != nil {
		return err
	}
	go func() {
		defer s.work.Done()
		f()
	}()
	return nil
}

// load makes a module ready to be instantiated: from the disk if it was built before,
// otherwise by building it. Files on disk are named by the digest of the original, so the
// original is not read. turn may be nil.
func (s *Sandbox) load(tenant string, key moduleKey, wasm []byte, limits *host.Limits, turn *turns.Turn) (*module, error) {
	if m := s.loadBuilt(key); m != nil {
		return m, nil
	}
	stored := wasm == nil
	if stored {
		var err error
		if wasm, err = s.fetch(key.digest); err != nil {
			return nil, err
		}
	}
	if actual := digestOf(wasm); actual != key.digest {
		return nil, host.Errorf(host.CodeInternal, "module %s is damaged: its bytes have the digest %s", key.digest, actual)
	}
	m, err := s.build(tenant, key, wasm, limits, turn)
	switch {
	case err != nil && stored:
		return nil, asStored(key.digest, err)
	case err != nil:
		return nil, &breach{err, limits}
	}
	return m, nil
}

func (s *Sandbox) fetch(digest string) ([]byte, error) {
	if s.source == nil {
		return nil, host.Errorf(host.CodeNotFound, "module %s is not known", digest)
	}
	wasm, err := s.source.Wasm(s.base, digest)
	if err != nil {
		var e *host.Error
		if errors.As(err, &e) {
			return nil, err
		}
		return nil, host.Errorf(host.CodeInternal, "module %s cannot be read: %w", digest, err)
	}
	return wasm, nil
}

// release ends the lease.
func (l lease) release() {
	s := l.module.sandbox // leave may close the module
	s.modules.leave(l.slot)
	s.work.Done()
}

// again makes a second lease of the same module, unless the sandbox is closing.
func (l lease) again() (lease, error) {
	s := l.module.sandbox
	if err := s.enter(); err != nil {
		return lease{}, err
	}
	s.modules.use(l.slot.key)
	return l, nil
}

// use finds or makes the slot of a module, and adds a user. The module is nil if it is
// not compiled yet.
func (c *modules) use(key moduleKey) (*slot, *module) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[key]
	if e == nil {
		if c.byKey == nil {
			c.byKey = map[moduleKey]*slot{}
		}
		e = &slot{key: key}
		c.byKey[key] = e
	}
	if e.users == 0 && e.module != nil {
		c.count(e.module, -1)
	}
	e.users++
	return e, e.module
}

// has reports whether a module is compiled and in memory.
func (c *modules) has(key moduleKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byKey[key]
	return e != nil && e.module != nil
}

// put keeps the compiled module in its slot.
func (c *modules) put(e *slot, m *module) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.module, e.place = m, c.order.PushFront(e)
}

// leave removes a user, and closes the modules that no longer fit the budget.
func (c *modules) leave(e *slot) {
	var surplus []*module
	c.mu.Lock()
	if e.users--; e.users == 0 {
		surplus = c.rest(e)
	}
	c.mu.Unlock()
	for _, m := range surplus {
		m.close()
	}
}

// rest records that a slot has no users any more, and removes modules without users that
// exceed the budget. The caller holds mu.
func (c *modules) rest(e *slot) (surplus []*module) {
	if e.module == nil { // it could not be compiled
		delete(c.byKey, e.key)
		return nil
	}
	e.used = c.ticks
	c.order.MoveToFront(e.place)
	c.count(e.module, 1)
	for place := c.order.Back(); place != nil && c.bytes > c.budget; {
		last := place.Value.(*slot)
		place = place.Prev()
		if last.users > 0 {
			continue
		}
		surplus = append(surplus, c.remove(last))
	}
	return surplus
}

// remove removes a module without users. The caller holds mu.
func (c *modules) remove(e *slot) *module {
	c.order.Remove(e.place)
	c.count(e.module, -1)
	delete(c.byKey, e.key)
	return e.module
}

// count adds a module to those without users, or removes one (by is -1). Code counts once
// for all of them that run it. The caller holds mu.
func (c *modules) count(m *module, by int) {
	c.bytes += by * m.size
	if m.code.idle += by; m.code.idle == max(0, by) {
		c.bytes += by * m.code.size
	}
}

// age advances the tick count, and closes the modules not used for idle ticks. It returns
// how many it closed.
func (c *modules) age(idle int) int {
	var surplus []*module
	c.mu.Lock()
	c.ticks++
	for place := c.order.Back(); place != nil; {
		e := place.Value.(*slot)
		place = place.Prev()
		if e.users == 0 && e.used <= c.ticks-idle {
			surplus = append(surplus, c.remove(e))
		}
	}
	c.mu.Unlock()
	for _, m := range surplus {
		m.close()
	}
	return len(surplus)
}

// closeAll closes all modules. None may have users.
func (c *modules) closeAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.byKey {
		if e.module != nil {
			e.module.close()
		}
	}
	c.byKey, c.bytes = nil, 0
	c.order.Init()
}
