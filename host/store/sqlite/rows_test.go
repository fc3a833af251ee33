package sqlite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
)

// many is the number of runs of TestManyRows: what a page of the console must stand.
const many = 100_000

// A page of any list walks along an index in the order of the answer, so that it reads no
// more rows than it gives. Only the runs of a handler and of a session are sorted.
func TestRowsAlongIndexes(t *testing.T) {
	s := mustOpen(t, t.TempDir())
	for _, back := range []bool{false, true} {
		for _, q := range []host.RowQuery{
			{}, {Children: true}, {Workflows: []string{"flow"}}, {Phases: []host.Phase{host.PhaseWaiting, "failed"}}, {Parent: "r"}, {ForkedFrom: "r"},
			{ID: "abc"}, {StartedAfter: 5, StartedBefore: 9}, {ErrorCode: "timeout", Phases: []host.Phase{"failed"}}, {Handler: "h"}, {Session: "s"},
		} {
			q.Tenant, q.From, q.Back = host.DefaultTenant, &host.RowPlace{Started: 7, RunID: "r"}, back
			sorted := q.Handler != "" || q.Session != ""
			for _, l := range rowWalks(&q) {
				plan := planOf(t, s, l.rowStatement(q.Back), append(l.args, 3)...)
				if !strings.Contains(plan, "SEARCH runs USING INDEX "+l.index) || strings.Contains(plan, "SCAN runs") || strings.Contains(plan, "ORDER BY") != sorted {
					t.Errorf("%+v is answered by\n%s", q, plan)
				}
			}
		}
	}
}

func planOf(t *testing.T, s *Store, query string, args ...any) string {
	t.Helper()
	rows, err := s.read.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	var plan []string
	for rows.Next() {
		var id, parent, unused int
		var text string
		if err := rows.Scan(&id, &parent, &unused, &text); err != nil {
			t.Fatal(err)
		}
		plan = append(plan, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(plan, "\n")
}

// With a hundred thousand runs, every list is walked right to its end, and counts are
// those of a recount.
func TestManyRows(t *testing.T) {
	dir := t.TempDir()
	s := mustOpen(t, dir)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, dir, fmt.Sprintf(`WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO runs (hid, sid, latest, tenant, handler, run, session, workflow, status, started, updated, completed, paused, steps, fuel, error, error_code, phase, parent)
		SELECT i, i, 1, 'default', 'h' || i, 'r' || i, 's' || i, 'flow' || (i %% 7), CASE WHEN i %% 1000 = 0 THEN 'running' ELSE 'completed' END,
			i, i, i, 0, 1, 1, '', '', CASE WHEN i %% 1000 = 0 THEN 'waiting' ELSE 'completed' END, CASE WHEN i %% 10 = 0 THEN 'r1' ELSE '' END FROM n`, many))
	s = mustOpen(t, dir)
	for name, test := range map[string]struct {
		query host.RowQuery
		want  int
	}{
		"all":      {host.RowQuery{Children: true}, many},
		"top":      {host.RowQuery{}, many - many/10},
		"waiting":  {host.RowQuery{Phases: []host.Phase{host.PhaseWaiting}, Children: true}, many / 1000},
		"children": {host.RowQuery{Parent: "r1"}, many / 10},
		"by id":    {host.RowQuery{ID: "r9999"}, 11}, // r9999, r99990 to r99999
	} {
		q := test.query
		q.Tenant, q.Limit = host.DefaultTenant, host.MaxListed
		got, slowest := 0, time.Duration(0)
		for more := true; more; {
			begun := time.Now()
			page, others, err := s.Rows(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			slowest = max(slowest, time.Since(begun))
			if got, more = got+len(page), others; len(page) > 0 {
				q.From = &host.RowPlace{Started: page[len(page)-1].Started, RunID: page[len(page)-1].RunID}
			}
		}
		if got != test.want {
			t.Errorf("%s: %d rows, want %d", name, got, test.want)
		}
		t.Logf("%s: a page of 1,000 took at most %v", name, slowest)
	}
	counts, err := s.RunCounts(t.Context(), host.DefaultTenant)
	if err != nil {
		t.Fatal(err)
	}
	var sum, children int64
	for _, n := range counts {
		sum, children = sum+n.Runs, children+n.Children
	}
	if sum != many || children != many/10 || len(counts) != 14 {
		t.Errorf("%d runs, %d children in %d counts", sum, children, len(counts))
	}
}
