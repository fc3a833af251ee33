package storetest

import (
	"slices"
	"testing"

	"github.com/weftrun/weft/host"
)

// wantVersions expects a session to need these versions.
func (f *fixture) wantVersions(session string, want ...host.VersionUse) {
	f.t.Helper()
	got, err := f.SessionVersions(f.ctx, host.SessionKey{Tenant: tenant, Session: session})
	ok(f.t, "SessionVersions", err)
	if len(got)+len(want) > 0 {
		same(f.t, "SessionVersions", got, want)
	}
}

// needing returns a part of n entries. Its last entry needs the versions.
func (f *fixture) needing(session string, n int, digests ...string) host.SessionBatch {
	p := f.part(session, n)
	for _, digest := range digests {
		p.Versions = append(p.Versions, host.VersionUse{Digest: digest, Seq: p.Last})
	}
	return p
}

// testSessionVersions: a session needs the versions that its rows name, as long as it has
// the rows.
func testSessionVersions(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	_, err := f.SessionVersions(f.ctx, host.SessionKey{Tenant: tenant, Session: "s"})
	missing(t, "versions of an unknown session", err)
	f.append(f.part("s", 1))
	f.wantVersions("s")
	p := f.needing("s", 3, "b", "a", "b")
	p.Versions[2].Seq = 2 // the later of two uses counts
	f.append(p)
	f.wantVersions("s", host.VersionUse{Digest: "a", Seq: 4}, host.VersionUse{Digest: "b", Seq: 4})
	f.append(f.needing("s", 2, "a"), f.needing("t", 1, "a"))
	f.wantVersions("s", host.VersionUse{Digest: "a", Seq: 6}, host.VersionUse{Digest: "b", Seq: 4})
	f.wantVersions("t", host.VersionUse{Digest: "a", Seq: 1})

	for _, v := range []host.VersionUse{{Digest: "c", Seq: 6}, {Digest: "c", Seq: 8}, {Seq: 7}} {
		bad := f.part("s", 1)
		bad.Versions = []host.VersionUse{v}
		f.refused(bad)
	}
	f.refused(f.needing("s", 1, "c"), host.SessionBatch{Key: p.Key, Versions: []host.VersionUse{{Digest: "c", Seq: 1}}})
	bad := f.part("t", 1)
	bad.First, bad.Last = 9, 9
	f.refused(f.needing("s", 1, "a", "c"), bad)
	f.wantVersions("s", host.VersionUse{Digest: "a", Seq: 6}, host.VersionUse{Digest: "b", Seq: 4})

	// A cut drops versions that only earlier rows need. A version that the remaining row
	// names stays, even if an entry before its snapshot names it.
	p = f.needing("s", 3, "d")
	p.Versions[0].Seq, p.Snapshot = p.First, p.Last // 7 to 9
	f.append(p)
	p = f.part("s", 1)
	p.Cut = 8 // before the snapshot, so nothing is cut
	f.append(p)
	f.wantVersions("s", host.VersionUse{Digest: "a", Seq: 6}, host.VersionUse{Digest: "b", Seq: 4}, host.VersionUse{Digest: "d", Seq: 7})
	p = f.needing("s", 1, "b")
	p.Cut = 9
	bad.First, bad.Last = 9, 9
	f.refused(p, bad)
	f.wantVersions("s", host.VersionUse{Digest: "a", Seq: 6}, host.VersionUse{Digest: "b", Seq: 4}, host.VersionUse{Digest: "d", Seq: 7})
	f.append(p)
	f.wantVersions("s", host.VersionUse{Digest: "b", Seq: 11}, host.VersionUse{Digest: "d", Seq: 7})
}

// stored expects these modules, of all the given ones, to be stored.
func stored(t *testing.T, s host.Store, all []string, want ...string) {
	t.Helper()
	for _, digest := range all {
		got, err := s.Module(t.Context(), digest)
		if !slices.Contains(want, digest) {
			missing(t, "module "+digest, err)
			continue
		}
		ok(t, "Module "+digest, err)
		same(t, "Module", got, module(digest))
	}
}

