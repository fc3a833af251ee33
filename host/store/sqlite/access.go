package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/record"
)

// Access implements [host.AccessStore].
func (s *Store) Access(ctx context.Context) (tenants []host.TenantRecord, keys []host.KeyRecord, err error) {
	// One transaction, so that every key has its tenant.
	tx, err := s.read.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return nil, nil, notFound(err, "tenants")
	}
	defer func() { _ = tx.Rollback() }() // the transaction only reads
	rows, err := tx.QueryContext(ctx, `SELECT name, created, deleting FROM tenants ORDER BY name`)
	if err != nil {
		return nil, nil, notFound(err, "tenants")
	}
	tenants, err = scanAll(rows, func(t *host.TenantRecord) []any { return []any{&t.Name, &t.Created, &t.Deleting} })
	if err != nil {
		return nil, nil, notFound(err, "tenants")
	}
	rows, err = tx.QueryContext(ctx, `SELECT id, tenant, role, name, prefix, hash, previous, previous_prefix, previous_until,
		created, expires, last_used, revoked FROM keys ORDER BY id`)
	if err != nil {
		return nil, nil, notFound(err, "keys")
	}
	keys, err = scanAll(rows, func(k *host.KeyRecord) []any {
		return []any{&k.ID, &k.Tenant, &k.Role, &k.Name, &k.Prefix, (*digest)(&k.Hash), (*digest)(&k.Previous), &k.PreviousPrefix,
			&k.PreviousUntil, &k.Created, &k.Expires, &k.LastUsed, &k.Revoked}
	})
	return tenants, keys, notFound(err, "keys")
}

// digest scans a SHA-256.
type digest [32]byte

// Scan implements [sql.Scanner].
func (d *digest) Scan(value any) error {
	b, ok := value.([]byte)
	if !ok || len(b) != len(d) {
		return fmt.Errorf("the hash of a key has %d bytes: %w", len(b), host.ErrUnreadable)
	}
	copy(d[:], b)
	return nil
}

