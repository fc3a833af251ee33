package scheduler_test

import (
	"context"
	"errors"
	"math/rand/v2"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
)

// retained is what the simulation knows of runs that settings have deleted.
type retained struct {
	known map[string]host.Run // every run that was written, as it was last
	runs  map[string]bool     // those that were deleted
}

// retain has some plays delete all but a few of the runs that have ended.
func (s *sim) retain(rng *rand.Rand) {
	s.retention = retained{known: map[string]host.Run{}, runs: map[string]bool{}}
	if rng.IntN(3) > 0 {
		return
	}
	settings := `{"defaults": {"retention_runs": 2}}`
	if s.limits != nil {
		settings = `{"defaults": {"retention_runs": 2}, "tenants": {"u": {"tenant_fuel_per_second": 2e6}}}`
	}
	s.limits = must(limit.Parse([]byte(settings)))
}

// note looks at what a batch has deleted: nothing that had not ended.
func (r *retained) note(s *sim, b *host.Batch) {
	for i := range b.Sessions {
		p := &b.Sessions[i]
		for j := range p.Runs {
			r.known[p.Runs[j].RunID] = p.Runs[j]
		}
		for _, id := range p.Drop {
			if _, err := s.store.Run(context.Background(), p.Key.Tenant, id); !errors.Is(err, host.ErrNotFound) {
				continue // it was kept back
			}
			if !r.known[id].Status.Final() {
				s.failf("run %s was deleted as an old one, and is %s", id, r.known[id].Status)
			}
			s.total.Dropped++
			r.runs[id] = true
			for _, reader := range s.facts.readers {
				if reader.handler == r.known[id].HandlerID {
					reader.gone = true
				}
			}
		}
	}
}

// forgetDropped takes what was deleted out of what clients may expect.
func (s *sim) forgetDropped() {
	for _, op := range s.facts.starts {
		op.gone = op.gone || s.retention.runs[op.runID]
	}
}
