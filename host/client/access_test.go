package client_test

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/limit"
)

const serverKey = "the server's own admin key"

func TestTenantsAndKeys(t *testing.T) {
	h := hosttest.New(t, hosttest.Config{AdminKey: serverKey})
	open := func(key, tenant string) *client.Client {
		c, err := client.New(h.URL, client.Options{Key: key, Tenant: tenant})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	must := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	ctx := t.Context()
	if _, err := h.Client.Workflows(ctx); host.CodeOf(err) != host.CodeUnauthenticated {
		t.Errorf("without a key: %v", err)
	}
	root := open(serverKey, "")
	made, err := root.CreateTenant(ctx, "acme")
	must("CreateTenant", err)
	tenants, err := root.Tenants(ctx)
	must("Tenants", err)
	if len(tenants) != 2 || tenants[0] != made {
		t.Errorf("Tenants = %+v", tenants)
	}
	expires := time.Now().Add(time.Hour).Truncate(time.Microsecond)
	k, secret, err := open(serverKey, "acme").CreateKey(ctx, host.KeyRequest{Role: host.RoleAdmin, Name: "CI", Expires: expires.UnixNano()})
	must("CreateKey", err)
	if k.Tenant != "acme" || k.Name != "CI" || k.Expires != expires.UnixNano() || k.Prefix != secret[:len(k.Prefix)] {
		t.Errorf("CreateKey = %+v", k)
	}
	ours := open(secret, "")
	keys, err := ours.Keys(ctx)
	must("Keys", err)
	if len(keys) != 1 || keys[0].LastUsed == 0 || keys[0].ID != k.ID {
		t.Errorf("Keys = %+v", keys)
	}
	me, err := ours.WhoAmI(ctx)
	must("WhoAmI", err)
	if me.Tenant != "acme" || me.Role != host.RoleAdmin || me.Server || me.Keyless || me.Key == nil || me.Key.ID != k.ID || me.Key.Expires != k.Expires || me.Started == 0 {
		t.Errorf("WhoAmI = %+v", me)
	}
	u, err := ours.Usage(ctx, "acme")
	must("Usage", err)
	if len(u.Quotas) != len(limit.Quotas()) || u.Quotas[0] != (limit.Use{Quota: limit.QuotaPlugins, Limit: 1000}) {
		t.Errorf("Quotas = %+v", u.Quotas)
	}
	u.Quotas = nil
	if want := (host.TenantUsage{Runs: map[host.Status]int{"running": 0, "completed": 0, "failed": 0, "cancelled": 0}}); !reflect.DeepEqual(u, want) {
		t.Errorf("Usage = %+v", u)
	}
	rotated, second, err := ours.RotateKey(ctx, k.ID, time.Minute)
	must("RotateKey", err)
	if rotated.PreviousPrefix != k.Prefix || second == secret {
		t.Errorf("RotateKey = %+v", rotated)
	}
	must("RevokeKey", open(second, "").RevokeKey(ctx, k.ID))
	if _, err := ours.Keys(ctx); host.CodeOf(err) != host.CodeUnauthenticated {
		t.Errorf("with a revoked key: %v", err)
	}
	must("DeleteTenant", root.DeleteTenant(ctx, "acme"))
}

// TestKeyStaysAtItsServer: a redirection to another host does not receive the key.
func TestKeyStaysAtItsServer(t *testing.T) {
	got := make(chan string, 1)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r.Header.Get("Authorization")
	}))
	defer other.Close()
	first := httptest.NewServer(http.RedirectHandler("http://localhost:"+other.URL[len("http://127.0.0.1:"):], http.StatusFound))
	defer first.Close()
	c, err := client.New(first.URL, client.Options{Key: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.Health(t.Context()) // the answer does not matter
	if key := <-got; key != "" {
		t.Errorf("the other server got %q", key)
	}
}
