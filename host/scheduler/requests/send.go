package requests

import (
	"context"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/idempotency"
	"github.com/weftrun/weft/host/scheduler/refusal"
)

// await waits for a run's end and its durability.
func (s *Service) await(ctx context.Context, end <-chan Ended) (host.Run, error) {
	select {
	case e := <-end:
		if err := s.cfg.Journal.Wait(ctx, e.Pos); err != nil {
			return host.Run{}, host.Unavailable(err)
		}
		return e.Run, nil
	case <-s.cfg.Stopped:
		return host.Run{}, &host.Error{Code: host.CodeUnavailable, Message: "the server is shutting down; the run continues when it is back"}
	case <-ctx.Done():
		return host.Run{}, ctx.Err()
	}
}

// active finds a handler's running run and pins its session.
func (s *Service) active(ctx context.Context, tenant, id string) (Session, host.Run, error) {
	run, err := s.cfg.Past.Get(ctx, tenant, id)
	if err != nil {
		return nil, host.Run{}, err
	}
	if run.Status.Final() {
		return nil, run, refusal.ErrCompleted
	}
	ss, err := s.cfg.Sessions.Pin(ctx, host.SessionKey{Tenant: tenant, Session: run.SessionID}, false)
	return ss, run, err
}

// Send gives an event to a running run; see host.Runs.
func (s *Service) Send(ctx context.Context, tenant, id string, ev abi.Event, step string) error {
	_, err := s.SendOnce(ctx, tenant, id, ev, step, host.Once{})
	return err
}

// SendOnce gives an event that may be repeated; see host.Runs.
func (s *Service) SendOnce(ctx context.Context, tenant, id string, ev abi.Event, step string, once host.Once) (host.Delivery, error) {
	if err := s.cfg.Taking(tenant); err != nil {
		return host.Delivery{}, err
	}
	c, before, err := s.cfg.Keys.Claim(ctx, tenant, once)
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
func (s *Service) admitEvent(ctx context.Context, tenant, id string, ev abi.Event, step string, once *idempotency.Claim) (host.Delivery, uint64, error) {
	if err := s.cfg.Gate.Enter(ctx, tenant); err != nil {
		return host.Delivery{}, 0, err
	}
	d, pos, err := s.send(ctx, tenant, id, ev, step, once)
	s.cfg.Gate.Leave(tenant, pos)
	return d, pos, err
}

// send ticks an event into a running run, and returns what happened to the event and the
// queue position.
func (s *Service) send(ctx context.Context, tenant, id string, ev abi.Event, step string, once *idempotency.Claim) (host.Delivery, uint64, error) {
	if err := s.cfg.Quotas.Grow(ctx, tenant); err != nil {
		return host.Delivery{}, 0, err
	}
	ss, run, err := s.active(ctx, tenant, id)
	if err != nil {
		return host.Delivery{}, 0, err
	}
	defer ss.Release()
	// The event is checked without the session's mutex, which takes long. The tick finds out
	// whether the run has ended by then.
	version, ok := ss.Takes(run.RunID)
	if !ok {
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
	d, pos, err := ss.Post(ctx, engine.PostEvent{RunID: run.RunID, Event: ev, Step: step}, once.Rows(run.RunID))
	if err != nil {
		return host.Delivery{}, 0, refusal.ToClient(err)
	}
	return d, pos, nil
}
