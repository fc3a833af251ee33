package sqlite

import (
	"context"
	"fmt"

	"github.com/weftrun/weft/host"
)

// PutResource implements [host.ResourceStore].
func (s *Store) PutResource(ctx context.Context, r host.ResourceRecord) error {
	return s.update(ctx, func(ctx context.Context) error {
		_, err := s.conn.ExecContext(ctx, `INSERT INTO resources (tenant, name, definition, key_id, sealed, created, updated)
			VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
			ON CONFLICT (tenant, name) DO UPDATE SET definition = ?3, key_id = ?4, sealed = ?5, updated = ?7`,
			r.Tenant, r.Name, blob(r.Definition), r.KeyID, blob(r.Sealed), r.Created, r.Updated)
		return err
	})
}

// blob returns bytes that are never NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// DeleteResource implements [host.ResourceStore].
func (s *Store) DeleteResource(ctx context.Context, tenant, name string) error {
	return s.update(ctx, func(ctx context.Context) error {
		res, err := s.conn.ExecContext(ctx, `DELETE FROM resources WHERE tenant = ? AND name = ?`, tenant, name)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			if err == nil {
				err = fmt.Errorf("resource %s of tenant %s: %w", name, tenant, host.ErrNotFound)
			}
			return err
		}
		for _, statement := range []string{
			`DELETE FROM resource_use WHERE tenant = ? AND resource = ?`,
			`DELETE FROM kv_spaces WHERE tenant = ? AND resource = ? AND made <> 0`,
		} {
			if _, err := s.conn.ExecContext(ctx, statement, tenant, name); err != nil {
				return err
			}
		}
		return nil
	})
}

// ResourceRecords implements [host.ResourceStore].
func (s *Store) ResourceRecords(ctx context.Context, tenant string) ([]host.ResourceRecord, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT tenant, name, definition, key_id, sealed, created, updated FROM resources
		WHERE ?1 = '' OR tenant = ?1 ORDER BY tenant, name`, tenant)
	if err != nil {
		return nil, notFound(err, "resources")
	}
	list, err := scanAll(rows, func(r *host.ResourceRecord) []any {
		return []any{&r.Tenant, &r.Name, &r.Definition, &r.KeyID, &r.Sealed, &r.Created, &r.Updated}
	})
	return list, notFound(err, "resources")
}

// AddResourceUse implements [host.ResourceStore].
func (s *Store) AddResourceUse(ctx context.Context, list []host.ResourceUse) error {
	return s.update(ctx, func(ctx context.Context) error {
		for i := range list {
			u := &list[i]
			_, err := s.conn.ExecContext(ctx, `INSERT INTO resource_use
				(tenant, resource, workflow, calls, failed, sent, received, input_tokens, output_tokens)
				VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
				ON CONFLICT DO UPDATE SET calls = calls + ?4, failed = failed + ?5, sent = sent + ?6, received = received + ?7,
					input_tokens = input_tokens + ?8, output_tokens = output_tokens + ?9`,
				u.Tenant, u.Resource, u.Workflow, int64(u.Calls), int64(u.Failed), int64(u.Sent), int64(u.Received),
				int64(u.InputTokens), int64(u.OutputTokens))
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// ResourceUses implements [host.ResourceStore].
func (s *Store) ResourceUses(ctx context.Context, tenant string) ([]host.ResourceUse, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT tenant, resource, workflow, calls, failed, sent, received, input_tokens, output_tokens
		FROM resource_use WHERE tenant = ? ORDER BY resource, workflow`, tenant)
	if err != nil {
		return nil, notFound(err, "use of resources")
	}
	list, err := scanAll(rows, func(u *host.ResourceUse) []any {
		return []any{&u.Tenant, &u.Resource, &u.Workflow, &u.Calls, &u.Failed, &u.Sent, &u.Received, &u.InputTokens, &u.OutputTokens}
	})
	return list, notFound(err, "use of resources")
}
