package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/inspect"
	"github.com/weftrun/weft/host/store/record"
)

// Inspection reads a store row by row, as it was at one moment. It keeps a transaction
// open. PostgreSQL cannot remove old versions of rows meanwhile, which slows the commits
// of a server down after some minutes. Only one goroutine at a time may use an Inspection.
// Its methods pass rows in order to a callback, which owns them and whose error ends the
// call. The callback must not call the inspection.
//
// # Errors
//
// [host.ErrUnreadable] for data that PostgreSQL reports as damaged; otherwise the errors of
// the connection, the context or the callback.
type Inspection struct {
	conn *pgx.Conn
	tx   pgx.Tx
}

// Inspect begins an inspection. Close ends it.
func (s *Store) Inspect(ctx context.Context) (*Inspection, error) {
	conn, err := s.connect(ctx, "inspect", unlimited)
	if err != nil {
		return nil, err
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, errors.Join(err, conn.Close(context.WithoutCancel(ctx)))
	}
	i := &Inspection{conn, tx}
	if _, err := tx.Exec(ctx, "SELECT FROM store"); err != nil { // fixes the moment
		return nil, errors.Join(err, i.Close())
	}
	return i, nil
}

// unlimited is for connections whose statements and transactions may take long.
func unlimited(c *pgx.ConnConfig) {
	c.RuntimeParams["statement_timeout"] = "0"
	c.RuntimeParams["idle_in_transaction_session_timeout"] = "0"
}

// Close ends the inspection.
func (i *Inspection) Close() error {
	ctx := context.Background()
	if i.conn.IsClosed() {
		return nil
	}
	return errors.Join(i.tx.Rollback(ctx), i.conn.Close(ctx))
}

// damaged marks errors of data that cannot be read.
func damaged(err error, what string) error {
	if code := codeOf(err); code == "XX001" || code == "XX002" {
		return fmt.Errorf("%s: %w: %w", what, host.ErrUnreadable, err)
	}
	return notFound(err, what)
}

// each passes the rows of a query.
func each[T any](ctx context.Context, i *Inspection, what, sql string, args []any, to func(*T) []any, pass func(T) error) error {
	rows, err := i.tx.Query(ctx, sql, args...)
	if err != nil {
		return damaged(err, what)
	}
	defer rows.Close()
	for rows.Next() {
		var v T
		if err := rows.Scan(to(&v)...); err != nil {
			return damaged(err, what)
		}
		if err := pass(v); err != nil {
			return err
		}
	}
	return damaged(rows.Err(), what)
}

// Integrity looks for indexes that PostgreSQL marks as invalid. PostgreSQL verifies pages
// by itself as it reads them, if the cluster has checksums.
func (i *Inspection) Integrity(ctx context.Context, found func(problem string) error) error {
	return each(ctx, i, "the indexes", `SELECT c.relname::text FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid
		WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'store'::regclass) AND NOT (x.indisvalid AND x.indisready)`, nil,
		func(name *string) []any { return []any{name} },
		func(name string) error { return found("the index " + name + " is not valid: execute REINDEX") })
}

// CountSessions returns the number of sessions.
func (i *Inspection) CountSessions(ctx context.Context) (n int, err error) {
	err = i.tx.QueryRow(ctx, "SELECT count(*) FROM sessions WHERE last > 0").Scan(&n)
	return n, damaged(err, "the sessions")
}

// Sessions lists sessions in the order of their ids, after the session with the given id.
// Sessions that are being deleted are left out.
func (i *Inspection) Sessions(ctx context.Context, after int64, limit int) (list []inspect.Session, err error) {
	err = each(ctx, i, "the sessions", `SELECT id, tenant, session, last, coalesce(wake_at, -1), private, unlisted FROM sessions
		WHERE id > $1 AND last > 0 ORDER BY id LIMIT $2`, []any{after, limit},
		func(r *inspect.Session) []any {
			return []any{&r.ID, nameTo{&r.Key.Tenant}, nameTo{&r.Key.Session}, &r.Last, &r.WakeAt, &r.Private, &r.Unlisted}
		},
		func(r inspect.Session) error {
			list = append(list, r)
			return nil
		})
	return list, err
}

// Journal passes the rows of a session's journal.
func (i *Inspection) Journal(ctx context.Context, session int64, pass func(host.JournalRow) error) error {
	return each(ctx, i, "the journal", `SELECT first, data FROM journal WHERE sid = $1 ORDER BY first`, []any{session},
		func(r *host.JournalRow) []any { return []any{&r.First, &r.Data} }, pass)
}

// Versions passes the versions that a session's journal needs.
func (i *Inspection) Versions(ctx context.Context, session int64, pass func(host.VersionUse) error) error {
	return each(ctx, i, "the versions", `SELECT v.digest, n.last FROM session_versions n JOIN versions v ON v.id = n.version
		WHERE n.sid = $1 ORDER BY v.digest`, []any{session},
		func(v *host.VersionUse) []any { return []any{nameTo{&v.Digest}, &v.Seq} }, pass)
}

