package access

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
)

func TestKeyless(t *testing.T) {
	h := newHouse(t, "")
	if !h.Keyless() {
		t.Fatal("a server without any key asks for one")
	}
	h.enters("", host.DefaultTenant, host.RoleAdmin)
	h.enters("a key for another server", host.DefaultTenant, host.RoleAdmin)
	_, err := h.Enter("", "acme")
	refuses(t, "another tenant", err, host.CodeNotFound)
	g, _ := h.Enter("", host.DefaultTenant)
	_, _, err = h.CreateKey(t.Context(), &g, host.KeyRequest{Role: host.RoleRead})
	refuses(t, "a key", err, host.CodeFailedPrecondition)
	_, err = h.CreateTenant(t.Context(), &g, "acme")
	refuses(t, "a tenant", err, host.CodeFailedPrecondition)
	refuses(t, "no default tenant", h.DeleteTenant(t.Context(), &g, host.DefaultTenant), host.CodeFailedPrecondition)
	if list, err := h.Tenants(t.Context(), &g); err != nil || len(list) != 1 || list[0].Name != host.DefaultTenant {
		t.Errorf("Tenants = %v, %v", list, err)
	}
}

// TestKeysStayAskedFor: a server whose tenants have keys asks for keys even if it is
// started without its own.
func TestKeysStayAskedFor(t *testing.T) {
	h := newHouse(t, adminKey)
	_, secret := h.key(host.DefaultTenant, host.RoleRead)
	h.open("")
	if h.Keyless() {
		t.Fatal("the server asks for no keys")
	}
	h.wrong("no key", "")
	h.wrong("the admin key of before", adminKey)
	h.enters(secret, host.DefaultTenant, host.RoleRead)
}

func TestKeys(t *testing.T) {
	h := newHouse(t, adminKey)
	h.tenantNamed("acme", "a_b")
	k, secret := h.key("acme", host.RoleDeploy)
	if want := "weft_acme_"; !strings.HasPrefix(secret, want) || len(secret) != len(want)+43 || !strings.HasPrefix(secret, k.Prefix) || len(k.Prefix) != len(want)+6 {
		t.Errorf("key %q with prefix %q", secret, k.Prefix)
	}
	g := h.enters(secret, "acme", host.RoleDeploy)
	if g.KeyID != k.ID || g.Server || g.Who() != k.ID {
		t.Errorf("grant = %+v", g)
	}
	_, other := h.key("a_b", host.RoleRead)
	h.enters(other, "a_b", host.RoleRead)
	for _, bad := range []string{"", "x", "weft_", "weft__", secret[:len(secret)-1], secret + "A", strings.ToUpper(secret),
		secret[:len(secret)-1] + "!", "weft_acme_" + strings.Repeat("A", 43), strings.Replace(secret, "acme", "a_b", 1), strings.Repeat("a", 1<<16)} {
		h.wrong(fmt.Sprintf("%.60q", bad), bad)
	}
	_, err := h.Enter(secret, "a_b")
	refuses(t, "another tenant", err, host.CodeNotFound)
	_, unknown := h.Enter(secret, "nobody")
	if err.Error() != unknown.Error() {
		t.Errorf("%v differs from %v", err, unknown)
	}
	if g, err := h.Enter(secret, "acme"); err != nil || g.Tenant != "acme" {
		t.Errorf("its own tenant named: %+v, %v", g, err)
	}

	g, err = h.Enter(adminKey, "acme")
	if err != nil || g.Tenant != "acme" || !g.Server || g.Who() != host.AuditServerAdmin {
		t.Errorf("the server's key: %+v, %v", g, err)
	}
	_, err = h.Enter(adminKey, "nobody")
	refuses(t, "the server's key in no tenant", err, host.CodeNotFound)
}

// TestNothingShowsKeys: neither lists nor the store contain a key.
func TestNothingShowsKeys(t *testing.T) {
	h := newHouse(t, adminKey)
	k, secret := h.key(host.DefaultTenant, host.RoleAdmin)
	list, _ := h.Keys(t.Context(), &server)
	one, _ := h.Key(t.Context(), &server, k.ID)
	audit, _, _ := h.Audit(t.Context(), &server, 0, 100)
	tenants, stored, _ := h.store.Access(t.Context())
	text := fmt.Sprintf("%+v %+v %+v %+v %+v", list, one, audit, tenants, stored)
	if strings.Contains(text, secret[len(k.Prefix):]) || strings.Contains(text, adminKey) {
		t.Error("a key is shown")
	}
	if !bytes.Equal(list[0].Hash[:], make([]byte, 32)) || one.Hash != [32]byte{} {
		t.Error("a hash is shown")
	}
}

