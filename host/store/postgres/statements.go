package postgres

import (
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/kv"
	"github.com/weftrun/weft/host/store/record"
)

// counted is a statement that must write as many rows as $1 says. of returns its rows.
func counted(of string) string {
	return "WITH w AS (" + of + " RETURNING 1) SELECT expect((SELECT count(*) FROM w) = $1, '" + codeRefused + "')"
}

var (
	insertSessions = counted(`INSERT INTO sessions (id, part, tenant, session, last, wake_at, private, created, updated, bytes, state, snapshot)
		SELECT id, part, tenant, session, last, nullif(wake, -1), private, at, at, bytes, state, snapshot
		FROM unnest($2::bigint[], $3::smallint[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::boolean[], $9::bigint[],
			$10::bigint[], $11::bigint[], $12::bigint[])
			AS u (id, part, tenant, session, last, wake, private, at, bytes, state, snapshot)
		ON CONFLICT DO NOTHING`)
	updateSessions = counted(`UPDATE sessions s SET last = u.last, wake_at = nullif(u.wake, -1), private = s.private OR u.private,
			updated = u.at, bytes = s.bytes + u.bytes, state = u.state,
			snapshot = CASE WHEN u.snapshot > 0 THEN u.snapshot ELSE s.snapshot END
		FROM unnest($2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[], $8::boolean[], $9::bigint[],
			$10::bigint[], $11::bigint[], $12::bigint[])
			AS u (id, tenant, session, prev, last, wake, private, at, bytes, state, snapshot)
		WHERE s.id = u.id AND s.tenant = u.tenant AND s.session = u.session AND s.last = u.prev`)
	insertHandlers = `WITH w AS (INSERT INTO handlers (id, tenant, handler, sid, first_seq, made)
			SELECT * FROM unnest($2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[])
			ON CONFLICT (tenant, handler) DO UPDATE SET first_seq = excluded.first_seq WHERE handlers.sid = excluded.sid
			RETURNING id),
		superseded AS (UPDATE runs SET latest = false FROM w WHERE w.id <> ALL ($2) AND runs.hid = w.id AND runs.latest)
		SELECT expect((SELECT count(*) FROM w) = $1, '` + codeRefused + `')`
	insertRuns = `WITH w AS (INSERT INTO runs (id, hid, sid, latest, paused, started, updated, completed, steps, fuel, tenant, handler, run,
				session, workflow, version, status, error_code, blocked_code, blocked_message, error, waiting, result,
				phase, parent, parent_step, forked_from, forked_at, retried_from)
			SELECT u.id, h.id, u.sid, u.latest, u.paused, u.started, u.updated, u.completed, u.steps, u.fuel, u.tenant, u.handler, u.run,
				u.session, u.workflow, u.version, u.status, u.error_code, u.blocked_code, u.blocked_message, u.error, u.waiting, u.result,
				u.phase, u.parent, u.parent_step, u.forked_from, u.forked_at, u.retried_from
			FROM unnest(` + runArrays + `) AS u (` + runNames + `)
				JOIN handlers h ON h.tenant = u.tenant AND h.handler = u.handler
			ON CONFLICT (tenant, run) DO NOTHING RETURNING id, status),
		` + noteRuns
	updateRuns = `WITH w AS (UPDATE runs r SET status = u.status, updated = u.updated, completed = u.completed, paused = u.paused,
				blocked_code = u.blocked_code, blocked_message = u.blocked_message, steps = u.steps, fuel = u.fuel, error = u.error,
				error_code = u.error_code, result = u.result, waiting = u.waiting, version = u.version, phase = u.phase
			FROM unnest(` + runArrays + `) AS u (` + runNames + `)
			WHERE r.tenant = u.tenant AND r.run = u.run AND r.handler = u.handler AND r.session = u.session
				AND r.workflow = u.workflow AND r.started = u.started
			RETURNING r.id, r.status),
		` + noteRuns
	insertStream = counted(`INSERT INTO stream (hid, first_seq, last_seq, run, events)
		SELECT h.id, u.first, u.last, u.run, u.events
		FROM unnest($2::bigint[], $3::text[], $4::text[], $5::bigint[], $6::bigint[], $7::text[], $8::bytea[])
				AS u (sid, tenant, handler, first, last, run, events)
			JOIN handlers h ON h.tenant = u.tenant AND h.handler = u.handler AND h.sid = u.sid
		WHERE u.first > coalesce((SELECT max(last_seq) FROM stream WHERE hid = h.id), -1)`)
)

