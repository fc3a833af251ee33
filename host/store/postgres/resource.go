package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/weftrun/weft/host"
)

// PutResource implements [host.ResourceStore].
func (s *Store) PutResource(ctx context.Context, r host.ResourceRecord) error {
	return s.update(ctx, "storing resource "+r.Name, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO resources (tenant, name, definition, key_id, sealed, created, updated)
			VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (tenant, name) DO UPDATE SET definition = excluded.definition, key_id = excluded.key_id, sealed = excluded.sealed,
				updated = excluded.updated`,
			text(r.Tenant), text(r.Name), blob(r.Definition), text(r.KeyID), blob(r.Sealed), r.Created, r.Updated)
		return err
	})
}

// DeleteResource implements [host.ResourceStore].
func (s *Store) DeleteResource(ctx context.Context, tenant, name string) error {
	return s.update(ctx, "deleting resource "+name, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM resources WHERE tenant = $1 AND name = $2`, text(tenant), text(name))
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return fmt.Errorf("resource %s of tenant %s: %w", name, tenant, host.ErrNotFound)
		}
		for _, statement := range []string{
			`DELETE FROM resource_use WHERE tenant = $1 AND resource = $2`,
			`DELETE FROM kv WHERE space IN (SELECT id FROM kv_spaces WHERE tenant = $1 AND resource = $2 AND made <> 0)`,
			`DELETE FROM kv_spaces WHERE tenant = $1 AND resource = $2 AND made <> 0`,
		} {
			if _, err := tx.Exec(ctx, statement, text(tenant), text(name)); err != nil {
				return err
			}
		}
		return nil
	})
}

// ResourceRecords implements [host.ResourceStore].
func (s *Store) ResourceRecords(ctx context.Context, tenant string) ([]host.ResourceRecord, error) {
	return list(ctx, s, "resources", `SELECT tenant, name, definition, key_id, sealed, created, updated FROM resources
		WHERE $1 = '' OR tenant = $1 ORDER BY tenant, name`, []any{text(tenant)},
		fields(func(r *host.ResourceRecord) []any {
			return []any{nameTo{&r.Tenant}, nameTo{&r.Name}, &r.Definition, nameTo{&r.KeyID}, someTo{&r.Sealed}, &r.Created, &r.Updated}
		}))
}

// AddResourceUse implements [host.ResourceStore].
func (s *Store) AddResourceUse(ctx context.Context, list []host.ResourceUse) error {
	return s.update(ctx, "storing the use of resources", func(tx pgx.Tx) error {
		for i := range list {
			u := &list[i]
			_, err := tx.Exec(ctx, `INSERT INTO resource_use AS u
				(tenant, resource, workflow, calls, failed, sent, received, input_tokens, output_tokens)
				VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
				ON CONFLICT (tenant, resource, workflow) DO UPDATE SET calls = u.calls + $4, failed = u.failed + $5, sent = u.sent + $6,
					received = u.received + $7, input_tokens = u.input_tokens + $8, output_tokens = u.output_tokens + $9`,
				text(u.Tenant), text(u.Resource), text(u.Workflow), int64(u.Calls), int64(u.Failed), int64(u.Sent), int64(u.Received),
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
	return list(ctx, s, "use of resources", `SELECT tenant, resource, workflow, calls, failed, sent, received, input_tokens, output_tokens
		FROM resource_use WHERE tenant = $1 ORDER BY resource, workflow`, []any{text(tenant)},
		fields(func(u *host.ResourceUse) []any {
			return []any{nameTo{&u.Tenant}, nameTo{&u.Resource}, nameTo{&u.Workflow}, &u.Calls, &u.Failed, &u.Sent, &u.Received,
				&u.InputTokens, &u.OutputTokens}
		}))
}
