package access

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/memory"
)

const adminKey = "an admin key of the server"

// house is a service over a store in memory. Its runs and plugins are lists.
type house struct {
	*Service
	tb    testing.TB
	store host.Store

	mu      sync.Mutex // guards the fields below
	clock   time.Time
	runs    map[string][]host.Run // by tenant
	plugins map[string][]host.PluginInfo
	forgot  []string
	failing error  // of Forget
	failed  func() // called when Forget has failed
}

func newHouse(tb testing.TB, admin string) *house {
	h := &house{
		tb: tb, store: memory.New(), clock: time.Unix(1_800_000_000, 0),
		runs: map[string][]host.Run{}, plugins: map[string][]host.PluginInfo{},
	}
	h.open(admin)
	return h
}

// open opens the service, as after a start.
func (h *house) open(admin string) {
	h.tb.Helper()
	var err error
	h.Service, err = New(h.tb.Context(), Config{
		Store: h.store, Runs: fakeRuns{h}, Plugins: fakePlugins{h}, AdminKey: admin, Forget: h.forget, Now: h.time,
	})
	if err != nil {
		h.tb.Fatal(err)
	}
}

// run starts the service. The returned function stops it and waits for it.
func (h *house) run() (stop func()) {
	ctx, cancel := context.WithCancel(h.tb.Context())
	over := make(chan struct{})
	go func() {
		h.Run(ctx)
		close(over)
	}()
	return func() {
		cancel()
		<-over
	}
}

func (h *house) time() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.clock
}

func (h *house) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clock = h.clock.Add(d)
}

func (h *house) forget(_ context.Context, tenant string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forgot = append(h.forgot, tenant)
	if h.failing != nil && h.failed != nil {
		h.failed()
	}
	return h.failing
}

type fakeRuns struct{ h *house }

func (f fakeRuns) List(_ context.Context, q host.RunQuery) ([]host.Run, bool, error) {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	var list []host.Run
	for _, r := range f.h.runs[q.Tenant] {
		if len(q.Statuses) == 0 || q.Statuses[0] == string(r.Status) {
			list = append(list, r)
		}
	}
	return list, false, nil
}

func (f fakeRuns) Cancel(_ context.Context, tenant, id string, purge bool) (bool, error) {
	f.h.mu.Lock()
	defer f.h.mu.Unlock()
	var rest []host.Run
	for _, r := range f.h.runs[tenant] {
		if r.HandlerID != id {
			rest = append(rest, r)
		}
	}
	f.h.runs[tenant] = rest
	return purge, nil
}

type fakePlugins struct{ h *house }

func (f fakePlugins) List(_ context.Context, tenant string) ([]host.PluginInfo, error) {
	return f.h.plugins[tenant], nil
}

func (f fakePlugins) Delete(_ context.Context, tenant, _ string) error {
	delete(f.h.plugins, tenant)
	return nil
}

func (f fakePlugins) Workflows(context.Context, string) ([]string, error) { return []string{"w"}, nil }

func (f fakePlugins) Workflow(context.Context, string, string) (host.WorkflowInfo, error) {
	return host.WorkflowInfo{Name: "w", Composed: true}, nil
}

func (f fakePlugins) Decompose(context.Context, string, string) error {
	return &host.Error{Code: host.CodeNotFound, Message: "gone"}
}

// server returns a grant of the server's own key.
var server = host.Grant{Tenant: host.DefaultTenant, Role: host.RoleAdmin, Server: true}

func (h *house) tenantNamed(names ...string) {
	h.tb.Helper()
	for _, name := range names {
		if _, err := h.CreateTenant(h.tb.Context(), &server, name); err != nil {
			h.tb.Fatal(err)
		}
	}
}

func (h *house) key(tenant string, role host.Role) (host.KeyRecord, string) {
	h.tb.Helper()
	k, secret, err := h.CreateKey(h.tb.Context(), &server, host.KeyRequest{Tenant: tenant, Role: role})
	if err != nil {
		h.tb.Fatal(err)
	}
	return k, secret
}

// enters expects a key to be valid for a tenant and a role, and returns the grant.
func (h *house) enters(secret, tenant string, role host.Role) host.Grant {
	h.tb.Helper()
	g, err := h.Enter(secret, "")
	if err != nil || g.Tenant != tenant || g.Role != role {
		h.tb.Fatalf("Enter = %+v, %v", g, err)
	}
	return g
}

// refuses expects an error with a code.
func refuses(tb testing.TB, what string, err error, code host.Code) {
	tb.Helper()
	if err == nil || host.CodeOf(err) != code {
		tb.Errorf("%s: error = %v (%s), want %s", what, err, host.CodeOf(err), code)
	}
}

func (h *house) wrong(what, secret string) {
	h.tb.Helper()
	_, err := h.Enter(secret, "")
	refuses(h.tb, what, err, host.CodeUnauthenticated)
}
