package access

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/weftrun/weft/host"
)

// CreateTenant implements [host.Access].
func (s *Service) CreateTenant(ctx context.Context, by *host.Grant, name string) (_ host.TenantRecord, err error) {
	defer func() { s.noteFailure(ctx, by, "tenant.create", name, err) }()
	switch {
	case s.keyless:
		return host.TenantRecord{}, errKeylessOn
	case !by.Server:
		return host.TenantRecord{}, errNotServer
	case !ValidTenantName(name):
		return host.TenantRecord{}, host.Errorf(host.CodeInvalidArgument, "A tenant's name matches %s", TenantNameRule)
	}
	s.changing.Lock()
	defer s.changing.Unlock()
	s.mu.RLock()
	old, n := s.tenants[name], len(s.tenants)
	s.mu.RUnlock()
	switch {
	case old != nil && old.closed.Load():
		return host.TenantRecord{}, host.Errorf(host.CodeConflict, "A tenant %q is being deleted: try again when it is gone", name)
	case old != nil:
		return host.TenantRecord{}, host.Errorf(host.CodeConflict, "The tenant %q already exists", name)
	case n >= MaxTenants:
		return host.TenantRecord{}, host.Errorf(host.CodeLimitExceeded, "A server has at most %d tenants", MaxTenants)
	}
	t := host.TenantRecord{Name: name, Created: s.now()}
	c := host.AccessChange{Tenants: []host.TenantRecord{t}, Audit: []host.AuditEntry{s.entry(by, "", "tenant.create", name, "")}}
	if err := s.store(ctx, c); err != nil {
		return host.TenantRecord{}, err
	}
	s.mu.Lock()
	s.tenants[name] = newTenant(t)
	s.mu.Unlock()
	return t, nil
}

// errNotServer is the error for a tenant's admin who tries to manage tenants.
var errNotServer = &host.Error{Code: host.CodePermissionDenied, Message: "Only the server's own admin key can make and delete tenants"}

// Tenants implements [host.Access].
func (s *Service) Tenants(_ context.Context, by *host.Grant) ([]host.TenantRecord, error) {
	s.mu.RLock()
	var list []host.TenantRecord
	for name, t := range s.tenants {
		if (by.Server || by.Tenant == name) && !t.record.Deleting {
			list = append(list, t.record)
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(list, func(a, b host.TenantRecord) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// Tenant implements [host.Access].
func (s *Service) Tenant(_ context.Context, by *host.Grant, name string) (host.TenantRecord, error) {
	t, err := s.tenant(by, name)
	if err != nil {
		return host.TenantRecord{}, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return t.record, nil
}

// tenant returns a tenant that the grant may see.
func (s *Service) tenant(by *host.Grant, name string) (*tenant, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	t := s.tenants[name]
	if t == nil || t.record.Deleting || !by.Server && by.Tenant != name {
		return nil, errNoTenant
	}
	return t, nil
}

// Usage implements [host.Access].
func (s *Service) Usage(ctx context.Context, by *host.Grant, name string) (host.TenantUsage, error) {
	if _, err := s.tenant(by, name); err != nil {
		return host.TenantUsage{}, err
	}
	u, err := s.cfg.Store.TenantUsage(ctx, name)
	if err != nil || s.cfg.Quotas == nil {
		return u, unavailable(err)
	}
	u.Quotas, err = s.cfg.Quotas(ctx, name)
	return u, err
}

// store writes a change. changing is held.
func (s *Service) store(ctx context.Context, c host.AccessChange) error {
	return unavailable(s.cfg.Store.ChangeAccess(ctx, c))
}

// unavailable turns an error of the store into one for clients.
func unavailable(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &host.Error{Code: host.CodeUnavailable, Message: "The store cannot answer now", Cause: err}
}
