package sqlite

import (
	"context"

	"github.com/weftrun/weft/host"
)

// schema18: how many runs each workflow has in each phase. Triggers keep the counts, so
// that every statement that changes runs changes them in its transaction.
const schema18 = `
CREATE TABLE run_counts (
	tenant   TEXT NOT NULL,
	workflow TEXT NOT NULL,
	phase    TEXT NOT NULL,
	runs     INTEGER NOT NULL,
	children INTEGER NOT NULL,
	PRIMARY KEY (tenant, workflow, phase)
) STRICT, WITHOUT ROWID;
INSERT INTO run_counts SELECT tenant, workflow, phase, count(*), count(*) FILTER (WHERE parent <> '') FROM runs GROUP BY tenant, workflow, phase;
CREATE TRIGGER runs_counted AFTER INSERT ON runs BEGIN
	INSERT INTO run_counts (tenant, workflow, phase, runs, children) VALUES (new.tenant, new.workflow, new.phase, 1, new.parent <> '')
		ON CONFLICT DO UPDATE SET runs = runs + 1, children = children + excluded.children;
END;
CREATE TRIGGER runs_recounted AFTER UPDATE OF phase ON runs WHEN old.phase <> new.phase BEGIN
	INSERT INTO run_counts (tenant, workflow, phase, runs, children) VALUES (new.tenant, new.workflow, new.phase, 1, new.parent <> '')
		ON CONFLICT DO UPDATE SET runs = runs + 1, children = children + excluded.children;
	UPDATE run_counts SET runs = runs - 1, children = children - (old.parent <> '')
		WHERE tenant = old.tenant AND workflow = old.workflow AND phase = old.phase;
END;
CREATE TRIGGER runs_uncounted AFTER DELETE ON runs BEGIN
	UPDATE run_counts SET runs = runs - 1, children = children - (old.parent <> '')
		WHERE tenant = old.tenant AND workflow = old.workflow AND phase = old.phase;
	DELETE FROM run_counts WHERE tenant = old.tenant AND workflow = old.workflow AND runs = 0;
END;
`

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
