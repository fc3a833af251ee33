package host

import (
	"strings"
	"testing"
	"time"
)

// Each quota has a name of its own, advice, and a value by tenant: the built-in one for
// all but the default tenant, what the file says before it.
func TestQuotaSettings(t *testing.T) {
	seen := map[string]bool{}
	for _, q := range Quotas() {
		name := q.String()
		if back, ok := ParseQuota(name); seen[name] || !ok || back != q || !strings.HasPrefix(name, "tenant_") || advice[q] == "" {
			t.Errorf("quota %d: %s, %s", q, name, advice[q])
		}
		seen[name] = true
		if v := tenantSettings[firstQuota+int(q)].builtin; (*LimitTable)(nil).Quota("t", q) != v || (*LimitTable)(nil).Quota(DefaultTenant, q) != 0 {
			t.Errorf("%s is built in otherwise than %d", name, v)
		}
	}
	for _, name := range []string{"", "fuel", "tenant_fuel_per_second", "retention_runs"} {
		if q, ok := ParseQuota(name); ok {
			t.Errorf("%q is quota %s", name, q)
		}
	}
	table, err := ParseLimits([]byte(`{"defaults": {"tenant_plugins": 5, "tenant_state_bytes": "1MiB"},
		"tenants": {"a": {"tenant_plugins": 0, "tenant_fuel_per_month": 1e12}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		tenant string
		quota  Quota
		want   int64
	}{
		{"a", QuotaPlugins, 0}, {"b", QuotaPlugins, 5}, {DefaultTenant, QuotaPlugins, 5}, {DefaultTenant, QuotaRunsActive, 0},
		{"a", QuotaFuel, 1e12}, {"b", QuotaFuel, 0}, {"b", QuotaStateBytes, 1 << 20}, {"b", QuotaStreamReaders, 20_000},
	} {
		if got := table.Quota(c.tenant, c.quota); got != c.want {
			t.Errorf("%s of %s = %d, want %d", c.quota, c.tenant, got, c.want)
		}
	}
	_, err = ParseLimits([]byte(`{"defaults": {"tenant_state_bytes": -1, "tenant_runs_active": 1e12}, "plugins": {"p": {"tenant_plugins": 1}}}`))
	for _, want := range []string{
		`takes a size from 1B to 1024TiB, as a number of bytes or a text such as "64MiB", or 0 for none, not -1`,
		"takes a number from 1 to 1,000,000,000, or 0 for none", "plugins.p.tenant_plugins: holds for all that a tenant runs",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestBreach(t *testing.T) {
	e := Breached(QuotaStateBytes, 64*mib, 70*mib, 0)
	if e.HTTPStatus() != 413 || !strings.Contains(e.Message, "tenant_state_bytes of 64MiB: delete sessions, or keys of resources") {
		t.Errorf("%d %s", e.HTTPStatus(), e.Message)
	}
	if e := Breached(QuotaRequests, 1000, 1000, time.Second); e.HTTPStatus() != 429 || !strings.Contains(e.Message, "of 1,000: ask less often") {
		t.Errorf("%d %s", e.HTTPStatus(), e.Message)
	}
	if u := (QuotaUse{Quota: QuotaFuel}); u.Text() != "none" || u.Show(12345) != "12,345" {
		t.Errorf("%s, %s", u.Text(), u.Show(12345))
	}
}

func TestMonths(t *testing.T) {
	for _, c := range []struct {
		at   time.Time
		want string
		end  time.Time
	}{
		{time.Date(2026, 11, 30, 23, 59, 59, 999, time.UTC), "2026-11", time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)},
		{time.Date(2026, 12, 31, 20, 0, 0, 0, time.FixedZone("", -5*3600)), "2027-01", time.Date(2027, 2, 1, 0, 0, 0, 0, time.UTC)},
		{time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), "2026-12", time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)},
	} {
		m := MonthOf(c.at.UnixNano())
		if back, ok := ParseMonth(m.String()); m.String() != c.want || !m.End().Equal(c.end) || !ok || back != m {
			t.Errorf("%s is in %s, which ends %s", c.at, m, m.End())
		}
	}
	for _, bad := range []string{"", "2026", "2026-13", "x"} {
		if m, ok := ParseMonth(bad); ok {
			t.Errorf("%q is %s", bad, m)
		}
	}
}
