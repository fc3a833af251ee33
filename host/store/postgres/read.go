package postgres

import (
	"context"
	"math"

	"github.com/jackc/pgx/v5"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/record"
)

// runFields are the columns that scanRun reads, in its order.
const runFields = `tenant, handler, run, session, workflow, status, started, updated, completed, paused,
	blocked_code, blocked_message, steps, fuel, error, error_code, result, waiting, version,
	parent, parent_step, forked_from, forked_at, retried_from`

func scanRun(row pgx.Row) (host.Run, error) {
	var r host.Run
	var code *string
	var message, result, waiting []byte
	var steps, fuel, forkedAt int64
	err := row.Scan(nameTo{&r.Tenant}, nameTo{&r.HandlerID}, nameTo{&r.RunID}, nameTo{&r.SessionID}, nameTo{&r.Workflow}, (*string)(&r.Status),
		&r.Started, &r.Updated, &r.Completed, &r.Paused, &code, &message, &steps, &fuel,
		bytesTo{&r.Error}, nameTo{&r.ErrorCode}, &result, &waiting, nameTo{&r.Version},
		nameTo{&r.ParentRun}, nameTo{&r.ParentStep}, nameTo{&r.ForkedFrom}, &forkedAt, nameTo{&r.RetriedFrom})
	if err != nil {
		return host.Run{}, err
	}
	r.Steps, r.Fuel, r.ForkedAt = uint64(steps), uint64(fuel), uint64(forkedAt)
	if code != nil {
		r.Blocked = &host.Blocked{Message: string(message)}
		if r.Blocked.Code, err = name(*code); err != nil {
			return host.Run{}, err
		}
	}
	record.DecodeParts(&r, result, waiting)
	return r, nil
}

func runOf(row pgx.Rows) (host.Run, error) { return scanRun(row) }

// LoadSession implements [host.Store].
func (s *Store) LoadSession(ctx context.Context, key host.SessionKey) (stored host.StoredSession, err error) {
	err = s.read(ctx, func(q querier) error {
		stored, err = loadSession(ctx, q, key)
		return err
	})
	return stored, notFound(err, "session "+key.Session)
}

func loadSession(ctx context.Context, q querier, key host.SessionKey) (stored host.StoredSession, err error) {
	rows, err := q.Query(ctx, `SELECT s.last, coalesce(s.wake_at, -1), j.first, j.data
		FROM sessions s LEFT JOIN journal j ON j.sid = s.id AND j.first >= s.snapshot
		WHERE s.tenant = $1 AND s.session = $2 ORDER BY j.first`, text(key.Tenant), text(key.Session))
	if err != nil {
		return stored, err
	}
	defer rows.Close()
	exists := false
	for rows.Next() {
		exists = true
		var last int64
		var first *int64
		var data []byte
		if err := rows.Scan(&last, &stored.WakeAt, &first, &data); err != nil {
			return host.StoredSession{}, err
		}
		if last == 0 {
			return host.StoredSession{}, host.ErrErasing
		}
		stored.Last = uint64(last)
		if first != nil { // else the session has lost its journal, which the loader notices
			stored.Rows = append(stored.Rows, data)
		}
	}
	if err := rows.Err(); err != nil {
		return host.StoredSession{}, err
	}
	if !exists {
		return stored, pgx.ErrNoRows
	}
	return stored, nil
}

// Reread implements [host.Store]. Nothing is cached on this side.
func (s *Store) Reread(ctx context.Context, key host.SessionKey) (host.StoredSession, error) {
	return s.LoadSession(ctx, key)
}

// History implements [host.Store].
func (s *Store) History(ctx context.Context, key host.SessionKey, position, after uint64, limit int) ([]host.JournalRow, error) {
	type row struct {
		first *int64
		data  []byte
	}
	what := "session " + key.Session
	rows, err := list(ctx, s, what, `SELECT j.first, j.data FROM sessions s LEFT JOIN journal j ON j.sid = s.id AND j.first >=
				CASE WHEN $4::bigint > 0 THEN $4 + 1
				ELSE coalesce((SELECT max(first) FROM journal WHERE sid = s.id AND snapshot <= $3), 0) END
			WHERE s.tenant = $1 AND s.session = $2 AND s.last > 0 ORDER BY j.first LIMIT $5`,
		[]any{text(key.Tenant), text(key.Session), int64(min(position, math.MaxInt64)), int64(min(after, math.MaxInt64-1)), max(limit, 1)},
		fields(func(r *row) []any { return []any{&r.first, &r.data} }))
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, notFound(pgx.ErrNoRows, what)
	}
	var out []host.JournalRow
	for _, r := range rows {
		if r.first != nil { // else the session has no such rows
			out = append(out, host.JournalRow{First: uint64(*r.first), Data: r.data})
		}
	}
	return out, nil
}

// RereadHistory implements [host.Store].
func (s *Store) RereadHistory(ctx context.Context, key host.SessionKey, position, after uint64, limit int) ([]host.JournalRow, error) {
	return s.History(ctx, key, position, after, limit)
}

// Due implements [host.Store].
func (s *Store) Due(ctx context.Context, until int64, limit int) (due []host.SessionKey, next int64, err error) {
	const what = "the sessions that are due"
	err = s.read(ctx, func(q querier) error {
		due, err = collectRows(ctx, q, `SELECT tenant, session FROM sessions WHERE wake_at <= $1 ORDER BY wake_at, id LIMIT $2`,
			[]any{until, max(limit, 0)}, fields(func(k *host.SessionKey) []any { return []any{nameTo{&k.Tenant}, nameTo{&k.Session}} }))
		if err != nil {
			return err
		}
		return q.QueryRow(ctx, `SELECT coalesce(min(wake_at), -1) FROM sessions WHERE wake_at > $1`, until).Scan(&next)
	})
	return due, next, notFound(err, what)
}

