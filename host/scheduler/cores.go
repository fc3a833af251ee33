package scheduler

import (
	"github.com/weftrun/weft/host/scheduler/fair"
)

// cores decides who gets a core. Scheduler.mu guards it.
//
// An attempt that is ready is in exactly one place: in queue, or aside for a while: in
// coming for the code of its module, in put for a time, in suspicion.unkept for the journal,
// or held by suspicion.trials.
type cores struct {
	s       *Scheduler
	queue   fair.Queue[*attempt]
	budgets fair.Budgets
	spare   spare
	coming  map[codeKey][]*attempt // those that wait for code, which is being prepared
	backoff []backoff              // attempts that are tried later
}

func (c *cores) init(s *Scheduler) {
	c.s, c.spare.s, c.coming = s, s, map[codeKey][]*attempt{}
	c.queue.Init(s.cfg.Tokens, s.cfg.Limits.TenantInvocations)
	c.queue.Speed.Init(s.cfg.Tokens, s.cfg.Now)
	c.budgets.Init(s.cfg.Now, func(tenant string) float64 { return float64(s.cfg.Limits.TenantFuel(tenant)) })
}
