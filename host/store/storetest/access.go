package storetest

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/weftrun/weft/host"
)

// change applies a change of tenants and keys.
func (f *fixture) change(c host.AccessChange) {
	f.t.Helper()
	ok(f.t, "ChangeAccess", f.ChangeAccess(f.ctx, c))
}

func keyRecord(id, tenant string) host.KeyRecord {
	return host.KeyRecord{
		ID: id, Tenant: tenant, Role: host.RoleRun, Name: "for " + id, Prefix: "weft_" + id,
		Hash: sha256.Sum256([]byte(id)), Created: 1,
	}
}

func testAccess(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	want := func(what string, tenants []host.TenantRecord, keys []host.KeyRecord) {
		t.Helper()
		gotTenants, gotKeys, err := f.Access(f.ctx)
		ok(t, "Access", err)
		same(t, "tenants after "+what, gotTenants, tenants)
		same(t, "keys after "+what, gotKeys, keys)
	}
	want("nothing", nil, nil)

	a, b := host.TenantRecord{Name: "a", Created: 10}, host.TenantRecord{Name: "b", Created: 20}
	k1, k2, k3 := keyRecord("k1", "a"), keyRecord("k2", "a"), keyRecord("k3", "b")
	k2.Previous, k2.PreviousPrefix, k2.PreviousUntil = sha256.Sum256([]byte("old")), "weft_old", 99
	k2.Expires, k2.LastUsed, k2.Revoked = 5, 6, 7
	f.change(host.AccessChange{Tenants: []host.TenantRecord{b, a}, Keys: []host.KeyRecord{k3, k2, k1}})
	want("making them", []host.TenantRecord{a, b}, []host.KeyRecord{k1, k2, k3})

	a.Deleting, k1.Role, k1.Revoked = true, host.RoleAdmin, 30
	k3.LastUsed = 40
	f.change(host.AccessChange{Tenants: []host.TenantRecord{a}, Keys: []host.KeyRecord{k1}, Used: map[string]int64{"k3": 40, "unknown": 1}})
	want("changing them", []host.TenantRecord{a, b}, []host.KeyRecord{k1, k2, k3})

	f.change(host.AccessChange{DropKeys: []string{"k2", "unknown"}})
	want("dropping a key", []host.TenantRecord{a, b}, []host.KeyRecord{k1, k3})
	f.change(host.AccessChange{DropTenant: "a"})
	want("dropping a tenant", []host.TenantRecord{b}, []host.KeyRecord{k3})
}

func testAudit(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	var made []host.AuditEntry
	for i := range 7 {
		e := host.AuditEntry{Time: int64(i), Who: "k", Tenant: []string{"", "a", "b"}[i%3], Act: "act", Target: fmt.Sprint(i), Detail: "d", Outcome: host.AuditOK}
		made = append(made, e)
		f.change(host.AccessChange{Audit: []host.AuditEntry{e}})
	}
	// list reads the log in pages and returns the targets, newest first.
	list := func(q host.AuditQuery) (targets string) {
		t.Helper()
		for q.Limit = 2; ; {
			page, more, err := f.Audit(f.ctx, q)
			ok(t, "Audit", err)
			for _, e := range page {
				targets += e.Target
				q.Before = e.ID
				e.ID = 0
				var n int
				_, _ = fmt.Sscan(e.Target, &n)
				same(t, "entry "+e.Target, e, made[n])
			}
			if !more {
				return targets
			}
		}
	}
	same(t, "all", list(host.AuditQuery{All: true}), "6543210")
	same(t, "the server's", list(host.AuditQuery{}), "630")
	same(t, "a's", list(host.AuditQuery{Tenant: "a"}), "41")
	f.change(host.AccessChange{DropTenant: "a"})
	same(t, "all but a's", list(host.AuditQuery{All: true}), "65320")

	many := make([]host.AuditEntry, host.MaxAudit)
	for i := range many {
		many[i] = host.AuditEntry{Tenant: "b", Target: "x"}
	}
	f.change(host.AccessChange{Audit: many})
	kept := 0
	for q, more := (host.AuditQuery{All: true, Limit: host.MaxListed + 100}), true; more; {
		var page []host.AuditEntry
		var err error
		page, more, err = f.Audit(f.ctx, q)
		ok(t, "Audit", err)
		same(t, "more behind a page of the greatest size", more, len(page) == host.MaxListed)
		kept += len(page)
		q.Before = page[len(page)-1].ID
	}
	same(t, "entries that are kept", kept, host.MaxAudit+3)
}

