package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weftrun/weft/host"
)

// PutModule implements [host.Store].
func (s *Store) PutModule(ctx context.Context, m host.ModuleRecord) error {
	return s.update(ctx, func() error {
		stored, ok := s.modules[m.Digest]
		switch {
		case !ok:
			s.modules[m.Digest] = cloneModule(m)
		case stored.ImageHash == "":
			stored.ImageHash = m.ImageHash
			s.modules[m.Digest] = stored
		}
		return nil
	})
}

// Module implements [host.Store].
func (s *Store) Module(ctx context.Context, digest string) (m host.ModuleRecord, err error) {
	err = s.view(ctx, func() error {
		stored, ok := s.modules[digest]
		if !ok {
			return notFound("module", digest)
		}
		m = cloneModule(stored)
		return nil
	})
	return m, err
}

func cloneModule(m host.ModuleRecord) host.ModuleRecord {
	m.Manifest = slices.Clone(m.Manifest)
	m.Imports = slices.Clone(m.Imports)
	m.Bytes = slices.Clone(m.Bytes)
	return m
}

// PutPlugin implements [host.Store]. It refuses a version that is not the next
// one, and one of a module that is not stored.
func (s *Store) PutPlugin(ctx context.Context, v host.PluginVersion, remade ...host.CompositionVersion) error {
	return s.update(ctx, func() error {
		key := id{v.Tenant, v.Name}
		if _, ok := s.modules[v.Digest]; !ok {
			return fmt.Errorf("storing plugin %s: %w", v.Name, notFound("module", v.Digest))
		}
		if newest := len(s.plugins[key]); v.Version != newest+1 {
			return fmt.Errorf("storing plugin %s: version %d does not follow version %d", v.Name, v.Version, newest)
		}
		if err := s.checkCompositions(remade); err != nil {
			return err
		}
		s.plugins[key] = append(s.plugins[key], v)
		s.addCompositions(remade)
		return nil
	})
}

// Plugins implements [host.Store]; plugins of one name are in the order of
// their tenants.
func (s *Store) Plugins(ctx context.Context, tenant string) (newest []host.PluginVersion, err error) {
	err = s.view(ctx, func() error {
		for key, versions := range s.plugins {
			if tenant == "" || key.tenant == tenant {
				newest = append(newest, versions[len(versions)-1])
			}
		}
		return nil
	})
	slices.SortFunc(newest, func(a, b host.PluginVersion) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Tenant, b.Tenant))
	})
	return newest, err
}

// PluginVersions implements [host.Store].
func (s *Store) PluginVersions(ctx context.Context, tenant, name string) (versions []host.PluginVersion, err error) {
	err = s.view(ctx, func() error {
		stored, ok := s.plugins[id{tenant, name}]
		if !ok {
			return notFound("plugin", name)
		}
		versions = slices.Clone(stored)
		return nil
	})
	return versions, err
}

// DeletePlugin implements [host.Store]. A module that was stored but never
// named by a version stays: its upload may be under way.
func (s *Store) DeletePlugin(ctx context.Context, tenant, name string) error {
	return s.update(ctx, func() error {
		key := id{tenant, name}
		versions, ok := s.plugins[key]
		if !ok {
			return notFound("plugin", name)
		}
		delete(s.plugins, key)
		for _, v := range versions {
			s.sweep(v.Digest)
		}
		return nil
	})
}

// sweep drops a module that no version names any more.
func (s *Store) sweep(digest string) {
	if !s.isNamed(digest) {
		delete(s.modules, digest)
	}
}

// isNamed reports whether a version of any plugin or composition has the module.
func (s *Store) isNamed(digest string) bool {
	for _, versions := range s.composed {
		for i := range versions {
			if slices.Contains(versions[i].Modules, digest) {
				return true
			}
		}
	}
	for _, versions := range s.plugins {
		for i := range versions {
			if versions[i].Digest == digest {
				return true
			}
		}
	}
	return false
}
