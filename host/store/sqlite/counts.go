package sqlite

import (
	"context"

	"github.com/weftrun/weft/host"
)

// wrongCounts finds counts that differ from the runs.
const wrongCounts = `SELECT tenant, '', 'runs of the workflow ' || workflow || ' in the phase ' || phase || ' are counted as ' || sum(kept) || ' with ' || sum(kept_children)
			|| ' children, and there are ' || sum(there) || ' with ' || sum(there_children)
		FROM (SELECT tenant, workflow, phase, runs AS kept, children AS kept_children, 0 AS there, 0 AS there_children FROM run_counts
			UNION ALL SELECT tenant, workflow, phase, 0, 0, count(*), count(*) FILTER (WHERE parent <> '') FROM runs GROUP BY tenant, workflow, phase) AS c
		GROUP BY tenant, workflow, phase HAVING sum(kept) <> sum(there) OR sum(kept_children) <> sum(there_children)`

// RunCounts implements [host.Store].
func (s *Store) RunCounts(ctx context.Context, tenant string) ([]host.RunCount, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT workflow, phase, runs, children FROM run_counts
		WHERE tenant = ? AND runs > 0 ORDER BY workflow, phase`, tenant)
	if err != nil {
		return nil, notFound(err, "counts of runs")
	}
	counts, err := scanAll(rows, func(n *host.RunCount) []any { return []any{&n.Workflow, (*string)(&n.Phase), &n.Runs, &n.Children} })
	return counts, notFound(err, "counts of runs")
}
