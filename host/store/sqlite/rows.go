package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/record"
)

// rowColumns are the columns that scanRow reads, in its order. A long result stays where it
// is.
var rowColumns = strings.Replace(runColumns, "result,", fmt.Sprintf("CASE WHEN length(result) <= %d THEN result END,", host.MaxRowResult), 1) +
	", phase, result IS NOT NULL"

func scanRow(row scanner) (r host.RunRow, err error) {
	var stored bool
	r.Run, err = scanRun(rowScanner{row, &r.Phase, &stored})
	r.LongResult = stored && r.Result == nil && r.Status == host.StatusCompleted
	return r, err
}

// rowScanner scans the columns of a row behind those of a run.
type rowScanner struct {
	row    scanner
	phase  *host.Phase
	stored *bool
}

// Scan implements scanner.
func (s rowScanner) Scan(dest ...any) error {
	return s.row.Scan(append(dest, (*string)(s.phase), s.stored)...)
}

// Rows implements [host.Store]. Each walk goes along an index in the order of the answer
// and stops one row after the limit. With several phases, one walk for each is merged. The
// rows of few handlers are sorted.
func (s *Store) Rows(ctx context.Context, q host.RowQuery) (rows []host.RunRow, more bool, err error) {
	if len(q.Search) > 0 {
		if err := s.readAllEnded(ctx); err != nil {
			return nil, false, notFound(err, "runs")
		}
	}
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true}) // one snapshot for all walks
	if err != nil {
		return nil, false, notFound(err, "runs")
	}
	defer func() { _ = tx.Rollback() }()
	limit := record.Page(q.Limit)
	walks := rowWalks(&q)
	for i := range walks {
		if rows, err = walks[i].readRows(ctx, tx, rows, &q, limit+1); err != nil {
			return nil, false, notFound(err, "runs")
		}
	}
	rows, more = record.CutRows(rows, limit, q.Back)
	return rows, more, nil
}

// rowWalks chooses the index that a query walks along: that of its most selective filter.
func rowWalks(q *host.RowQuery) []listing {
	l := listing{index: "runs_all"}
	phases := record.Distinct(q.Phases)
	switch {
	case q.Handler != "":
		l.index = "runs_handler"
		l.filter("hid = (SELECT id FROM handlers WHERE tenant = ? AND handler = ?)", q.Tenant, q.Handler)
	case q.Session != "":
		l.index = "runs_handler"
		l.filter(`hid IN (SELECT hid FROM runs INDEXED BY runs_session
			WHERE sid = (SELECT id FROM sessions WHERE tenant = ? AND session = ?) AND latest = 1)`, q.Tenant, q.Session)
	case q.Parent != "":
		l.index = "runs_parent"
	case q.ForkedFrom != "":
		l.index = "runs_forked"
	case len(phases) > 0:
		walks := make([]listing, 0, len(phases))
		for _, p := range phases {
			l := listing{index: "runs_phase"}
			l.filter("phase = ?", string(p))
			walks = append(walks, l.rowFilters(q))
		}
		return walks
	}
	if len(phases) > 0 {
		l.filterIn("phase", record.Texts(phases))
	}
	return []listing{l.rowFilters(q)}
}

// rowFilters adds the filters that every walk has.
func (l listing) rowFilters(q *host.RowQuery) listing {
	l.filter("tenant = ?", q.Tenant)
	l.filterIn("workflow", record.Distinct(q.Workflows))
	if q.Session != "" {
		l.filter("session = ?", q.Session)
	}
	if q.Parent != "" {
		l.filter("parent = ? AND parent <> ''", q.Parent)
	} else if !q.WithChildren() {
		l.filter("parent = ''")
	}
	if q.ForkedFrom != "" {
		l.filter("forked_from = ? AND forked_from <> ''", q.ForkedFrom)
	}
	if q.ID != "" {
		end := q.ID + "\U0010ffff"
		l.filter(`id IN (SELECT id FROM runs WHERE tenant = ? AND run >= ? AND run < ?
			UNION ALL SELECT id FROM runs WHERE hid IN (SELECT id FROM handlers WHERE tenant = ? AND handler >= ? AND handler < ?))`,
			q.Tenant, q.ID, end, q.Tenant, q.ID, end)
	}
	if q.Version != "" {
		l.filter("substr(version, 1, ?) = ?", len(q.Version), q.Version)
	}
	if q.ErrorCode != "" {
		l.filter("error_code = ?", q.ErrorCode)
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
		l.filter("status <> 'running' AND id IN (SELECT of FROM run_words WHERE run_words MATCH ?)", matchOf(q.Tenant, q.Search))
	}
	if q.From != nil {
		order := "<"
		if q.Back {
			order = ">"
		}
		l.filter("(started, run) "+order+" (?, ?)", q.From.Started, q.From.RunID)
	}
	return l
}

// rowStatement returns the walk as SQL. Its last argument is the limit.
func (l *listing) rowStatement(back bool) string {
	order := " ORDER BY started DESC, run DESC LIMIT ?"
	if back {
		order = " ORDER BY started, run LIMIT ?"
	}
	return "SELECT " + rowColumns + " FROM runs INDEXED BY " + l.index + " WHERE " + strings.Join(l.where, " AND ") + order
}

// readRows appends the walk's rows to the given rows.
func (l *listing) readRows(ctx context.Context, tx *sql.Tx, list []host.RunRow, q *host.RowQuery, limit int) ([]host.RunRow, error) {
	rows, err := tx.QueryContext(ctx, l.rowStatement(q.Back), append(l.args, limit)...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		r, err := scanRow(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, rows.Err()
}
