// Package handlers reserves the ids of handlers that are about to start, draws new ids and
// checks the ids that clients give.
//
// It must not depend on sessions, or how a run starts.
package handlers

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/weftrun/weft/host"
)

// Store is the part of host.Store that a reservation reads.
type Store interface {
	// Handler returns the handler, or [host.ErrNotFound].
	Handler(ctx context.Context, tenant, id string) (host.Handler, error)
}

// Journal is the part of the journal that reservations ask.
type Journal interface {
	// Durable returns the queue position up to which the journal is durable.
	Durable() uint64
}

// Config says what reservations work with. All fields must be set.
type Config struct {
	Store   Store
	Journal Journal
	Now     func() int64   // Unix nanoseconds
	Entropy func(p []byte) // fills p with random bytes
}

// Reservations are of handler ids. A reservation holds an id from the look at the store to
// the durable start, so that two starts cannot both find the id free. The methods may be
// called from any goroutine. They take no lock but their own.
type Reservations struct {
	cfg Config
	mu  sync.Mutex // guards what follows; no I/O under it
	// starting has the handler ids whose start is not durable yet, with the position at
	// which the start will be durable; 0: the position is not known yet.
	starting map[id]uint64
}

type id struct{ tenant, handler string }

// New returns an empty set of reservations.
func New(cfg Config) *Reservations {
	return &Reservations{cfg: cfg, starting: map[id]uint64{}}
}

// Reservation is of one handler id. One goroutine uses it.
type Reservation struct {
	Session string // of the handler
	Private bool   // the session is new, and its id is known to nobody else
	Pos     uint64 // queue position of the start; 0 while there is none

	of *Reservations
	id id
}

// GiveBack ends the reservation. If the start has a position that is not durable yet, the
// id stays taken until the position is: the store does not know the handler before.
func (r *Reservation) GiveBack() {
	durable := r.of.cfg.Journal.Durable()
	r.of.mu.Lock()
	defer r.of.mu.Unlock()
	if r.Pos > durable {
		r.of.starting[r.id] = r.Pos
	} else {
		delete(r.of.starting, r.id)
	}
}

// AlreadyRunning is the error of a start whose handler has a run.
func AlreadyRunning(id string) error {
	return host.Errorf(host.CodeConflict, "Handler '%s' is already running", id)
}

// Take reserves the handler of a start and settles its session. A request without a handler
// id gets a new id. The error says why the handler cannot start.
func (h *Reservations) Take(ctx context.Context, req *host.StartRequest) (*Reservation, error) {
	given := req.HandlerID != ""
	if !given {
		req.HandlerID = h.NewID()
	}
	r := &Reservation{Session: req.SessionID, of: h, id: id{req.Tenant, req.HandlerID}}
	if !h.reserve(r.id) {
		return nil, AlreadyRunning(req.HandlerID)
	}
	if r.Session == "" {
		r.Session, r.Private = req.HandlerID, !given
	}
	// An id that was drawn just now is free.
	if !given {
		return r, nil
	}
	if err := h.checkReuse(ctx, req, r); err != nil {
		r.GiveBack()
		return nil, err
	}
	return r, nil
}

// reserve takes an id; false: another start has it.
func (h *Reservations) reserve(id id) bool {
	durable := h.cfg.Journal.Durable()
	h.mu.Lock()
	defer h.mu.Unlock()
	// The store knows a start that is durable, and checkReuse looks there.
	if pos, busy := h.starting[id]; busy && (pos == 0 || pos > durable) {
		return false
	}
	h.starting[id] = 0
	return true
}

// checkReuse allows a known handler id only if its run has ended and workflow and session
// are the same.
func (h *Reservations) checkReuse(ctx context.Context, req *host.StartRequest, r *Reservation) error {
	known, err := h.cfg.Store.Handler(ctx, req.Tenant, req.HandlerID)
	switch {
	case errors.Is(err, host.ErrNotFound):
		return nil
	case err != nil:
		return host.Unavailable(err)
	case !known.Run.Status.Final():
		return AlreadyRunning(req.HandlerID)
	case known.Workflow != req.Workflow:
		return host.Errorf(host.CodeConflict, "Handler '%s' belongs to workflow '%s', not '%s'", req.HandlerID, known.Workflow, req.Workflow)
	case req.SessionID != "" && req.SessionID != known.SessionID:
		return host.Errorf(host.CodeConflict, "Handler '%s' belongs to session '%s', not '%s'", req.HandlerID, known.SessionID, req.SessionID)
	}
	r.Session = known.SessionID
	return nil
}

// pruneAbove is how many ids Prune leaves alone.
const pruneAbove = 1024

// Prune forgets the ids whose starts are durable, if there are many ids.
func (h *Reservations) Prune(durable uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.starting) <= pruneAbove {
		return
	}
	for id, pos := range h.starting {
		if pos != 0 && pos <= durable {
			delete(h.starting, id)
		}
	}
}

// Forget forgets the ids of a tenant that starts nothing.
func (h *Reservations) Forget(tenant string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id := range h.starting {
		if id.tenant == tenant {
			delete(h.starting, id)
		}
	}
}

// Left names an id that is still reserved, or is "", for tests.
func (h *Reservations) Left() string {
	durable := h.cfg.Journal.Durable()
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, pos := range h.starting {
		if pos == 0 || pos > durable {
			return fmt.Sprintf("handler id %s stays reserved", id.handler)
		}
	}
	return ""
}
