package hosttest_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/hosttest/suite"
)

// TestTenantsOverKills: answers about keys and tenants still hold after SIGKILL, and a
// tenant's removal that a kill interrupts continues at the next start.
func TestTenantsOverKills(t *testing.T) {
	data, file := t.TempDir(), filepath.Join(t.TempDir(), "admin.key")
	const key = "an-admin-key-that-is-long-enough-for-all"
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := hosttest.Serve(t, data, "--admin-key-file", file)
	for _, tenant := range []string{"stays", "goes"} {
		p.NewTenant(t, key, tenant)
	}
	stays, revoked := p.NewKey(t, key, "stays", host.RoleRead), p.NewKey(t, key, "stays", host.RoleRead)
	p.Want(t, http.StatusNoContent, nil, key, "DELETE", "/keys/"+revoked.ID, "")
	deploy := p.NewKey(t, key, "goes", host.RoleDeploy)
	p.LoadAs(t, deploy.Key, "counter-tinygo", "counter")
	for range 300 {
		p.Want(t, http.StatusOK, nil, deploy.Key, "POST", "/workflows/counter/run", `{"session":"s"}`)
	}

	deleted := make(chan int, 1)
	url := p.URL
	go func() { deleted <- remove(t, url+"/tenants/goes", key) }()
	// The removal has begun when the tenant's keys are refused.
	for p.Ask(t, deploy.Key, "GET", "/workflows", "").Status == http.StatusOK {
		continue
	}
	p.Kill(t)
	t.Logf("the deletion that was killed answered %d", <-deleted)

	p = hosttest.Serve(t, data, "--admin-key-file", file)
	p.Want(t, http.StatusOK, nil, stays.Key, "GET", "/workflows", "")
	p.Want(t, http.StatusUnauthorized, nil, revoked.Key, "GET", "/workflows", "")
	// Either the deletion was recorded and continues, or nothing has happened.
	if p.Ask(t, deploy.Key, "GET", "/workflows", "").Status == http.StatusOK {
		p.Want(t, http.StatusNoContent, nil, key, "DELETE", "/tenants/goes", "")
	}
	p.Want(t, http.StatusUnauthorized, nil, deploy.Key, "GET", "/workflows", "")
	makeAgain(t, p, key, "goes")
	p.Want(t, http.StatusOK, nil, p.NewKey(t, key, "goes", host.RoleRead).Key, "GET", "/handlers", "")
	a := p.Ask(t, key, "GET", "/tenants/goes/usage", "")
	for _, want := range []string{`"handlers":0`, `"sessions":0`, `"plugins":0`, `"journal_bytes":0`, `"stream_bytes":0`} {
		if !strings.Contains(a.Body, want) {
			t.Errorf("the tenant that is new has %s, want %s", a.Body, want)
		}
	}
}

// remove deletes a tenant. It returns 0 if there is no answer.
func remove(t *testing.T, url, key string) int {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodDelete, url, nil)
	if err != nil {
		t.Error(err)
		return 0
	}
	req.Header.Set("Authorization", "Bearer "+key)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// makeAgain makes a tenant as soon as the name is free again.
func makeAgain(t *testing.T, p *hosttest.Process, key, name string) {
	t.Helper()
	for end := time.Now().Add(suite.Hang); ; {
		a := p.Ask(t, key, "POST", "/tenants", `{"name":"`+name+`"}`)
		switch {
		case a.Status == http.StatusCreated:
			return
		case a.Status != http.StatusConflict || time.Now().After(end):
			t.Fatalf("the name is not free: %d %s", a.Status, a.Body)
		}
	}
}
