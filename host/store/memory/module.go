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
		delete(s.released, m.Digest) // a version is about to name it, so a sweep must not delete it
		stored := s.modules[m.Digest]
		switch {
		case stored == nil:
			m = cloneModule(m)
			s.modules[m.Digest] = &m
		case stored.ImageHash == "":
			stored.ImageHash = m.ImageHash
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
		m = cloneModule(*stored)
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

// PutPlugin implements [host.Store]. It refuses a version that is not the next one, and a
// version of a module that is not stored.
func (s *Store) PutPlugin(ctx context.Context, v host.PluginVersion, remade ...host.CompositionVersion) error {
	return s.update(ctx, func() error {
		key := id{v.Tenant, v.Name}
		if _, ok := s.modules[v.Digest]; !ok {
			return fmt.Errorf("storing plugin %s: %w", v.Name, notFound("module", v.Digest))
		}
		if newest := newestVersion(s.plugins[key]); v.Version != newest+1 {
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

func newestVersion(versions []host.PluginVersion) int {
	if len(versions) == 0 {
		return 0
	}
	return versions[len(versions)-1].Version
}

// Plugins implements [host.Store]. Plugins with the same name are in the order of their
// tenants.
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

// DeletePlugin implements [host.Store]. A module that no version has ever named stays,
// because its upload may be in progress.
func (s *Store) DeletePlugin(ctx context.Context, tenant, name string, version int) error {
	return s.update(ctx, func() error {
		key := id{tenant, name}
		versions := s.plugins[key]
		if version != 0 && version == newestVersion(versions) {
			return fmt.Errorf("deleting plugin %s: version %d is the newest", name, version)
		}
		var kept []host.PluginVersion
		var digests []string
		for _, v := range versions {
			if version != 0 && v.Version != version {
				kept = append(kept, v)
				continue
			}
			digests = append(digests, v.Digest)
		}
		switch {
		case len(digests) == 0:
			return notFound("plugin", name)
		case len(kept) == 0:
			delete(s.plugins, key)
		default:
			s.plugins[key] = kept
		}
		s.release(digests...)
		s.sweep()
		return nil
	})
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
