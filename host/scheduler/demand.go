package scheduler

import (
	"context"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/scheduler/admission"
)

// AskStart implements host.Admission.
func (s *Scheduler) AskStart(ctx context.Context, ask host.StartAsk) (release func(), err error) {
	version, allowance, bounded := "", time.Duration(0), false
	if ask.Workflow != "" {
		mod, err := s.cfg.Modules.Newest(ask.Tenant, ask.Workflow)
		if err != nil {
			return nil, err
		}
		version = mod.Digest
		allowance, bounded = mod.Patience(ask.Wait, s.cfg.Timeout, s.cfg.StartWait)
	}
	bytes := admission.HeldByStart + max(ask.Bytes, 0)
	s.starts.Look(&s.mu)
	s.mu.Lock()
	v := s.starts.Demand.Version(ask.Tenant, version)
	no := s.starts.Refuses(ask.Tenant, v, bytes, allowance, bounded)
	if no == nil {
		release = s.letPass(v, bytes)
		s.mu.Unlock()
		return release, nil
	}
	s.mu.Unlock()
	// A repeat of a start that was accepted adds no run, and is answered however busy
	// the server is.
	if ask.Once.Key != "" {
		switch known, err := s.keys.Known(ctx, ask.Tenant, ask.Once); {
		case err != nil:
			return nil, err
		case known:
			return func() {}, nil
		}
	}
	s.mu.Lock()
	s.starts.Refused(no.Reason)
	s.mu.Unlock()
	return nil, &host.Error{Code: host.CodeOverloaded, RetryAfter: admission.Spread(no.After, ask.RequestID),
		Message: "The server has too much to do (" + no.Why + "): the request had no effect"}
}

// letPass counts a start that was admitted until its run counts itself, or the start
// fails: release may be called more than once, on any goroutine. The caller holds mu.
func (s *Scheduler) letPass(v *admission.Version, bytes int64) (release func()) {
	s.starts.Pass(v, bytes)
	done := false
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !done {
			done = true
			s.starts.Passed(v, bytes)
		}
	}
}

// demands counts an attempt that is in memory from now on. The caller holds mu.
func (ss *session) demands(at *attempt) {
	s := ss.s
	w := ss.needs[at.view.RunID]
	rec, _ := ss.eng.Record(at.view.RunID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if w == nil {
		w = s.starts.Demand.Run(ss.key.Tenant, at.view.Version, at.view.FirstStart, at.view.Child)
		w.Begun, w.Used = rec.Steps > 0 || rec.Fuel > 0, rec.Fuel
		w.Bytes = admission.HeldByStart
		for i := range at.view.Trigger {
			w.Bytes += int64(len(at.view.Trigger[i].Body))
		}
		ss.needs[at.view.RunID] = w
	}
	// An attempt with a record has had a core before.
	w.Begun = w.Begun || at.replay
	at.work, at.counts = w, true
	s.starts.Demand.Opened(w)
}

// undemand counts an attempt that is over, or to be dropped. The caller holds mu.
func (ss *session) undemand(at *attempt) {
	if !at.counts {
		return
	}
	at.counts = false
	ss.s.mu.Lock()
	ss.s.starts.Demand.Closed(at.work)
	ss.s.mu.Unlock()
}

// met takes a run out of the demand that has ended. The caller holds mu.
func (ss *session) met(runID string, status host.Status) {
	w := ss.needs[runID]
	if w == nil {
		return
	}
	delete(ss.needs, runID)
	ss.s.mu.Lock()
	defer ss.s.mu.Unlock()
	if status == host.StatusCancelled {
		ss.s.starts.Demand.Gone(w) // how far it came says nothing
		return
	}
	// What it has used tells what the next run of its version will take.
	ss.s.starts.Demand.Ended(w)
}
