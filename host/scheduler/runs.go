package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/admission"
	"github.com/weftrun/weft/host/scheduler/idempotency"
)

// Start begins a run; see host.Runs.
func (s *Scheduler) Start(ctx context.Context, req host.StartRequest) (host.Run, error) {
	if err := s.taking(req.Tenant); err != nil {
		return host.Run{}, err
	}
	once, before, err := s.keys.Claim(ctx, req.Tenant, req.Once)
	if err != nil {
		return host.Run{}, err
	}
	if before != nil {
		if req.Admitted != nil {
			req.Admitted() // no run of it is to be counted
		}
		return s.repeated(ctx, req.Tenant, before.RunID, req.Wait)
	}
	b, err := s.askedStart(ctx, &req, once)
	once.Settle(b.pos)
	if err != nil {
		return host.Run{}, err
	}
	defer b.ss.release()
	defer b.st.unreserve()
	if !req.Wait {
		if err := s.cfg.Journal.Wait(ctx, b.pos); err != nil {
			return host.Run{}, host.Unavailable(err)
		}
		return b.run, nil
	}
	// The handler is active in memory now: nobody needs the reservation to see
	// it, but others must not read a store that does not have it yet.
	return s.await(ctx, b.end)
}

// repeated answers a start that was made before with its run, as it is now; with
// wait when that has ended.
func (s *Scheduler) repeated(ctx context.Context, tenant, runID string, wait bool) (host.Run, error) {
	for {
		run, err := s.past.RunOf(ctx, tenant, runID)
		if err != nil {
			return host.Run{}, err
		}
		if !wait || run.Status.Final() {
			return run, nil
		}
		ss, err := s.acquire(ctx, host.SessionKey{Tenant: tenant, Session: run.SessionID}, false)
		if err != nil {
			return host.Run{}, err
		}
		end := make(chan ended, 1)
		ss.mu.Lock()
		rec, known := ss.eng.Record(runID)
		active := known && !rec.Status.Final()
		if active {
			ss.ended[runID] = append(ss.ended[runID], end)
		}
		pos := ss.lastPos
		ss.mu.Unlock()
		if active {
			run, err = s.await(ctx, end)
			if err != nil {
				ss.mu.Lock()
				ss.forget(runID, end)
				ss.mu.Unlock()
			}
			ss.release()
			return run, err
		}
		ss.release() // it has ended: the store will say so
		if err := s.cfg.Journal.Wait(ctx, pos); err != nil {
			return host.Run{}, host.Unavailable(err)
		}
	}
}

// askedStart begins a run that is admitted.
func (s *Scheduler) askedStart(ctx context.Context, req *host.StartRequest, once *idempotency.Claim) (begun, error) {
	release := req.Admitted
	if release == nil {
		var err error
		if release, err = s.AskStart(ctx, host.StartAsk{Tenant: req.Tenant, Workflow: req.Workflow, Wait: req.Wait}); err != nil {
			return begun{}, err
		}
	}
	defer release() // the run counts itself by then
	return s.admitStart(ctx, req, once)
}

// admitStart begins a run when it is its tenant's turn.
func (s *Scheduler) admitStart(ctx context.Context, req *host.StartRequest, once *idempotency.Claim) (begun, error) {
	if err := s.gate.Enter(ctx, req.Tenant); err != nil {
		return begun{}, err
	}
	defer s.cfg.Modules.Starting()()
	b, err := s.beginRun(ctx, req, once)
	s.gate.Leave(req.Tenant, b.pos)
	return b, err
}

// begun is a run that was just begun. Its session is pinned, its handler reserved.
type begun struct {
	ss  *session
	st  *reservation
	run host.Run
	end chan ended // of a start that waits
	pos uint64     // 0: it was refused, and nothing is to be given back
}

// beginRun checks a start and makes it.
func (s *Scheduler) beginRun(ctx context.Context, req *host.StartRequest, once *idempotency.Claim) (begun, error) {
	if err := checkStart(req); err != nil {
		return begun{}, err
	}
	if err := s.cfg.Quotas.Ready(ctx, req.Tenant); err != nil {
		return begun{}, err
	}
	mod, err := s.cfg.Modules.Newest(req.Tenant, req.Workflow)
	if err != nil {
		return begun{}, err
	}
	if err = s.checkResources(req.Tenant, mod); err != nil {
		return begun{}, err
	}
	if req.Snapshot != nil {
		return s.startFrom(ctx, req, mod, once)
	}
	if req.Event, err = s.startEvent(ctx, req.Tenant, mod, req.Event); err != nil {
		return begun{}, err
	}
	st, err := s.reserve(ctx, req)
	if err != nil {
		return begun{}, err
	}
	ss, run, end, err := s.startIn(ctx, st, req, mod, once)
	if err != nil {
		st.unreserve()
		return begun{}, err
	}
	return begun{ss: ss, st: st, run: run, end: end, pos: st.pos}, nil
}