// testReleasedModules: a module that a journal needs stays after its name is deleted, and
// is deleted with the journal: by a purge, a drop, or a cut.
func testReleasedModules(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	all := []string{"purged", "dropped", "cut", "twice", "none", "again"}
	putModules(t, f, all...)
	for i, digest := range all {
		ok(t, "PutPlugin", f.PutPlugin(f.ctx, plugin(tenant, "x", i+1, digest)))
	}
	start := func(handler string, digests ...string) host.Run {
		r := running(handler, "", 10)
		p := f.needing(handler, 1, digests...)
		p.Runs, p.Started = []host.Run{r}, []string{r.RunID}
		f.append(p)
		return r
	}
	start("p", "purged", "twice", "again")
	dropped := start("d", "dropped", "twice")
	start("c", "cut", "twice")
	ok(t, "DeletePlugin", f.DeletePlugin(f.ctx, tenant, "x", 0))
	stored(t, f, all, "purged", "dropped", "cut", "twice", "again")
	list, err := f.Plugins(f.ctx, tenant)
	ok(t, "Plugins", err)
	same(t, "Plugins", len(list), 0)

	// The module is uploaded again, before and after its journal is deleted.
	ok(t, "PutModule", f.PutModule(f.ctx, module("again")))
	p := host.SessionBatch{Key: host.SessionKey{Tenant: tenant, Session: "p"}, Purge: []string{"p"}}
	bad := f.part("d", 1)
	bad.First, bad.Last = 7, 7
	f.refused(p, bad)
	stored(t, f, all, "purged", "dropped", "cut", "twice", "again")
	f.append(p)
	stored(t, f, all, "dropped", "cut", "twice", "again")
	ok(t, "PutPlugin", f.PutPlugin(f.ctx, plugin(tenant, "x", 1, "again")))
	ok(t, "DeletePlugin", f.DeletePlugin(f.ctx, tenant, "x", 0))
	stored(t, f, all, "dropped", "cut", "twice")

	dropped.Status, dropped.Completed = host.StatusCompleted, 20
	p = f.part("d", 1)
	p.Runs, p.Drop = []host.Run{dropped}, []string{dropped.RunID}
	f.append(p)
	delete(f.last, p.Key)
	stored(t, f, all, "cut", "twice")

	p = f.part("c", 1)
	p.Snapshot, p.Cut = p.Last, p.Last
	// A version that any part of the same batch needs again stays.
	f.append(p, f.needing("e", 1, "twice"))
	stored(t, f, all, "twice")
	p = f.part("e", 1)
	p.Snapshot, p.Cut = p.Last, p.Last
	f.append(p)
	stored(t, f, all)
}

// testReleasedCompositions: the same for compositions and their modules.
func testReleasedCompositions(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	all := []string{"m1", "m2", "m3"}
	putModules(t, f, all...)
	for i, digest := range all {
		ok(t, "PutPlugin", f.PutPlugin(f.ctx, plugin(tenant, "x", i+1, digest)))
	}
	w1, w2 := composition(tenant, "w", 1, "m1", "m2"), composition(tenant, "w", 2, "m2", "m3")
	ok(t, "PutComposition", f.PutComposition(f.ctx, w1))
	ok(t, "PutComposition", f.PutComposition(f.ctx, w2))
	r := running("h", "", 10)
	p := f.needing("h", 1, w1.Digest)
	p.Runs, p.Started = []host.Run{r}, []string{r.RunID}
	f.append(p)
	for range 2 { // in either order
		ok(t, "DeleteComposition", f.DeleteComposition(f.ctx, tenant, "w"))
		_, err := f.Composition(f.ctx, w2.Digest)
		missing(t, "a version that nothing needs", err)
		got, err := f.Composition(f.ctx, w1.Digest)
		ok(t, "Composition", err)
		same(t, "Composition", got, w1)
		wantCompositions(t, f, tenant)
		// The versions of the name begin at 1 again, and may have the same digest.
		ok(t, "PutComposition", f.PutComposition(f.ctx, w1))
		wantCompositions(t, f, tenant, w1)
	}
	ok(t, "DeletePlugin", f.DeletePlugin(f.ctx, tenant, "x", 0))
	stored(t, f, all, "m1", "m2")
	ok(t, "DeleteComposition", f.DeleteComposition(f.ctx, tenant, "w"))
	stored(t, f, all, "m1", "m2")
	f.append(host.SessionBatch{Key: p.Key, Purge: []string{"h"}})
	stored(t, f, all)
	_, err := f.Composition(f.ctx, w1.Digest)
	missing(t, "a composition that nothing needs", err)
}

// testDeletePluginVersion: old versions are deleted one by one, and numbers are not
// reused.
func testDeletePluginVersion(t *testing.T, open func(t *testing.T) host.Store) {
	s, ctx := open(t), t.Context()
	all := []string{"m1", "m2", "m3", "m4"}
	putModules(t, s, all...)
	for i, digest := range []string{"m1", "m2", "m1", "m3"} {
		ok(t, "PutPlugin", s.PutPlugin(ctx, plugin("a", "x", i+1, digest)))
	}
	for _, version := range []int{-1, 5} {
		missing(t, "an unknown version", s.DeletePlugin(ctx, "a", "x", version))
	}
	missing(t, "a version of an unknown plugin", s.DeletePlugin(ctx, "b", "x", 1))
	if err := s.DeletePlugin(ctx, "a", "x", 4); err == nil {
		t.Error("DeletePlugin takes the newest version away from the others")
	}
	stored(t, s, all, all...)
	ok(t, "DeletePlugin", s.DeletePlugin(ctx, "a", "x", 1))
	stored(t, s, all, all...)
	ok(t, "DeletePlugin", s.DeletePlugin(ctx, "a", "x", 2))
	missing(t, "DeletePlugin again", s.DeletePlugin(ctx, "a", "x", 2))
	stored(t, s, all, "m1", "m3", "m4")
	ok(t, "PutPlugin", s.PutPlugin(ctx, plugin("a", "x", 5, "m4")))
	got, err := s.PluginVersions(ctx, "a", "x")
	ok(t, "PluginVersions", err)
	same(t, "PluginVersions", got, []host.PluginVersion{plugin("a", "x", 3, "m1"), plugin("a", "x", 4, "m3"), plugin("a", "x", 5, "m4")})
	ok(t, "DeletePlugin", s.DeletePlugin(ctx, "a", "x", 0))
	stored(t, s, all)
}
