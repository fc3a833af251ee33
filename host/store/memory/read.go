package memory

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"strings"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/search"
)

// LoadSession implements [host.Store].
func (s *Store) LoadSession(ctx context.Context, key host.SessionKey) (stored host.StoredSession, err error) {
	err = s.view(ctx, func() error {
		found := s.sessions[key]
		if found == nil {
			return notFound("session", key.Session)
		}
		if found.erasing {
			return host.ErrErasing
		}
		stored = host.StoredSession{Last: found.last, WakeAt: found.wakeAt}
		for _, row := range found.rows[foldable(found.rows, found.last):] {
			stored.Rows = append(stored.Rows, slices.Clone(row.Data))
		}
		return nil
	})
	return stored, err
}

// Reread implements [host.Store].
func (s *Store) Reread(ctx context.Context, key host.SessionKey) (host.StoredSession, error) {
	return s.LoadSession(ctx, key)
}

// History implements [host.Store].
func (s *Store) History(ctx context.Context, key host.SessionKey, position, after uint64, limit int) (rows []host.JournalRow, err error) {
	err = s.view(ctx, func() error {
		found := s.sessions[key]
		if found == nil || found.erasing {
			return notFound("session", key.Session)
		}
		from := foldable(found.rows, position)
		if after != 0 {
			from = sort.Search(len(found.rows), func(i int) bool { return found.rows[i].First > after })
		}
		for _, row := range found.rows[from:min(len(found.rows), from+max(limit, 1))] {
			rows = append(rows, host.JournalRow{First: row.First, Data: slices.Clone(row.Data)})
		}
		return nil
	})
	return rows, err
}

// RereadHistory implements [host.Store].
func (s *Store) RereadHistory(ctx context.Context, key host.SessionKey, position, after uint64, limit int) ([]host.JournalRow, error) {
	return s.History(ctx, key, position, after, limit)
}

// Due implements [host.Store].
func (s *Store) Due(ctx context.Context, until int64, limit int) (due []host.SessionKey, next int64, err error) {
	type waiting struct {
		key   host.SessionKey
		at    int64
		order uint64
	}
	var found []waiting
	next = host.WakeNever
	err = s.view(ctx, func() error {
		for key, session := range s.sessions {
			switch at := session.wakeAt; {
			case at == host.WakeNever:
			case at <= until:
				found = append(found, waiting{key, at, session.order})
			case next == host.WakeNever || at < next:
				next = at
			}
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	slices.SortFunc(found, func(a, b waiting) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order))
	})
	for _, w := range found[:min(len(found), max(limit, 0))] {
		due = append(due, w.key)
	}
	return due, next, nil
}

// Handler implements [host.Store].
func (s *Store) Handler(ctx context.Context, tenant, handlerID string) (found host.Handler, err error) {
	err = s.view(ctx, func() error {
		h := s.handlers[id{tenant, handlerID}]
		if h == nil {
			return notFound("handler", handlerID)
		}
		r := cloneRun(h.latest())
		found = host.Handler{HandlerID: r.HandlerID, SessionID: r.SessionID, Workflow: r.Workflow, Run: r}
		return nil
	})
	return found, err
}

// Run implements [host.Store].
func (s *Store) Run(ctx context.Context, tenant, runID string) (found host.Run, err error) {
	err = s.view(ctx, func() error {
		r := s.runs[id{tenant, runID}]
		if r == nil {
			return notFound("run", runID)
		}
		found = cloneRun(r)
		return nil
	})
	return found, err
}

// page returns how many rows a list may give, whatever its query asks for.
func page(limit int) int { return min(max(limit, 1), host.MaxListed) }

// Runs implements [host.Store].
func (s *Store) Runs(ctx context.Context, q host.RunQuery) (runs []host.Run, more bool, err error) {
	err = s.view(ctx, func() error {
		var found []*host.Run
		for key, h := range s.handlers {
			if r := h.latest(); key.tenant == q.Tenant && matches(r, &q) {
				found = append(found, r)
			}
		}
		slices.SortFunc(found, func(a, b *host.Run) int {
			return -cmp.Or(cmp.Compare(a.Started, b.Started), strings.Compare(a.HandlerID, b.HandlerID))
		})
		more = len(found) > page(q.Limit)
		for _, r := range found[:min(len(found), page(q.Limit))] {
			runs = append(runs, cloneRun(r))
		}
		return nil
	})
	return runs, more, err
}

// matches reports whether a query selects a run of the query's tenant.
func matches(r *host.Run, q *host.RunQuery) bool {
	switch {
	case len(q.Statuses) > 0 && !slices.Contains(q.Statuses, string(r.Status)),
		len(q.Workflows) > 0 && !slices.Contains(q.Workflows, r.Workflow),
		!strings.HasPrefix(r.Version, q.Version),
		q.Session != "" && q.Session != r.SessionID,
		q.ErrorCode != "" && q.ErrorCode != r.ErrorCode,
		q.Since != 0 && r.Updated < q.Since,
		q.Blocked && r.Blocked == nil,
		len(q.Search) > 0 && !search.Matches(search.Words(r), q.Search):
		return false
	case q.AfterStarted == 0 && q.AfterHandler == "":
		return true
	}
	return r.Started < q.AfterStarted || r.Started == q.AfterStarted && r.HandlerID < q.AfterHandler
}

