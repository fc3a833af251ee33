package scheduler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weftrun/weft/host"
)

// What helps runs: those that failed are retried, those that are blocked begin anew,
// and all that wait are moved to a version whose steps stand in another order.

// publish makes a second version of the workflows. No world goes on meanwhile.
func (s *sim) publish() {
	for name, span := range map[string]time.Duration{"long": time.Hour, "brief": time.Second} {
		lines := strings.Split(fmt.Sprintf(simManifest, name, int64(span)), "\n")
		steps := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, `"steps": [`) })
		list := strings.TrimSuffix(strings.Join(lines[steps+1:], "\n"), "]}")
		var turned []string
		for step := range strings.SplitSeq(list, "\n    {\"name\"") {
			if step = strings.TrimPrefix(strings.TrimSpace(step), `{"name"`); step != "" {
				turned = append(turned, `{"name"`+strings.TrimSuffix(step, ","))
			}
		}
		slices.Reverse(turned)
		text := strings.Join(lines[:steps+1], "\n") + strings.Join(turned, ",\n") + "]}"
		s.modules[name+"@2"] = newSimModules(s.t, map[string]string{"x": text})["x"]
	}
}

// help retries what has failed and moves what waits, while the server goes on to
// crash.
func (s *sim) help() {
	s.chaos = true
	s.publish()
	s.restart()
	for range 2 {
		for _, tenant := range []string{"t", "u"} {
			failed, _, err := s.store.Runs(context.Background(), host.RunQuery{Tenant: tenant, Statuses: []string{string(host.StatusFailed)}, Limit: 1000})
			s.must(err)
			for i := range failed {
				if id := failed[i].HandlerID; len(id) == 2 { // no child's
					s.spawnRetry(id)
				}
			}
		}
		s.spawnMigrate()
		s.spawnMigrate()
		for range 150 {
			s.turn()
			s.verdict()
		}
	}
	s.chaos = false
	s.quiet(s.calm)
}

// spawnRetry retries the latest run of a handler, of one that has failed mostly.
func (s *sim) spawnRetry(handler string) {
	s.ops++
	ctx, w := s.hurried(), s.w
	newest, pick, tenant := s.rng.IntN(3) == 0, s.rng.IntN(10), tenantOf(handler)
	s.mu.Lock()
	s.retries = true
	s.mu.Unlock()
	w.spawn("retry", func() {
		failed, _, err := w.sched.History().List(ctx, host.RunQuery{Tenant: tenant, Statuses: []string{string(host.StatusFailed)}, Limit: 10})
		w.yield("listed")
		if err == nil && pick < len(failed) && len(failed[pick].HandlerID) == 2 { // no child's
			handler = failed[pick].HandlerID
		}
		deletions := s.facts.deletions
		fork, err := w.sched.Retry(ctx, tenant, handler, newest)
		w.yield("retried")
		if err == nil && !w.dead.Load() {
			s.total.Retried++
			known := slices.ContainsFunc(s.facts.starts, func(op *startOp) bool { return op.runID == fork.Run.RunID })
			if !known { // one that was blocked goes on as it is
				s.facts.starts = append(s.facts.starts, &startOp{handler: handler, runID: fork.Run.RunID, session: host.SessionKey{Tenant: tenant, Session: fork.Run.SessionID}, gone: s.facts.purging(handler) || deletions != s.facts.deletions})
			}
		}
		s.expect("retry", err, host.CodeConflict, host.CodeOverloaded, host.CodeNotFound, host.CodeUnavailable)
	})
}

// purging reports whether a purge of the handler is under way.
func (f *facts) purging(handler string) bool {
	for op := range f.pending {
		if f.handlerOf(op.id) == handler {
			return true
		}
	}
	return false
}

// spawnMigrate moves what waits. No guest departs: the versions differ in the order
// of their steps alone.
func (s *sim) spawnMigrate() {
	s.ops++
	ctx, w := s.hurried(), s.w
	req := host.MigrateRequest{
		Tenant: []string{"t", "u"}[s.rng.IntN(2)], Workflow: []string{"long", "brief"}[s.rng.IntN(2)], DryRun: s.rng.IntN(4) == 0, Limit: 1 + s.rng.IntN(10),
	}
	w.spawn("migrate", func() {
		m, err := w.sched.Migrate(ctx, req)
		w.yield("migrated")
		s.expect("migrate", err, host.CodeUnavailable)
		if err != nil || w.dead.Load() {
			return
		}
		s.total.Migrated += m.Moved
		for _, d := range m.Departed {
			s.failf("run %s departs: %+v", d.RunID, d)
		}
	})
}