// scanAll reads all rows into records and closes the rows. to returns the fields of a
// record.
func scanAll[T any](rows *sql.Rows, to func(*T) []any) ([]T, error) {
	defer func() { _ = rows.Close() }()
	var list []T
	for rows.Next() {
		var v T
		if err := rows.Scan(to(&v)...); err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, rows.Err()
}

// ChangeAccess implements [host.AccessStore].
func (s *Store) ChangeAccess(ctx context.Context, c host.AccessChange) error {
	err := s.update(ctx, func(ctx context.Context) error {
		if err := s.putTenants(ctx, c.Tenants); err != nil {
			return err
		}
		if err := s.dropAccess(ctx, &c); err != nil {
			return err
		}
		if err := s.putKeys(ctx, &c); err != nil {
			return err
		}
		return s.putAudit(ctx, c.Audit)
	})
	if err != nil {
		return fmt.Errorf("storing tenants and keys: %w", err)
	}
	return nil
}

func (s *Store) putTenants(ctx context.Context, list []host.TenantRecord) error {
	for _, t := range list {
		_, err := s.conn.ExecContext(ctx, `INSERT INTO tenants (name, created, deleting) VALUES (?1, ?2, ?3)
			ON CONFLICT (name) DO UPDATE SET created = ?2, deleting = ?3`, t.Name, t.Created, t.Deleting)
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) dropAccess(ctx context.Context, c *host.AccessChange) error {
	for _, id := range c.DropKeys {
		if _, err := s.conn.ExecContext(ctx, `DELETE FROM keys WHERE id = ?`, id); err != nil {
			return err
		}
	}
	if c.DropTenant == "" {
		return nil
	}
	for _, statement := range []string{
		`DELETE FROM tenants WHERE name = ?`, `DELETE FROM keys WHERE tenant = ?`, `DELETE FROM access_audit WHERE tenant = ?`,
	} {
		if _, err := s.conn.ExecContext(ctx, statement, c.DropTenant); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) putKeys(ctx context.Context, c *host.AccessChange) error {
	for _, k := range c.Keys {
		_, err := s.conn.ExecContext(ctx, `INSERT OR REPLACE INTO keys (id, tenant, role, name, prefix, hash, previous, previous_prefix,
			previous_until, created, expires, last_used, revoked) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			k.ID, k.Tenant, k.Role, k.Name, k.Prefix, k.Hash[:], k.Previous[:], k.PreviousPrefix,
			k.PreviousUntil, k.Created, k.Expires, k.LastUsed, k.Revoked)
		if err != nil {
			return err
		}
	}
	for id, used := range c.Used {
		if _, err := s.conn.ExecContext(ctx, `UPDATE keys SET last_used = ? WHERE id = ?`, used, id); err != nil {
			return err
		}
	}
	return nil
}

// putAudit adds entries. It then deletes the oldest entries of the tenants that have too
// many. Finding these takes a walk over all entries: one for the whole list.
func (s *Store) putAudit(ctx context.Context, list []host.AuditEntry) error {
	tenants := map[string]bool{}
	for _, e := range list {
		_, err := s.conn.ExecContext(ctx, `INSERT INTO access_audit (time, who, tenant, act, target, detail, outcome) VALUES (?, ?, ?, ?, ?, ?, ?)`,
			e.Time, e.Who, e.Tenant, e.Act, e.Target, e.Detail, e.Outcome)
		if err != nil {
			return err
		}
		tenants[e.Tenant] = true
	}
	for tenant := range tenants {
		_, err := s.conn.ExecContext(ctx, `DELETE FROM access_audit WHERE tenant = ?1 AND id <=
			(SELECT id FROM access_audit WHERE tenant = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)`, tenant, host.MaxAudit)
		if err != nil {
			return err
		}
	}
	return nil
}

// Audit implements [host.AccessStore].
func (s *Store) Audit(ctx context.Context, q host.AuditQuery) (list []host.AuditEntry, more bool, err error) {
	const columns = `SELECT id, time, who, tenant, act, target, detail, outcome FROM access_audit WHERE (?1 = 0 OR id < ?1) `
	var rows *sql.Rows
	if q.All {
		rows, err = s.read.QueryContext(ctx, columns+`ORDER BY id DESC LIMIT ?2`, q.Before, record.Page(q.Limit)+1)
	} else {
		rows, err = s.read.QueryContext(ctx, columns+`AND tenant = ?3 ORDER BY id DESC LIMIT ?2`, q.Before, record.Page(q.Limit)+1, q.Tenant)
	}
	if err != nil {
		return nil, false, notFound(err, "the audit log")
	}
	list, err = scanAll(rows, func(e *host.AuditEntry) []any {
		return []any{&e.ID, &e.Time, &e.Who, &e.Tenant, &e.Act, &e.Target, &e.Detail, &e.Outcome}
	})
	list, more = record.Cut(list, record.Page(q.Limit))
	return list, more, notFound(err, "the audit log")
}

// usageOf counts what a tenant has, in one snapshot. SQLite knows the length of a blob
// without reading it.
const usageOf = `SELECT
	(SELECT count(*) FROM handlers WHERE tenant = ?1),
	(SELECT count(*) FROM sessions WHERE tenant = ?1),
	(SELECT count(DISTINCT name) FROM plugins WHERE tenant = ?1),
	(SELECT count(*) FROM plugins WHERE tenant = ?1),
	(SELECT coalesce(sum(size), 0) FROM plugins WHERE tenant = ?1),
	(SELECT coalesce(sum(bytes), 0) FROM sessions WHERE tenant = ?1),
	(SELECT coalesce(sum(length(e.events)), 0) FROM handlers h JOIN stream e ON e.hid = h.id WHERE h.tenant = ?1)`

// TenantUsage implements [host.AccessStore].
func (s *Store) TenantUsage(ctx context.Context, tenant string) (host.TenantUsage, error) {
	u := host.TenantUsage{Runs: map[host.Status]int{}}
	err := s.read.QueryRowContext(ctx, usageOf, tenant).Scan(
		&u.Handlers, &u.Sessions, &u.Plugins, &u.Versions, &u.PluginBytes, &u.JournalBytes, &u.StreamBytes)
	if err != nil {
		return u, notFound(err, "usage of tenant "+tenant)
	}
	rows, err := s.read.QueryContext(ctx, `SELECT status, count(*), sum(steps) FROM runs WHERE tenant = ? GROUP BY status`, tenant)
	if err != nil {
		return u, notFound(err, "usage of tenant "+tenant)
	}
	type row struct {
		status host.Status
		n      int
		steps  int64
	}
	list, err := scanAll(rows, func(r *row) []any { return []any{&r.status, &r.n, &r.steps} })
	if err != nil {
		return u, notFound(err, "usage of tenant "+tenant)
	}
	for _, r := range list {
		u.Runs[r.status] = r.n
		u.Steps += uint64(r.steps)
	}
	spent, err := s.Spent(ctx, tenant, 0)
	u.SetMonths(spent)
	return u, err
}

// clears delete a tenant's rows, a bounded number at a time. Rows are deleted before the
// rows that they refer to, because the number of rows deleted by a foreign key would have
// no bound. The order matters.
var clears = []string{
	`DELETE FROM stream WHERE (hid, last_seq) IN
		(SELECT e.hid, e.last_seq FROM handlers h JOIN stream e ON e.hid = h.id WHERE h.tenant = ?1 LIMIT ?2)`,
	`DELETE FROM runs WHERE id IN (SELECT id FROM runs WHERE tenant = ?1 LIMIT ?2)`,
	`DELETE FROM handlers WHERE id IN (SELECT id FROM handlers WHERE tenant = ?1 LIMIT ?2)`,
	`DELETE FROM journal WHERE (sid, first) IN
		(SELECT j.sid, j.first FROM sessions s JOIN journal j ON j.sid = s.id WHERE s.tenant = ?1 LIMIT ?2)`,
	`DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE tenant = ?1 LIMIT ?2)`,
	`DELETE FROM spent WHERE (tenant, month) IN (SELECT tenant, month FROM spent WHERE tenant = ?1 LIMIT ?2)`,
	`DELETE FROM kv WHERE (space, key) IN (SELECT k.space, k.key FROM kv_spaces s JOIN kv k ON k.space = s.id WHERE s.tenant = ?1 LIMIT ?2)`,
	`DELETE FROM kv_spaces WHERE id IN (SELECT id FROM kv_spaces WHERE tenant = ?1 LIMIT ?2)`,
	`DELETE FROM resources WHERE (tenant, name) IN (SELECT tenant, name FROM resources WHERE tenant = ?1 LIMIT ?2)`,
	`DELETE FROM resource_use WHERE (tenant, resource, workflow) IN (SELECT tenant, resource, workflow FROM resource_use WHERE tenant = ?1 LIMIT ?2)`,
	`DELETE FROM repeats WHERE (tenant, route, key) IN (SELECT tenant, route, key FROM repeats WHERE tenant = ?1 LIMIT ?2)`,
}

// ClearTenant implements [host.AccessStore]. Remaining plugins and compositions are
// deleted at the end, one name at a time.
func (s *Store) ClearTenant(ctx context.Context, tenant string, rows int) (more bool, err error) {
	err = s.update(ctx, func(ctx context.Context) error {
		left := int64(rows)
		for _, statement := range clears {
			res, err := s.conn.ExecContext(ctx, statement, tenant, left)
			if err != nil {
				return err
			}
			n, err := res.RowsAffected()
			if err != nil {
				return err
			}
			if left -= n; left <= 0 {
				more = true
				return nil
			}
		}
		return s.sweep(ctx) // deletes what no journal needs any more
	})
	if err == nil && !more {
		more, err = record.ClearNames(ctx, s, tenant)
	}
	if err != nil {
		return false, fmt.Errorf("clearing tenant %s: %w", tenant, err)
	}
	return more, nil
}
