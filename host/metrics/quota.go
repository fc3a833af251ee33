package metrics

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weftrun/weft/host/limit"
)

// quotasWithin bounds how long a reader of the series waits for the store, which says
// how much of some quotas is used.
const quotasWithin = 2 * time.Second

// Quotas are series of what tenants may have and use, read when somebody looks: of
// the tenants that have series of their own. The sum of others would say nothing of
// any limit.
type Quotas struct {
	m           *Metrics
	read        atomic.Pointer[ReadQuotas]
	limit, used *prometheus.Desc
}

// ReadQuotas says how much of each quota a tenant uses; nothing of one that is not
// there any more. It is called from any goroutine.
type ReadQuotas func(ctx context.Context, tenant string) ([]limit.Use, error)

// Quotas registers the series. [Quotas.Set] says from where they are read; until then
// there are none.
func (m *Metrics) Quotas() *Quotas {
	labels := []string{"tenant", "quota"}
	q := &Quotas{
		m:     m,
		limit: prometheus.NewDesc("weft_quota_limit", "What a tenant may have or use, of the quotas that it has.", labels, nil),
		used:  prometheus.NewDesc("weft_quota_used", "What it has, or has used in the month; of rates there is none.", labels, nil),
	}
	m.reg.MustRegister(q)
	return q
}

// Set says from where the series are read now.
func (q *Quotas) Set(read ReadQuotas) { q.read.Store(&read) }

// Describe implements prometheus.Collector.
func (q *Quotas) Describe(ch chan<- *prometheus.Desc) { ch <- q.limit; ch <- q.used }

// Collect implements prometheus.Collector. A tenant that the store says nothing of now
// has no series this time.
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

// Refused tells of a request that a limit of its tenant refused, by the limit's name.
func (m *Metrics) Refused(tenant, limit string) {
	m.breaches.WithLabelValues(m.tenant(tenant), limit).Inc()
}
