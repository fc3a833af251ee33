package storetest

import (
	"errors"
	"slices"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// testOddNames: a store treats names as bytes.
func testOddNames(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	names := []string{"", "'", `"`, "%", "_", "a\x00b", "a", "A", "ü", "u\u0308", "🧵", " ", "a/b", "?", ":x", "NULL", "1", "01"}
	for _, name := range names {
		r := running(name, "in "+name, 10)
		r.Tenant, r.RunID, r.Workflow = "tenant "+name, "run "+name, "flow "+name
		p := f.partOf(host.SessionKey{Tenant: r.Tenant, Session: r.SessionID}, 1)
		p.Runs, p.Started = []host.Run{r}, []string{r.RunID}
		p.Stream = []host.StreamRow{events(r, 0, 1)}
		f.append(p)
		ok(t, "SetMeta", f.SetMeta(f.ctx, name, []byte(name)))
	}
	for _, name := range names {
		key := host.SessionKey{Tenant: "tenant " + name, Session: "in " + name}
		h, err := f.Handler(f.ctx, key.Tenant, name)
		ok(t, "Handler", err)
		if h.HandlerID != name || h.SessionID != key.Session || h.Workflow != "flow "+name || h.Run.RunID != "run "+name {
			t.Errorf("Handler(%q) = %+v", name, h)
		}
		stored, err := f.LoadSession(f.ctx, key)
		ok(t, "LoadSession", err)
		if stored.Last != 1 {
			t.Errorf("LoadSession(%q) = %+v", name, stored)
		}
		f.wantIDs(host.RunQuery{Tenant: key.Tenant, Session: key.Session, Workflows: []string{h.Workflow}}, name)
		value, err := f.Meta(f.ctx, name)
		ok(t, "Meta", err)
		if string(value) != name {
			t.Errorf("Meta(%q) = %q", name, value)
		}
	}
}

func module(digest string) host.ModuleRecord {
	return host.ModuleRecord{
		Digest: digest, Rewritten: "rewritten " + digest, ImageHash: "image " + digest,
		Manifest: abi.EmptyMap, Imports: []string{"weft:v1.log", "weft:v1.sleep"}, Bytes: []byte("\x00asm" + digest),
	}
}

func testModules(t *testing.T, open func(t *testing.T) host.Store) {
	s, ctx := open(t), t.Context()
	_, err := s.Module(ctx, "m")
	missing(t, "module", err)
	want := module("m")
	want.ImageHash = ""
	put := want
	put.Bytes, put.Imports, put.Manifest = slices.Clone(want.Bytes), slices.Clone(want.Imports), slices.Clone(want.Manifest)
	check := func() {
		t.Helper()
		got, err := s.Module(ctx, "m")
		ok(t, "Module", err)
		same(t, "Module", got, want)
	}
	ok(t, "PutModule", s.PutModule(ctx, put))
	put.Bytes[0], put.Imports[0], put.Manifest[0] = 1, "changed", 1
	check()
	got, err := s.Module(ctx, "m")
	ok(t, "Module", err)
	got.Bytes[0], got.Imports[0], got.Manifest[0] = 1, "changed", 1
	check()

	// Storing the same digest again only adds an image hash that was missing.
	again := module("m")
	again.Rewritten, again.Bytes, again.Imports = "other", []byte("other"), nil
	ok(t, "PutModule", s.PutModule(ctx, again))
	want.ImageHash = again.ImageHash
	check()
	again.ImageHash = "other"
	ok(t, "PutModule", s.PutModule(ctx, again))
	check()
	again.ImageHash = ""
	ok(t, "PutModule", s.PutModule(ctx, again))
	check()

	bare := host.ModuleRecord{Digest: "bare"}
	ok(t, "PutModule", s.PutModule(ctx, bare))
	got, err = s.Module(ctx, "bare")
	ok(t, "Module", err)
	if got.Digest != "bare" || len(got.Bytes)+len(got.Imports)+len(got.Manifest) != 0 {
		t.Errorf("Module = %+v, want an empty one", got)
	}
}

func plugin(tenant, name string, version int, digest string) host.PluginVersion {
	return host.PluginVersion{
		Tenant: tenant, Name: name, Workflow: "flow of " + name, Version: version, Digest: digest,
		Size: 100 + version, Created: int64(1000 + version),
	}
}

func testPlugins(t *testing.T, open func(t *testing.T) host.Store) {
	s, ctx := open(t), t.Context()
	for _, digest := range []string{"m1", "m2", "m3"} {
		ok(t, "PutModule", s.PutModule(ctx, module(digest)))
	}
	list := func(tenant string, want ...host.PluginVersion) {
		t.Helper()
		got, err := s.Plugins(ctx, tenant)
		ok(t, "Plugins", err)
		if len(got)+len(want) > 0 {
			same(t, "Plugins("+tenant+")", got, want)
		}
	}
	list("")
	_, err := s.PluginVersions(ctx, "a", "x")
	missing(t, "versions of an unknown plugin", err)

	refused := func(v host.PluginVersion) {
		t.Helper()
		if err := s.PutPlugin(ctx, v); err == nil {
			t.Errorf("PutPlugin took version %d of %s, which does not follow", v.Version, v.Name)
		}
	}
	refused(plugin("a", "x", 2, "m1"))
	refused(plugin("a", "x", 0, "m1"))
	missing(t, "PutPlugin of an unknown module", s.PutPlugin(ctx, plugin("a", "x", 1, "unknown")))
	list("")

	x1, x2, x3 := plugin("a", "x", 1, "m1"), plugin("a", "x", 2, "m2"), plugin("a", "x", 3, "m1")
	y, b := plugin("a", "y", 1, "m3"), plugin("b", "x", 1, "m1")
	for _, v := range []host.PluginVersion{x1, y, x2, b} {
		ok(t, "PutPlugin", s.PutPlugin(ctx, v))
	}
	refused(x1)
	refused(x2)
	ok(t, "PutPlugin", s.PutPlugin(ctx, x3))
	list("a", x3, y)
	list("b", b)
	list("c")
	list("", x3, b, y)
	got, err := s.PluginVersions(ctx, "a", "x")
	ok(t, "PluginVersions", err)
	same(t, "PluginVersions", got, []host.PluginVersion{x1, x2, x3})
	_, err = s.PluginVersions(ctx, "b", "y")
	missing(t, "another tenant's plugin", err)
}

// testDeletePlugin: a plugin is deleted with all its versions and with the modules that
// no version names any more.
func testDeletePlugin(t *testing.T, open func(t *testing.T) host.Store) {
	s, ctx := open(t), t.Context()
	for _, digest := range []string{"shared", "own", "uploading"} {
		ok(t, "PutModule", s.PutModule(ctx, module(digest)))
	}
	for _, v := range []host.PluginVersion{
		plugin("a", "x", 1, "own"), plugin("a", "x", 2, "shared"), plugin("a", "x", 3, "own"), plugin("b", "x", 1, "shared"),
	} {
		ok(t, "PutPlugin", s.PutPlugin(ctx, v))
	}
	missing(t, "DeletePlugin of an unknown one", s.DeletePlugin(ctx, "c", "x", 0))
	ok(t, "DeletePlugin", s.DeletePlugin(ctx, "a", "x", 0))
	missing(t, "DeletePlugin again", s.DeletePlugin(ctx, "a", "x", 0))
	_, err := s.PluginVersions(ctx, "a", "x")
	missing(t, "versions of a deleted plugin", err)
	_, err = s.Module(ctx, "own")
	missing(t, "a module that no version names", err)
	for _, digest := range []string{"shared", "uploading"} {
		got, err := s.Module(ctx, digest)
		ok(t, "Module", err)
		same(t, "Module", got, module(digest))
	}
	// The name is free again, and its versions begin at 1.
	ok(t, "PutPlugin", s.PutPlugin(ctx, plugin("a", "x", 1, "uploading")))
	ok(t, "DeletePlugin", s.DeletePlugin(ctx, "b", "x", 0))
	_, err = s.Module(ctx, "shared")
	missing(t, "a module that no version names", err)
}

func testMeta(t *testing.T, open func(t *testing.T) host.Store) {
	s, ctx := open(t), t.Context()
	_, err := s.Meta(ctx, "k")
	missing(t, "value", err)
	for _, value := range [][]byte{[]byte("one"), {}, []byte("two"), nil, {0, 255}} {
		given := slices.Clone(value)
		ok(t, "SetMeta", s.SetMeta(ctx, "k", given))
		if len(given) > 0 {
			given[0]++
		}
		for range 2 {
			got, err := s.Meta(ctx, "k")
			ok(t, "Meta", err)
			if !slices.Equal(got, value) {
				t.Errorf("Meta = %q, want %q", got, value)
			}
			if len(got) > 0 {
				got[0]++
			}
		}
	}
	_, err = s.Meta(ctx, "K")
	missing(t, "value", err)
}

func testStats(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	same(t, "Stats of a new store", f.Stats(), host.StoreStats{})
	p, q := f.part("s", 1), f.part("t", 1)
	f.append(p, q)
	f.append(f.part("s", 1))
	bad := f.part("s", 1)
	bad.First += 10
	bad.Last += 10
	f.refused(bad)
	stats := f.Stats()
	want := uint64(len(p.Data) + len(q.Data) + len("s 2+1"))
	if stats.Commits != 2 || stats.JournalBytes != want || stats.CommitTime <= 0 {
		t.Errorf("Stats = %+v, want 2 commits of %d bytes", stats, want)
	}
}

func testClose(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	f.append(f.part("s", 1))
	ok(t, "Close", f.Close())
	ok(t, "Close again", f.Close())
	if err := f.try(f.part("s", 1)); err == nil || errors.Is(err, host.ErrNotCommitted) {
		t.Errorf("Append to a closed store = %v, want an error that ends it", err)
	}
	if _, err := f.LoadSession(f.ctx, host.SessionKey{Tenant: tenant, Session: "s"}); err == nil || errors.Is(err, host.ErrNotFound) {
		t.Errorf("LoadSession of a closed store = %v, want an error that says so", err)
	}
	if _, err := f.Claim(f.ctx); err == nil {
		t.Error("Claim of a closed store succeeds")
	}
	if err := f.SetMeta(f.ctx, "k", nil); err == nil {
		t.Error("SetMeta of a closed store succeeds")
	}
}