const (
	runNames = `id, sid, latest, paused, started, updated, completed, steps, fuel, tenant, handler, run,
				session, workflow, version, status, error_code, blocked_code, blocked_message, error, waiting, result,
				phase, parent, parent_step, forked_from, forked_at, retried_from`
	runArrays = `$2::bigint[], $3::bigint[], $4::boolean[], $5::boolean[], $6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[],
				$10::bigint[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::text[],
				$19::text[], $20::bytea[], $21::bytea[], $22::bytea[], $23::bytea[],
				$24::text[], $25::text[], $26::text[], $27::text[], $28::bigint[], $29::text[]`
	// noteRuns notes the runs that have ended, for the index of words.
	noteRuns = `note AS (INSERT INTO unread (runs) SELECT array_agg(id) FROM w WHERE status <> 'running' HAVING count(*) > 0)
		SELECT expect((SELECT count(*) FROM w) = $1, '` + codeRefused + `')`

	insertJournal = `INSERT INTO journal (sid, first, snapshot, data)
		SELECT sid, first, nullif(snapshot, 0), data FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[])
			AS u (sid, first, snapshot, data)`
	useVersions = `INSERT INTO session_versions (sid, version, last) SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[])
		ON CONFLICT (sid, version) DO UPDATE SET last = greatest(session_versions.last, excluded.last)`
	cutJournal = `DELETE FROM journal j USING unnest($1::bigint[], $2::bigint[]) AS u (sid, at)
		WHERE j.sid = u.sid AND j.first < (SELECT max(first) FROM journal k WHERE k.sid = u.sid AND k.snapshot <= u.at)`
	countJournal = `UPDATE sessions s SET bytes = j.bytes,
			unlisted = CASE WHEN s.unlisted < j.first THEN 0 ELSE s.unlisted END
		FROM (SELECT sid, sum(octet_length(data)) AS bytes, min(first) AS first FROM journal WHERE sid = ANY ($1::bigint[]) GROUP BY sid) j
		WHERE s.id = j.sid`
	cutVersions = `DELETE FROM session_versions v WHERE sid = ANY ($1::bigint[])
		AND last < (SELECT min(first) FROM journal WHERE sid = v.sid)`
	setFirstSeq = `UPDATE handlers h SET first_seq = coalesce((SELECT max(last_seq) FROM stream WHERE hid = h.id), -1) + 1
		FROM (SELECT DISTINCT * FROM unnest($1::text[], $2::text[])) AS u (tenant, handler)
		WHERE h.tenant = u.tenant AND h.handler = u.handler AND h.first_seq < 0`
	putRepeats = `INSERT INTO repeats (tenant, route, key, hash, run, made)
		SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[])
		ON CONFLICT (tenant, route, key) DO UPDATE SET hash = excluded.hash, run = excluded.run, made = excluded.made`

	sumSpent = `INSERT INTO spent AS s (tenant, month, epoch, runs, fuel, log_bytes)
		SELECT tenant, month, 0, runs, fuel, log_bytes FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
			AS u (tenant, month, runs, fuel, log_bytes)
		ON CONFLICT (tenant, month, epoch) DO UPDATE SET runs = s.runs + excluded.runs, fuel = s.fuel + excluded.fuel,
			log_bytes = s.log_bytes + excluded.log_bytes`
	putSpaces = `INSERT INTO kv_spaces (id, tenant, resource, made, last, keys, bytes)
		SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
			AS u (id, tenant, resource, made, last, keys, bytes)
		WHERE made = 0 OR EXISTS (SELECT FROM resources r WHERE r.tenant = u.tenant AND r.name = u.resource AND r.created = u.made)
		ON CONFLICT (tenant, resource, made) DO UPDATE SET last = excluded.last, keys = excluded.keys, bytes = excluded.bytes`
	kvItems = `unnest($4::bigint[], $5::bytea[], $6::bigint[], $7::bytea[]) AS u (n, key, version, value)
		JOIN unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS p (tenant, resource, made, n) ON p.n = u.n
		JOIN kv_spaces s ON s.tenant = p.tenant AND s.resource = p.resource AND s.made = p.made`
	putItems = `INSERT INTO kv (space, key, version, value) SELECT s.id, u.key, u.version, u.value FROM ` + kvItems + `
		WHERE u.value IS NOT NULL ON CONFLICT (space, key) DO UPDATE SET version = excluded.version, value = excluded.value`
	deleteItems = `DELETE FROM kv USING (SELECT s.id, u.key FROM ` + kvItems + ` WHERE u.value IS NULL AND u.version > 0) AS d
		WHERE kv.space = d.id AND kv.key = d.key`

	// dropRuns deletes ended runs, in the order of their naming. The latest run of a
	// handler is deleted only as its last one, and then with the handler. A private session
	// may be deleted with it, but only if the session has nothing to do.
	dropRuns = `WITH named AS (SELECT r.id, r.hid, r.sid, r.run, r.latest, u.n
			FROM unnest($1::bigint[], $2::text[], $3::text[]) WITH ORDINALITY AS u (sid, tenant, run, n)
				JOIN runs r ON r.tenant = u.tenant AND r.run = u.run AND r.sid = u.sid AND r.completed > 0),
		gone AS (SELECT id, hid, run, latest FROM named d WHERE NOT latest OR
			NOT EXISTS (SELECT FROM runs o WHERE o.hid = d.hid AND o.id <> d.id
				AND NOT EXISTS (SELECT FROM named e WHERE e.id = o.id AND e.n < d.n))
			AND NOT EXISTS (SELECT FROM sessions s WHERE s.id = d.sid AND s.private AND s.wake_at IS NOT NULL)),
		gone_events AS (DELETE FROM stream e USING gone WHERE e.hid = gone.hid AND e.run = gone.run),
		gone_handlers AS (DELETE FROM handlers h USING gone WHERE h.id = gone.hid AND gone.latest)
		DELETE FROM runs r USING gone WHERE r.id = gone.id`
	purgeHandlers = `WITH gone AS (DELETE FROM handlers h USING unnest($1::bigint[], $2::text[], $3::text[]) AS u (sid, tenant, handler)
			WHERE h.tenant = u.tenant AND h.handler = u.handler AND h.sid = u.sid RETURNING h.id),
		gone_events AS (DELETE FROM stream e USING gone WHERE e.hid = gone.id)
		DELETE FROM runs r USING gone WHERE r.hid = gone.id`
	leaveSessions = `WITH gone AS (DELETE FROM sessions s WHERE s.id = ANY ($1::bigint[]) AND s.private
			AND NOT EXISTS (SELECT FROM runs WHERE sid = s.id AND latest) RETURNING id),
		gone_versions AS (DELETE FROM session_versions v USING gone WHERE v.sid = gone.id)
		DELETE FROM journal j USING gone WHERE j.sid = gone.id`
)

