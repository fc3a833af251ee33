package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/search"
)

// Rows implements [host.Store].
func (s *Store) Rows(ctx context.Context, q host.RowQuery) (rows []host.RunRow, more bool, err error) {
	err = s.view(ctx, func() error {
		var found []*host.Run
		for key, r := range s.runs {
			if key.tenant == q.Tenant && selects(r, &q) {
				found = append(found, r)
			}
		}
		slices.SortFunc(found, func(a, b *host.Run) int { return -compareRows(a, b.Started, b.RunID) })
		n := page(q.Limit)
		if more = len(found) > n; more && q.Back {
			found = found[len(found)-n:]
		}
		for _, r := range found[:min(len(found), n)] {
			row := host.RunRow{Run: cloneRun(r), Phase: r.Phase()}
			if row.Result != nil && len(row.Result.Body) > host.MaxRowResult {
				row.Result, row.LongResult = nil, true
			}
			rows = append(rows, row)
		}
		return nil
	})
	return rows, more, err
}

func compareRows(r *host.Run, started int64, id string) int {
	return cmp.Or(cmp.Compare(r.Started, started), strings.Compare(r.RunID, id))
}

// selects reports whether a query selects a run of the query's tenant.
func selects(r *host.Run, q *host.RowQuery) bool {
	switch {
	case len(q.Phases) > 0 && !slices.Contains(q.Phases, r.Phase()),
		len(q.Workflows) > 0 && !slices.Contains(q.Workflows, r.Workflow),
		!strings.HasPrefix(r.Version, q.Version),
		q.Session != "" && q.Session != r.SessionID,
		q.Handler != "" && q.Handler != r.HandlerID,
		q.Parent != "" && q.Parent != r.ParentRun,
		q.ForkedFrom != "" && q.ForkedFrom != r.ForkedFrom,
		!strings.HasPrefix(r.RunID, q.ID) && !strings.HasPrefix(r.HandlerID, q.ID),
		q.ErrorCode != "" && q.ErrorCode != r.ErrorCode,
		q.Since != 0 && r.Updated < q.Since,
		q.Until != 0 && r.Updated >= q.Until,
		q.StartedAfter != 0 && r.Started < q.StartedAfter,
		q.StartedBefore != 0 && r.Started >= q.StartedBefore,
		!q.WithChildren() && r.ParentRun != "",
		len(q.Search) > 0 && !search.Matches(search.Words(r), q.Search):
		return false
	case q.From == nil:
		return true
	case q.Back:
		return compareRows(r, q.From.Started, q.From.RunID) > 0
	}
	return compareRows(r, q.From.Started, q.From.RunID) < 0
}

// RunCounts implements [host.Store].
func (s *Store) RunCounts(ctx context.Context, tenant string) (counts []host.RunCount, err error) {
	type group struct {
		workflow string
		phase    host.Phase
	}
	by := map[group]host.RunCount{}
	err = s.view(ctx, func() error {
		for key, r := range s.runs {
			if key.tenant != tenant {
				continue
			}
			n := by[group{r.Workflow, r.Phase()}]
			n.Workflow, n.Phase = r.Workflow, r.Phase()
			if n.Runs++; r.ParentRun != "" {
				n.Children++
			}
			by[group{r.Workflow, r.Phase()}] = n
		}
		return nil
	})
	for _, n := range by {
		counts = append(counts, n)
	}
	slices.SortFunc(counts, func(a, b host.RunCount) int {
		return cmp.Or(strings.Compare(a.Workflow, b.Workflow), strings.Compare(string(a.Phase), string(b.Phase)))
	})
	return counts, err
}
