package sqlite

import (
	"context"
	"database/sql"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/store/record"
	"github.com/weftrun/weft/host/usage"
)

// mayWaitForTurn holds for runs that wait for their session's turn, and for few others:
// none of their steps has ended, and what they wait for contains these bytes, which
// encode [host.WaitsForTurn] as the Reason of a [host.Waiting]. The index runs_turn has the
// same condition.
const mayWaitForTurn = `status = 'running' AND steps = 0 AND instr(waiting, x'076773657373696f6e') > 0`

// putSpent adds spending of tenants, within the batch's transaction.
func (s *Store) putSpent(ctx context.Context, list []usage.MonthSpent) error {
	for i := range list {
		m := &list[i]
		if m.Tenant == "" || m.Month <= 0 {
			return record.Refuse("spent by tenant %q in month %d", m.Tenant, m.Month)
		}
		_, err := s.stmts.putSpent.ExecContext(ctx, m.Tenant, int64(m.Month), int64(m.Runs), int64(m.Fuel), int64(m.LogBytes))
		if err != nil {
			return err
		}
	}
	return nil
}

// RunsHeld implements [host.QuotaStore]. It reads two indexes, and the rows of runs that
// may wait for their session's turn. So a million runs that wait for something else take
// no time.
func (s *Store) RunsHeld(ctx context.Context) ([]usage.RunsHeld, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT tenant, count(*) FROM runs INDEXED BY runs_running
		WHERE status = 'running' GROUP BY tenant ORDER BY tenant`)
	if err != nil {
		return nil, notFound(err, "running runs")
	}
	list, err := scanAll(rows, func(h *usage.RunsHeld) []any { return []any{&h.Tenant, &h.Active} })
	if err != nil {
		return nil, notFound(err, "running runs")
	}
	waiting, err := s.waitForTurn(ctx)
	for i := range list {
		list[i].Waiting = waiting[list[i].Tenant]
		list[i].Active -= list[i].Waiting
	}
	return list, notFound(err, "running runs")
}

// waitForTurn counts the runs that have not begun, by tenant.
func (s *Store) waitForTurn(ctx context.Context) (_ map[string]int, err error) {
	rows, err := s.read.QueryContext(ctx, `SELECT tenant, waiting FROM runs INDEXED BY runs_turn WHERE `+mayWaitForTurn)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	n := map[string]int{}
	for rows.Next() {
		var tenant string
		var raw sql.RawBytes
		if err := rows.Scan(&tenant, &raw); err != nil {
			return nil, err
		}
		var waits []host.Waiting
		if err := abi.Unmarshal(raw, &waits); err != nil {
			return nil, err
		}
		if len(waits) > 0 && waits[0].Reason == host.WaitsForTurn {
			n[tenant]++
		}
	}
	return n, rows.Err()
}

// BytesHeld implements [host.QuotaStore].
func (s *Store) BytesHeld(ctx context.Context, tenant string) (journal, state int64, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT coalesce(sum(bytes + (last > 0) * ?2), 0) + (SELECT count(*) FROM runs WHERE tenant = ?1) * ?3,
			coalesce(sum(state), 0) + (SELECT coalesce(sum(bytes + keys * ?4), 0) FROM kv_spaces WHERE tenant = ?1)
			FROM sessions WHERE tenant = ?1`,
		tenant, limit.SessionCharge, limit.RunCharge, limit.KeyCharge).Scan(&journal, &state)
	return journal, state, notFound(err, "sessions of tenant "+tenant)
}

// PluginsHeld implements [host.QuotaStore].
func (s *Store) PluginsHeld(ctx context.Context, tenant string) (versions int, bytes int64, err error) {
	err = s.read.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(size), 0) FROM plugins WHERE tenant = ?`, tenant).Scan(&versions, &bytes)
	return versions, bytes, notFound(err, "plugins of tenant "+tenant)
}

// Spent implements [host.QuotaStore].
func (s *Store) Spent(ctx context.Context, tenant string, from usage.Month) ([]usage.MonthSpent, error) {
	rows, err := s.read.QueryContext(ctx, `SELECT tenant, month, runs, fuel, log_bytes FROM spent
		WHERE (?1 = '' OR tenant = ?1) AND month >= ?2 ORDER BY tenant, month`, tenant, int64(from))
	if err != nil {
		return nil, notFound(err, "what was spent")
	}
	list, err := scanAll(rows, func(m *usage.MonthSpent) []any {
		return []any{&m.Tenant, &m.Month, &m.Runs, &m.Fuel, &m.LogBytes}
	})
	return list, notFound(err, "what was spent")
}
