package postgres

import (
	"context"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/usage"
)

// mayWaitForTurn holds for runs that wait for their session's turn, and for few others:
// none of their steps has ended, and what they wait for contains these bytes, which encode
// [host.WaitsForTurn] as the Reason of a [host.Waiting]. An index has the same condition.
const mayWaitForTurn = `status = 'running' AND steps = 0 AND position('\x076773657373696f6e'::bytea IN waiting) > 0`

// RunsHeld implements [host.QuotaStore].
func (s *Store) RunsHeld(ctx context.Context) ([]usage.RunsHeld, error) {
	held, err := list(ctx, s, "running runs", `SELECT tenant, count(*) FROM runs WHERE status = 'running' GROUP BY tenant ORDER BY tenant`,
		nil, fields(func(h *usage.RunsHeld) []any { return []any{nameTo{&h.Tenant}, &h.Active} }))
	if err != nil {
		return nil, err
	}
	waiting, err := s.waitForTurn(ctx)
	for i := range held {
		held[i].Waiting = waiting[held[i].Tenant]
		held[i].Active -= held[i].Waiting
	}
	return held, err
}

// waitForTurn counts the runs that have not begun, by tenant.
func (s *Store) waitForTurn(ctx context.Context) (map[string]int, error) {
	type row struct {
		tenant string
		raw    []byte
	}
	rows, err := list(ctx, s, "running runs", `SELECT tenant, waiting FROM runs WHERE `+mayWaitForTurn, nil,
		fields(func(r *row) []any { return []any{nameTo{&r.tenant}, &r.raw} }))
	n := map[string]int{}
	for _, r := range rows {
		var waits []host.Waiting
		if err := abi.Unmarshal(r.raw, &waits); err != nil {
			return nil, notFound(err, "running runs")
		}
		if len(waits) > 0 && waits[0].Reason == host.WaitsForTurn {
			n[r.tenant]++
		}
	}
	return n, err
}

// BytesHeld implements [host.QuotaStore].
func (s *Store) BytesHeld(ctx context.Context, tenant string) (journal, state int64, err error) {
	err = s.one(ctx, "sessions of tenant "+tenant, `SELECT
			(coalesce(sum(bytes + (last > 0)::int * $2::bigint), 0) + (SELECT count(*) FROM runs WHERE tenant = $1) * $3::bigint)::bigint,
			(coalesce(sum(state), 0) + (SELECT coalesce(sum(bytes + keys * $4::bigint), 0) FROM kv_spaces WHERE tenant = $1))::bigint
			FROM sessions WHERE tenant = $1`,
		[]any{text(tenant), limit.SessionCharge, limit.RunCharge, limit.KeyCharge}, &journal, &state)
	return journal, state, err
}

// PluginsHeld implements [host.QuotaStore].
func (s *Store) PluginsHeld(ctx context.Context, tenant string) (versions int, bytes int64, err error) {
	err = s.one(ctx, "plugins of tenant "+tenant, `SELECT count(*), coalesce(sum(size), 0)::bigint FROM plugins WHERE tenant = $1`,
		[]any{text(tenant)}, &versions, &bytes)
	return versions, bytes, err
}

// Spent implements [host.QuotaStore].
func (s *Store) Spent(ctx context.Context, tenant string, from usage.Month) ([]usage.MonthSpent, error) {
	return list(ctx, s, "what was spent", `SELECT tenant, month, sum(runs)::bigint, sum(fuel)::bigint, sum(log_bytes)::bigint FROM spent
		WHERE ($1 = '' OR tenant = $1) AND month >= $2 GROUP BY tenant, month ORDER BY tenant, month`, []any{text(tenant), int64(from)},
		fields(func(m *usage.MonthSpent) []any {
			return []any{nameTo{&m.Tenant}, &m.Month, &m.Runs, &m.Fuel, &m.LogBytes}
		}))
}

// Repeat implements [host.Store].
func (s *Store) Repeat(ctx context.Context, tenant, route, key string) (host.Repeat, error) {
	r := host.Repeat{Route: route, Key: key}
	err := s.one(ctx, "request "+key, `SELECT hash, run, made FROM repeats WHERE tenant = $1 AND route = $2 AND key = $3`,
		[]any{text(tenant), text(route), text(key)}, nameTo{&r.Hash}, nameTo{&r.RunID}, &r.Made)
	if err != nil {
		return host.Repeat{}, err
	}
	return r, nil
}

// ForgetRepeats implements [host.Store].
func (s *Store) ForgetRepeats(ctx context.Context, before int64, limit int) (n int, err error) {
	err = s.read(ctx, func(q querier) error {
		tag, err := q.Exec(ctx, `DELETE FROM repeats WHERE (tenant, route, key) IN
			(SELECT tenant, route, key FROM repeats WHERE made < $1 ORDER BY made LIMIT $2)`, before, limit)
		n = int(tag.RowsAffected())
		return err
	})
	return n, err
}