// Handlers passes the handlers of a session. Like Runs and Stream it finds them by their
// latest runs, which have an index.
func (i *Inspection) Handlers(ctx context.Context, session int64, pass func(inspect.Handler) error) error {
	return each(ctx, i, "the handlers", `SELECT handler, first_seq FROM handlers
		WHERE id IN (SELECT hid FROM runs WHERE sid = $1 AND latest) AND sid = $1 ORDER BY id`, []any{session},
		func(r *inspect.Handler) []any { return []any{nameTo{&r.HandlerID}, &r.FirstSeq} }, pass)
}

// Runs passes the runs of a session.
func (i *Inspection) Runs(ctx context.Context, session int64, pass func(inspect.Run) error) error {
	rows, err := i.tx.Query(ctx, `SELECT latest, `+runFields+` FROM runs
		WHERE hid IN (SELECT hid FROM runs WHERE sid = $1 AND latest) ORDER BY id`, session)
	if err != nil {
		return damaged(err, "the runs")
	}
	defer rows.Close()
	for rows.Next() {
		var r inspect.Run
		if r.Run, err = scanRun(preceded{rows, &r.Latest}); err != nil {
			return damaged(err, "the runs")
		}
		if err := pass(r); err != nil {
			return err
		}
	}
	return damaged(rows.Err(), "the runs")
}

// Stream passes the stream rows of a session's handlers, grouped by handler and in order.
func (i *Inspection) Stream(ctx context.Context, session int64, pass func(inspect.Events) error) error {
	type row struct {
		inspect.Events
		data []byte
	}
	return each(ctx, i, "the streams", `SELECT h.handler, e.run, e.first_seq, e.last_seq, e.events FROM stream e JOIN handlers h ON h.id = e.hid
		WHERE h.id IN (SELECT hid FROM runs WHERE sid = $1 AND latest) ORDER BY h.id, e.last_seq`, []any{session},
		func(r *row) []any { return []any{nameTo{&r.HandlerID}, nameTo{&r.RunID}, &r.First, &r.Last, &r.data} },
		func(r row) error {
			r.Err = abi.Unmarshal(r.data, &r.Events.Events)
			return pass(r.Events)
		})
}

// Modules passes the stored modules with their bytes. Bytes are nil if they are missing.
func (i *Inspection) Modules(ctx context.Context, pass func(host.ModuleRecord) error) error {
	return each(ctx, i, "the modules", `SELECT m.digest, m.rewritten, m.image_hash, m.manifest, b.bytes
		FROM modules m LEFT JOIN module_bytes b ON b.digest = m.digest ORDER BY m.digest`, nil,
		func(m *host.ModuleRecord) []any {
			return []any{nameTo{&m.Digest}, nameTo{&m.Rewritten}, nameTo{&m.ImageHash}, someTo{(*[]byte)(&m.Manifest)}, &m.Bytes}
		}, func(m host.ModuleRecord) error {
			m.Bytes = record.ShownModule(m.Bytes)
			return pass(m)
		})
}

