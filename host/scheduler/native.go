package scheduler

import (
	"context"
	"runtime"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/work"
)

// native is work that the host does for a request without a guest. A little work is done
// in place. Work that takes longer has a run token, in its tenant's turn, and gives way to
// others as guests do. All of the work is on the tenant's clock. One goroutine uses it.
type native struct {
	*work.Meter
	s      *Scheduler
	ctx    context.Context
	tenant string
	booked uint64 // on the clock already
	tok    *token // nil: none yet
}

// native begins native work of at most limit units. The caller must call done on the
// result, and must hold no mutex while it spends on the meter.
func (s *Scheduler) native(ctx context.Context, tenant string, limit uint64) *native {
	n := &native{s: s, ctx: ctx, tenant: tenant}
	n.Meter = work.New(limit, n.look)
	return n
}

// Work begins native work of a request for others: the work is done in its
// tenant's turn, counts on the tenant's clock, and ends with the context. The caller calls
// done at its end, and must hold no mutex that other requests wait for.
func (s *Scheduler) Work(ctx context.Context, tenant string) (m *work.Meter, done func()) {
	return s.bounded(ctx, tenant, 0)
}

// bounded is Work of at most so many units; 0: any number.
func (s *Scheduler) bounded(ctx context.Context, tenant string, most uint64) (m *work.Meter, done func()) {
	n := s.native(ctx, tenant, most)
	return n.Meter, n.done
}

// look is the meter's hook.
func (n *native) look(units uint64) error {
	if err := n.ctx.Err(); err != nil {
		return err
	}
	// The meter calls after its first work.Look units: from then on the work takes turns.
	if n.tok == nil {
		n.tok = n.s.cores.newToken(n.tenant, nil)
		n.tok.acquire()
	}
	n.booked += units
	return n.tok.work(units)
}

// done puts the rest of the work on the tenant's clock, and gives the token back.
func (n *native) done() {
	left := n.Spent() - n.booked
	if n.tok != nil {
		n.tok.Worked(0)
		n.tok.release(0, left)
		return
	}
	n.s.mu.Lock()
	n.s.cores.queue.Owe(n.tenant, left)
	n.s.mu.Unlock()
}

// readUnits is the least that a reading of the store costs on a tenant's clock.
const readUnits = 100_000

// clocked begins a reading of the store that takes as long as a client's question makes it,
// on the present goroutine; done puts the time of the core that it took on the tenant's
// clock.
func (s *Scheduler) clocked(tenant string) (done func()) {
	cpu := s.cfg.CPU
	if cpu == nil {
		cpu = func() time.Duration { return 0 }
	}
	runtime.LockOSThread() // the clock is the thread's
	began := cpu()
	return func() {
		took := max(cpu()-began, 0)
		runtime.UnlockOSThread()
		s.mu.Lock()
		s.cores.queue.Owe(tenant, readUnits+uint64(took)*work.UnitsPerNanosecond)
		s.mu.Unlock()
	}
}

// play runs a guest of a rehearsal with a token of its tenant, as any run of a guest.
func (c *cores) play(ctx context.Context, inv host.Invocation) (host.InvocationResult, error) {
	tok := c.newToken(inv.Tenant, nil)
	tok.acquire()
	inv.Token = tok
	res, err := c.s.cfg.Sandbox.Invoke(ctx, inv)
	tok.release(res.Fuel, res.Work)
	return res, err
}
