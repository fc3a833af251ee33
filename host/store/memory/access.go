package memory

import (
	"context"
	"maps"
	"slices"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/kv"
	"github.com/weftrun/weft/host/usage"
)

// access holds the tenants, the keys and the audit log.
type access struct {
	tenants map[string]host.TenantRecord
	keys    map[string]host.KeyRecord
	audit   []host.AuditEntry // oldest first
	audited int64             // the newest id
}

func newAccess() access {
	return access{tenants: map[string]host.TenantRecord{}, keys: map[string]host.KeyRecord{}}
}

// Access implements [host.AccessStore].
func (s *Store) Access(ctx context.Context) (tenants []host.TenantRecord, keys []host.KeyRecord, err error) {
	err = s.view(ctx, func() error {
		for _, name := range slices.Sorted(maps.Keys(s.access.tenants)) {
			tenants = append(tenants, s.access.tenants[name])
		}
		for _, name := range slices.Sorted(maps.Keys(s.access.keys)) {
			keys = append(keys, s.access.keys[name])
		}
		return nil
	})
	return tenants, keys, err
}

// ChangeAccess implements [host.AccessStore].
func (s *Store) ChangeAccess(ctx context.Context, c host.AccessChange) error {
	return s.update(ctx, func() error {
		a := &s.access
		for _, t := range c.Tenants {
			a.tenants[t.Name] = t
		}
		for _, name := range c.DropKeys {
			delete(a.keys, name)
		}
		if c.DropTenant != "" {
			delete(a.tenants, c.DropTenant)
			maps.DeleteFunc(a.keys, func(_ string, k host.KeyRecord) bool { return k.Tenant == c.DropTenant })
			a.audit = slices.DeleteFunc(a.audit, func(e host.AuditEntry) bool { return e.Tenant == c.DropTenant })
		}
		for _, k := range c.Keys {
			a.keys[k.ID] = k
		}
		for name, used := range c.Used {
			if k, ok := a.keys[name]; ok {
				k.LastUsed = used
				a.keys[name] = k
			}
		}
		for _, e := range c.Audit {
			a.add(e)
		}
		return nil
	})
}

// add appends an entry of the audit log, and drops the tenant's oldest entry if there are
// too many.
func (a *access) add(e host.AuditEntry) {
	a.audited++
	e.ID = a.audited
	a.audit = append(a.audit, e)
	n, oldest := 0, -1
	for i := range a.audit {
		if a.audit[i].Tenant == e.Tenant {
			if n++; oldest < 0 {
				oldest = i
			}
		}
	}
	if n > host.MaxAudit {
		a.audit = slices.Delete(a.audit, oldest, oldest+1)
	}
}

// Audit implements [host.AccessStore].
func (s *Store) Audit(ctx context.Context, q host.AuditQuery) (list []host.AuditEntry, more bool, err error) {
	err = s.view(ctx, func() error {
		for _, e := range slices.Backward(s.access.audit) {
			if q.Before != 0 && e.ID >= q.Before || !q.All && e.Tenant != q.Tenant {
				continue
			}
			if more = len(list) == page(q.Limit); more {
				return nil
			}
			list = append(list, e)
		}
		return nil
	})
	return list, more, err
}

// TenantUsage implements [host.AccessStore].
func (s *Store) TenantUsage(ctx context.Context, tenant string) (host.TenantUsage, error) {
	u := host.TenantUsage{Runs: map[host.Status]int{}}
	err := s.view(ctx, func() error {
		for key, r := range s.runs {
			if key.tenant == tenant {
				u.Runs[r.Status]++
				u.Steps += r.Steps
			}
		}
		for key, h := range s.handlers {
			if key.tenant == tenant {
				u.Handlers++
				for i := range h.stream {
					u.StreamBytes += int64(len(h.stream[i].Body))
				}
			}
		}
		for key := range s.sessions {
			if key.Tenant == tenant {
				u.Sessions++
			}
		}
		u.JournalBytes, _ = s.bytesHeld(tenant)
		u.SetMonths(s.spentOf(tenant, 0))
		for key, versions := range s.plugins {
			if key.tenant == tenant {
				u.Plugins++
				u.Versions += len(versions)
				for i := range versions {
					u.PluginBytes += int64(versions[i].Size)
				}
			}
		}
		return nil
	})
	return u, err
}

// ClearTenant implements [host.AccessStore]. It deletes everything at once.
func (s *Store) ClearTenant(ctx context.Context, tenant string, _ int) (more bool, err error) {
	err = s.update(ctx, func() error {
		ofTenant := func(key id) bool { return key.tenant == tenant }
		maps.DeleteFunc(s.handlers, func(key id, _ *handler) bool { return ofTenant(key) })
		maps.DeleteFunc(s.runs, func(key id, _ *host.Run) bool { return ofTenant(key) })
		maps.DeleteFunc(s.sessions, func(key host.SessionKey, _ *session) bool { return key.Tenant == tenant })
		maps.DeleteFunc(s.spent, func(key spentKey, _ *usage.Spent) bool { return key.tenant == tenant })
		s.resources.clear(tenant)
		maps.DeleteFunc(s.kv, func(key kv.Space, _ *space) bool { return key.Tenant == tenant })
		maps.DeleteFunc(s.repeats, func(key repeatKey, _ *host.Repeat) bool { return key.tenant == tenant })
		for key, versions := range s.composed {
			if !ofTenant(key) {
				continue
			}
			delete(s.composed, key)
			for i := range versions {
				s.gone[versions[i].Digest] = &versions[i]
				s.release(versions[i].Modules...)
			}
		}
		for key, versions := range s.plugins {
			if ofTenant(key) {
				delete(s.plugins, key)
				for i := range versions {
					s.release(versions[i].Digest)
				}
			}
		}
		s.sweep()
		return nil
	})
	return false, err
}
