package scheduler

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// A start or an event of a client enters by the gate, and is under way until its
// entry is durable: the journal's queue is first in, first out for all tenants, so
// that whoever gets there first decides for how long the others wait. As long as few
// are under way, nobody waits here. When there are as many as a commit takes in a
// few milliseconds, others wait in a line of their tenant, and whenever one is
// through, the next one is of the tenant that is behind by the clock of the run
// tokens: that of the units which its guests burn, and a flat rate for each that
// waited here. A tenant whose entries crowd the journal's queue (Journal.OverSoftLimit) is
// passed over until the disk has caught up.
//
// A tenant has three quarters of the places at most, and its line is bounded in
// length and time: beyond them a client is told to come back, and nothing was done.
//
//	enter: a place and nobody waits?  go on  :  wait in line
//	leave: refused?  the place is free  :  it is when the position is durable

// Bounds of the gate, if the settings name none.
const (
	admitPerCore  = 64
	admitLeast    = 128
	admitPatience = 15 * time.Second
	admitLine     = 10_000
)

// admitCost is what a tenant's clock advances by for one that has waited at the gate.
const admitCost = 300_000

// gate has the places of starts and events. Scheduler.mu guards it.
type gate struct {
	most, each int            // places; of one tenant
	taken      int            // of them
	of         map[string]int // by tenant
	written    []written      // those of entries in the journal's queue
	lines      map[string][]*entrant
	waiting    int // in all lines
}

// written is the place of an entry that perhaps is not durable yet.
type written struct {
	tenant string
	pos    uint64
}

// entrant is one that waits in line.
type entrant struct {
	in      chan struct{} // closed when it has a place
	entered bool
}

func (g *gate) init(most int) {
	g.most, g.each = most, max(1, most*3/4)
	g.of, g.lines = map[string]int{}, map[string][]*entrant{}
}

func (g *gate) room(tenant string) bool { return g.taken < g.most && g.of[tenant] < g.each }

func (g *gate) take(tenant string) {
	g.taken++
	g.of[tenant]++
}

func (g *gate) give(tenant string) {
	g.taken--
	if g.of[tenant]--; g.of[tenant] == 0 {
		delete(g.of, tenant)
	}
}

// settle frees the places of what is durable.
func (g *gate) settle(durable uint64) {
	g.written = slices.DeleteFunc(g.written, func(w written) bool {
		if w.pos > durable {
			return false
		}
		g.give(w.tenant)
		return true
	})
}

// admitStart begins a run when it is its tenant's turn.
func (s *Scheduler) admitStart(ctx context.Context, req *host.StartRequest, once *claim) (begun, error) {
	if err := s.enter(ctx, req.Tenant); err != nil {
		return begun{}, err
	}
	defer s.cfg.Modules.Starting()()
	b, err := s.beginRun(ctx, req, once)
	s.leave(req.Tenant, b.pos)
	return b, err
}

// admitEvent sends an event when it is its tenant's turn.
func (s *Scheduler) admitEvent(ctx context.Context, tenant, id string, ev abi.Event, step string, once *claim) (host.Delivery, uint64, error) {
	if err := s.enter(ctx, tenant); err != nil {
		return host.Delivery{}, 0, err
	}
	d, pos, err := s.send(ctx, tenant, id, ev, step, once)
	s.leave(tenant, pos)
	return d, pos, err
}

// enter takes a place for a tenant's start or event, which is given back by leave. The
// error is CodeOverloaded, CodeUnavailable or ctx's.
func (s *Scheduler) enter(ctx context.Context, tenant string) error {
	s.mu.Lock()
	g := &s.gate
	if g.waiting == 0 && g.room(tenant) && !s.cfg.Journal.OverSoftLimit(tenant) {
		g.take(tenant)
		s.mu.Unlock()
		return nil
	}
	if len(g.lines[tenant]) >= s.cfg.AdmitLine {
		s.counters.Shed++
		s.mu.Unlock()
		return tooMany
	}
	e := &entrant{in: make(chan struct{})}
	g.lines[tenant] = append(g.lines[tenant], e)
	g.waiting++
	s.counters.Lined++
	s.queue.lineUp(tenant)
	s.letIn()
	s.mu.Unlock()
	return s.inLine(ctx, tenant, e)
}

// tooMany is the error of one that there is no room for.
var tooMany = &host.Error{Code: host.CodeOverloaded, RetryAfter: time.Second,
	Message: "The server has too much to do (starts and events are queued): the request had no effect"}

// shuttingDown is the error of one that waits when the server stops, or comes then.
var shuttingDown = &host.Error{Code: host.CodeUnavailable, Message: "the server is shutting down"}

// inLine waits for a place.
func (s *Scheduler) inLine(ctx context.Context, tenant string, e *entrant) error {
	patience := time.NewTimer(s.cfg.AdmitPatience)
	defer patience.Stop()
	var err error
	select {
	case <-e.in:
		if err = s.taking(tenant); err != nil { // by now
			s.leave(tenant, 0)
		}
		return err
	case <-ctx.Done():
		err = ctx.Err()
	case <-s.stopped:
		err = shuttingDown
	case <-patience.C:
		err = tooMany
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &s.gate
	if e.entered { // just now
		g.give(tenant)
		s.letIn()
		return err
	}
	g.lines[tenant] = slices.DeleteFunc(g.lines[tenant], func(o *entrant) bool { return o == e })
	s.lineLeft(tenant)
	if errors.Is(err, tooMany) {
		s.counters.Shed++
	}
	return err
}

// leave gives a place back: at once if nothing was done (pos is 0), else when the
// position is durable.
func (s *Scheduler) leave(tenant string, pos uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &s.gate
	if pos == 0 {
		g.give(tenant)
	} else {
		g.written = append(g.written, written{tenant, pos})
	}
	if g.waiting > 0 || len(g.written) >= g.most/2 {
		s.letIn()
	}
}

// letIn gives the places that are free to those who wait. Called with mu held, when
// somebody comes or leaves and after each commit.
func (s *Scheduler) letIn() {
	g := &s.gate
	g.settle(s.cfg.Journal.Durable())
	for g.waiting > 0 && g.taken < g.most {
		next := ""
		var least uint64
		for tenant, line := range g.lines {
			if !g.room(tenant) || s.cfg.Journal.OverSoftLimit(tenant) || len(line) == 0 {
				continue
			}
			clock := s.queue.tenants[tenant].virtual
			if next == "" || cmp.Or(cmp.Compare(clock, least), cmp.Compare(tenant, next)) < 0 {
				next, least = tenant, clock
			}
		}
		if next == "" {
			return
		}
		e := g.lines[next][0]
		g.lines[next][0] = nil
		g.lines[next] = g.lines[next][1:]
		g.take(next)
		s.queue.charge(next, admitCost)
		s.lineLeft(next)
		e.entered = true
		close(e.in)
	}
}

// lineLeft notes that one of a tenant's line has left it. Called with mu held.
func (s *Scheduler) lineLeft(tenant string) {
	if s.gate.waiting--; len(s.gate.lines[tenant]) == 0 {
		delete(s.gate.lines, tenant)
		s.queue.lineEnds(tenant)
	}
}