// erased are the next handlers of session $1 to delete. A statement looks at the rows of
// these only, so its time does not grow with the session or the tables.
const erased = `(SELECT hid FROM runs WHERE sid = $1 AND latest ORDER BY started DESC, handler DESC LIMIT $2)`

// erasers delete at most about $2 rows each of session $1, in this order. A later one
// begins when the one before has left nothing.
var erasers = []string{
	`UPDATE sessions SET last = 0, wake_at = 0, bytes = 0, state = 0 WHERE id = $1 AND $2::bigint > 0`,
	`DELETE FROM stream WHERE (hid, last_seq) IN (SELECT e.hid, e.last_seq FROM ` + erased + ` h JOIN stream e ON e.hid = h.hid LIMIT $2)`,
	`DELETE FROM runs WHERE id IN (SELECT r.id FROM ` + erased + ` h JOIN runs r ON r.hid = h.hid AND NOT r.latest
		WHERE NOT EXISTS (SELECT FROM ` + erased + ` h JOIN stream e ON e.hid = h.hid) LIMIT $2)`,
	`WITH found AS (SELECT hid FROM ` + erased + ` h
			WHERE NOT EXISTS (SELECT FROM ` + erased + ` h JOIN stream e ON e.hid = h.hid)
			AND NOT EXISTS (SELECT FROM ` + erased + ` h JOIN runs r ON r.hid = h.hid AND NOT r.latest)),
		gone_handlers AS (DELETE FROM handlers h USING found WHERE h.id = found.hid)
		DELETE FROM runs r USING found WHERE r.hid = found.hid`,
	`DELETE FROM journal WHERE sid = $1 AND NOT EXISTS (SELECT FROM runs WHERE sid = $1 AND latest)
		AND first IN (SELECT first FROM journal WHERE sid = $1 ORDER BY first LIMIT greatest($2 / 8, 1))`,
	`WITH gone AS (DELETE FROM sessions s WHERE id = $1 AND last = 0 AND $2::bigint > 0
			AND NOT EXISTS (SELECT FROM runs WHERE sid = s.id AND latest) AND NOT EXISTS (SELECT FROM journal WHERE sid = s.id) RETURNING id)
		DELETE FROM session_versions v USING gone WHERE v.sid = gone.id`,
}

