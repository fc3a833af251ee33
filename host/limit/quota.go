package limit

import "fmt"

// Quota is a limit on what a tenant as a whole holds or uses. Its name in files of limits
// and in answers is [Quota.String]; the values are in a [Table].
type Quota int

// The quotas.
const (
	QuotaPlugins       Quota = iota // number of versions of plugins
	QuotaPluginBytes                // bytes of versions of plugins
	QuotaRunsActive                 // runs that have begun and not ended
	QuotaRunsWaiting                // runs that wait for their session's turn
	QuotaRequests                   // of the API, a second
	QuotaFuel                       // units that its runs burn in a month of UTC
	QuotaLogBytes                   // bytes that its guests log in a month of UTC
	QuotaStateBytes                 // bytes of the states of its sessions, and of its resources of kind kv
	QuotaJournalBytes               // bytes of the journals of its sessions
	QuotaStreamReaders              // number of open streams
	quotas
)

// String is the quota's name, such as tenant_runs_active.
func (q Quota) String() string { return tenantSettings[firstQuota+int(q)].name }

// ParseQuota returns the quota with a name.
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

// OfSize reports whether the quota limits stored bytes. A request that it refuses is
// answered with 413: the same request is refused until data is deleted.
func (q Quota) OfSize() bool {
	return q == QuotaPluginBytes || q == QuotaStateBytes || q == QuotaJournalBytes
}

// IsRate reports whether the quota limits a rate per second, so that a tenant does not
// hold any of it.
func (q Quota) IsRate() bool { return q == QuotaRequests }

// advice says what to do when a quota is reached.
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

// Reached says in a sentence that a tenant has reached the quota, and what to do.
func (q Quota) Reached(value int64) string {
	s := &tenantSettings[firstQuota+int(q)]
	return fmt.Sprintf("The tenant has reached its limit %s of %s: %s", s.name, s.show(value), advice[q])
}

// What quotas count for each row that a tenant keeps, in addition to its bytes: about the
// space of the row itself, its places in indexes and its related rows. Without them,
// empty rows would be free.
const (
	SessionCharge = 2 << 10 // a session, in QuotaJournalBytes
	RunCharge     = 1 << 10 // a run with its handler, in QuotaJournalBytes
	KeyCharge     = 512     // a key of a resource of kind kv, in QuotaStateBytes
)

// Breach says which limit a request has reached.
type Breach struct {
	Limit string // its name
	Value int64  // its value
	Used  int64  // what was used of it, without the request
	Size  bool   // see [Quota.OfSize]
}

// Use is how much of a quota a tenant uses.
type Use struct {
	Quota Quota
	Limit int64 // 0: no limit
	// Used is 0 for a rate, because a tenant does not hold any of it.
	Used int64
}

// Text returns the limit for people: 64MiB, 10,000, none.
func (u Use) Text() string {
	if u.Limit == 0 {
		return "none"
	}
	return u.Show(u.Limit)
}

// Show formats a value of the quota for people.
func (u Use) Show(v int64) string {
	s := &tenantSettings[firstQuota+int(u.Quota)]
	return s.show(v)
}
