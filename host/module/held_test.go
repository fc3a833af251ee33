package module

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// TestRunsOfVersions: runs are counted with the very version that they hold, be it
// by a composition.
func TestRunsOfVersions(t *testing.T) {
	b := newBed(t, nil)
	b.put(t, tenantA, "p", manifest(t, "w", nil))
	run := b.running(t, "w")
	b.replace(t, tenantA, "p", manifest(t, "w2", nil)) // another workflow, even
	b.put(t, tenantA, "other", manifest(t, "o", nil))
	want := func(name string, sum int, each ...int) {
		t.Helper()
		versions, err := b.Versions(t.Context(), tenantA, name)
		if err != nil || len(versions) != len(each) {
			t.Fatalf("versions = %+v, %v", versions, err)
		}
		for i, n := range each {
			if versions[i].Runs != n || n > 0 && !slices.Equal(versions[i].HeldBy, []host.VersionRuns{{Workflow: "w", Version: run.Version, Runs: n}}) {
				t.Errorf("%s: version %d has %d runs, want %d", name, i+1, versions[i].Runs, n)
			}
		}
		list, err := b.List(t.Context(), tenantA)
		for _, info := range list {
			if info.Name == name && info.Runs != sum || err != nil {
				t.Errorf("%s has %d runs, want %d (%v)", name, info.Runs, sum, err)
			}
		}
	}
	want("p", 1, 1, 0)
	want("other", 0, 0)
	wantCode(t, b.Delete(t.Context(), tenantA, "p"), host.CodeConflict, "1 run holds plugin p")
	// The same bytes again are another version with the digest: each run counts once.
	b.replace(t, tenantA, "p", manifest(t, "w", nil))
	want("p", 1, 1, 0, 1)
	b.end(t, run)
	want("p", 0, 0, 0, 0)
}

// TestRunsOfUnknownVersions: records of before do not say which version it is.
func TestRunsOfUnknownVersions(t *testing.T) {
	b := newBed(t, nil)
	b.put(t, tenantA, "p", manifest(t, "w", nil))
	b.put(t, tenantA, "p", manifest(t, "w", func(m *abi.Manifest) { m.Description = "another" }))
	run := b.runningOn(t, "w", "")
	versions, err := b.Versions(t.Context(), tenantA, "p")
	if err != nil || versions[0].Runs != 0 || versions[1].Runs != 1 {
		t.Errorf("versions = %+v, %v", versions, err)
	}
	wantCode(t, b.Delete(t.Context(), tenantA, "p"), host.CodeConflict, "1 run holds plugin p")
	wantCode(t, b.DeleteVersion(t.Context(), tenantA, "p", 1), host.CodeConflict, "1 run holds version 1 of plugin p")
	b.end(t, run)
	if err := b.Delete(t.Context(), tenantA, "p"); err != nil {
		t.Error(err)
	}
}

func TestDeleteVersion(t *testing.T) {
	b := greetShout(t)
	b.compose(t, "hello", of("greet", "shout"))
	run := b.running(t, "hello")
	first, err := b.Plugin(t.Context(), tenantA, "shout")
	if err != nil {
		t.Fatal(err)
	}
	b.put(t, tenantA, "shout", partOf(t, strings.Replace(shoutPart, `"Greeting": {}`, `"Greeting": {}, "Other": {}`, 1)))
	wantCode(t, b.DeleteVersion(t.Context(), tenantA, "none", 1), host.CodeNotFound, "Plugin not found")
	for _, n := range []int{-1, 0, 3} {
		wantCode(t, b.DeleteVersion(t.Context(), tenantA, "shout", n), host.CodeNotFound, "Plugin shout has no version")
	}
	wantCode(t, b.DeleteVersion(t.Context(), tenantA, "shout", 2), host.CodeConflict, "version 2 is the newest")
	wantCode(t, b.DeleteVersion(t.Context(), tenantA, "shout", 1), host.CodeConflict, "1 run holds version 1 of plugin shout")
	b.end(t, run)
	if err := b.DeleteVersion(t.Context(), tenantA, "shout", 1); err != nil {
		t.Fatal(err)
	}
	wantCode(t, b.DeleteVersion(t.Context(), tenantA, "shout", 1), host.CodeNotFound)
	if versions, err := b.Versions(t.Context(), tenantA, "shout"); err != nil || len(versions) != 1 || versions[0].Version != 2 {
		t.Errorf("versions = %+v, %v", versions, err)
	}
	if _, err := b.store.Module(t.Context(), first.SHA256); err != nil {
		t.Errorf("an old version of the workflow has lost its module: %v", err)
	}
	// The numbers go on behind the newest.
	if info := b.put(t, tenantA, "shout", partOf(t, shoutPart)); info.Version != 3 || info.SHA256 != first.SHA256 {
		t.Errorf("put = %+v", info)
	}
}

// TestDeletionWaitsForStarts: a run that has taken its version when the plugin is
// deleted, and is stored afterwards, is found to hold it.
func TestDeletionWaitsForStarts(t *testing.T) {
	b := newBed(t, nil)
	b.put(t, tenantA, "p", manifest(t, "w", nil))
	started := b.Starting()
	v, err := b.Newest(tenantA, "w")
	if err != nil {
		t.Fatal(err)
	}
	deleted := make(chan error, 1)
	go func() { deleted <- b.Delete(t.Context(), tenantA, "p") }()
	for err == nil { // until no run can take it any more
		runtime.Gosched()
		_, err = b.Newest(tenantA, "w")
	}
	late := b.Starting() // nobody waits for this one
	run := b.runningOn(t, "w", v.Digest)
	started()
	wantCode(t, <-deleted, host.CodeConflict, "1 run holds plugin p")
	if _, err := b.Newest(tenantA, "w"); err != nil {
		t.Errorf("after a refused deletion: %v", err)
	}
	late()
	b.end(t, run)
	if err := b.Delete(t.Context(), tenantA, "p"); err != nil {
		t.Error(err)
	}
}

// TestDeletionThatCannotWait: what cannot be waited for ends the deletion, and the
// plugin is there as before; the next one waits for the same start.
func TestDeletionThatCannotWait(t *testing.T) {
	broken := errors.New("no journal")
	var settled error
	b := newBed(t, func(c *Config) { c.Settled = func(context.Context) error { return settled } })
	b.put(t, tenantA, "p", manifest(t, "w", nil))
	settled = broken
	err := b.Delete(t.Context(), tenantA, "p")
	if wantCode(t, err, host.CodeUnavailable); !errors.Is(err, broken) {
		t.Errorf("deletion = %v", err)
	}
	settled = nil
	started := b.Starting()
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		deleted := make(chan error, 1)
		go func() { deleted <- b.Delete(ctx, tenantA, "p") }()
		for err := error(nil); err == nil; _, err = b.Newest(tenantA, "w") {
			runtime.Gosched()
		}
		cancel()
		if err := <-deleted; !errors.Is(err, context.Canceled) {
			t.Errorf("deletion = %v", err)
		}
		if _, err := b.Newest(tenantA, "w"); err != nil {
			t.Error(err)
		}
	}
	started()
	started()
	if err := b.Delete(t.Context(), tenantA, "p"); err != nil {
		t.Error(err)
	}
}
