package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"path/filepath"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/record"
	"github.com/weftrun/weft/host/store/sqlite/schema"
)

// queries are the prepared statements of the reading connections. Each statement reads
// one snapshot of its own.
type queries struct {
	session, info, sessions, history, due, handler, run, stream, streamEnd, countRuns, versions, meta, repeat, module, notes, noted *sql.Stmt
	kvItem, kvItems, kvTotals                                                                                                       *sql.Stmt
}

// runColumns are the columns that scanRun reads, in its order.
const runColumns = `tenant, handler, run, session, workflow, status, started, updated, completed, paused,
	blocked_code, blocked_message, steps, fuel, error, error_code, result, waiting, version,
	parent, parent_step, forked_from, forked_at, retried_from`

// prepareQueries prepares the statements. For an older schema, which no server serves, it
// prepares only the statement that works on all schemas.
func prepareQueries(ctx context.Context, db *sql.DB, has int) (*queries, error) {
	q := &queries{}
	for _, p := range []struct {
		to  **sql.Stmt
		sql string
	}{
		{&q.session, sessionQuery},
		{&q.info, `SELECT ` + infoColumns + ` FROM sessions s WHERE s.tenant = ? AND s.session = ? AND s.last > 0`},
		{&q.sessions, `SELECT ` + infoColumns + ` FROM sessions s INDEXED BY sessions_tenant
			WHERE s.tenant = ? AND s.id < ? AND s.last > 0 ORDER BY s.id DESC LIMIT ?`},
		{&q.history, historyQuery},
		{&q.due, `SELECT * FROM (SELECT tenant, session, wake_at FROM sessions
				WHERE wake_at <= ?1 ORDER BY wake_at, id LIMIT ?2)
			UNION ALL
			SELECT NULL, NULL, min(wake_at) FROM sessions WHERE wake_at > ?1`},
		{&q.handler, `SELECT ` + runColumns + ` FROM runs
			WHERE hid = (SELECT id FROM handlers WHERE tenant = ? AND handler = ?) ORDER BY id DESC LIMIT 1`},
		{&q.run, `SELECT ` + runColumns + ` FROM runs WHERE tenant = ? AND run = ?`},
		{&q.stream, `SELECT s.events FROM handlers h LEFT JOIN stream s ON s.hid = h.id AND s.last_seq > ?3
			WHERE h.tenant = ?1 AND h.handler = ?2 ORDER BY s.last_seq LIMIT ?4`},
		{&q.streamEnd, `SELECT coalesce((SELECT max(last_seq) FROM stream WHERE hid = h.id), -1), h.first_seq
			FROM handlers h WHERE h.tenant = ? AND h.handler = ?`},
		{&q.countRuns, `SELECT workflow, version, count(*) FROM runs INDEXED BY runs_running
			WHERE tenant = ? AND status = 'running' GROUP BY workflow, version`},
		{&q.versions, `SELECT v.digest, n.last FROM sessions s LEFT JOIN session_versions n ON n.sid = s.id LEFT JOIN versions v ON v.id = n.version
			WHERE s.tenant = ? AND s.session = ? AND s.last > 0 ORDER BY v.digest`},
		{&q.meta, `SELECT value FROM meta WHERE key = ?`},
		{&q.repeat, `SELECT hash, run, made FROM repeats WHERE tenant = ? AND route = ? AND key = ?`},
		{&q.notes, `SELECT n, runs FROM unread ORDER BY n LIMIT ?`},
		{&q.noted, `SELECT id, ` + runColumns + ` FROM runs WHERE status <> 'running'
			AND id IN (SELECT value FROM json_each(?))`},
		{&q.module, `SELECT m.rewritten, m.image_hash, m.manifest, m.imports, b.bytes
			FROM modules m JOIN module_bytes b ON b.digest = m.digest WHERE m.digest = ?`},
		{&q.kvItem, `SELECT version, value FROM kv WHERE space = ` + ofSpace + ` AND key = ?4`},
		{&q.kvItems, `SELECT key, version, CASE WHEN ?8 THEN value END FROM kv
			WHERE space = ` + ofSpace + ` AND key > ?4 AND key >= ?5 AND key < ?6 ORDER BY key LIMIT ?7`},
		{&q.kvTotals, `SELECT last, keys, bytes FROM kv_spaces WHERE tenant = ?1 AND resource = ?2 AND made = ?3`},
	} {
		if has < schema.Newest && p.to != &q.module {
			continue
		}
		stmt, err := db.PrepareContext(ctx, p.sql) //nolint:sqlclosecheck // closing db closes it
		if err != nil {
			return nil, err
		}
		*p.to = stmt
	}
	return q, nil
}

