package scheduler_test

import (
	"context"
	"fmt"

	"github.com/weftrun/weft/host"
)

// endAll closes what still runs, which it must be able to do, one round after the
// other: what waits for its session's turn begins when those before it have ended.
func (s *sim) endAll() {
	for range len(s.facts.starts) {
		running := s.running()
		if len(running) == 0 {
			break
		}
		for _, run := range running {
			s.endOne(run)
		}
		s.quiet(s.calm)
	}
	s.forgetDropped()
	for _, op := range s.facts.starts {
		if op.runID == "" || op.gone {
			continue
		}
		run, err := s.store.Run(context.Background(), tenantOf(op.handler), op.runID)
		if err != nil || !run.Status.Final() {
			s.failf("run %s has not ended: %+v, %v", op.runID, run, err)
		}
		s.total.Ends++
	}
	for _, run := range s.running() {
		s.failf("run %s does not end: %+v; leak: %s, journal %+v, %v; %d goroutines\n%s", run.RunID, run, s.w.sched.Leak(), s.w.journal.Stats(), s.w.journal.Err(), s.w.live, s.dump(host.SessionKey{Tenant: run.Tenant, Session: run.SessionID}))
	}
}

// running are the runs that have not ended, those too whose clients left before
// they were told of them: other runs may wait for their turn behind them.
func (s *sim) running() []host.Run {
	var out []host.Run
	for _, tenant := range []string{"t", "u"} {
		for i := range simHandlers {
			h, err := s.store.Handler(context.Background(), tenant, fmt.Sprint(tenant, i))
			if err == nil && !h.Run.Status.Final() {
				out = append(out, h.Run)
			}
		}
	}
	return out
}

// endOne closes a run, when it has been helped to go on.
func (s *sim) endOne(run host.Run) {
	if b := run.Blocked; b != nil {
		s.failf("run %s is blocked after %d crashes, and nobody is to blame: %s: %s", run.RunID, s.facts.crashes, b.Code, b.Message)
		return
	}
	if run.Paused {
		s.spawnSteer(run.HandlerID, true)
		s.quiet(s.calm)
		var err error
		if run, err = s.store.Run(context.Background(), run.Tenant, run.RunID); err != nil || run.Status.Final() {
			return
		}
		if run.Paused {
			s.failf("run %s is not resumed: %+v", run.RunID, run)
		}
	}
	s.spawnSend(run.HandlerID, "Close")
}

// leave checks that a server with nothing to do holds nothing, and ends it.
func (s *sim) leave() {
	s.w.cancel() // subscribers and clients go
	s.quiet(s.calm)
	if n := s.w.sched.Loaded(); n != 0 {
		s.failf("%d sessions stay in memory", n)
	}
	if leak := s.w.sched.Leak(); leak != "" {
		s.failf("the scheduler holds on: %s", leak)
	}
	s.total.add(s.w.sched.Counters())
	s.total.Children += int(s.children.Load())
	s.w.crash()
}
