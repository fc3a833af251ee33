package memory

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/usage"
)

type spentKey struct {
	tenant string
	month  usage.Month
}

// putSpent adds spending of a tenant.
func (c *change) putSpent(m *usage.MonthSpent) error {
	if m.Tenant == "" || m.Month <= 0 {
		return fmt.Errorf("spent by tenant %q in month %d", m.Tenant, m.Month)
	}
	key := spentKey{m.Tenant, m.Month}
	sum := m.Spent
	if old := c.store.spent[key]; old != nil {
		sum.Add(*old)
	}
	set(c, c.store.spent, key, &sum)
	return nil
}

// RunsHeld implements [host.QuotaStore].
func (s *Store) RunsHeld(ctx context.Context) (list []usage.RunsHeld, err error) {
	err = s.view(ctx, func() error {
		by := map[string]*usage.RunsHeld{}
		for key, r := range s.runs {
			if r.Status != host.StatusRunning {
				continue
			}
			h := by[key.tenant]
			if h == nil {
				h = &usage.RunsHeld{Tenant: key.tenant}
				by[key.tenant] = h
			}
			if len(r.WaitingFor) > 0 && r.WaitingFor[0].Reason == host.WaitsForTurn {
				h.Waiting++
			} else {
				h.Active++
			}
		}
		for _, name := range slices.Sorted(maps.Keys(by)) {
			list = append(list, *by[name])
		}
		return nil
	})
	return list, err
}

// BytesHeld implements [host.QuotaStore].
func (s *Store) BytesHeld(ctx context.Context, tenant string) (journal, state int64, err error) {
	err = s.view(ctx, func() error {
		journal, state = s.bytesHeld(tenant)
		for key, ss := range s.sessions {
			if key.Tenant == tenant && !ss.erasing {
				journal += limit.SessionCharge
			}
		}
		for key := range s.runs {
			if key.tenant == tenant {
				journal += limit.RunCharge
			}
		}
		for key, sp := range s.kv {
			if key.Tenant == tenant {
				state += limit.KeyCharge * sp.totals.Keys
			}
		}
		return nil
	})
	return journal, state, err
}

// bytesHeld leaves out sessions that are being deleted. mu is held.
func (s *Store) bytesHeld(tenant string) (journal, state int64) {
	for key, sp := range s.kv {
		if key.Tenant == tenant {
			state += sp.totals.Bytes
		}
	}
	for key, ss := range s.sessions {
		if key.Tenant != tenant || ss.erasing {
			continue
		}
		state += ss.state
		for i := range ss.rows {
			journal += int64(len(ss.rows[i].Data))
		}
	}
	return journal, state
}

// PluginsHeld implements [host.QuotaStore].
func (s *Store) PluginsHeld(ctx context.Context, tenant string) (versions int, bytes int64, err error) {
	err = s.view(ctx, func() error {
		for key, list := range s.plugins {
			if key.tenant != tenant {
				continue
			}
			versions += len(list)
			for i := range list {
				bytes += int64(list[i].Size)
			}
		}
		return nil
	})
	return versions, bytes, err
}

// Spent implements [host.QuotaStore].
func (s *Store) Spent(ctx context.Context, tenant string, from usage.Month) (list []usage.MonthSpent, err error) {
	err = s.view(ctx, func() error {
		list = s.spentOf(tenant, from)
		return nil
	})
	return list, err
}

// spentOf lists the spending of a tenant ("": of all tenants) by month. mu is held.
func (s *Store) spentOf(tenant string, from usage.Month) (list []usage.MonthSpent) {
	for key, spent := range s.spent {
		if (tenant == "" || key.tenant == tenant) && key.month >= from {
			list = append(list, usage.MonthSpent{Tenant: key.tenant, Month: key.month, Spent: *spent})
		}
	}
	slices.SortFunc(list, func(a, b usage.MonthSpent) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Month, b.Month))
	})
	return list
}
