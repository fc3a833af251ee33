package metrics

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weftrun/weft/host/limit"
)

// quotasWithin bounds how long a scrape waits for the store, which has the use of some
// quotas.
const quotasWithin = 2 * time.Second

// Quotas are series of the limits and the use of quotas, read when the metrics are
// scraped. They exist for the tenants that have series of their own. A sum over other
// tenants could not be compared with any limit.
type Quotas struct {
	m           *Metrics
	read        atomic.Pointer[ReadQuotas]
	limit, used *prometheus.Desc
}

// ReadQuotas returns how much of each quota a tenant uses, and nothing for a tenant that
// does not exist any more. It must be safe for concurrent use.
type ReadQuotas func(ctx context.Context, tenant string) ([]limit.Use, error)

// Quotas registers the series. They are empty until [Quotas.Set] is called.
func (m *Metrics) Quotas() *Quotas {
	labels := []string{"tenant", "quota"}
	q := &Quotas{
		m:     m,
		limit: prometheus.NewDesc("weft_quota_limit", "The limit of a tenant's quota, for each quota that is set.", labels, nil),
		used:  prometheus.NewDesc("weft_quota_used", "How much of a quota the tenant holds, or has used in the month. Rates have no series.", labels, nil),
	}
	m.reg.MustRegister(q)
	return q
}

// Set replaces the function that reads the series.
func (q *Quotas) Set(read ReadQuotas) { q.read.Store(&read) }

// Describe implements prometheus.Collector.
func (q *Quotas) Describe(ch chan<- *prometheus.Desc) { ch <- q.limit; ch <- q.used }

// Collect implements prometheus.Collector. A tenant has no series in this scrape if the
// store does not answer for it.
func (q *Quotas) Collect(ch chan<- prometheus.Metric) {
	read := q.read.Load()
	if read == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), quotasWithin)
	defer cancel()
	for _, tenant := range q.m.named() {
		uses, err := (*read)(ctx, tenant)
		if err != nil {
			continue
		}
		for _, u := range uses {
			if u.Limit != 0 {
				ch <- prometheus.MustNewConstMetric(q.limit, prometheus.GaugeValue, float64(u.Limit), tenant, u.Quota.String())
			}
			if !u.Quota.IsRate() {
				ch <- prometheus.MustNewConstMetric(q.used, prometheus.GaugeValue, float64(u.Used), tenant, u.Quota.String())
			}
		}
	}
}

// named lists the tenants that have series of their own.
func (m *Metrics) named() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	list := make([]string, 0, len(m.tenants))
	for name := range m.tenants {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

// Refused counts a request that a limit of its tenant refused. limit is the name of the
// limit.
func (m *Metrics) Refused(tenant, limit string) {
	m.breaches.WithLabelValues(m.tenant(tenant), limit).Inc()
}