func testTenantUsage(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	none, err := f.TenantUsage(f.ctx, "nobody")
	ok(t, "TenantUsage", err)
	same(t, "usage of nobody", none, host.TenantUsage{Runs: map[host.Status]int{}})

	f.fill("other")
	f.fill(tenant)
	u, err := f.TenantUsage(f.ctx, tenant)
	ok(t, "TenantUsage", err)
	if u.StreamBytes <= 0 {
		t.Errorf("StreamBytes = %d", u.StreamBytes)
	}
	u.StreamBytes = 0
	var journal int64
	for _, p := range []string{"h1 1+1", "h1 2+1", "h2 1+1", "chat 1+1"} {
		journal += int64(len(p))
	}
	same(t, "usage", u, host.TenantUsage{
		Runs: map[host.Status]int{host.StatusRunning: 2, host.StatusCompleted: 1}, Steps: 5, Handlers: 3, Sessions: 3,
		Plugins: 1, Versions: 2, PluginBytes: 30, JournalBytes: journal,
	})
}

// fill gives a tenant three runs, one of which has ended and two of which have sessions
// of their own, a request with an idempotency key, a plugin and a composed workflow.
func (f *fixture) fill(tenant string) {
	f.t.Helper()
	for i, session := range []string{"", "", "chat"} {
		r := running(fmt.Sprint("h", i+1), session, int64(i+1))
		r.Tenant = tenant
		f.start(r)
		if i > 0 {
			continue
		}
		p := f.partOf(host.SessionKey{Tenant: tenant, Session: r.SessionID}, 1)
		r.Status, r.Completed, r.Steps, r.Fuel = host.StatusCompleted, 9, 5, 700
		p.Runs = []host.Run{r}
		p.Stream = []host.StreamRow{events(r, 0, 3)}
		p.Repeats = []host.Repeat{{Route: "r", Key: "k", RunID: r.RunID, Made: 1}}
		p.Versions = []host.VersionUse{{Digest: "digest of " + tenant, Seq: p.First}}
		f.append(p)
	}
	digest := "digest of " + tenant
	ok(f.t, "PutModule", f.PutModule(f.ctx, host.ModuleRecord{Digest: digest, Bytes: []byte("wasm")}))
	for version, size := range []int{10, 20} {
		ok(f.t, "PutPlugin", f.PutPlugin(f.ctx, host.PluginVersion{Tenant: tenant, Name: "p", Version: version + 1, Digest: digest, Size: size}))
	}
	ok(f.t, "PutComposition", f.PutComposition(f.ctx, host.CompositionVersion{Tenant: tenant, Name: "c", Version: 1, Digest: "c of " + tenant, Modules: []string{digest}}))
}

func testClearTenant(t *testing.T, open func(t *testing.T) host.Store) {
	f := claimed(t, open)
	f.fill("other")
	before := dump(f)
	f.fill("gone")
	calls := 0
	for more := true; more; calls++ {
		var err error
		more, err = f.ClearTenant(f.ctx, "gone", 2)
		ok(t, "ClearTenant", err)
		if calls > 100 {
			t.Fatal("ClearTenant does not end")
		}
	}
	for key := range f.last {
		if key.Tenant == "gone" {
			_, err := f.LoadSession(f.ctx, key)
			missing(t, "session of the tenant that is gone", err)
			delete(f.last, key)
		}
	}
	same(t, "what the others have", dump(f), before)
	u, err := f.TenantUsage(f.ctx, "gone")
	ok(t, "TenantUsage", err)
	same(t, "usage", u, host.TenantUsage{Runs: map[host.Status]int{}})
	_, err = f.Repeat(f.ctx, "gone", "r", "k")
	missing(t, "request", err)
	_, err = f.Module(f.ctx, "digest of gone")
	missing(t, "module", err)
	_, err = f.Module(f.ctx, "digest of other")
	ok(t, "module of the other", err)
	composed, err := f.Compositions(f.ctx, "gone")
	ok(t, "Compositions", err)
	same(t, "compositions", len(composed), 0)

	// The name is free again, and its data begins empty.
	f.fill("gone")
	_, err = f.ClearTenant(f.ctx, "nobody", 10)
	ok(t, "ClearTenant of nobody", err)
}
