package limit

import (
	"strings"
	"testing"
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
		if v := tenantSettings[firstQuota+int(q)].builtin; (*Table)(nil).Quota("t", q) != v || (*Table)(nil).Quota(DefaultTenant, q) != 0 {
			t.Errorf("%s is built in otherwise than %d", name, v)
		}
	}
	for _, name := range []string{"", "fuel", "tenant_fuel_per_second", "retention_runs"} {
		if q, ok := ParseQuota(name); ok {
			t.Errorf("%q is quota %s", name, q)
		}
	}
	table, err := Parse([]byte(`{"defaults": {"tenant_plugins": 5, "tenant_state_bytes": "1MiB"},
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
	_, err = Parse([]byte(`{"defaults": {"tenant_state_bytes": -1, "tenant_runs_active": 1e12}, "plugins": {"p": {"tenant_plugins": 1}}}`))
	for _, want := range []string{
		`takes a size from 1B to 1024TiB, as a number of bytes or a text such as "64MiB", or 0 for none, not -1`,
		"takes a number from 1 to 1,000,000,000, or 0 for none", "plugins.p.tenant_plugins: holds for all that a tenant runs",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}
