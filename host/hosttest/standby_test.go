package hosttest_test

import (
	"testing"

	"github.com/weftrun/weft/cmd/weft/wire"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/cluster"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/store/postgres"
	"github.com/weftrun/weft/host/store/postgres/pgtest"
)

// A node that waits for the sessions has the code of a plugin that was uploaded at another
// node. Its host opens with what was prepared, although PostgreSQL has ended the connections
// meanwhile.
func TestStandby(t *testing.T) {
	pg := pgtest.Shared(t)
	url := pg.Database(t, "")
	join := func(name string) (*postgres.Members, wire.Config) {
		t.Helper()
		s, err := postgres.Open(t.Context(), url, postgres.Options{Shared: true})
		must(t, err)
		m := s.Members()
		t.Cleanup(func() {
			must(t, m.Close())
			must(t, s.Close())
		})
		place, err := m.Join(t.Context(), cluster.Self{Name: name, URL: "https://" + name + ":1", Key: []byte(name), Lease: cluster.LeastLease})
		must(t, err)
		return m, wire.Config{Data: t.TempDir(), StoreURL: url, Place: &place}
	}
	take := func(m *postgres.Members, cfg wire.Config) *wire.Host {
		t.Helper()
		if taken, err := m.Take(t.Context(), *cfg.Place); err != nil || !taken {
			t.Fatalf("taken %t, %v", taken, err)
		}
		h, err := wire.Open(t.Context(), cfg)
		must(t, err)
		return h
	}
	a, first := join("a")
	b, next := join("b")
	owner := take(a, first)
	ready, err := wire.Prepare(t.Context(), next)
	must(t, err)
	info, _, err := owner.Plugins.Put(t.Context(), host.DefaultTenant, "counter", hosttest.Plugin(t, "counter-tinygo"))
	must(t, err)
	must(t, ready.Refresh(t.Context()))
	must(t, owner.Stop(t.Context()))
	must(t, a.Leaving(t.Context(), *first.Place))
	must(t, a.Release(t.Context(), *first.Place))
	must(t, owner.Close(t.Context()))
	pg.Exec(t, url, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'weft @%'`)

	next.Standby = ready
	h := take(b, next)
	if !h.Sandbox.Ready(&host.Invocation{Digest: info.SHA256, Limits: next.Limits.Limits(host.DefaultTenant, "counter")}) {
		t.Error("the code of the plugin is not ready")
	}
	if list, err := h.Plugins.List(t.Context(), host.DefaultTenant); err != nil || len(list) != 1 {
		t.Errorf("plugins %+v, %v", list, err)
	}
	must(t, h.Close(t.Context()))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
