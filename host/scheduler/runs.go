package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/admission"
	"github.com/weftrun/weft/host/scheduler/idempotency"
	"github.com/weftrun/weft/host/scheduler/refusal"
)

// accepting refuses work while the scheduler stops or the store is down.
func (s *Scheduler) accepting() error {
	s.mu.Lock()
	stopping := s.life.stopping
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

// active finds a handler's running run and pins its session.
func (s *Scheduler) active(ctx context.Context, tenant, id string) (*session, host.Run, error) {
	run, err := s.past.Get(ctx, tenant, id)
	if err != nil {
		return nil, host.Run{}, err
	}
	if run.Status.Final() {
		return nil, run, refusal.ErrCompleted
	}
	ss, err := s.table.acquire(ctx, host.SessionKey{Tenant: tenant, Session: run.SessionID}, false)
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

// send ticks an event into a running run, and returns what happened to the event and the
// queue position.
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
	// The event is checked without the lock, which takes long. The tick finds out whether
	// the run has ended by then.
	ss.mu.Unlock()
	if !ok || ending {
		return host.Delivery{}, 0, refusal.ErrCompleted
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
	res, pos, err := ss.tick(engine.PostEvent{RunID: run.RunID, Event: ev, Step: step}, extras{repeats: once.Rows(run.RunID)})
	if err != nil {
		return host.Delivery{}, 0, refusal.ToClient(err)
	}
	ss.tracePost(ctx, run.RunID, ev.Type)
	return res.Response.Delivery, pos, nil
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