// Handler implements [host.Store].
func (s *Store) Handler(ctx context.Context, tenant, id string) (h host.Handler, err error) {
	err = s.read(ctx, func(q querier) error {
		h.Run, err = scanRun(q.QueryRow(ctx, `SELECT `+runFields+` FROM runs
			WHERE hid = (SELECT id FROM handlers WHERE tenant = $1 AND handler = $2) AND latest`, text(tenant), text(id)))
		return err
	})
	if err != nil {
		return host.Handler{}, notFound(err, "handler "+id)
	}
	h.HandlerID, h.SessionID, h.Workflow = h.Run.HandlerID, h.Run.SessionID, h.Run.Workflow
	return h, nil
}

// Run implements [host.Store].
func (s *Store) Run(ctx context.Context, tenant, runID string) (r host.Run, err error) {
	err = s.read(ctx, func(q querier) error {
		r, err = scanRun(q.QueryRow(ctx, `SELECT `+runFields+` FROM runs WHERE tenant = $1 AND run = $2`, text(tenant), text(runID)))
		return err
	})
	return r, notFound(err, "run "+runID)
}

// pageBytes is roughly how many bytes of encoded events one call of Stream reads, so that
// a page of large events does not fill the memory of a slow reader.
const pageBytes = 4 << 20

// Stream implements [host.Store]. It returns fewer than limit events if the events are
// large, but an empty result only at the end. The sum over the rows before a row bounds
// what the server sends.
func (s *Store) Stream(ctx context.Context, tenant, handlerID string, after int64, limit int) (events []host.StreamEvent, err error) {
	what := "stream of handler " + handlerID
	limit = max(limit, 1)
	rows, err := list(ctx, s, what, `SELECT e.events FROM handlers h LEFT JOIN LATERAL
			(SELECT last_seq, events, sum(octet_length(events)) OVER (ORDER BY last_seq) - octet_length(events) AS before FROM
				(SELECT last_seq, events FROM stream WHERE hid = h.id AND last_seq > $3 ORDER BY last_seq LIMIT $4) s) e ON e.before < $5
		WHERE h.tenant = $1 AND h.handler = $2 ORDER BY e.last_seq`, []any{text(tenant), text(handlerID), after, limit, pageBytes},
		fields(func(data *[]byte) []any { return []any{data} }))
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, notFound(pgx.ErrNoRows, what)
	}
	for _, data := range rows {
		if data == nil || len(events) >= limit {
			break // the row of a handler without events, or enough
		}
		if events, err = record.DecodeEvents(events, data, after); err != nil {
			return nil, notFound(err, what)
		}
	}
	return events, nil
}

// StreamEnd implements [host.Store].
func (s *Store) StreamEnd(ctx context.Context, tenant, handlerID string) (last, latestRunFirst int64, err error) {
	err = s.one(ctx, "stream of handler "+handlerID, `SELECT coalesce((SELECT max(last_seq) FROM stream WHERE hid = h.id), -1), h.first_seq
		FROM handlers h WHERE h.tenant = $1 AND h.handler = $2`, []any{text(tenant), text(handlerID)}, &last, &latestRunFirst)
	return last, latestRunFirst, err
}

// Meta implements [host.Store].
func (s *Store) Meta(ctx context.Context, key string) (value []byte, err error) {
	err = s.one(ctx, "value "+key, `SELECT value FROM meta WHERE key = $1`, []any{text(key)}, &value)
	return value, err
}

// SetMeta implements [host.Store].
func (s *Store) SetMeta(ctx context.Context, key string, value []byte) error {
	return s.update(ctx, "writing value "+key, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO meta (key, value) VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET value = excluded.value`,
			text(key), blob(value))
		return err
	})
}

// infoFields are the columns that scanInfo reads. The runs of a session are found by the
// latest runs of its handlers, which have an index.
const infoFields = `s.id, s.tenant, s.session, s.created, s.updated,
	(SELECT count(*) FROM runs r JOIN runs o ON o.hid = r.hid WHERE r.sid = s.id AND r.latest),
	(SELECT count(*) FROM runs r JOIN runs o ON o.hid = r.hid WHERE r.sid = s.id AND r.latest AND o.status = 'running')`

func infoTo(i *host.SessionInfo) []any {
	return []any{&i.Order, nameTo{&i.Tenant}, nameTo{&i.SessionID}, &i.Created, &i.Updated, &i.Runs, &i.Active}
}

// Session implements [host.Store].
func (s *Store) Session(ctx context.Context, key host.SessionKey) (i host.SessionInfo, err error) {
	err = s.one(ctx, "session "+key.Session, `SELECT `+infoFields+` FROM sessions s WHERE s.tenant = $1 AND s.session = $2 AND s.last > 0`,
		[]any{text(key.Tenant), text(key.Session)}, infoTo(&i)...)
	return i, err
}

// Sessions implements [host.Store].
func (s *Store) Sessions(ctx context.Context, q host.SessionQuery) (all []host.SessionInfo, more bool, err error) {
	before := q.Before
	if before == 0 {
		before = math.MaxInt64
	}
	all, err = list(ctx, s, "the sessions", `SELECT `+infoFields+` FROM sessions s
		WHERE s.tenant = $1 AND s.id < $2 AND s.last > 0 ORDER BY s.id DESC LIMIT $3`,
		[]any{text(q.Tenant), before, record.Page(q.Limit) + 1}, fields(infoTo))
	all, more = record.Cut(all, record.Page(q.Limit))
	return all, more, err
}