// flush adds the wave's statements.
func (w *wave) flush(p *pipeline) {
	if c := &w.fresh; len(c.id) > 0 {
		p.add("a session has a position 1 already", insertSessions,
			len(c.id), c.id, c.part, c.tenant, c.session, c.last, c.wake, c.private, c.at, c.bytes, c.state, c.snapshot)
	}
	if c := &w.moved; len(c.id) > 0 {
		p.add("a session does not end before the position of its part", updateSessions,
			len(c.id), c.id, c.tenant, c.session, c.prev, c.last, c.wake, c.private, c.at, c.bytes, c.state, c.snapshot)
	}
	if c := &w.journal; len(c.sid) > 0 {
		p.add("a row of a journal exists already", insertJournal, c.sid, c.first, c.snapshot, c.data)
	}
	if c := &w.versions; len(c.sid) > 0 {
		p.add("versions of sessions", useVersions, c.sid, c.version, c.last)
	}
	if c := &w.cut; len(c.sid) > 0 {
		p.add("rows to cut", cutJournal, c.sid, c.at)
		p.add("rows to count", countJournal, c.sid)
		p.add("versions to cut", cutVersions, c.sid)
	}
	w.flushRuns(p)
	if c := &w.repeats; len(c.key) > 0 {
		p.add("requests", putRepeats, c.tenant, c.route, c.key, c.hash, c.run, c.made)
	}
	w.flushDeletes(p)
}

func (w *wave) flushRuns(p *pipeline) {
	if c := &w.handlers; len(c.id) > 0 {
		p.add("a handler belongs to another session", insertHandlers, len(c.id), c.id, c.tenant, c.handler, c.sid, c.first, c.made)
	}
	if len(w.started.id) > 0 {
		p.add("a started run exists already", insertRuns, w.started.args()...)
	}
	if len(w.changed.id) > 0 {
		p.add("a changed run does not exist", updateRuns, w.changed.args()...)
	}
	if c := &w.stream; len(c.sid) > 0 {
		p.add("a handler is not of the session, or its stream has such events already", insertStream,
			len(c.sid), c.sid, c.tenant, c.handler, c.first, c.last, c.run, c.events)
	}
	if c := &w.silent; len(c.handler) > 0 {
		p.add("runs without events", setFirstSeq, c.tenant, c.handler)
	}
}

