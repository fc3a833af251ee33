package sqlite

import (
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/record"
)

// maxBranches bounds how many values of a filter are looked up one by one. With more
// values, a listing walks over all runs and filters.
const maxBranches = 8

// listing is one walk along an index of the latest runs, newest start first.
type listing struct {
	index string
	where []string
	args  []any
}

func (l *listing) filter(condition string, args ...any) {
	l.where = append(l.where, condition)
	l.args = append(l.args, args...)
}

// filterIn keeps the rows whose column has one of the values.
func (l *listing) filterIn(column string, values []string) {
	if len(values) == 0 {
		return
	}
	l.where = append(l.where, column+" IN (?"+strings.Repeat(", ?", len(values)-1)+")")
	for _, v := range values {
		l.args = append(l.args, v)
	}
}

// Runs implements [host.Store]. Each listing walks along an index in the order of the
// answer and stops one row after the limit. With several statuses or workflows, one walk
// for each is merged.
func (s *Store) Runs(ctx context.Context, q host.RunQuery) (runs []host.Run, more bool, err error) {
	limit := record.Page(q.Limit)
	if len(q.Search) > 0 {
		runs, more, err = s.search(ctx, q, limit)
		return runs, more, notFound(err, "runs")
	}
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // one snapshot for all walks
	if err != nil {
		return nil, false, notFound(err, "runs")
	}
	defer func() { _ = tx.Rollback() }()
	walks := listings(q)
	for _, l := range walks {
		if runs, err = l.read(ctx, tx, runs, limit+1); err != nil {
			return nil, false, notFound(err, "runs")
		}
	}
	if len(walks) > 1 {
		slices.SortFunc(runs, func(a, b host.Run) int { return -record.CompareStart(&a, &b) })
	}
	runs, more = record.Cut(runs, limit)
	return runs, more, nil
}

// listings chooses the index that a query walks along: that of its most selective filter.
func listings(q host.RunQuery) []listing {
	statuses, workflows := record.Distinct(q.Statuses), record.Distinct(q.Workflows)
	switch {
	case q.Session != "":
		l := listing{index: "runs_session"}
		l.filter("sid = (SELECT id FROM sessions WHERE tenant = ? AND session = ?)", q.Tenant, q.Session)
		l.filterIn("status", statuses)
		l.filterIn("workflow", workflows)
		return []listing{l.rest(q)}
	case q.Blocked:
		l := listing{index: "runs_blocked"}
		l.filter("tenant = ?", q.Tenant)
		l.filterIn("status", statuses)
		l.filterIn("workflow", workflows)
		return []listing{l.rest(q)}
	case len(workflows) > 0 && len(workflows) <= maxBranches:
		return branches(q, "runs_workflow", "workflow", workflows, "status", statuses)
	case len(statuses) > 0 && len(statuses) <= maxBranches:
		return branches(q, "runs_status", "status", statuses, "workflow", workflows)
	}
	l := listing{index: "runs_started"}
	l.filter("tenant = ?", q.Tenant)
	l.filterIn("status", statuses)
	l.filterIn("workflow", workflows)
	return []listing{l.rest(q)}
}

// branches returns one walk for each value of the index's first column.
func branches(q host.RunQuery, index, column string, values []string, other string, others []string) []listing {
	walks := make([]listing, 0, len(values))
	for _, v := range values {
		l := listing{index: index}
		l.filter("tenant = ?", q.Tenant)
		l.filter(column+" = ?", v)
		l.filterIn(other, others)
		walks = append(walks, l.rest(q))
	}
	return walks
}

// rest adds the filters that every listing has.
func (l listing) rest(q host.RunQuery) listing {
	l.filter("latest = 1")
	if q.Version != "" {
		l.filter("substr(version, 1, ?) = ?", len(q.Version), q.Version)
	}
	if q.ErrorCode != "" {
		l.filter("error_code = ?", q.ErrorCode)
	}
	if q.Blocked {
		l.filter("blocked_code IS NOT NULL")
	}
	if q.Since != 0 {
		l.filter("updated >= ?", q.Since)
	}
	if q.AfterStarted != 0 || q.AfterHandler != "" {
		l.filter("(started, handler) < (?, ?)", q.AfterStarted, q.AfterHandler)
	}
	return l
}

