// Package metrics exposes what a server does, in the text format of Prometheus.
//
// The package does not know how the work is done. The code that does the work reports to
// a [Metrics], and existing counters are read when the metrics are scraped. All series
// are named weft_*, except go_* and process_*.
package metrics

import (
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weftrun/weft/host"
)

// MaxTenants is how many tenants have series of their own: the first ones. All other
// tenants share the series of the tenant [Others].
const (
	MaxTenants = 100
	Others     = "_others"
)

// Metrics are the series of one server, over all hosts that it opens. The methods are
// safe for concurrent use, and cost about as much as a map look-up.
type Metrics struct {
	reg *prometheus.Registry

	requests *prometheus.HistogramVec // by route and status
	started  *prometheus.CounterVec   // by tenant
	ended    *prometheus.CounterVec   // by tenant and status
	steps    *prometheus.CounterVec   // by tenant
	fuel     *prometheus.CounterVec   // by tenant
	waited   prometheus.Histogram
	commits  prometheus.Histogram
	entries  prometheus.Histogram
	refused  prometheus.Counter
	wrong    *prometheus.CounterVec // wrong keys, by answer
	breaches *prometheus.CounterVec // by tenant and limit

	mu      sync.RWMutex // guards tenants
	tenants map[string]bool
}

// New returns a Metrics with its series registered.
func New() *Metrics {
	m := &Metrics{reg: prometheus.NewRegistry(), tenants: map[string]bool{}}
	m.reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.reg.MustRegister(c)
		return c
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
		m.reg.MustRegister(h)
		return h
	}
	times := prometheus.ExponentialBuckets(0.000_1, 4, 10) // 0.1 ms to 26 s
	m.requests = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "weft_http_request_seconds", Help: "Time of HTTP requests, including streams and waiting starts.", Buckets: times,
	}, []string{"route", "method", "status"})
	m.reg.MustRegister(m.requests)
	m.started = counter("weft_runs_started_total", "Runs that were started, including children.", "tenant")
	m.ended = counter("weft_runs_ended_total", "Runs that have ended, by status.", "tenant", "status")
	m.steps = counter("weft_steps_total", "Invocations of steps in runs that have ended.", "tenant")
	m.fuel = counter("weft_run_fuel_units_total", "Units of fuel burnt by the steps of runs that have ended.", "tenant")
	m.wrong = counter("weft_wrong_keys_total", "API keys that were wrong, and keys that were refused without a look-up because their address had sent too many wrong ones.", "answer")
	m.breaches = counter("weft_quota_refusals_total", "Requests that a limit of their tenant refused (429, 413), by the limit's name.", "tenant", "limit")
	m.waited = histogram("weft_attempt_wait_seconds", "Time that a runnable step has waited for a core.", times)
	m.commits = histogram("weft_commit_seconds", "Time of a commit of the journal.", times)
	m.entries = histogram("weft_commit_entries", "Entries in a commit.", prometheus.ExponentialBuckets(1, 4, 8))
	m.refused = prometheus.NewCounter(prometheus.CounterOpts{Name: "weft_commits_failed_total", Help: "Commits that the store refused, or may have refused."})
	m.reg.MustRegister(m.refused)
	return m
}

// tenant returns the label of a tenant, and bounds the number of labels.
func (m *Metrics) tenant(name string) string {
	m.mu.RLock()
	known, full := m.tenants[name], len(m.tenants) >= MaxTenants
	m.mu.RUnlock()
	switch {
	case known:
		return name
	case full:
		return Others
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.tenants[name] && len(m.tenants) >= MaxTenants {
		return Others
	}
	m.tenants[name] = true
	return name
}

// Request counts an answered HTTP request. route is the pattern of its path, so that the
// number of series is bounded.
func (m *Metrics) Request(route, method string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Observe(took.Seconds())
}

// Started counts a run that begins or is queued.
func (m *Metrics) Started(tenant string) { m.started.WithLabelValues(m.tenant(tenant)).Inc() }

// Ended counts a run that has ended.
func (m *Metrics) Ended(run *host.Run) {
	tenant := m.tenant(run.Tenant)
	m.ended.WithLabelValues(tenant, string(run.Status)).Inc()
	m.steps.WithLabelValues(tenant).Add(float64(run.Steps))
	m.fuel.WithLabelValues(tenant).Add(float64(run.Fuel))
}

// WrongKey counts an API key that is wrong or, if refused is set, was not looked at.
func (m *Metrics) WrongKey(refused bool) {
	answer := "401"
	if refused {
		answer = "429"
	}
	m.wrong.WithLabelValues(answer).Inc()
}

// Waited records how long a step has waited for a core.
func (m *Metrics) Waited(d time.Duration) { m.waited.Observe(d.Seconds()) }

// Committed records a commit: its number of entries, its duration, and its error if it
// failed.
func (m *Metrics) Committed(entries int, took time.Duration, err error) {
	if err != nil {
		m.refused.Inc()
		return
	}
	m.entries.Observe(float64(entries))
	m.commits.Observe(took.Seconds())
}

// Reading is a series that other code counts. Name has no weft_, and ends in _total if
// the series only grows. Read may be nil: the series is then absent.
type Reading struct {
	Name, Help string
	Counter    bool
	Read       func() float64
}

// Source is a list of series that are read when the metrics are scraped.
type Source struct {
	m    *Metrics
	list atomic.Pointer[[]Reading]
	desc []*prometheus.Desc
}

// Source registers series. [Source.Set] replaces their readings.
func (m *Metrics) Source(list []Reading) *Source {
	s := &Source{m: m}
	for _, r := range list {
		s.desc = append(s.desc, prometheus.NewDesc("weft_"+r.Name, r.Help, nil, nil))
	}
	s.Set(list)
	m.reg.MustRegister(s)
	return s
}

// Set replaces the readings, for a server that opens its store again with another host.
// list has the same series in the same order as the registered list.
func (s *Source) Set(list []Reading) { s.list.Store(&list) }

// Describe implements prometheus.Collector.
func (s *Source) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range s.desc {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (s *Source) Collect(ch chan<- prometheus.Metric) {
	for i, r := range *s.list.Load() {
		if r.Read == nil {
			continue
		}
		kind := prometheus.GaugeValue
		if r.Counter {
			kind = prometheus.CounterValue
		}
		ch <- prometheus.MustNewConstMetric(s.desc[i], kind, r.Read())
	}
}

// Handler serves all series.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.reg, promhttp.HandlerOpts{})
}
