// Package admission decides which requests of clients may begin, and when: a gate before
// the journal's queue, and an estimate of how long a new run waits for a core.
//
// It must not depend on sessions, runs or how a request is carried out. Its types have no mutex:
// the caller holds its lock, or gives it where a method waits.
package admission

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weftrun/weft/host"
)

// A start or an event of a client passes the gate, and is in progress until its entry is
// durable. The journal's queue is first in, first out for all tenants, so the request that
// gets there first decides how long the others wait. As long as few requests are in
// progress, none waits here. When there are as many as a commit takes in a
// few milliseconds, others wait in a line of their tenant, and whenever one is
// through, the next one is of the tenant that is behind by the clock of the run
// tokens: that of the units which its guests burn, and a flat rate for each that
// waited here. A tenant whose entries crowd the journal's queue (Journal.OverSoftLimit) is
// passed over until the disk has caught up.
//
// A tenant has three quarters of the places at most, and its line is bounded in
// length and time: beyond them a request is refused, and the client tries again later.
//
//	enter: a place and nobody waits?  continue  :  wait in line
//	leave: refused?  the place is free  :  it is when the position is durable

// Defaults of a [GateConfig].
const (
	PlacesPerCore   = 64
	LeastPlaces     = 128
	DefaultPatience = 15 * time.Second
	DefaultLine     = 10_000
)

// LineCost is what a tenant's clock advances by for one that has waited at the gate, in
// units.
const LineCost = 300_000

// Clocks are the tenants' clocks of the run tokens.
type Clocks interface {
	// LineUp notes that requests of a tenant wait here, LineEnds that none do any more.
	LineUp(tenant string)
	LineEnds(tenant string)
	Clock(tenant string) uint64
	Charge(tenant string, units uint64)
}

// Journal is the queue behind the gate.
type Journal interface {
	Durable() uint64
	// OverSoftLimit reports whether a tenant should begin nothing until the disk has caught up.
	OverSoftLimit(tenant string) bool
}

// GateConfig says what a gate lets through. All fields must be set.
type GateConfig struct {
	Places   int           // requests whose entries are not durable, at a time
	Line     int           // requests of a tenant that wait at most
	Patience time.Duration // the longest wait of a request
	Clocks   Clocks
	Journal  Journal
	// Lock guards the gate, the clocks, and what else the caller keeps under it.
	Lock sync.Locker
	// Open refuses requests while the server takes none; it is called without the lock.
	Open func(tenant string) error
	// Stopped is closed when the server begins to stop.
	Stopped <-chan struct{}
}

// Gate has the places of starts and events.
type Gate struct {
	Lined, Shed uint64 // requests that waited, and those that there was no room for

	cfg     GateConfig
	each    int            // places of one tenant
	taken   int            // places
	of      map[string]int // by tenant
	written []written      // places of entries in the journal's queue
	lines   map[string][]*entrant
	waiting int // in all lines
}

// written is the place of an entry that perhaps is not durable yet.
type written struct {
	tenant string
	pos    uint64
}

// entrant is a request that waits in line.
type entrant struct {
	in      chan struct{} // closed when it has a place
	entered bool
}

// The errors of a request that has no room, and of a request that waits or comes
// when the server stops.
var (
	ErrTooMany = &host.Error{Code: host.CodeOverloaded, RetryAfter: time.Second,
		Message: "The server has too much to do (starts and events are queued): the request had no effect"}
	ErrStopping = &host.Error{Code: host.CodeUnavailable, Message: "the server is shutting down"}
)

// Init opens the gate.
func (g *Gate) Init(cfg GateConfig) {
	*g = Gate{cfg: cfg, each: max(1, cfg.Places*3/4), of: map[string]int{}, lines: map[string][]*entrant{}}
}

// Waiting is the number of requests that wait. The caller holds the lock.
func (g *Gate) Waiting() int { return g.waiting }

// Left names what the gate holds when no request is in progress, for tests; "": nothing. The
// caller holds the lock.
func (g *Gate) Left() string {
	g.settle(g.cfg.Journal.Durable())
	if g.taken == 0 && len(g.of) == 0 && g.waiting == 0 && len(g.lines) == 0 {
		return ""
	}
	return fmt.Sprintf("%d places at the gate are taken: %v, %d wait", g.taken, g.of, g.waiting)
}

func (g *Gate) room(tenant string) bool { return g.taken < g.cfg.Places && g.of[tenant] < g.each }

func (g *Gate) take(tenant string) {
	g.taken++
	g.of[tenant]++
}

func (g *Gate) give(tenant string) {
	g.taken--
	if g.of[tenant]--; g.of[tenant] == 0 {
		delete(g.of, tenant)
	}
}

