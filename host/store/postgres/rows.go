package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/record"
)

// rowFields are the columns that scanRow reads, in its order. A long result stays where it
// is.
var rowFields = strings.Replace(runFields, "result,", fmt.Sprintf("CASE WHEN octet_length(result) <= %d THEN result END,", host.MaxRowResult), 1) +
	", phase, result IS NOT NULL"

func scanRow(row pgx.Rows) (r host.RunRow, err error) {
	var stored bool
	r.Run, err = scanRun(rowScanner{row, &r.Phase, &stored})
	r.LongResult = stored && r.Result == nil && r.Status == host.StatusCompleted
	return r, err
}

// rowScanner scans the columns of a row behind those of a run.
type rowScanner struct {
	row    pgx.Row
	phase  *host.Phase
	stored *bool
}

// Scan implements [pgx.Row].
func (s rowScanner) Scan(dest ...any) error {
	return s.row.Scan(append(dest, (*string)(s.phase), s.stored)...)
}

// Rows implements [host.Store]. Each walk goes along an index in the order of the answer
// and stops one row after the limit. With several phases, one walk for each is merged. The
// rows of few handlers are sorted.
func (s *Store) Rows(ctx context.Context, q host.RowQuery) (rows []host.RunRow, more bool, err error) {
	if len(q.Search) > 0 {
		if err := s.readAllEnded(ctx); err != nil {
			return nil, false, notFound(err, "the words of runs")
		}
	}
	limit := record.Page(q.Limit)
	statement, args := rowWalks(&q, limit+1)
	if rows, err = list(ctx, s, "runs", statement, args, scanRow); err != nil {
		return nil, false, err
	}
	rows, more = record.CutRows(rows, limit, q.Back)
	return rows, more, nil
}

// rowWalks returns one statement of all walks: one snapshot.
func rowWalks(q *host.RowQuery, limit int) (statement string, args []any) {
	l := listing{}
	phases := record.Distinct(q.Phases)
	if q.Handler != "" || q.Session != "" || q.Parent != "" || q.ForkedFrom != "" || len(phases) == 0 {
		l.filterIn("phase", record.Texts(phases))
		l.rowFilters(q)
		return l.rowStatement(q.Back, limit), l.args
	}
	walks := make([]string, 0, len(phases))
	for _, p := range phases {
		l.where = nil
		l.filter("phase = ?", text(string(p)))
		l.rowFilters(q)
		walks = append(walks, "("+l.rowStatement(q.Back, limit)+")")
	}
	return strings.Join(walks, " UNION ALL "), l.args
}

// rowFilters adds the filters that every walk has.
func (l *listing) rowFilters(q *host.RowQuery) {
	l.filter("tenant = ?", text(q.Tenant))
	l.filterIn("workflow", record.Distinct(q.Workflows))
	if q.Handler != "" {
		l.filter("hid = (SELECT id FROM handlers WHERE tenant = ? AND handler = ?)", text(q.Tenant), text(q.Handler))
	}
	if q.Session != "" {
		l.filter(`session = ? AND hid IN (SELECT hid FROM runs WHERE latest
			AND sid = (SELECT id FROM sessions WHERE tenant = ? AND session = ?))`, text(q.Session), text(q.Tenant), text(q.Session))
	}
	if q.Parent != "" {
		l.filter("parent = ? AND parent <> ''", text(q.Parent))
	} else if !q.WithChildren() {
		l.filter("parent = ''")
	}
	if q.ForkedFrom != "" {
		l.filter("forked_from = ? AND forked_from <> ''", text(q.ForkedFrom))
	}
	if q.ID != "" {
		from := text(q.ID)
		end := from + "\U0010ffff"
		l.filter(`id IN (SELECT id FROM runs WHERE tenant = ? AND run >= ? AND run < ?
			UNION ALL SELECT r.id FROM handlers h JOIN runs r ON r.hid = h.id WHERE h.tenant = ? AND h.handler >= ? AND h.handler < ?)`,
			text(q.Tenant), from, end, text(q.Tenant), from, end)
	}
	if q.Version != "" {
		l.filter("starts_with(version, ?)", text(q.Version))
	}
	if q.ErrorCode != "" {
		l.filter("error_code = ?", text(q.ErrorCode))
	}
	for _, bound := range []struct {
		condition string
		at        int64
	}{{"updated >= ?", q.Since}, {"updated < ?", q.Until}, {"started >= ?", q.StartedAfter}, {"started < ?", q.StartedBefore}} {
		if bound.at != 0 {
			l.filter(bound.condition, bound.at)
		}
	}
	if len(q.Search) > 0 {
		l.filter("status <> 'running' AND id IN (SELECT run FROM run_words WHERE words @@ ?::text::tsquery)", matchOf(q.Tenant, q.Search))
	}
	switch {
	case q.From == nil:
	case q.Back:
		l.filter("(started, run) > (?, ?)", q.From.Started, text(q.From.RunID))
	default:
		l.filter("(started, run) < (?, ?)", q.From.Started, text(q.From.RunID))
	}
}

// rowStatement returns the walk as SQL.
func (l *listing) rowStatement(back bool, limit int) string {
	order := "started DESC, run DESC"
	if back {
		order = "started, run"
	}
	return "SELECT " + rowFields + " FROM runs WHERE " + strings.Join(l.where, " AND ") + fmt.Sprint(" ORDER BY ", order, " LIMIT ", limit)
}

// wrongCounts finds counts that differ from the runs.
const wrongCounts = `SELECT tenant, '' COLLATE "C", 'runs of the workflow ' || workflow || ' in the phase ' || phase || ' are counted as ' || sum(kept) || ' with ' || sum(kept_children)
			|| ' children, and there are ' || sum(there) || ' with ' || sum(there_children)
		FROM (SELECT tenant, workflow, phase, runs AS kept, children AS kept_children, 0 AS there, 0 AS there_children FROM run_counts
			UNION ALL SELECT tenant, workflow, phase, 0, 0, count(*), count(*) FILTER (WHERE parent <> '') FROM runs GROUP BY tenant, workflow, phase) AS c
		GROUP BY tenant, workflow, phase HAVING sum(kept) <> sum(there) OR sum(kept_children) <> sum(there_children)`

// RunCounts implements [host.Store].
func (s *Store) RunCounts(ctx context.Context, tenant string) ([]host.RunCount, error) {
	return list(ctx, s, "counts of runs", `SELECT workflow, phase, runs, children FROM run_counts
		WHERE tenant = $1 AND runs > 0 ORDER BY workflow, phase`, []any{text(tenant)},
		fields(func(n *host.RunCount) []any {
			return []any{nameTo{&n.Workflow}, (*string)(&n.Phase), &n.Runs, &n.Children}
		}))
}