// CountRuns implements [host.Store].
func (s *Store) CountRuns(ctx context.Context, tenant string) ([]host.VersionRuns, error) {
	by := map[host.VersionRuns]int{}
	err := s.view(ctx, func() error {
		for key, r := range s.runs {
			if key.tenant == tenant && r.Status == host.StatusRunning {
				by[host.VersionRuns{Workflow: r.Workflow, Version: r.Version}]++
			}
		}
		return nil
	})
	var counts []host.VersionRuns
	for n, runs := range by {
		n.Runs = runs
		counts = append(counts, n)
	}
	slices.SortFunc(counts, func(a, b host.VersionRuns) int {
		return cmp.Or(strings.Compare(a.Workflow, b.Workflow), strings.Compare(a.Version, b.Version))
	})
	return counts, err
}

// Stream implements [host.Store].
func (s *Store) Stream(ctx context.Context, tenant, handlerID string, after int64, limit int) (events []host.StreamEvent, err error) {
	err = s.view(ctx, func() error {
		h := s.handlers[id{tenant, handlerID}]
		if h == nil {
			return notFound("handler", handlerID)
		}
		i := sort.Search(len(h.stream), func(i int) bool { return int64(h.stream[i].Seq) > after })
		for ; i < len(h.stream) && len(events) < max(limit, 1); i++ {
			events = append(events, cloneEvent(&h.stream[i]))
		}
		return nil
	})
	return events, err
}

// StreamEnd implements [host.Store].
func (s *Store) StreamEnd(ctx context.Context, tenant, handlerID string) (last, latestRunFirst int64, err error) {
	err = s.view(ctx, func() error {
		h := s.handlers[id{tenant, handlerID}]
		if h == nil {
			return notFound("handler", handlerID)
		}
		last, latestRunFirst = h.lastSeq(), h.firstSeq
		return nil
	})
	return last, latestRunFirst, err
}

// Meta implements [host.Store].
func (s *Store) Meta(ctx context.Context, key string) (value []byte, err error) {
	err = s.view(ctx, func() error {
		stored, ok := s.meta[key]
		if !ok {
			return notFound("value", key)
		}
		value = slices.Clone(stored)
		return nil
	})
	return value, err
}

// SetMeta implements [host.Store].
func (s *Store) SetMeta(ctx context.Context, key string, value []byte) error {
	return s.update(ctx, func() error {
		s.meta[key] = slices.Clone(value)
		return nil
	})
}

// Tenants implements [host.Store].
func (s *Store) Tenants(ctx context.Context) (tenants []string, err error) {
	err = s.view(ctx, func() error {
		for key := range s.runs {
			tenants = append(tenants, key.tenant)
		}
		slices.Sort(tenants)
		tenants = slices.Compact(tenants)
		return nil
	})
	return tenants, err
}

// Ended implements [host.Store].
func (s *Store) Ended(ctx context.Context, q host.EndedQuery) (runs []host.EndedRun, more bool, err error) {
	all, err := s.ended(ctx, q.Tenant)
	for _, r := range all {
		if compareEnds(r.EndedAt, q.After) <= 0 || compareEnds(r.EndedAt, q.Until) > 0 {
			continue
		}
		if more = len(runs) == page(q.Limit); more {
			break
		}
		runs = append(runs, r)
	}
	return runs, more, err
}

// EndedBehind implements [host.Store].
func (s *Store) EndedBehind(ctx context.Context, tenant string, newer int) (host.EndedAt, error) {
	all, err := s.ended(ctx, tenant)
	if i := len(all) - 1 - max(newer, 0); err == nil && i >= 0 {
		return all[i].EndedAt, nil
	}
	if err == nil {
		err = notFound("an ended run of tenant", tenant)
	}
	return host.EndedAt{}, err
}

// ended lists all runs of a tenant that have ended, oldest end first.
func (s *Store) ended(ctx context.Context, tenant string) (runs []host.EndedRun, err error) {
	err = s.view(ctx, func() error {
		for key, r := range s.runs {
			if key.tenant == tenant && r.Completed > 0 {
				runs = append(runs, host.EndedRun{
					EndedAt: host.EndedAt{Completed: r.Completed, RunID: r.RunID}, HandlerID: r.HandlerID, SessionID: r.SessionID,
				})
			}
		}
		slices.SortFunc(runs, func(a, b host.EndedRun) int { return compareEnds(a.EndedAt, b.EndedAt) })
		return nil
	})
	return runs, err
}

func compareEnds(a, b host.EndedAt) int {
	return cmp.Or(cmp.Compare(a.Completed, b.Completed), strings.Compare(a.RunID, b.RunID))
}
