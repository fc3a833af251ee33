package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/weftrun/weft/host"
)

func composition(tenant, name string, version int, modules ...string) host.CompositionVersion {
	return host.CompositionVersion{
		Tenant: tenant, Name: name, Version: version, Digest: fmt.Sprintf("digest of %s %d", name, version),
		Record: fmt.Appendf(nil, "%s %d %v", name, version, modules), Modules: modules, Created: int64(2000 + version),
	}
}

// putModules stores modules of these digests.
func putModules(t *testing.T, s host.Store, digests ...string) {
	t.Helper()
	for _, digest := range digests {
		ok(t, "PutModule", s.PutModule(t.Context(), module(digest)))
	}
}

// wantCompositions expects the newest versions of a tenant's compositions.
func wantCompositions(t *testing.T, s host.Store, tenant string, want ...host.CompositionVersion) {
	t.Helper()
	got, err := s.Compositions(t.Context(), tenant)
	ok(t, "Compositions", err)
	if len(got)+len(want) > 0 {
		same(t, "Compositions("+tenant+")", got, want)
	}
}

func testCompositions(t *testing.T, open func(t *testing.T) host.Store) {
	s, ctx := open(t), t.Context()
	putModules(t, s, "m1", "m2", "m3")
	wantCompositions(t, s, "")
	_, err := s.Composition(ctx, "digest of w 1")
	missing(t, "composition", err)
	for _, version := range []int{0, 2} {
		if err := s.PutComposition(ctx, composition("a", "w", version, "m1")); err == nil {
			t.Errorf("PutComposition took version %d, which does not follow", version)
		}
	}
	missing(t, "a composition of an unknown module", s.PutComposition(ctx, composition("a", "w", 1, "m1", "unknown")))
	wantCompositions(t, s, "")

	w1, w2 := composition("a", "w", 1, "m3", "m1", "m2", "m1"), composition("a", "w", 2, "m2")
	v, b := composition("a", "v", 1), composition("b", "w", 1, "m3")
	v.Modules, v.Record, b.Digest = []string{"m1"}, []byte{0, 255}, "another"
	for _, c := range []host.CompositionVersion{w1, b, w2, v} {
		given := c
		given.Record, given.Modules = slices.Clone(c.Record), slices.Clone(c.Modules)
		ok(t, "PutComposition", s.PutComposition(ctx, given))
		given.Record[0], given.Modules[0] = 1, "changed"
	}
	if err := s.PutComposition(ctx, w2); err == nil {
		t.Error("PutComposition took a version twice")
	}
	wantCompositions(t, s, "a", v, w2)
	wantCompositions(t, s, "b", b)
	wantCompositions(t, s, "c")
	wantCompositions(t, s, "", v, w2, b)
	for _, want := range []host.CompositionVersion{w1, w2, v, b} { // old versions too
		for range 2 {
			got, err := s.Composition(ctx, want.Digest)
			ok(t, "Composition", err)
			same(t, "Composition", got, want)
			got.Record[0], got.Modules[0] = 1, "changed"
		}
	}
}

// testRemadeCompositions: a version of a plugin and the compositions made with it are
// stored together or not at all.
func testRemadeCompositions(t *testing.T, open func(t *testing.T) host.Store) {
	s, ctx := open(t), t.Context()
	putModules(t, s, "m1", "m2")
	w1, v1 := composition("a", "w", 1, "m1"), composition("a", "v", 1, "m1")
	p1, p2 := plugin("a", "x", 1, "m1"), plugin("a", "x", 2, "m2")
	ok(t, "PutPlugin", s.PutPlugin(ctx, p1, w1, v1))
	wantCompositions(t, s, "a", v1, w1)
	unchanged := func(remade ...host.CompositionVersion) {
		t.Helper()
		if err := s.PutPlugin(ctx, p2, remade...); err == nil {
			t.Error("PutPlugin took a composition that it has to refuse")
		}
		got, err := s.PluginVersions(ctx, "a", "x")
		ok(t, "PluginVersions", err)
		same(t, "PluginVersions", got, []host.PluginVersion{p1})
		wantCompositions(t, s, "a", v1, w1)
	}
	w2, v2 := composition("a", "w", 2, "m2"), composition("a", "v", 2, "m2")
	unchanged(w2, composition("a", "v", 3, "m2"))
	unchanged(w2, composition("a", "v", 2, "unknown"))
	unchanged(w2, w2)
	ok(t, "PutPlugin", s.PutPlugin(ctx, p2, w2, v2))
	wantCompositions(t, s, "a", v2, w2)
}

// testDeleteComposition: a module stays as long as any version of a plugin or a
// composition names it.
func testDeleteComposition(t *testing.T, open func(t *testing.T) host.Store) {
	s, ctx := open(t), t.Context()
	putModules(t, s, "old", "new", "shared", "own")
	for i, digest := range []string{"old", "new", "shared", "own"} {
		ok(t, "PutPlugin", s.PutPlugin(ctx, plugin("a", "x", i+1, digest)))
	}
	ok(t, "PutPlugin", s.PutPlugin(ctx, plugin("b", "y", 1, "shared")))
	for _, c := range []host.CompositionVersion{
		composition("a", "w", 1, "old", "shared"), composition("a", "w", 2, "new", "shared"), composition("a", "v", 1, "new"),
	} {
		ok(t, "PutComposition", s.PutComposition(ctx, c))
	}
	stored := func(want ...string) {
		t.Helper()
		for _, digest := range []string{"old", "new", "shared", "own"} {
			got, err := s.Module(ctx, digest)
			if !slices.Contains(want, digest) {
				missing(t, "module "+digest, err)
				continue
			}
			ok(t, "Module", err)
			same(t, "Module", got, module(digest))
		}
	}
	missing(t, "DeleteComposition of an unknown one", s.DeleteComposition(ctx, "b", "w"))
	ok(t, "DeletePlugin", s.DeletePlugin(ctx, "a", "x", 0))
	stored("old", "new", "shared")
	ok(t, "DeleteComposition", s.DeleteComposition(ctx, "a", "w"))
	missing(t, "DeleteComposition again", s.DeleteComposition(ctx, "a", "w"))
	stored("new", "shared")
	_, err := s.Composition(ctx, "digest of w 1")
	missing(t, "a deleted composition", err)
	wantCompositions(t, s, "a", composition("a", "v", 1, "new"))
	// The name is free again, and its versions begin at 1.
	ok(t, "PutComposition", s.PutComposition(ctx, composition("a", "w", 1, "new")))
	ok(t, "DeleteComposition", s.DeleteComposition(ctx, "a", "v"))
	stored("new", "shared")
	ok(t, "DeleteComposition", s.DeleteComposition(ctx, "a", "w"))
	stored("shared")
}