// startIn starts the run in its session, which it pins. A session that was
// purged meanwhile is another one now.
func (s *Scheduler) startIn(ctx context.Context, st *reservation, req *host.StartRequest, mod Module, once *idempotency.Claim) (*session, host.Run, chan ended, error) {
	for {
		ss, err := s.sessionOf(ctx, st)
		if err != nil {
			return nil, host.Run{}, nil, err
		}
		run, pos, end, err := ss.start(ctx, req, mod, once)
		if err == nil {
			st.pos = pos
			return ss, run, end, nil
		}
		ss.release()
		if !errors.Is(err, errDead) {
			return nil, host.Run{}, nil, err
		}
	}
}

// sessionOf pins the session of a start.
func (s *Scheduler) sessionOf(ctx context.Context, st *reservation) (*session, error) {
	key := host.SessionKey{Tenant: st.key.tenant, Session: st.session}
	if st.private {
		st.private = false // from now on others may know it
		if ss := s.begin(key); ss != nil {
			return ss, nil
		}
	}
	return s.acquire(ctx, key, true)
}

// maxID bounds the ids that clients give, in bytes.
const maxID = 256

func checkStart(req *host.StartRequest) error {
	if err := checkID("handler_id", req.HandlerID); err != nil {
		return err
	}
	return checkID("session", req.SessionID)
}

func checkID(name, id string) error {
	if len(id) > maxID || !utf8.ValidString(id) || strings.ContainsFunc(id, unicode.IsControl) {
		return host.Errorf(host.CodeInvalidArgument, "%s must be at most %d bytes of text without control characters", name, maxID)
	}
	if id == "." || id == ".." {
		return host.Errorf(host.CodeInvalidArgument, "%s must not be %q: clients and proxies shorten paths with such a part", name, id)
	}
	return nil
}

// accepting refuses work while the scheduler stops or the store is down.
func (s *Scheduler) accepting() error {
	s.mu.Lock()
	stopping := s.stopping
	s.mu.Unlock()
	if stopping {
		return admission.ErrStopping
	}
	if err := s.cfg.Journal.Err(); err != nil {
		return host.Unavailable(err)
	}
	return nil
}

// taking refuses what would add to the journal while so much of the tenant waits for
// the disk that its runs stand still, and what accepting refuses.
func (s *Scheduler) taking(tenant string) error {
	if err := s.accepting(); err != nil {
		return err
	}
	if s.cfg.Journal.OverHardLimit(tenant) {
		return &host.Error{Code: host.CodeOverloaded, RetryAfter: time.Second,
			Message: "the disk cannot keep up with the writes: the request had no effect"}
	}
	return nil
}

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
		r.s.starting[r.key] = r.pos
	} else {
		delete(r.s.starting, r.key)
	}
	r.s.mu.Unlock()
}

func alreadyRunning(id string) error {
	return host.Errorf(host.CodeConflict, "Handler '%s' is already running", id)
}

// reserve settles the handler and the session of a start.
func (s *Scheduler) reserve(ctx context.Context, req *host.StartRequest) (*reservation, error) {
	given := req.HandlerID != ""
	if !given {
		req.HandlerID = s.newID()
	}
	r := &reservation{s: s, key: handlerKey{req.Tenant, req.HandlerID}, session: req.SessionID}
	durable := s.cfg.Journal.Durable()
	s.mu.Lock()
	pos, busy := s.starting[r.key]
	if pos != 0 && pos <= durable {
		busy = false
	}
	if !busy {
		s.starting[r.key] = 0
	}
	s.mu.Unlock()
	if busy {
		return nil, alreadyRunning(req.HandlerID)
	}
	if r.session == "" {
		r.session, r.private = req.HandlerID, !given
	}
	if !given {
		return r, nil
	}
	if err := s.checkReuse(ctx, req, r); err != nil {
		r.unreserve()
		return nil, err
	}
	return r, nil
}

