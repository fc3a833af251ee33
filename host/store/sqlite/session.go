package sqlite

import (
	"context"
	"database/sql"
	"math"
	"slices"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/record"
)

// infoColumns are the columns that scanInfo reads. The runs of a session are found by the
// latest runs of its handlers, which have an index.
const infoColumns = `s.id, s.tenant, s.session, s.created, s.updated,
	(SELECT count(*) FROM runs r JOIN runs o ON o.hid = r.hid WHERE r.sid = s.id AND r.latest = 1),
	(SELECT count(*) FROM runs r JOIN runs o ON o.hid = r.hid WHERE r.sid = s.id AND r.latest = 1 AND o.status = 'running')`

func scanInfo(row scanner) (i host.SessionInfo, err error) {
	err = row.Scan(&i.Order, &i.Tenant, &i.SessionID, &i.Created, &i.Updated, &i.Runs, &i.Active)
	return i, err
}

// Session implements [host.Store].
func (s *Store) Session(ctx context.Context, key host.SessionKey) (host.SessionInfo, error) {
	i, err := scanInfo(s.query.info.QueryRowContext(ctx, key.Tenant, key.Session))
	return i, notFound(err, "session "+key.Session)
}

// Sessions implements [host.Store].
func (s *Store) Sessions(ctx context.Context, q host.SessionQuery) (list []host.SessionInfo, more bool, err error) {
	before := q.Before
	if before == 0 {
		before = math.MaxInt64
	}
	rows, err := s.query.sessions.QueryContext(ctx, q.Tenant, before, record.Page(q.Limit)+1)
	if err != nil {
		return nil, false, notFound(err, "the sessions")
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		i, err := scanInfo(rows)
		if err != nil {
			return nil, false, notFound(err, "the sessions")
		}
		list = append(list, i)
	}
	list, more = record.Cut(list, record.Page(q.Limit))
	return list, more, notFound(rows.Err(), "the sessions")
}

// eraseWindow is how many handlers are deleted at a time. Only their rows are looked at.
const eraseWindow = 64

// erasedHandlers are the next handlers of session ?1 to delete.
const erasedHandlers = `SELECT hid FROM runs INDEXED BY runs_session WHERE sid = ?1 AND latest = 1
	ORDER BY started DESC, handler DESC LIMIT 64`

// journalShare is how many other rows one row of the journal, which may be large, counts
// for in the limit of an erase.
const journalShare = 8

// eraser is a statement that deletes rows of a session.
type eraser struct {
	stmt    *sql.Stmt
	bounded bool // it takes a limit
}

func (e *eraser) erase(ctx context.Context, sid, most int64) (int64, error) {
	args := []any{sid}
	if e.bounded {
		args = append(args, most)
	}
	res, err := e.stmt.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// erase deletes about limit rows of a session, and then the session when no row is left.
func (s *Store) erase(ctx context.Context, sid int64, limit int) error {
	if _, err := s.stmts.markErased.ExecContext(ctx, sid); err != nil {
		return err
	}
	left := int64(limit)
	for done := false; !done; {
		for _, stmt := range []*eraser{{s.stmts.eraseEvents, true}, {s.stmts.eraseRuns, true}, {s.stmts.eraseHandlers, false}} {
			n, err := stmt.erase(ctx, sid, left)
			if left -= n; err != nil || left <= 0 {
				return err
			}
			done = n < eraseWindow // looked at after the last of the three
		}
	}
	rows := max(left/journalShare, 1)
	if n, err := (&eraser{s.stmts.eraseJournal, true}).erase(ctx, sid, rows); err != nil || n == rows {
		return err
	}
	if _, err := s.stmts.eraseSession.ExecContext(ctx, sid); err != nil {
		return err
	}
	s.needs = slices.DeleteFunc(s.needs, func(n need) bool { return n.sid == sid })
	return nil
}
