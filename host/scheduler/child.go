package scheduler

import (
	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/scheduler/handlers"
	"github.com/weftrun/weft/host/scheduler/refusal"
	"github.com/weftrun/weft/host/work"
)

// resolve returns what the reducer needs to begin a child. The error is the guest's
// ([*abi.Error]) or the store's.
func (at *attempt) resolve(m *work.Meter, req engine.RunWorkflow) (*engine.StartRun, error) {
	s, tenant := at.ss.s, at.ss.key.Tenant
	if req.Session != "" {
		if err := handlers.CheckID("session", req.Session); err != nil {
			return nil, refusal.ToGuest(err)
		}
	}
	if err := s.cfg.Quotas.Room(tenant); err != nil {
		return nil, refusal.ToGuest(err)
	}
	mod, err := s.cfg.Modules.Newest(tenant, req.Workflow)
	if host.CodeOf(err) == host.CodeNotFound {
		return nil, &abi.Error{Code: string(host.CodeNotFound), Message: "the workflow does not exist: upload a plugin that makes it"}
	}
	if err != nil {
		return nil, refusal.Lasting(err)
	}
	if err := mod.CheckResources(s.cfg.Resources, tenant); err != nil {
		return nil, refusal.Lasting(err)
	}
	ev := req.Event
	if ev.Type == abi.TypeStart {
		ev.Type = "" // as it is with a client's plain fields
	}
	if ev, err = mod.StartEvent(m, s.cfg.Modules, ev); err != nil {
		return nil, refusal.Lasting(err)
	}
	t := mod.Start(s.cfg.Limits, s.cfg.Timeout, tenant, ev)
	if at.traced != nil {
		t.Trace = s.cfg.Tracer.Child(at.traced)
	}
	return &t, nil
}