func TestExpiryAndRevocation(t *testing.T) {
	h := newHouse(t, adminKey)
	_, _, err := h.CreateKey(t.Context(), &server, host.KeyRequest{Role: host.RoleRead, Expires: h.time().UnixNano()})
	refuses(t, "expired at once", err, host.CodeInvalidArgument)
	expired, secret, err := h.CreateKey(t.Context(), &server, host.KeyRequest{Role: host.RoleRead, Expires: h.time().Add(time.Hour).UnixNano()})
	if err != nil {
		t.Fatal(err)
	}
	h.enters(secret, host.DefaultTenant, host.RoleRead)
	h.pass(time.Hour)
	h.wrong("expired", secret)
	_, _, err = h.RotateKey(t.Context(), &server, expired.ID, 0)
	refuses(t, "rotating an expired key", err, host.CodeFailedPrecondition)
	_, secret, err = h.CreateKey(t.Context(), &server, host.KeyRequest{Role: host.RoleRead, Expires: h.time().Add(10 * time.Millisecond).UnixNano()})
	if err != nil {
		t.Fatal(err)
	}
	<-h.enters(secret, host.DefaultTenant, host.RoleRead).Done.Done() // a request under way ends

	k, secret := h.key(host.DefaultTenant, host.RoleRun)
	g := h.enters(secret, host.DefaultTenant, host.RoleRun)
	if err := h.RevokeKey(t.Context(), &server, k.ID); err != nil {
		t.Fatal(err)
	}
	h.wrong("revoked", secret)
	if host.CodeOf(context.Cause(g.Done)) != host.CodeUnauthenticated {
		t.Error("requests under way do not end")
	}
	refuses(t, "twice", h.RevokeKey(t.Context(), &server, k.ID), host.CodeNotFound)
	_, _, err = h.RotateKey(t.Context(), &server, k.ID, 0)
	refuses(t, "rotating a revoked key", err, host.CodeNotFound)
	if k, err := h.Key(t.Context(), &server, k.ID); err != nil || k.Revoked == 0 {
		t.Errorf("Key = %+v, %v", k, err)
	}
	h.open(adminKey)
	h.wrong("revoked, after a start", secret)
}

