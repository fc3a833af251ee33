package scheduler

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weftrun/weft/host"
)

// reservations are of handler ids. Scheduler.mu guards it.
type reservations struct {
	s *Scheduler
	// starting holds the handler ids whose start is not durable yet: at what
	// position it will be, 0 if that is not known yet.
	starting map[handlerKey]uint64
}

type handlerKey struct{ tenant, handler string }

// reservation holds a handler id from the look at the store to the durable
// start, so that two starts cannot both find it free.
type reservation struct {
	s       *Scheduler
	key     handlerKey
	session string
	private bool   // the session is new, and its id is known to nobody else
	pos     uint64 // of the start; 0 while there is none
}

// unreserve gives the handler id back. If its client left before the start was
// durable, the id stays taken until it is: the store does not know it yet.
func (r *reservation) unreserve() {
	durable := r.s.cfg.Journal.Durable()
	r.s.mu.Lock()
	if r.pos > durable {
		r.s.reserved.starting[r.key] = r.pos
	} else {
		delete(r.s.reserved.starting, r.key)
	}
	r.s.mu.Unlock()
}

func alreadyRunning(id string) error {
	return host.Errorf(host.CodeConflict, "Handler '%s' is already running", id)
}

// take settles the handler and the session of a start.
func (h *reservations) take(ctx context.Context, req *host.StartRequest) (*reservation, error) {
	given := req.HandlerID != ""
	if !given {
		req.HandlerID = h.s.newID()
	}
	r := &reservation{s: h.s, key: handlerKey{req.Tenant, req.HandlerID}, session: req.SessionID}
	durable := h.s.cfg.Journal.Durable()
	h.s.mu.Lock()
	// The store knows a start that is durable, and checkReuse looks there.
	pos, busy := h.starting[r.key]
	if pos != 0 && pos <= durable {
		busy = false
	}
	if !busy {
		h.starting[r.key] = 0
	}
	h.s.mu.Unlock()
	if busy {
		return nil, alreadyRunning(req.HandlerID)
	}
	if r.session == "" {
		r.session, r.private = req.HandlerID, !given
	}
	// An id that was drawn just now is free.
	if !given {
		return r, nil
	}
	if err := h.checkReuse(ctx, req, r); err != nil {
		r.unreserve()
		return nil, err
	}
	return r, nil
}

// checkReuse allows a known handler id only if its run has ended and workflow
// and session are the same.
func (h *reservations) checkReuse(ctx context.Context, req *host.StartRequest, r *reservation) error {
	known, err := h.s.cfg.Store.Handler(ctx, req.Tenant, req.HandlerID)
	switch {
	case errors.Is(err, host.ErrNotFound):
		return nil
	case err != nil:
		return host.Unavailable(err)
	case !known.Run.Status.Final():
		return alreadyRunning(req.HandlerID)
	case known.Workflow != req.Workflow:
		return host.Errorf(host.CodeConflict, "Handler '%s' belongs to workflow '%s', not '%s'", req.HandlerID, known.Workflow, req.Workflow)
	case req.SessionID != "" && req.SessionID != known.SessionID:
		return host.Errorf(host.CodeConflict, "Handler '%s' belongs to session '%s', not '%s'", req.HandlerID, known.SessionID, req.SessionID)
	}
	r.session = known.SessionID
	return nil
}

// maxID bounds the ids that clients give, in bytes.
const maxID = 256

// checkStart checks the ids of a start.
func checkStart(req *host.StartRequest) error {
	if err := checkID("handler_id", req.HandlerID); err != nil {
		return err
	}
	return checkID("session", req.SessionID)
}

// checkID checks an id that a client gives, which the error calls by the name.
func checkID(name, id string) error {
	if len(id) > maxID || !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl) {
		return host.Errorf(host.CodeInvalidArgument, "%s must be at most %d bytes of text without control characters", name, maxID)
	}
	if id == "." || id == ".." {
		return host.Errorf(host.CodeInvalidArgument, "%s must not be %q: clients and proxies shorten paths with such a part", name, id)
	}
	return nil
}

// newID makes a handler's or run's id: 12 letters and digits. The first four count
// quarters of a second, for six weeks before they repeat: what is made together
// has its rows together in the store's indexes, so that one commit of many runs
// writes few pages. The rest is random, 47 bits.
func (s *Scheduler) newID() string {
	const letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	const quarter = int64(time.Second / 4)
	var raw [24]byte
	var id [12]byte
	quarters := uint64(s.now() / quarter)
	for n := 3; n >= 0; n-- {
		id[n] = letters[quarters%62]
		quarters /= 62
	}
	for n := 4; n < len(id); {
		s.cfg.Entropy(raw[:])
		for _, b := range raw {
			// 248 is the largest multiple of 62 in a byte: no letter is favoured.
			if b < 248 && n < len(id) {
				id[n] = letters[b%62]
				n++
			}
		}
	}
	return string(id[:])
}
