package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/metrics"
)

func scrape(t *testing.T, m *metrics.Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Fatalf("%d %v", w.Code, w.Header())
	}
	return w.Body.String()
}

// TestMetrics: reported events are shown, and counters of other packages are read.
func TestMetrics(t *testing.T) {
	m := metrics.New()
	m.Started("a")
	m.Ended(&host.Run{Tenant: "a", Status: host.StatusFailed, Steps: 3, Fuel: 70})
	m.Waited(2 * time.Millisecond)
	m.Committed(5, time.Millisecond, nil)
	m.Committed(5, time.Millisecond, errors.New("full"))
	m.Request("/handlers/:id", "GET", 202, time.Millisecond)
	n := 7.0
	readings := []metrics.Reading{
		{Name: "things_total", Help: "Things.", Counter: true, Read: func() float64 { return n }},
		{Name: "level", Help: "A level."},
	}
	s := m.Source(readings)
	text := scrape(t, m)
	for _, want := range []string{
		`weft_runs_started_total{tenant="a"} 1`, `weft_runs_ended_total{status="failed",tenant="a"} 1`, `weft_steps_total{tenant="a"} 3`,
		`weft_run_fuel_units_total{tenant="a"} 70`, "weft_attempt_wait_seconds_count 1", "weft_commit_entries_sum 5", "weft_commit_seconds_count 1",
		"weft_commits_failed_total 1", `weft_http_request_seconds_count{method="GET",route="/handlers/:id",status="202"} 1`,
		"# TYPE weft_things_total counter", "weft_things_total 7", "go_goroutines ", "process_cpu_seconds_total ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "weft_level ") {
		t.Error("a series that nobody reads is there")
	}
	readings = append([]metrics.Reading{}, readings...)
	readings[1].Read = func() float64 { return -1 }
	s.Set(readings)
	if n = 8; !strings.Contains(scrape(t, m), "weft_level -1") || !strings.Contains(scrape(t, m), "weft_things_total 8") {
		t.Error("the series are not read anew")
	}
}

// TestQuotas: limits and uses are read for the tenants that have series, rates have no
// use, and refusals are counted by name.
func TestQuotas(t *testing.T) {
	m := metrics.New()
	q := m.Quotas()
	m.Started("a")
	m.Refused("b", "tenant_fuel")
	if text := scrape(t, m); strings.Contains(text, "weft_quota_used") || !strings.Contains(text, `weft_quota_refusals_total{limit="tenant_fuel",tenant="b"} 1`) {
		t.Errorf("before a host is there:\n%s", text)
	}
	q.Set(func(_ context.Context, tenant string) ([]limit.Use, error) {
		if tenant == "b" {
			return nil, errors.New("the store does not say")
		}
		return []limit.Use{{Quota: limit.QuotaRequests, Limit: 5}, {Quota: limit.QuotaPlugins, Used: 7}, {Quota: limit.QuotaRunsActive, Limit: 9, Used: 8}}, nil
	})
	var got []string
	for line := range strings.Lines(scrape(t, m)) {
		if strings.HasPrefix(line, "weft_quota_limit") || strings.HasPrefix(line, "weft_quota_used") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	want := []string{
		fmt.Sprintf(`weft_quota_limit{quota=%q,tenant="a"} 5`, limit.QuotaRequests), fmt.Sprintf(`weft_quota_limit{quota=%q,tenant="a"} 9`, limit.QuotaRunsActive),
		fmt.Sprintf(`weft_quota_used{quota=%q,tenant="a"} 7`, limit.QuotaPlugins), fmt.Sprintf(`weft_quota_used{quota=%q,tenant="a"} 8`, limit.QuotaRunsActive),
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestTenantsAreBounded: however many tenants there are, the number of series is bounded.
func TestTenantsAreBounded(t *testing.T) {
	m := metrics.New()
	for i := range metrics.MaxTenants + 50 {
		m.Started(fmt.Sprint("tenant", i))
		m.Started("tenant0")
	}
	text := scrape(t, m)
	if n := strings.Count(text, "weft_runs_started_total{"); n != metrics.MaxTenants+1 {
		t.Errorf("%d series", n)
	}
	if !strings.Contains(text, fmt.Sprintf(`weft_runs_started_total{tenant="%s"} 50`, metrics.Others)) || !strings.Contains(text, `{tenant="tenant0"} 151`) {
		t.Errorf("not so many:\n%s", text)
	}
}