func TestRotation(t *testing.T) {
	h := newHouse(t, adminKey)
	k, first := h.key(host.DefaultTenant, host.RoleRun)
	g := h.enters(first, host.DefaultTenant, host.RoleRun)
	_, second, err := h.RotateKey(t.Context(), &server, k.ID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	h.enters(first, host.DefaultTenant, host.RoleRun)
	h.enters(second, host.DefaultTenant, host.RoleRun)
	if g.Done.Err() != nil {
		t.Error("a request ended that was within the grace")
	}
	h.open(adminKey)
	h.enters(first, host.DefaultTenant, host.RoleRun)
	h.pass(time.Hour)
	h.wrong("after the grace", first)
	g = h.enters(second, host.DefaultTenant, host.RoleRun)

	rotated, third, err := h.RotateKey(t.Context(), &server, k.ID, 0)
	if err != nil || rotated.ID != k.ID || rotated.Prefix == k.Prefix {
		t.Fatalf("RotateKey = %+v, %v", rotated, err)
	}
	h.wrong("rotated at once", second)
	if g.Done.Err() == nil {
		t.Error("a request goes on with a key that is no more")
	}
	h.enters(third, host.DefaultTenant, host.RoleRun)
	_, _, err = h.RotateKey(t.Context(), &server, k.ID, MaxRotateGrace+1)
	refuses(t, "a long grace", err, host.CodeInvalidArgument)
}

// TestForeignIsUnknown: the data of another tenant and missing data give the same
// answers.
func TestForeignIsUnknown(t *testing.T) {
	h := newHouse(t, adminKey)
	h.tenantNamed("ours", "theirs")
	_, secret := h.key("ours", host.RoleAdmin)
	their, _ := h.key("theirs", host.RoleRead)
	by := h.enters(secret, "ours", host.RoleAdmin)
	ctx := t.Context()
	for _, try := range []struct {
		what string
		do   func(key, tenant string) error
	}{
		{"Key", func(key, _ string) error { _, err := h.Key(ctx, &by, key); return err }},
		{"RevokeKey", func(key, _ string) error { return h.RevokeKey(ctx, &by, key) }},
		{"RotateKey", func(key, _ string) error { _, _, err := h.RotateKey(ctx, &by, key, 0); return err }},
		{"CreateKey", func(_, tenant string) error {
			_, _, err := h.CreateKey(ctx, &by, host.KeyRequest{Tenant: tenant, Role: host.RoleRead})
			return err
		}},
		{"Tenant", func(_, tenant string) error { _, err := h.Tenant(ctx, &by, tenant); return err }},
		{"Usage", func(_, tenant string) error { _, err := h.Usage(ctx, &by, tenant); return err }},
		{"DeleteTenant", func(_, tenant string) error { return h.DeleteTenant(ctx, &by, tenant) }},
	} {
		foreign, unknown := try.do(their.ID, "theirs"), try.do("key_0123456789abcdef", "nobody")
		refuses(t, try.what, foreign, host.CodeNotFound)
		if foreign.Error() != unknown.Error() {
			t.Errorf("%s: %q of what is foreign, %q of what is not there", try.what, foreign, unknown)
		}
	}
	if keys, _ := h.Keys(ctx, &by); len(keys) != 1 || keys[0].Tenant != "ours" {
		t.Errorf("Keys = %+v", keys)
	}
	if tenants, _ := h.Tenants(ctx, &by); len(tenants) != 1 || tenants[0].Name != "ours" {
		t.Errorf("Tenants = %+v", tenants)
	}
	refuses(t, "deleting its own tenant", h.DeleteTenant(ctx, &by, "ours"), host.CodePermissionDenied)
	_, err := h.CreateTenant(ctx, &by, "new")
	refuses(t, "making a tenant", err, host.CodePermissionDenied)
	list, _, _ := h.Audit(ctx, &by, 0, 100)
	for _, e := range list {
		if e.Tenant != "ours" {
			t.Errorf("the audit log shows %+v", e)
		}
	}
}

func TestAuditTells(t *testing.T) {
	h := newHouse(t, adminKey)
	h.tenantNamed("acme")
	k, secret := h.key("acme", host.RoleAdmin)
	by := h.enters(secret, "acme", host.RoleAdmin)
	_, _, _ = h.RotateKey(t.Context(), &by, k.ID, time.Minute)
	_ = h.RevokeKey(t.Context(), &by, "key_of_nobody")
	h.Note(t.Context(), &by, "plugin.put", "p", nil)
	var got []string
	for before := int64(0); ; {
		list, more, err := h.Audit(t.Context(), &server, before, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			got = append(got, strings.Join([]string{e.Who, e.Tenant, e.Act, e.Target, e.Outcome}, " "))
			before = e.ID
		}
		if !more {
			break
		}
	}
	want := []string{k.ID + " acme plugin.put p ok", k.ID + " acme key.revoke key_of_nobody not_found", k.ID + " acme key.rotate " + k.ID + " ok",
		"server admin acme key.create " + k.ID + " ok", "server admin  tenant.create acme ok"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("audit =\n%s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestLastUsed(t *testing.T) {
	h := newHouse(t, adminKey)
	k, secret := h.key(host.DefaultTenant, host.RoleRead)
	h.pass(time.Minute)
	h.enters(secret, host.DefaultTenant, host.RoleRead)
	if shown, _ := h.Key(t.Context(), &server, k.ID); shown.LastUsed != h.time().UnixNano() {
		t.Errorf("last used at %d", shown.LastUsed)
	}
	stored := func() int64 {
		_, keys, _ := h.store.Access(t.Context())
		return keys[0].LastUsed
	}
	if stored() != 0 {
		t.Error("a request wrote the store")
	}
	h.Flush(t.Context())
	if stored() != h.time().UnixNano() {
		t.Error("nothing was written")
	}
}

// TestEnterAsksMemory: a request makes no call of the store.
func TestEnterAsksMemory(t *testing.T) {
	h := newHouse(t, adminKey)
	_, secret := h.key(host.DefaultTenant, host.RoleRead)
	if err := h.store.Close(); err != nil {
		t.Fatal(err)
	}
	h.enters(secret, host.DefaultTenant, host.RoleRead)
	h.wrong("wrong", secret+"x")
}

func TestMaxKeys(t *testing.T) {
	h := newHouse(t, adminKey)
	first, secret := h.key(host.DefaultTenant, host.RoleRead)
	for range MaxKeys - 1 {
		h.key(host.DefaultTenant, host.RoleRead)
	}
	_, _, err := h.CreateKey(t.Context(), &server, host.KeyRequest{Role: host.RoleRead})
	refuses(t, "one key more", err, host.CodeLimitExceeded)
	if err := h.RevokeKey(t.Context(), &server, first.ID); err != nil {
		t.Fatal(err)
	}
	h.key(host.DefaultTenant, host.RoleRead)
	_, err = h.Key(t.Context(), &server, first.ID)
	refuses(t, "the revoked key", err, host.CodeNotFound)
	h.wrong("the revoked key", secret)
}

func TestDeleteTenant(t *testing.T) {
	h := newHouse(t, adminKey)
	defer h.run()()
	h.tenantNamed("acme")
	_, secret := h.key("acme", host.RoleAdmin)
	h.runs["acme"] = []host.Run{{Tenant: "acme", HandlerID: "h", Status: host.StatusRunning}}
	refuses(t, "with active runs", h.DeleteTenant(t.Context(), &server, "acme"), host.CodeConflict)
	g := h.enters(secret, "acme", host.RoleAdmin)
	if g.Done.Err() != nil {
		t.Error("a refused deletion ends requests")
	}
	h.mu.Lock()
	h.runs["acme"][0].Status = host.StatusCompleted
	h.plugins["acme"] = []host.PluginInfo{{Name: "p"}}
	h.mu.Unlock()

	// An open request is ended, and the removal waits for it.
	go func() {
		<-g.Done.Done()
		g.Leave()
	}()
	if err := h.DeleteTenant(t.Context(), &server, "acme"); err != nil {
		t.Fatal(err)
	}
	h.wrong("of a tenant that is gone", secret)
	if len(h.runs["acme"])+len(h.plugins["acme"]) > 0 || len(h.forgot) != 1 {
		t.Errorf("left: %v, %v; forgot %q", h.runs, h.plugins, h.forgot)
	}
	_, err := h.Enter(adminKey, "acme")
	refuses(t, "the tenant", err, host.CodeNotFound)
	h.tenantNamed("acme")
	if keys, _ := h.Keys(t.Context(), &server); len(keys) != 0 {
		t.Errorf("the new tenant has keys of the old one: %+v", keys)
	}
	refuses(t, "the default tenant", h.DeleteTenant(t.Context(), &server, host.DefaultTenant), host.CodeFailedPrecondition)
	refuses(t, "no tenant", h.DeleteTenant(t.Context(), &server, "nobody"), host.CodeNotFound)
}

// TestDeletionGoesOn: the next start continues a removal that a stop interrupted, and
// nobody gets in until then.
func TestDeletionGoesOn(t *testing.T) {
	h := newHouse(t, adminKey)
	h.tenantNamed("acme")
	_, secret := h.key("acme", host.RoleAdmin)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	h.failing, h.failed = errors.New("not now"), cancel
	stop := h.run()
	if err := h.DeleteTenant(ctx, &server, "acme"); !errors.Is(err, context.Canceled) {
		t.Fatalf("DeleteTenant = %v", err)
	}
	stop()
	h.open(adminKey)
	h.wrong("of a tenant that is being deleted", secret)
	_, err := h.CreateTenant(t.Context(), &server, "acme")
	refuses(t, "its name", err, host.CodeConflict)
	_, _, err = h.CreateKey(t.Context(), &server, host.KeyRequest{Tenant: "acme", Role: host.RoleRead})
	refuses(t, "a key of it", err, host.CodeNotFound)

	h.mu.Lock()
	h.failing = nil
	h.mu.Unlock()
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	h.removeAll(ctx)
	h.tenantNamed("acme")
}

// TestEnterAtOnce: requests, changes of keys and deletions of tenants run concurrently.
func TestEnterAtOnce(t *testing.T) {
	h := newHouse(t, adminKey)
	defer h.run()()
	h.tenantNamed("acme")
	var busy sync.WaitGroup
	over := make(chan struct{})
	_, secret := h.key("acme", host.RoleRead)
	for range 4 {
		busy.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				if g, err := h.Enter(secret, ""); err == nil {
					g.Leave()
				}
			}
		})
	}
	for range 20 {
		k, _ := h.key("acme", host.RoleRun)
		if _, _, err := h.RotateKey(t.Context(), &server, k.ID, time.Hour); err != nil {
			t.Error(err)
		}
		h.Flush(t.Context())
	}
	if err := h.DeleteTenant(t.Context(), &server, "acme"); err != nil {
		t.Error(err)
	}
	close(over)
	busy.Wait()
	h.wrong("after all", secret)
}

func BenchmarkEnter(b *testing.B) {
	h := newHouse(b, adminKey)
	for i := range 1000 {
		h.tenantNamed(fmt.Sprint("t", i))
		h.key(fmt.Sprint("t", i), host.RoleRead)
	}
	_, secret := h.key("t500", host.RoleRead)
	b.ReportAllocs()
	for b.Loop() {
		g, err := h.Enter(secret, "")
		if err != nil {
			b.Fatal(err)
		}
		g.Leave()
	}
}
