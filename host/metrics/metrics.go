// Package metrics shows what a server does, in the text form of Prometheus.
//
// It must not know how any of it is done: what happens is told to a [Metrics] by
// those who do it, and what is counted already is read when somebody looks.
// Everything is named weft_*, beside go_* and process_*.
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

// MaxTenants is how many tenants have series of their own, those that come first.
// All others are together as the tenant [Others].
const (
	MaxTenants = 100
	Others     = "_others"
)

// Metrics are the series of one server, over all hosts that it opens. All methods may
// be called from any goroutine, and cost about as much as a map look-up.
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
	wrong    *prometheus.CounterVec // keys, by answer
	breaches *prometheus.CounterVec // by tenant and limit

	mu      sync.RWMutex // guards tenants
	tenants map[string]bool
}

// New makes the series.
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
		Name: "weft_http_request_seconds", Help: "Time of HTTP requests, streams and waiting starts included.", Buckets: times,
	}, []string{"route", "method", "status"})
	m.reg.MustRegister(m.requests)
	m.started = counter("weft_runs_started_total", "Runs that were started, children too.", "tenant")
	m.ended = counter("weft_runs_ended_total", "Runs that have ended, by status.", "tenant", "status")
	m.steps = counter("weft_steps_total", "Invocations of steps in runs that have ended.", "tenant")
	m.fuel = counter("weft_run_fuel_units_total", "Units that steps of runs that have ended have burnt.", "tenant")
	m.wrong = counter("weft_wrong_keys_total", "API keys that are wrong, and those that were refused unseen as too many wrong ones came from their address.", "answer")
	m.breaches = counter("weft_quota_refusals_total", "Requests that a limit of their tenant refused (429, 413), by the limit's name.", "tenant", "limit")
	m.waited = histogram("weft_attempt_wait_seconds", "Time that a step that could run has waited for a core.", times)
	m.commits = histogram("weft_commit_seconds", "Time of a commit of the journal.", times)
	m.entries = histogram("weft_commit_entries", "Entries in a commit.", prometheus.ExponentialBuckets(1, 4, 8))
	m.refused = prometheus.NewCounter(prometheus.CounterOpts{Name: "weft_commits_failed_total", Help: "Commits that the store did not take, or perhaps not."})
	m.reg.MustRegister(m.refused)
	return m
}

// tenant bounds the number of series.
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

// Request tells of an HTTP request that was answered. route is the pattern of its
// path, so that there are as many as the server has.
func (m *Metrics) Request(route, method string, status int, took time.Duration) {
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Observe(took.Seconds())
}

// Started tells of a run that begins, or waits for its session's turn.
func (m *Metrics) Started(tenant string) { m.started.WithLabelValues(m.tenant(tenant)).Inc() }

// Ended tells of a run that has ended.
func (m *Metrics) Ended(run *host.Run) {
	tenant := m.tenant(run.Tenant)
	m.ended.WithLabelValues(tenant, string(run.Status)).Inc()
	m.steps.WithLabelValues(tenant).Add(float64(run.Steps))
	m.fuel.WithLabelValues(tenant).Add(float64(run.Fuel))
}

// WrongKey tells of an API key that is wrong, or was refused unseen.
func (m *Metrics) WrongKey(refused bool) {
	answer := "401"
	if refused {
		answer = "429"
	}
	m.wrong.WithLabelValues(answer).Inc()
}

// Waited tells how long a step has waited for a core.
func (m *Metrics) Waited(d time.Duration) { m.waited.Observe(d.Seconds()) }

// Committed tells of a commit, of so many entries, that took so long.
func (m *Metrics) Committed(entries int, took time.Duration, err error) {
	if err != nil {
		m.refused.Inc()
		return
	}
	m.entries.Observe(float64(entries))
	m.commits.Observe(took.Seconds())
}

// Reading is a series that somebody else counts. Name is without weft_, and ends in
// _total if it only ever grows; Read may be nil: the series is not there.
type Reading struct {
	Name, Help string
	Counter    bool
	Read       func() float64
}

// Source is series that are read when somebody looks.
type Source struct {
	m    *Metrics
	list atomic.Pointer[[]Reading]
	desc []*prometheus.Desc
}

// Source registers series. [Source.Set] has them read from elsewhere.
func (m *Metrics) Source(list []Reading) *Source {
	s := &Source{m: m}
	for _, r := range list {
		s.desc = append(s.desc, prometheus.NewDesc("weft_"+r.Name, r.Help, nil, nil))
	}
	s.Set(list)
	m.reg.MustRegister(s)
	return s
}

// Set says where the series are read from now, as many as were registered and in
// their order: a server that opens its store again has another host.
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

// Handler answers with all series.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.reg, promhttp.HandlerOpts{})
}