// checkReuse allows a known handler id only if its run has ended and workflow
// and session are the same.
func (s *Scheduler) checkReuse(ctx context.Context, req *host.StartRequest, r *reservation) error {
	h, err := s.cfg.Store.Handler(ctx, req.Tenant, req.HandlerID)
	switch {
	case errors.Is(err, host.ErrNotFound):
		return nil
	case err != nil:
		return host.Unavailable(err)
	case !h.Run.Status.Final():
		return alreadyRunning(req.HandlerID)
	case h.Workflow != req.Workflow:
		return host.Errorf(host.CodeConflict, "Handler '%s' belongs to workflow '%s', not '%s'", req.HandlerID, h.Workflow, req.Workflow)
	case req.SessionID != "" && req.SessionID != h.SessionID:
		return host.Errorf(host.CodeConflict, "Handler '%s' belongs to session '%s', not '%s'", req.HandlerID, h.SessionID, req.SessionID)
	}
	r.session = h.SessionID
	return nil
}

// start ticks a run's start and returns its record, the position, and, for a
// start that waits, where its end will be told.
func (ss *session) start(ctx context.Context, req *host.StartRequest, mod Module, once *idempotency.Claim) (host.Run, uint64, chan ended, error) {
	s := ss.s
	t := s.startOf(req.Tenant, mod, req.Event)
	t.RunID, t.HandlerID, t.Queue = s.newID(), req.HandlerID, req.OnBusy == host.OnBusyQueue
	t.Trace = s.traceOf(ctx, nil)
	s.cfg.Entropy(t.Seed[:])
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if _, active, _ := ss.eng.HandlerRun(req.HandlerID); active {
		return host.Run{}, 0, nil, alreadyRunning(req.HandlerID)
	}
	if req.OnBusy == host.OnBusyReject && ss.eng.Active() > 0 {
		return host.Run{}, 0, nil, host.Errorf(host.CodeConflict, "session '%s' is busy", ss.key.Session)
	}
	if err := ss.place(t.Queue && ss.eng.Active() > 0); err != nil {
		return host.Run{}, 0, nil, err
	}
	var end chan ended
	if req.Wait {
		end = make(chan ended, 1)
		ss.ended[t.RunID] = append(ss.ended[t.RunID], end)
	}
	var run host.Run
	ss.repeats = once.Rows(t.RunID)
	_, pos, err := ss.tick(t, func(r *engine.Result) {
		for _, c := range r.Commands {
			if c, ok := c.(engine.RunChanged); ok && c.Run.RunID == t.RunID {
				run = c.Run
			}
		}
	})
	if err != nil {
		ss.giveBack()
		ss.repeats = nil
		delete(ss.ended, t.RunID)
		return host.Run{}, 0, nil, refused(err)
	}
	s.logBegan(ctx, &run)
	return run, pos, end, nil
}

// startOf is a start with all that the workflow and the settings say of it.
func (s *Scheduler) startOf(tenant string, mod Module, ev abi.Event) engine.StartRun {
	t := engine.StartRun{
		Version: mod.Digest, Event: ev, Timeout: int64(max(s.cfg.Timeout, 0)), Work: true,
		Limits: mod.limits(s.cfg.Limits, tenant),
	}
	if d, set := mod.Graph.Timeout(); set {
		t.Timeout, t.Work = int64(d), false
	}
	return t
}

// await waits for a run's end and its durability.
func (s *Scheduler) await(ctx context.Context, end chan ended) (host.Run, error) {
	select {
	case e := <-end:
		if err := s.cfg.Journal.Wait(ctx, e.pos); err != nil {
			return host.Run{}, host.Unavailable(err)
		}
		return e.run, nil
	case <-s.stopped:
		return host.Run{}, &host.Error{Code: host.CodeUnavailable, Message: "the server is shutting down; the run continues when it is back"}
	case <-ctx.Done():
		return host.Run{}, ctx.Err()
	}
}

// refused turns what a tick was refused with into an error for clients.
func refused(err error) error {
	var he *host.Error
	var ae *abi.Error
	switch {
	case errors.As(err, &he):
		return he
	case errors.As(err, &ae):
		return &host.Error{Code: host.Code(ae.Code), Message: ae.Message, Cause: err}
	case errors.Is(err, engine.ErrStale), errors.Is(err, engine.ErrUnknownRun):
		return completed
	default:
		return &host.Error{Code: host.CodeInternal, Message: "internal error", Cause: err}
	}
}

