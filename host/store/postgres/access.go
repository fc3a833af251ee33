package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/record"
)

// digestTo scans a SHA-256.
type digestTo struct{ to *[32]byte }

// ScanBytes implements [pgtype.BytesScanner].
func (d digestTo) ScanBytes(v []byte) error {
	if len(v) != len(d.to) {
		return fmt.Errorf("the hash of a key has %d bytes: %w", len(v), host.ErrUnreadable)
	}
	copy(d.to[:], v)
	return nil
}

// Access implements [host.AccessStore]. One snapshot, so that every key has its tenant.
func (s *Store) Access(ctx context.Context) (tenants []host.TenantRecord, keys []host.KeyRecord, err error) {
	err = s.read(ctx, func(querier) error {
		return pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
			tenants, err = collectRows(ctx, tx, `SELECT name, created, deleting FROM tenants ORDER BY name`, nil,
				fields(func(t *host.TenantRecord) []any { return []any{nameTo{&t.Name}, &t.Created, &t.Deleting} }))
			if err != nil {
				return err
			}
			keys, err = collectRows(ctx, tx, `SELECT id, tenant, role, name, prefix, hash, previous, previous_prefix, previous_until,
				created, expires, last_used, revoked FROM keys ORDER BY id`, nil,
				fields(func(k *host.KeyRecord) []any {
					return []any{nameTo{&k.ID}, nameTo{&k.Tenant}, nameTo{(*string)(&k.Role)}, nameTo{&k.Name}, nameTo{&k.Prefix},
						digestTo{&k.Hash}, digestTo{&k.Previous}, nameTo{&k.PreviousPrefix},
						&k.PreviousUntil, &k.Created, &k.Expires, &k.LastUsed, &k.Revoked}
				}))
			return err
		})
	})
	return tenants, keys, notFound(err, "tenants and keys")
}

// ChangeAccess implements [host.AccessStore].
func (s *Store) ChangeAccess(ctx context.Context, c host.AccessChange) error {
	return s.update(ctx, "storing tenants and keys", func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		for _, t := range c.Tenants {
			b.Queue(`INSERT INTO tenants (name, created, deleting) VALUES ($1, $2, $3)
				ON CONFLICT (name) DO UPDATE SET created = excluded.created, deleting = excluded.deleting`, text(t.Name), t.Created, t.Deleting)
		}
		for _, id := range c.DropKeys {
			b.Queue(`DELETE FROM keys WHERE id = $1`, text(id))
		}
		if c.DropTenant != "" {
			for _, statement := range []string{
				`DELETE FROM tenants WHERE name = $1`, `DELETE FROM keys WHERE tenant = $1`, `DELETE FROM access_audit WHERE tenant = $1`,
			} {
				b.Queue(statement, text(c.DropTenant))
			}
		}
		queueKeys(b, &c)
		queueAudit(b, c.Audit)
		return tx.SendBatch(ctx, b).Close()
	})
}

func queueKeys(b *pgx.Batch, c *host.AccessChange) {
	for _, k := range c.Keys {
		b.Queue(`INSERT INTO keys (id, tenant, role, name, prefix, hash, previous, previous_prefix, previous_until, created, expires, last_used, revoked)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
			ON CONFLICT (id) DO UPDATE SET tenant = excluded.tenant, role = excluded.role, name = excluded.name, prefix = excluded.prefix,
				hash = excluded.hash, previous = excluded.previous, previous_prefix = excluded.previous_prefix,
				previous_until = excluded.previous_until, created = excluded.created, expires = excluded.expires,
				last_used = excluded.last_used, revoked = excluded.revoked`,
			text(k.ID), text(k.Tenant), text(string(k.Role)), text(k.Name), text(k.Prefix), k.Hash[:], k.Previous[:], text(k.PreviousPrefix),
			k.PreviousUntil, k.Created, k.Expires, k.LastUsed, k.Revoked)
	}
	for id, used := range c.Used {
		b.Queue(`UPDATE keys SET last_used = $1 WHERE id = $2`, used, text(id))
	}
}

