package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weftrun/weft/host"
)

// PutComposition implements [host.Store]. It refuses a version that is not the next one,
// and a version that names a module that is not stored.
func (s *Store) PutComposition(ctx context.Context, v host.CompositionVersion) error {
	return s.update(ctx, func() error {
		list := []host.CompositionVersion{v}
		if err := s.checkCompositions(list); err != nil {
			return err
		}
		s.addCompositions(list)
		return nil
	})
}

// checkCompositions returns an error unless all of the versions may be added.
func (s *Store) checkCompositions(list []host.CompositionVersion) error {
	newest := map[id]int{}
	for i := range list {
		v := &list[i]
		key := id{v.Tenant, v.Name}
		last, ok := newest[key]
		if !ok {
			last = len(s.composed[key])
		}
		if v.Version != last+1 {
			return fmt.Errorf("storing composition %s: version %d does not follow version %d", v.Name, v.Version, last)
		}
		newest[key] = v.Version
		for _, digest := range v.Modules {
			if _, ok := s.modules[digest]; !ok {
				return fmt.Errorf("storing composition %s: %w", v.Name, notFound("module", digest))
			}
		}
	}
	return nil
}

func (s *Store) addCompositions(list []host.CompositionVersion) {
	for i := range list {
		key := id{list[i].Tenant, list[i].Name}
		s.composed[key] = append(s.composed[key], cloneComposition(&list[i]))
	}
}

func cloneComposition(v *host.CompositionVersion) host.CompositionVersion {
	c := *v
	c.Record = slices.Clone(v.Record)
	c.Modules = slices.Clone(v.Modules)
	return c
}

// Compositions implements [host.Store]. Compositions with the same name are in the order
// of their tenants.
func (s *Store) Compositions(ctx context.Context, tenant string) (newest []host.CompositionVersion, err error) {
	err = s.view(ctx, func() error {
		for key, versions := range s.composed {
			if tenant == "" || key.tenant == tenant {
				newest = append(newest, cloneComposition(&versions[len(versions)-1]))
			}
		}
		return nil
	})
	slices.SortFunc(newest, func(a, b host.CompositionVersion) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Tenant, b.Tenant))
	})
	return newest, err
}

// Composition implements [host.Store]. If several versions have the digest, it returns
// any of them: they differ only in their places in their histories.
func (s *Store) Composition(ctx context.Context, digest string) (found host.CompositionVersion, err error) {
	err = s.view(ctx, func() error {
		for _, versions := range s.composed {
			for i := range versions {
				if versions[i].Digest == digest {
					found = cloneComposition(&versions[i])
					return nil
				}
			}
		}
		if v := s.gone[digest]; v != nil {
			found = cloneComposition(v)
			return nil
		}
		return notFound("composition", digest)
	})
	return found, err
}

// DeleteComposition implements [host.Store].
func (s *Store) DeleteComposition(ctx context.Context, tenant, name string) error {
	return s.update(ctx, func() error {
		key := id{tenant, name}
		versions, ok := s.composed[key]
		if !ok {
			return notFound("composition", name)
		}
		delete(s.composed, key)
		for i := range versions {
			s.gone[versions[i].Digest] = &versions[i]
			s.release(versions[i].Modules...)
		}
		s.sweep()
		return nil
	})
}
