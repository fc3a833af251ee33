package host_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/quota"
	"github.com/weftrun/weft/host/usage"
)

func TestBreach(t *testing.T) {
	e := quota.Breached(limit.QuotaStateBytes, 64<<20, 70<<20, 0)
	if e.HTTPStatus() != 413 || !strings.Contains(e.Message, "tenant_state_bytes of 64MiB: delete sessions, or keys of resources") {
		t.Errorf("%d %s", e.HTTPStatus(), e.Message)
	}
	if e := quota.Breached(limit.QuotaRequests, 1000, 1000, time.Second); e.HTTPStatus() != 429 || !strings.Contains(e.Message, "of 1,000: ask less often") {
		t.Errorf("%d %s", e.HTTPStatus(), e.Message)
	}
	if u := (limit.Use{Quota: limit.QuotaFuel}); u.Text() != "none" || u.Show(12345) != "12,345" {
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
		m := usage.MonthOf(c.at.UnixNano())
		if back, ok := usage.ParseMonth(m.String()); m.String() != c.want || !m.End().Equal(c.end) || !ok || back != m {
			t.Errorf("%s is in %s, which ends %s", c.at, m, m.End())
		}
	}
	for _, bad := range []string{"", "2026", "2026-13", "x"} {
		if m, ok := usage.ParseMonth(bad); ok {
			t.Errorf("%q is %s", bad, m)
		}
	}
}