// sessionQuery reads a session with its rows, from the newest snapshot on.
const sessionQuery = `SELECT s.last, s.wake_at, j.first, j.data FROM sessions s LEFT JOIN journal j ON j.sid = s.id AND j.first >= s.snapshot
	WHERE s.tenant = ? AND s.session = ? ORDER BY j.first`

// historyQuery reads rows of a session's journal: see [host.Store].
const historyQuery = `SELECT j.first, j.data FROM sessions s LEFT JOIN journal j ON j.sid = s.id AND j.first >=
				CASE WHEN ?4 > 0 THEN ?4 + 1
				ELSE coalesce((SELECT max(first) FROM journal WHERE sid = s.id AND snapshot <= ?3), 0) END
			WHERE s.tenant = ?1 AND s.session = ?2 AND s.last > 0 ORDER BY j.first LIMIT ?5`

// LoadSession implements [host.Store].
func (s *Store) LoadSession(ctx context.Context, key host.SessionKey) (host.StoredSession, error) {
	rows, err := s.query.session.QueryContext(ctx, key.Tenant, key.Session)
	if err != nil {
		return host.StoredSession{}, notFound(err, "session "+key.Session)
	}
	stored, err := scanSession(rows)
	return stored, notFound(err, "session "+key.Session)
}

// Reread implements [host.Store].
func (s *Store) Reread(ctx context.Context, key host.SessionKey) (stored host.StoredSession, err error) {
	err = s.anew(ctx, func(rows *sql.Rows) (err error) {
		stored, err = scanSession(rows)
		return err
	}, sessionQuery, key.Tenant, key.Session)
	return stored, notFound(err, "session "+key.Session)
}

// RereadHistory implements [host.Store].
func (s *Store) RereadHistory(ctx context.Context, key host.SessionKey, position, after uint64, limit int) (out []host.JournalRow, err error) {
	err = s.anew(ctx, func(rows *sql.Rows) (err error) {
		out, err = scanHistory(rows)
		return err
	}, historyQuery, historyArguments(key, position, after, limit)...)
	return out, notFound(err, "session "+key.Session)
}

// anew runs a query on a new connection. The other connections may have cached pages that
// a short read has filled with zeros.
func (s *Store) anew(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) (err error) {
	name, err := readerDSN(filepath.Join(s.dir, fileName))
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if err := scan(rows); err != nil {
		return err
	}
	return rows.Err()
}

func scanSession(rows *sql.Rows) (host.StoredSession, error) {
	var stored host.StoredSession
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var last int64
		var wake, first sql.NullInt64
		var data []byte
		if err := rows.Scan(&last, &wake, &first, &data); err != nil {
			return host.StoredSession{}, err
		}
		stored.Last = uint64(last)
		stored.WakeAt = wakeAt(wake)
		if last == 0 {
			return host.StoredSession{}, host.ErrErasing
		}
		if first.Valid { // else the session has lost its journal, which the loader notices
			stored.Rows = append(stored.Rows, data)
		}
	}
	if err := rows.Err(); err != nil {
		return host.StoredSession{}, err
	}
	if stored.Last == 0 {
		return stored, sql.ErrNoRows
	}
	return stored, nil
}

// History implements [host.Store].
func (s *Store) History(ctx context.Context, key host.SessionKey, position, after uint64, limit int) ([]host.JournalRow, error) {
	rows, err := s.query.history.QueryContext(ctx, historyArguments(key, position, after, limit)...)
	if err != nil {
		return nil, notFound(err, "session "+key.Session)
	}
	out, err := scanHistory(rows)
	return out, notFound(err, "session "+key.Session)
}

func historyArguments(key host.SessionKey, position, after uint64, limit int) []any {
	return []any{key.Tenant, key.Session, int64(min(position, math.MaxInt64)), int64(min(after, math.MaxInt64-1)), max(limit, 1)}
}