// loose are queries for rows that belong to nothing. They return the tenant, the session,
// and what is wrong.
var loose = []string{
	`SELECT r.tenant, r.session, 'run ' || r.run || ' belongs to no session' FROM runs r
		WHERE NOT EXISTS (SELECT FROM sessions s WHERE s.id = r.sid AND s.tenant = r.tenant AND s.session = r.session)`,
	`SELECT r.tenant, r.session, 'run ' || r.run || ' belongs to no handler of its session' FROM runs r
		WHERE NOT EXISTS (SELECT FROM handlers h WHERE h.id = r.hid AND h.tenant = r.tenant AND h.handler = r.handler AND h.sid = r.sid)`,
	`SELECT h.tenant, coalesce((SELECT session FROM sessions WHERE id = h.sid), ''), 'handler ' || h.handler || ' has no run' FROM handlers h
		WHERE NOT EXISTS (SELECT FROM runs r WHERE r.hid = h.id) AND h.sid IS NOT NULL`,
	`SELECT r.tenant, r.session, 'handler ' || r.handler || ' has another latest run than its newest' FROM runs r
		JOIN (SELECT hid, max(id) AS newest FROM runs GROUP BY hid) n ON n.hid = r.hid WHERE r.latest <> (r.id = n.newest)`,
	`SELECT '', '', count(*) || ' rows of the journal of session ' || j.sid || ' belong to no session' FROM journal j
		WHERE NOT EXISTS (SELECT FROM sessions s WHERE s.id = j.sid) GROUP BY j.sid`,
	`SELECT '', '', count(*) || ' rows of the stream of handler ' || e.hid || ' belong to no handler' FROM stream e
		WHERE NOT EXISTS (SELECT FROM handlers h WHERE h.id = e.hid) GROUP BY e.hid`,
	`SELECT '', '', 'version ' || n.version || ' is listed for session ' || n.sid || ', and one of them is not there' FROM session_versions n
		WHERE NOT EXISTS (SELECT FROM sessions s WHERE s.id = n.sid) OR NOT EXISTS (SELECT FROM versions v WHERE v.id = n.version)`,
	`SELECT '', '', 'the index of words has run ' || w.run || ', which is not there; ''weft compact --reindex'' corrects the index'
		FROM run_words w WHERE NOT EXISTS (SELECT FROM runs r WHERE r.id = w.run)`,
	`SELECT tenant, session, 'run ' || run || ' is not found by its words; ''weft compact --reindex'' corrects the index' FROM runs r
		WHERE status <> 'running' AND NOT EXISTS (SELECT FROM run_words w WHERE w.run = r.id)
			AND NOT EXISTS (SELECT FROM (SELECT unnest(runs) AS id FROM unread) u WHERE u.id = r.id)`,
	wrongCounts,
	`SELECT tenant, '', 'what the resource ' || resource || ' keeps is of no definition' FROM kv_spaces s
		WHERE made <> 0 AND NOT EXISTS (SELECT FROM resources r WHERE r.tenant = s.tenant AND r.name = s.resource AND r.created = s.made)`,
	`SELECT s.tenant, '', 'the resource ' || s.resource || ' keeps ' || count(k.key) || ' keys of '
			|| coalesce(sum(octet_length(k.key) + octet_length(k.value)), 0) || ' bytes, and not ' || s.keys || ' of ' || s.bytes
		FROM kv_spaces s LEFT JOIN kv k ON k.space = s.id GROUP BY s.id
		HAVING count(k.key) <> s.keys OR coalesce(sum(octet_length(k.key) + octet_length(k.value)), 0) <> s.bytes
			OR coalesce(max(k.version), 0) > s.last`,
	`SELECT '', '', count(*) || ' rows of keys belong to no resource' FROM kv k
		WHERE NOT EXISTS (SELECT FROM kv_spaces s WHERE s.id = k.space) HAVING count(*) > 0`,
	`SELECT '', '', 'there are ' || count(*) || ' partitions, and not ' || (SELECT partitions FROM store) FROM partitions
		HAVING count(*) <> (SELECT partitions FROM store)`,
	`SELECT '', '', 'partition ' || p.part || ' belongs to epoch ' || p.epoch || ', which is not there' FROM partitions p
		WHERE p.epoch IS NOT NULL AND NOT EXISTS (SELECT FROM pulse WHERE epoch = p.epoch)`,
}

// Loose passes the rows that belong to nothing.
func (i *Inspection) Loose(ctx context.Context, found func(inspect.Loose) error) error {
	for _, query := range loose {
		err := each(ctx, i, "the references", query, nil,
			func(r *inspect.Loose) []any { return []any{nameTo{&r.Tenant}, nameTo{&r.Session}, nameTo{&r.What}} }, found)
		if err != nil {
			return err
		}
	}
	type row struct {
		tenant, session string
		part            int16
	}
	return each(ctx, i, "the partitions of sessions", `SELECT tenant, session, part FROM sessions`, nil,
		func(r *row) []any { return []any{nameTo{&r.tenant}, nameTo{&r.session}, &r.part} },
		func(r row) error {
			if want := partition(r.tenant, r.session); r.part != want {
				return found(inspect.Loose{Tenant: r.tenant, Session: r.session, What: fmt.Sprintf("the session is in partition %d, and not in %d", r.part, want)})
			}
			return nil
		})
}

// relation returns a table as a query sees it that has the columns of all stores.
func relation(t *record.Table) string {
	if t.Name == "spent" { // summed over epochs
		return `(SELECT tenant, month, sum(runs)::bigint AS runs, sum(fuel)::bigint AS fuel, sum(log_bytes)::bigint AS log_bytes
			FROM spent GROUP BY tenant, month) AS spent`
	}
	return t.Name
}

// Count returns the number of rows of a table.
func (i *Inspection) Count(ctx context.Context, t *record.Table) (n int64, err error) {
	err = i.tx.QueryRow(ctx, "SELECT count(*) FROM "+relation(t)).Scan(&n)
	return n, damaged(err, "the table "+t.Name)
}

// Rows passes the rows of a table whose keys are greater than after (nil: all rows), in
// the order of the keys.
func (i *Inspection) Rows(ctx context.Context, t *record.Table, after []any, pass func(row []any) error) error {
	key := record.Names(t.Columns[:t.Key])
	query := "SELECT " + record.Names(t.Columns) + " FROM " + relation(t)
	var args []any
	if after != nil {
		marks := ""
		for k := range t.Key {
			marks += fmt.Sprintf(", $%d", k+1)
			args = append(args, toColumn(&t.Columns[k], after[k]))
		}
		query += " WHERE (" + key + ") > (" + marks[2:] + ")"
	}
	type values struct{ row []any }
	return each(ctx, i, "the table "+t.Name, query+" ORDER BY "+key, args,
		func(v *values) []any {
			v.row = make([]any, len(t.Columns))
			to := make([]any, len(v.row))
			for k := range to {
				to[k] = valueOf{&t.Columns[k], &v.row[k]}
			}
			return to
		},
		func(v values) error { return pass(v.row) })
}