// args are the arguments of statements with runArrays.
func (c *runColumns) args() []any {
	return []any{len(c.id), c.id, c.sid, c.latest, c.paused, c.started, c.updated, c.completed, c.steps, c.fuel, c.tenant, c.handler, c.run,
		c.session, c.workflow, c.version, c.status, c.errorCode, c.blockedCode, c.blockedMessage, c.err, c.waiting, c.result,
		c.phase, c.parent, c.parentStep, c.forkedFrom, c.forkedAt, c.retriedFrom}
}

func (w *wave) flushDeletes(p *pipeline) {
	if c := &w.drop; len(c.run) > 0 {
		p.add("runs to drop", dropRuns, c.sid, c.tenant, c.run)
	}
	if c := &w.purge; len(c.handler) > 0 {
		p.add("handlers to purge", purgeHandlers, c.sid, c.tenant, c.handler)
	}
	if len(w.left) > 0 {
		p.add("sessions to delete", leaveSessions, w.left)
	}
	for _, e := range w.erase {
		for _, statement := range erasers {
			p.add("rows to erase", statement, e.sid, e.limit)
		}
	}
}

// addSpent adds what tenants have spent.
func addSpent(p *pipeline, b *host.Batch) error {
	if len(b.Spent) == 0 {
		return nil
	}
	var tenants []string
	var months, runs, fuel, logs []int64
	for i := range b.Spent {
		m := &b.Spent[i]
		if m.Tenant == "" || m.Month <= 0 {
			return record.Refuse("spent by tenant %q in month %d", m.Tenant, m.Month)
		}
		tenants, months = append(tenants, text(m.Tenant)), append(months, int64(m.Month))
		runs, fuel, logs = append(runs, int64(m.Runs)), append(fuel, int64(m.Fuel)), append(logs, int64(m.LogBytes))
	}
	p.add("what was spent", sumSpent, tenants, months, runs, fuel, logs)
	return nil
}

// addKV adds writes to resources of the kind kv. Data of a tenant's definition is deleted
// with the definition. A later write has no effect.
func (s *Store) addKV(p *pipeline, list []kv.Write) error {
	if len(list) == 0 {
		return nil
	}
	spaces := map[kv.Space]int{}
	var ids, made, last, keys, bytes, of []int64
	var tenants, resources []string
	var versions []int64
	var names, values [][]byte
	for i := range list {
		w := &list[i]
		if w.Space.Tenant == "" || w.Space.Resource == "" || w.Item.Key == "" || w.Item.Version == 0 || w.Totals.Keys < 0 || w.Totals.Bytes < 0 {
			return record.Refuse("a write of the key %q to the resource %q of tenant %q, of version %d", w.Item.Key, w.Space.Resource, w.Space.Tenant, w.Item.Version)
		}
		at, some := spaces[w.Space]
		if !some {
			at = len(ids)
			spaces[w.Space] = at
			ids, made = append(ids, s.ids.next()), append(made, w.Space.Made)
			tenants, resources = append(tenants, text(w.Space.Tenant)), append(resources, text(w.Space.Resource))
			last, keys, bytes = append(last, 0), append(keys, 0), append(bytes, 0)
		}
		last[at], keys[at], bytes[at] = int64(w.Totals.Last), w.Totals.Keys, w.Totals.Bytes
		of, names = append(of, int64(at+1)), append(names, []byte(w.Item.Key))
		versions, values = append(versions, int64(w.Item.Version)), append(values, w.Item.Value)
	}
	p.add("spaces", putSpaces, ids, tenants, resources, made, last, keys, bytes)
	args := []any{tenants, resources, made, of, names, versions, values}
	p.add("items", putItems, args...)
	p.add("items to delete", deleteItems, args...)
	return nil
}
