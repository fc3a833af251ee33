package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/record"
)

// maxBranches bounds how many values of a filter are looked up one by one. With more
// values, a listing walks over all runs and filters.
const maxBranches = 8

// listing is one walk along an index of the latest runs, newest start first.
type listing struct {
	where []string
	args  []any
}

// filter adds a condition, in which each ? is the next argument.
func (l *listing) filter(condition string, args ...any) {
	for _, a := range args {
		l.args = append(l.args, a)
		condition = strings.Replace(condition, "?", fmt.Sprint("$", len(l.args)), 1)
	}
	l.where = append(l.where, condition)
}

// filterIn keeps the rows whose column has one of the values.
func (l *listing) filterIn(column string, values []string) {
	if len(values) > 0 {
		l.filter(column+" = ANY (?::text[])", texts(values))
	}
}

// Runs implements [host.Store]. Each listing walks along an index in the order of the
// answer and stops one row after the limit. With several statuses or workflows, one walk
// for each is merged.
func (s *Store) Runs(ctx context.Context, q host.RunQuery) (runs []host.Run, more bool, err error) {
	limit := record.Page(q.Limit)
	if len(q.Search) > 0 {
		if err := s.readAllEnded(ctx); err != nil {
			return nil, false, notFound(err, "the words of runs")
		}
	}
	statement, args := listings(q, limit+1)
	runs, err = list(ctx, s, "runs", statement, args, runOf)
	if err != nil {
		return nil, false, err
	}
	slices.SortFunc(runs, func(a, b host.Run) int { return -record.CompareStart(&a, &b) })
	runs, more = record.Cut(runs, limit)
	return runs, more, nil
}

// listings returns one statement of all walks: one snapshot.
func listings(q host.RunQuery, limit int) (statement string, args []any) {
	statuses, workflows := record.Distinct(q.Statuses), record.Distinct(q.Workflows)
	l := listing{}
	switch {
	case q.Session != "" || q.Blocked || len(q.Search) > 0:
	case len(workflows) > 0 && len(workflows) <= maxBranches:
		return branches(q, limit, "workflow", workflows, "status", statuses)
	case len(statuses) > 0 && len(statuses) <= maxBranches:
		return branches(q, limit, "status", statuses, "workflow", workflows)
	}
	if q.Session != "" {
		l.filter("sid = (SELECT id FROM sessions WHERE tenant = ? AND session = ?)", text(q.Tenant), text(q.Session))
	} else {
		l.filter("tenant = ?", text(q.Tenant))
	}
	l.filterIn("status", statuses)
	l.filterIn("workflow", workflows)
	l.rest(q)
	return l.statement(limit), l.args
}

// branches returns one walk for each value of the index's column behind the tenant.
func branches(q host.RunQuery, limit int, column string, values []string, other string, others []string) (statement string, args []any) {
	var walks []string
	l := listing{}
	for _, v := range values {
		l.where = nil
		l.filter("tenant = ?", text(q.Tenant))
		l.filter(column+" = ?", text(v))
		l.filterIn(other, others)
		l.rest(q)
		walks = append(walks, "("+l.statement(limit)+")")
	}
	return strings.Join(walks, " UNION ALL "), l.args
}

// rest adds the filters that every listing has.
func (l *listing) rest(q host.RunQuery) {
	l.where = append(l.where, "latest")
	if q.Version != "" {
		l.filter("starts_with(version, ?)", text(q.Version))
	}
	if q.ErrorCode != "" {
		l.filter("error_code = ?", text(q.ErrorCode))
	}
	if q.Blocked {
		l.where = append(l.where, "blocked_code IS NOT NULL")
	}
	if q.Since != 0 {
		l.filter("updated >= ?", q.Since)
	}
	if q.AfterStarted != 0 || q.AfterHandler != "" {
		l.filter("(started, handler) < (?, ?)", q.AfterStarted, text(q.AfterHandler))
	}
	if len(q.Search) > 0 {
		l.filter("tenant = ?", text(q.Tenant))
		l.filter("status <> 'running' AND id IN (SELECT run FROM run_words WHERE words @@ ?::text::tsquery)", matchOf(q.Tenant, q.Search))
	}
}

// statement returns the walk as SQL.
func (l *listing) statement(limit int) string {
	return "SELECT " + runFields + " FROM runs WHERE " + strings.Join(l.where, " AND ") +
		fmt.Sprint(" ORDER BY started DESC, handler DESC LIMIT ", limit)
}

// CountRuns implements [host.Store].
func (s *Store) CountRuns(ctx context.Context, tenant string) ([]host.VersionRuns, error) {
	return list(ctx, s, "the running runs", `SELECT workflow, version, count(*) FROM runs
		WHERE tenant = $1 AND status = 'running' GROUP BY workflow, version ORDER BY workflow, version`, []any{text(tenant)},
		fields(func(n *host.VersionRuns) []any { return []any{nameTo{&n.Workflow}, nameTo{&n.Version}, &n.Runs} }))
}

// Tenants implements [host.Store]. It jumps along an index from one name to the next.
func (s *Store) Tenants(ctx context.Context) ([]string, error) {
	return list(ctx, s, "the tenants", `WITH RECURSIVE t (name) AS (
			(SELECT tenant FROM runs ORDER BY tenant LIMIT 1)
			UNION ALL
			SELECT (SELECT tenant FROM runs WHERE tenant > t.name ORDER BY tenant LIMIT 1) FROM t WHERE t.name IS NOT NULL)
		SELECT name FROM t WHERE name IS NOT NULL`, nil, fields(func(n *string) []any { return []any{nameTo{n}} }))
}

// Ended implements [host.Store].
func (s *Store) Ended(ctx context.Context, q host.EndedQuery) (runs []host.EndedRun, more bool, err error) {
	runs, err = list(ctx, s, "ended runs", `SELECT completed, run, handler, session FROM runs
		WHERE tenant = $1 AND completed > 0 AND (completed, run) > ($2, $3) AND (completed, run) <= ($4, $5)
		ORDER BY completed, run LIMIT $6`,
		[]any{text(q.Tenant), q.After.Completed, text(q.After.RunID), q.Until.Completed, text(q.Until.RunID), record.Page(q.Limit) + 1},
		fields(func(r *host.EndedRun) []any {
			return []any{&r.Completed, nameTo{&r.RunID}, nameTo{&r.HandlerID}, nameTo{&r.SessionID}}
		}))
	runs, more = record.Cut(runs, record.Page(q.Limit))
	return runs, more, err
}

// EndedBehind implements [host.Store]. It walks over the newer runs in an index.
func (s *Store) EndedBehind(ctx context.Context, tenant string, newer int) (at host.EndedAt, err error) {
	err = s.one(ctx, "an ended run", `SELECT completed, run FROM runs
		WHERE tenant = $1 AND completed > 0 ORDER BY completed DESC, run DESC LIMIT 1 OFFSET $2`,
		[]any{text(tenant), max(newer, 0)}, &at.Completed, nameTo{&at.RunID})
	return at, err
}

// update changes names, or values of the server, in a transaction of its own. If the
// connection is lost, update repeats the transaction: each call of fn must start from the
// beginning. what says what the change is, for errors.
func (s *Store) update(ctx context.Context, what string, fn func(tx pgx.Tx) error) error {
	err := s.lock(ctx)
	if err == nil {
		defer s.unlock()
		err = s.patiently(ctx, func() error { return s.change(ctx, fn) })
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