var completed = &host.Error{Code: host.CodeConflict, Message: "Workflow already completed"}

// active finds a handler's running run and pins its session.
func (s *Scheduler) active(ctx context.Context, tenant, id string) (*session, host.Run, error) {
	run, err := s.past.Get(ctx, tenant, id)
	if err != nil {
		return nil, host.Run{}, err
	}
	if run.Status.Final() {
		return nil, run, completed
	}
	ss, err := s.acquire(ctx, host.SessionKey{Tenant: tenant, Session: run.SessionID}, false)
	return ss, run, err
}

// Send gives an event to a running run; see host.Runs.
func (s *Scheduler) Send(ctx context.Context, tenant, id string, ev abi.Event, step string) error {
	_, err := s.SendOnce(ctx, tenant, id, ev, step, host.Once{})
	return err
}

// SendOnce gives an event that may be repeated; see host.Runs.
func (s *Scheduler) SendOnce(ctx context.Context, tenant, id string, ev abi.Event, step string, once host.Once) (host.Delivery, error) {
	if err := s.taking(tenant); err != nil {
		return host.Delivery{}, err
	}
	c, before, err := s.keys.Claim(ctx, tenant, once)
	if err != nil || before != nil {
		return host.Delivery{}, err // what was acknowledged is so again
	}
	d, pos, err := s.admitEvent(ctx, tenant, id, ev, step, c)
	c.Settle(pos)
	if err != nil {
		return host.Delivery{}, err
	}
	if err := s.cfg.Journal.Wait(ctx, pos); err != nil {
		return host.Delivery{}, host.Unavailable(err)
	}
	return d, nil
}

// admitEvent sends an event when it is its tenant's turn.
func (s *Scheduler) admitEvent(ctx context.Context, tenant, id string, ev abi.Event, step string, once *idempotency.Claim) (host.Delivery, uint64, error) {
	if err := s.gate.Enter(ctx, tenant); err != nil {
		return host.Delivery{}, 0, err
	}
	d, pos, err := s.send(ctx, tenant, id, ev, step, once)
	s.gate.Leave(tenant, pos)
	return d, pos, err
}

// send ticks an event into a running run, and gives what became of
// it and the queue position.
func (s *Scheduler) send(ctx context.Context, tenant, id string, ev abi.Event, step string, once *idempotency.Claim) (host.Delivery, uint64, error) {
	if err := s.cfg.Quotas.Grow(ctx, tenant); err != nil {
		return host.Delivery{}, 0, err
	}
	ss, run, err := s.active(ctx, tenant, id)
	if err != nil {
		return host.Delivery{}, 0, err
	}
	defer ss.release()
	ss.mu.Lock()
	version, ok := ss.versions[run.RunID]
	ending := ss.eng.Ending(run.RunID)
	ss.mu.Unlock()
	if !ok || ending {
		return host.Delivery{}, 0, completed
	}
	mod, err := s.cfg.Modules.ByDigest(version)
	if err != nil {
		return host.Delivery{}, 0, err
	}
	if err := mod.Graph.CheckPost(ev.Type, step); err != nil {
		return host.Delivery{}, 0, err
	}
	if ev, err = s.postedEvent(ctx, tenant, version, ev); err != nil {
		return host.Delivery{}, 0, err
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.repeats = once.Rows(run.RunID)
	res, pos, err := ss.tick(engine.PostEvent{RunID: run.RunID, Event: ev, Step: step}, nil)
	if err != nil {
		ss.repeats = nil
		return host.Delivery{}, 0, refused(err)
	}
	ss.tracePost(ctx, run.RunID, ev.Type)
	return res.Response.Delivery, pos, nil
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

// Reading tells whether the store can be read: not if more than a tenth of what was
// read in the last ten seconds, or in the ten before them, failed.
func (s *Scheduler) Reading() error {
	if tries, failed := s.reads.counts(s.now()); failed*10 > tries {
		return fmt.Errorf("the store does not read: %d of %d reads failed", failed, tries)
	}
	return nil
}

// Health tells whether the server can serve.
func (s *Scheduler) Health() error {
	if err := s.cfg.Journal.Err(); err != nil {
		return fmt.Errorf("the store does not work: %w", err)
	}
	return nil
}
