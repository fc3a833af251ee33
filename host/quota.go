package host

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Quota is a bound of what a tenant as a whole holds, or uses. Its name in files of
// limits and in answers is [Quota.String]; the values are in a [LimitTable].
type Quota int

// The quotas.
const (
	QuotaPlugins       Quota = iota // versions of plugins that it has
	QuotaPluginBytes                // of these
	QuotaRunsActive                 // runs that have begun and not ended
	QuotaRunsWaiting                // runs that wait for their session's turn
	QuotaRequests                   // of the API, a second
	QuotaFuel                       // units that its runs burn in a month of UTC
	QuotaLogBytes                   // that its guests log in a month of UTC
	QuotaStateBytes                 // of the states of its sessions, and of its resources of the kind kv
	QuotaJournalBytes               // of their journals
	QuotaStreamReaders              // that are open
	quotas
)

// String is the quota's name, such as tenant_runs_active.
func (q Quota) String() string { return tenantSettings[firstQuota+int(q)].name }

// ParseQuota finds the quota of a name.
func ParseQuota(name string) (Quota, bool) {
	i := tenantSettingNamed(name)
	return Quota(i - firstQuota), i >= firstQuota
}

// Quotas lists all quotas.
func Quotas() []Quota {
	list := make([]Quota, quotas)
	for i := range list {
		list[i] = Quota(i)
	}
	return list
}

// OfSize reports whether the quota is of bytes that are kept. A request that it
// refuses is answered by 413: the same one is refused until something is deleted.
func (q Quota) OfSize() bool {
	return q == QuotaPluginBytes || q == QuotaStateBytes || q == QuotaJournalBytes
}

// IsRate reports whether the quota is of something in a second, so that nothing of it
// is held.
func (q Quota) IsRate() bool { return q == QuotaRequests }

// advice says what whoever meets a quota can do.
var advice = [quotas]string{
	QuotaPlugins:       "delete versions that nothing needs",
	QuotaPluginBytes:   "delete versions that nothing needs",
	QuotaRunsActive:    "wait until runs have ended, or cancel some",
	QuotaRunsWaiting:   "wait until runs have begun, or cancel some",
	QuotaRequests:      "ask less often",
	QuotaFuel:          "wait for the next month; runs that have begun continue",
	QuotaLogBytes:      "wait for the next month, or log less; runs that have begun continue",
	QuotaStateBytes:    "delete sessions, or keys of resources",
	QuotaJournalBytes:  "delete handlers and sessions that have ended",
	QuotaStreamReaders: "close streams that nobody reads",
}

// Reached says in a sentence that a tenant has met the quota, and what to do.
func (q Quota) Reached(value int64) string {
	s := &tenantSettings[firstQuota+int(q)]
	return fmt.Sprintf("The tenant has reached its limit %s of %s: %s", s.name, s.show(value), advice[q])
}

// What quotas count for a row that a tenant keeps, beside the bytes that it holds: about
// what the row, its places in indexes and what goes with it take. Without them what is
// empty would be free.
const (
	SessionCharge = 2 << 10 // a session, in QuotaJournalBytes
	RunCharge     = 1 << 10 // a run, with its handler, likewise
	KeyCharge     = 512     // a key of a resource of the kind kv, in QuotaStateBytes
)

// Breach says which limit a request has met.
type Breach struct {
	Limit string // its name
	Value int64  // what it is
	Used  int64  // of it, without the request
	Size  bool   // see [Quota.OfSize]
}

// Breached is the error of a request that a quota refuses. retry is 0 if no time
// is known after which it would be taken.
func Breached(q Quota, value, used int64, retry time.Duration) *Error {
	return &Error{
		Code:       CodeLimitExceeded,
		Message:    q.Reached(value),
		RetryAfter: retry,
		Breach:     &Breach{Limit: q.String(), Value: value, Used: used, Size: q.OfSize()},
	}
}

// QuotaUse is how much of a quota a tenant uses.
type QuotaUse struct {
	Quota Quota
	Limit int64 // 0: there is none
	// Used is 0 for a rate, as nothing of it is held.
	Used int64
}

// Text is the limit for people: 64MiB, 10,000, none.
func (u QuotaUse) Text() string {
	if u.Limit == 0 {
		return "none"
	}
	return u.Show(u.Limit)
}

// Show is a value of the quota for people.
func (u QuotaUse) Show(v int64) string {
	s := &tenantSettings[firstQuota+int(u.Quota)]
	return s.show(v)
}

// Month is a month of UTC as year*100 + month: 202611.
type Month int

// MonthOf is the month of a time in Unix nanoseconds.
func MonthOf(at int64) Month {
	t := time.Unix(0, at).UTC()
	return Month(t.Year()*100 + int(t.Month()))
}

// String is the month as 2026-11.
func (m Month) String() string { return fmt.Sprintf("%04d-%02d", int(m)/100, int(m)%100) }

// ParseMonth reads what String gives.
func ParseMonth(text string) (m Month, ok bool) {
	t, err := time.Parse("2006-01", strings.TrimSpace(text))
	return Month(t.Year()*100 + int(t.Month())), err == nil
}

// End is when the month ends.
func (m Month) End() time.Time {
	return time.Date(int(m)/100, time.Month(int(m)%100)+1, 1, 0, 0, 0, 0, time.UTC)
}

// Spent is what runs of a tenant have used up: it only ever grows, whatever becomes of
// the runs.
type Spent struct {
	Runs     uint64 // that were started
	Fuel     uint64 // units that were burnt
	LogBytes uint64
}

// Add adds what was spent besides.
func (s *Spent) Add(o Spent) {
	s.Runs += o.Runs
	s.Fuel += o.Fuel
	s.LogBytes += o.LogBytes
}

// MonthSpent is what a tenant has spent in a month.
type MonthSpent struct {
	Tenant string
	Month  Month
	Spent
}

// RunsHeld counts the runs of a tenant that have not ended.
type RunsHeld struct {
	Tenant  string
	Active  int // that have begun
	Waiting int // that wait for their session's turn
}

// SetMonths sets what was spent by months, oldest first.
func (u *TenantUsage) SetMonths(months []MonthSpent) {
	var all Spent
	for i := range months {
		all.Add(months[i].Spent)
	}
	u.Months = slices.Clone(months)
	slices.Reverse(u.Months)
	u.RunsStarted, u.Fuel, u.LogBytes = all.Runs, all.Fuel, all.LogBytes
}

// QuotaStore is the part of a [Store] that says what tenants hold and have spent.
// What a tenant has spent goes with the tenant only.
type QuotaStore interface {
	// RunsHeld counts the runs of all tenants that have not ended, by name; who has
	// none may be left out.
	RunsHeld(ctx context.Context) ([]RunsHeld, error)
	// BytesHeld gives the bytes of the journals and of the states of a tenant's
	// sessions, with what its resources of the kind kv keep counted as states. A state
	// counts as it was when its session was last written. SessionCharge, RunCharge and
	// KeyCharge are in them, for each session that is not being deleted, run and key.
	BytesHeld(ctx context.Context, tenant string) (journal, state int64, err error)
	// PluginsHeld counts a tenant's versions of plugins, and their bytes.
	PluginsHeld(ctx context.Context, tenant string) (versions int, bytes int64, err error)
	// Spent lists what a tenant ("" for all) has spent from a month on, by tenant
	// and month.
	Spent(ctx context.Context, tenant string, from Month) ([]MonthSpent, error)
}