func scanHistory(rows *sql.Rows) ([]host.JournalRow, error) {
	defer func() { _ = rows.Close() }()
	var out []host.JournalRow
	exists := false
	for rows.Next() {
		exists = true
		var first sql.NullInt64
		var data []byte
		if err := rows.Scan(&first, &data); err != nil {
			return nil, err
		}
		if first.Valid { // else the session has no such rows
			out = append(out, host.JournalRow{First: uint64(first.Int64), Data: data})
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if !exists {
		return nil, sql.ErrNoRows
	}
	return out, nil
}

func wakeAt(column sql.NullInt64) int64 {
	if !column.Valid {
		return host.WakeNever
	}
	return column.Int64
}

// Due implements [host.Store].
func (s *Store) Due(ctx context.Context, until int64, limit int) (due []host.SessionKey, next int64, err error) {
	rows, err := s.query.due.QueryContext(ctx, until, max(limit, 0))
	if err != nil {
		return nil, 0, notFound(err, "the sessions that are due")
	}
	defer func() { _ = rows.Close() }()
	next = host.WakeNever
	for rows.Next() {
		var tenant, session sql.NullString
		var wake sql.NullInt64
		if err := rows.Scan(&tenant, &session, &wake); err != nil {
			return nil, 0, notFound(err, "the sessions that are due")
		}
		if session.Valid {
			due = append(due, host.SessionKey{Tenant: tenant.String, Session: session.String})
		} else {
			next = wakeAt(wake)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, 0, notFound(err, "the sessions that are due")
	}
	return due, next, nil
}

// Handler implements [host.Store].
func (s *Store) Handler(ctx context.Context, tenant, id string) (host.Handler, error) {
	r, err := scanRun(s.query.handler.QueryRowContext(ctx, tenant, id))
	if err != nil {
		return host.Handler{}, notFound(err, "handler "+id)
	}
	return host.Handler{HandlerID: r.HandlerID, SessionID: r.SessionID, Workflow: r.Workflow, Run: r}, nil
}

// Run implements [host.Store].
func (s *Store) Run(ctx context.Context, tenant, runID string) (host.Run, error) {
	r, err := scanRun(s.query.run.QueryRowContext(ctx, tenant, runID))
	return r, notFound(err, "run "+runID)
}

// scanner is a row of a result: *sql.Row or *sql.Rows.
type scanner interface{ Scan(dest ...any) error }

func scanRun(row scanner) (host.Run, error) {
	var r host.Run
	var status string
	var blockedCode, blockedMessage sql.NullString
	var steps, fuel, forkedAt int64
	var result, waiting []byte
	err := row.Scan(&r.Tenant, &r.HandlerID, &r.RunID, &r.SessionID, &r.Workflow, &status,
		&r.Started, &r.Updated, &r.Completed, &r.Paused, &blockedCode, &blockedMessage, &steps, &fuel,
		&r.Error, &r.ErrorCode, &result, &waiting, &r.Version,
		&r.ParentRun, &r.ParentStep, &r.ForkedFrom, &forkedAt, &r.RetriedFrom)
	if err != nil {
		return host.Run{}, err
	}
	r.Status = host.Status(status)
	r.Steps, r.Fuel, r.ForkedAt = uint64(steps), uint64(fuel), uint64(forkedAt)
	if blockedCode.Valid {
		r.Blocked = &host.Blocked{Code: blockedCode.String, Message: blockedMessage.String}
	}
	record.DecodeParts(&r, result, waiting)
	return r, nil
}

// pageBytes is roughly how many bytes of encoded events one call of Stream reads, so that
// a page of large events does not fill the memory of a slow reader.
const pageBytes = 4 << 20

// Stream implements [host.Store]. It returns fewer than limit events if the events are
// large, but an empty result only at the end.
func (s *Store) Stream(ctx context.Context, tenant, handlerID string, after int64, limit int) (_ []host.StreamEvent, err error) {
	defer func() { err = notFound(err, "stream of handler "+handlerID) }()
	rows, err := s.query.stream.QueryContext(ctx, tenant, handlerID, after, max(limit, 1))
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var events []host.StreamEvent
	exists, bytes := false, 0
	for len(events) < max(limit, 1) && bytes < pageBytes && rows.Next() {
		exists = true
		var data []byte
		if err := rows.Scan(&data); err != nil {
			return nil, err
		}
		if data == nil {
			continue // the row of a handler without events
		}
		bytes += len(data)
		if events, err = record.DecodeEvents(events, data, after); err != nil {
			return nil, err
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if !exists {
		return nil, sql.ErrNoRows
	}
	return events, nil
}

// StreamEnd implements [host.Store].
func (s *Store) StreamEnd(ctx context.Context, tenant, handlerID string) (last, latestRunFirst int64, err error) {
	err = s.query.streamEnd.QueryRowContext(ctx, tenant, handlerID).Scan(&last, &latestRunFirst)
	if err != nil {
		return 0, 0, notFound(err, "stream of handler "+handlerID)
	}
	return last, latestRunFirst, nil
}

// Meta implements [host.Store].
func (s *Store) Meta(ctx context.Context, key string) ([]byte, error) {
	var value []byte
	err := s.query.meta.QueryRowContext(ctx, key).Scan(&value)
	return value, notFound(err, "value "+key)
}

// SetMeta implements [host.Store].
func (s *Store) SetMeta(ctx context.Context, key string, value []byte) error {
	if value == nil {
		value = []byte{} // nil would be NULL
	}
	err := s.update(ctx, func(ctx context.Context) error {
		_, err := s.conn.ExecContext(ctx,
			`INSERT INTO meta (key, value) VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = ?2`, key, value)
		return err
	})
	if err != nil {
		return fmt.Errorf("writing value %s: %w", key, err)
	}
	return nil
}