// statement returns the walk as SQL. Its last argument is the limit.
func (l listing) statement() string {
	return "SELECT " + runColumns + " FROM runs INDEXED BY " + l.index +
		" WHERE " + strings.Join(l.where, " AND ") + " ORDER BY started DESC, handler DESC LIMIT ?"
}

// read appends the walk's runs to the given runs.
func (l listing) read(ctx context.Context, tx *sql.Tx, runs []host.Run, limit int) ([]host.Run, error) {
	rows, err := tx.QueryContext(ctx, l.statement(), append(l.args, limit)...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		r, err := scanRun(rows)
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, rows.Err()
}

// CountRuns implements [host.Store].
func (s *Store) CountRuns(ctx context.Context, tenant string) ([]host.VersionRuns, error) {
	rows, err := s.query.countRuns.QueryContext(ctx, tenant)
	if err != nil {
		return nil, notFound(err, "the running runs")
	}
	defer func() { _ = rows.Close() }()
	var counts []host.VersionRuns
	for rows.Next() {
		var n host.VersionRuns
		if err := rows.Scan(&n.Workflow, &n.Version, &n.Runs); err != nil {
			return nil, notFound(err, "the running runs")
		}
		counts = append(counts, n)
	}
	return counts, notFound(rows.Err(), "the running runs")
}

// Tenants implements [host.Store]. It jumps along an index from one name to the next.
func (s *Store) Tenants(ctx context.Context) ([]string, error) {
	rows, err := s.read.QueryContext(ctx, `WITH RECURSIVE t (name) AS (
			SELECT min(tenant) FROM runs
			UNION ALL
			SELECT (SELECT min(tenant) FROM runs WHERE tenant > t.name) FROM t WHERE t.name IS NOT NULL)
		SELECT name FROM t WHERE name IS NOT NULL`)
	if err != nil {
		return nil, notFound(err, "the tenants")
	}
	defer func() { _ = rows.Close() }()
	var tenants []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, notFound(err, "the tenants")
		}
		tenants = append(tenants, name)
	}
	return tenants, notFound(rows.Err(), "the tenants")
}

const (
	endedQuery = `SELECT completed, run, handler, session FROM runs INDEXED BY runs_ended
		WHERE tenant = ?1 AND completed > 0 AND (completed, run) > (?2, ?3) AND (completed, run) <= (?4, ?5)
		ORDER BY completed, run LIMIT ?6`
	endedBehindQuery = `SELECT completed, run FROM runs INDEXED BY runs_ended
		WHERE tenant = ? AND completed > 0 ORDER BY completed DESC, run DESC LIMIT 1 OFFSET ?`
)

// Ended implements [host.Store].
func (s *Store) Ended(ctx context.Context, q host.EndedQuery) (runs []host.EndedRun, more bool, err error) {
	rows, err := s.read.QueryContext(ctx, endedQuery, q.Tenant, q.After.Completed, q.After.RunID,
		q.Until.Completed, q.Until.RunID, record.Page(q.Limit)+1)
	if err != nil {
		return nil, false, notFound(err, "ended runs")
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var r host.EndedRun
		if err := rows.Scan(&r.Completed, &r.RunID, &r.HandlerID, &r.SessionID); err != nil {
			return nil, false, notFound(err, "ended runs")
		}
		runs = append(runs, r)
	}
	runs, more = record.Cut(runs, record.Page(q.Limit))
	return runs, more, notFound(rows.Err(), "ended runs")
}

// EndedBehind implements [host.Store]. It walks over the newer runs in an index.
func (s *Store) EndedBehind(ctx context.Context, tenant string, newer int) (at host.EndedAt, err error) {
	err = s.read.QueryRowContext(ctx, endedBehindQuery, tenant, max(newer, 0)).Scan(&at.Completed, &at.RunID)
	return at, notFound(err, "an ended run")
}