// settle frees the places of what is durable.
func (g *Gate) settle(durable uint64) {
	g.written = slices.DeleteFunc(g.written, func(w written) bool {
		if w.pos > durable {
			return false
		}
		g.give(w.tenant)
		return true
	})
}

// Enter takes a place for a tenant's start or event, which is given back by Leave. It
// waits for one if need be, and takes the lock by itself. The error is CodeOverloaded,
// CodeUnavailable or ctx's.
func (g *Gate) Enter(ctx context.Context, tenant string) error {
	g.cfg.Lock.Lock()
	// A request must not pass others that already wait.
	if g.waiting == 0 && g.room(tenant) && !g.cfg.Journal.OverSoftLimit(tenant) {
		g.take(tenant)
		g.cfg.Lock.Unlock()
		return nil
	}
	if len(g.lines[tenant]) >= g.cfg.Line {
		g.Shed++
		g.cfg.Lock.Unlock()
		return ErrTooMany
	}
	e := g.enqueue(tenant)
	// The others may wait for places of their own tenants. Then this request continues.
	g.Admit()
	g.cfg.Lock.Unlock()
	return g.wait(ctx, tenant, e)
}

// enqueue puts a request at the end of its tenant's line. The caller holds the lock.
func (g *Gate) enqueue(tenant string) *entrant {
	e := &entrant{in: make(chan struct{})}
	g.lines[tenant] = append(g.lines[tenant], e)
	g.waiting++
	g.Lined++
	g.cfg.Clocks.LineUp(tenant)
	return e
}

// wait waits in line for a place.
func (g *Gate) wait(ctx context.Context, tenant string, e *entrant) error {
	patience := time.NewTimer(g.cfg.Patience)
	defer patience.Stop()
	var err error
	select {
	case <-e.in:
		// The server may have stopped, or the disk may be full, since the request came.
		if err = g.cfg.Open(tenant); err != nil {
			g.Leave(tenant, 0)
		}
		return err
	case <-ctx.Done():
		err = ctx.Err()
	case <-g.cfg.Stopped:
		err = ErrStopping
	case <-patience.C:
		err = ErrTooMany
	}
	g.cfg.Lock.Lock()
	defer g.cfg.Lock.Unlock()
	// The place came between the end of the wait and the lock: the next request gets it.
	if e.entered { // just now
		g.give(tenant)
		g.Admit()
		return err
	}
	g.lines[tenant] = slices.DeleteFunc(g.lines[tenant], func(o *entrant) bool { return o == e })
	g.lineLeft(tenant)
	if errors.Is(err, ErrTooMany) {
		g.Shed++
	}
	return err
}

// Leave gives a place back: at once if nothing was done (pos is 0), else when the
// position is durable. It takes the lock by itself.
func (g *Gate) Leave(tenant string, pos uint64) {
	g.cfg.Lock.Lock()
	defer g.cfg.Lock.Unlock()
	if pos == 0 {
		g.give(tenant)
	} else {
		g.written = append(g.written, written{tenant, pos})
	}
	// While nobody waits, the positions are looked through only when half of the places need it.
	if g.waiting > 0 || len(g.written) >= g.cfg.Places/2 {
		g.Admit()
	}
}

// Admit gives the places that are free to those who wait. The caller holds the lock, and
// calls it after each commit.
func (g *Gate) Admit() {
	g.settle(g.cfg.Journal.Durable())
	for g.waiting > 0 && g.taken < g.cfg.Places {
		next := g.next()
		if next == "" {
			return
		}
		e := g.lines[next][0]
		// The array must not keep a request that has left the line.
		g.lines[next][0] = nil
		g.lines[next] = g.lines[next][1:]
		g.take(next)
		// The clock moves with each place, or one tenant would get all free places in a row.
		g.cfg.Clocks.Charge(next, LineCost)
		g.lineLeft(next)
		e.entered = true
		close(e.in)
	}
}

// next is the tenant whose turn it is: the one that is furthest behind of those that may
// have a place; "": none may.
func (g *Gate) next() (next string) {
	var least uint64
	for tenant, line := range g.lines {
		if !g.room(tenant) || g.cfg.Journal.OverSoftLimit(tenant) || len(line) == 0 {
			continue
		}
		// The name decides between equal clocks, so that the order does not depend on the map.
		clock := g.cfg.Clocks.Clock(tenant)
		if next == "" || cmp.Or(cmp.Compare(clock, least), cmp.Compare(tenant, next)) < 0 {
			next, least = tenant, clock
		}
	}
	return next
}

// lineLeft notes that one of a tenant's line has left it.
func (g *Gate) lineLeft(tenant string) {
	if g.waiting--; len(g.lines[tenant]) == 0 {
		delete(g.lines, tenant)
		g.cfg.Clocks.LineEnds(tenant)
	}
}
