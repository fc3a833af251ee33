package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/kv"
)

type resourceKey struct{ tenant, name string }

type useKey struct{ tenant, resource, workflow string }

// resources holds the resources that tenants have defined, and their use.
type resources struct {
	defined map[resourceKey]host.ResourceRecord
	used    map[useKey]host.ResourceUse
}

func newResources() resources {
	return resources{defined: map[resourceKey]host.ResourceRecord{}, used: map[useKey]host.ResourceUse{}}
}

// clear deletes the resources of a tenant.
func (r *resources) clear(tenant string) {
	maps.DeleteFunc(r.defined, func(k resourceKey, _ host.ResourceRecord) bool { return k.tenant == tenant })
	maps.DeleteFunc(r.used, func(k useKey, _ host.ResourceUse) bool { return k.tenant == tenant })
}

// PutResource implements [host.ResourceStore].
func (s *Store) PutResource(ctx context.Context, r host.ResourceRecord) error {
	return s.update(ctx, func() error {
		key := resourceKey{r.Tenant, r.Name}
		if old, ok := s.resources.defined[key]; ok {
			r.Created = old.Created
		}
		s.resources.defined[key] = cloneResource(r)
		return nil
	})
}

func cloneResource(r host.ResourceRecord) host.ResourceRecord {
	r.Definition, r.Sealed = slices.Clone(r.Definition), slices.Clone(r.Sealed)
	return r
}

// DeleteResource implements [host.ResourceStore].
func (s *Store) DeleteResource(ctx context.Context, tenant, name string) error {
	return s.update(ctx, func() error {
		key := resourceKey{tenant, name}
		if _, ok := s.resources.defined[key]; !ok {
			return notFound("resource", name)
		}
		delete(s.resources.defined, key)
		maps.DeleteFunc(s.resources.used, func(k useKey, _ host.ResourceUse) bool { return k.tenant == tenant && k.resource == name })
		maps.DeleteFunc(s.kv, func(k kv.Space, _ *space) bool { return k.Tenant == tenant && k.Resource == name && k.Made != 0 })
		return nil
	})
}

// ResourceRecords implements [host.ResourceStore].
func (s *Store) ResourceRecords(ctx context.Context, tenant string) (list []host.ResourceRecord, err error) {
	err = s.view(ctx, func() error {
		for key, r := range s.resources.defined {
			if tenant == "" || key.tenant == tenant {
				list = append(list, cloneResource(r))
			}
		}
		return nil
	})
	slices.SortFunc(list, func(a, b host.ResourceRecord) int {
		return cmp.Or(strings.Compare(a.Tenant, b.Tenant), strings.Compare(a.Name, b.Name))
	})
	return list, err
}

// AddResourceUse implements [host.ResourceStore].
func (s *Store) AddResourceUse(ctx context.Context, list []host.ResourceUse) error {
	return s.update(ctx, func() error {
		for _, u := range list {
			key := useKey{u.Tenant, u.Resource, u.Workflow}
			u.Add(s.resources.used[key])
			s.resources.used[key] = u
		}
		return nil
	})
}

// ResourceUses implements [host.ResourceStore].
func (s *Store) ResourceUses(ctx context.Context, tenant string) (list []host.ResourceUse, err error) {
	err = s.view(ctx, func() error {
		for key, u := range s.resources.used {
			if key.tenant == tenant {
				list = append(list, u)
			}
		}
		return nil
	})
	slices.SortFunc(list, func(a, b host.ResourceUse) int {
		return cmp.Or(strings.Compare(a.Resource, b.Resource), strings.Compare(a.Workflow, b.Workflow))
	})
	return list, err
}