// queueAudit adds entries. It then deletes the oldest entries of the tenants that have too
// many. Finding these takes a walk over all entries: one for the whole list.
func queueAudit(b *pgx.Batch, list []host.AuditEntry) {
	tenants := map[string]bool{}
	for _, e := range list {
		b.Queue(`INSERT INTO access_audit (time, who, tenant, act, target, detail, outcome) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			e.Time, text(e.Who), text(e.Tenant), text(e.Act), text(e.Target), []byte(e.Detail), text(e.Outcome))
		tenants[e.Tenant] = true
	}
	for tenant := range tenants {
		b.Queue(`DELETE FROM access_audit WHERE tenant = $1 AND id <=
			(SELECT id FROM access_audit WHERE tenant = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)`, text(tenant), host.MaxAudit)
	}
}

// Audit implements [host.AccessStore].
func (s *Store) Audit(ctx context.Context, q host.AuditQuery) (all []host.AuditEntry, more bool, err error) {
	all, err = list(ctx, s, "the audit log", `SELECT id, time, who, tenant, act, target, detail, outcome FROM access_audit
		WHERE ($1::bigint = 0 OR id < $1) AND ($2 OR tenant = $3) ORDER BY id DESC LIMIT $4`,
		[]any{q.Before, q.All, text(q.Tenant), record.Page(q.Limit) + 1},
		fields(func(e *host.AuditEntry) []any {
			return []any{&e.ID, &e.Time, nameTo{&e.Who}, nameTo{&e.Tenant}, nameTo{&e.Act}, nameTo{&e.Target}, bytesTo{&e.Detail}, nameTo{&e.Outcome}}
		}))
	all, more = record.Cut(all, record.Page(q.Limit))
	return all, more, err
}

// TenantUsage implements [host.AccessStore].
func (s *Store) TenantUsage(ctx context.Context, tenant string) (host.TenantUsage, error) {
	u := host.TenantUsage{Runs: map[host.Status]int{}}
	what := "usage of tenant " + tenant
	err := s.one(ctx, what, `SELECT
		(SELECT count(*) FROM handlers WHERE tenant = $1),
		(SELECT count(*) FROM sessions WHERE tenant = $1),
		(SELECT count(DISTINCT name) FROM plugins WHERE tenant = $1),
		(SELECT count(*) FROM plugins WHERE tenant = $1),
		(SELECT coalesce(sum(size), 0)::bigint FROM plugins WHERE tenant = $1),
		(SELECT coalesce(sum(bytes), 0)::bigint FROM sessions WHERE tenant = $1),
		(SELECT coalesce(sum(octet_length(e.events)), 0)::bigint FROM handlers h JOIN stream e ON e.hid = h.id WHERE h.tenant = $1)`,
		[]any{text(tenant)}, &u.Handlers, &u.Sessions, &u.Plugins, &u.Versions, &u.PluginBytes, &u.JournalBytes, &u.StreamBytes)
	if err != nil {
		return u, err
	}
	type row struct {
		status host.Status
		n      int
		steps  int64
	}
	rows, err := list(ctx, s, what, `SELECT status, count(*), sum(steps)::bigint FROM runs WHERE tenant = $1 GROUP BY status`,
		[]any{text(tenant)}, fields(func(r *row) []any { return []any{(*string)(&r.status), &r.n, &r.steps} }))
	if err != nil {
		return u, err
	}
	for _, r := range rows {
		u.Runs[r.status] = r.n
		u.Steps += uint64(r.steps)
	}
	spent, err := s.Spent(ctx, tenant, 0)
	u.SetMonths(spent)
	return u, err
}

// clears delete a tenant's rows, a bounded number at a time. The order matters: rows are
// found by those that they belong to.
var clears = []string{
	`DELETE FROM stream WHERE (hid, last_seq) IN
		(SELECT e.hid, e.last_seq FROM handlers h JOIN stream e ON e.hid = h.id WHERE h.tenant = $1 LIMIT $2)`,
	`DELETE FROM runs WHERE id IN (SELECT id FROM runs WHERE tenant = $1 LIMIT $2)`,
	`DELETE FROM handlers WHERE id IN (SELECT id FROM handlers WHERE tenant = $1 LIMIT $2)`,
	`DELETE FROM journal WHERE (sid, first) IN
		(SELECT j.sid, j.first FROM sessions s JOIN journal j ON j.sid = s.id WHERE s.tenant = $1 LIMIT $2)`,
	`DELETE FROM session_versions WHERE (sid, version) IN
		(SELECT v.sid, v.version FROM sessions s JOIN session_versions v ON v.sid = s.id WHERE s.tenant = $1 LIMIT $2)`,
	`DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE tenant = $1 LIMIT $2)`,
	`DELETE FROM spent WHERE (tenant, month, epoch) IN (SELECT tenant, month, epoch FROM spent WHERE tenant = $1 LIMIT $2)`,
	`DELETE FROM kv WHERE (space, key) IN (SELECT k.space, k.key FROM kv_spaces s JOIN kv k ON k.space = s.id WHERE s.tenant = $1 LIMIT $2)`,
	`DELETE FROM kv_spaces WHERE id IN (SELECT id FROM kv_spaces WHERE tenant = $1 LIMIT $2)`,
	`DELETE FROM resources WHERE (tenant, name) IN (SELECT tenant, name FROM resources WHERE tenant = $1 LIMIT $2)`,
	`DELETE FROM resource_use WHERE (tenant, resource, workflow) IN
		(SELECT tenant, resource, workflow FROM resource_use WHERE tenant = $1 LIMIT $2)`,
	`DELETE FROM repeats WHERE (tenant, route, key) IN (SELECT tenant, route, key FROM repeats WHERE tenant = $1 LIMIT $2)`,
}

// ClearTenant implements [host.AccessStore]. Remaining plugins and compositions are
// deleted at the end, one name at a time.
func (s *Store) ClearTenant(ctx context.Context, tenant string, rows int) (more bool, err error) {
	what := "clearing tenant " + tenant
	err = s.update(ctx, what, func(tx pgx.Tx) error {
		more = false
		left := int64(rows)
		for _, statement := range clears {
			tag, err := tx.Exec(ctx, statement, text(tenant), left)
			if err != nil {
				return err
			}
			if left -= tag.RowsAffected(); left <= 0 {
				more = true
				return nil
			}
		}
		return sweep(ctx, tx) // deletes what no journal needs any more
	})
	if err != nil || more {
		return more, err
	}
	if more, err = record.ClearNames(ctx, s, tenant); err != nil {
		return false, fmt.Errorf("%s: %w", what, err)
	}
	return more, nil
}
