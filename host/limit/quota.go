package limit

import "fmt"

// Quota is a bound of what a tenant as a whole holds, or uses. Its name in files of
// limits and in answers is [Quota.String]; the values are in a [Table].
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

// Use is how much of a quota a tenant uses.
type Use struct {
	Quota Quota
	Limit int64 // 0: there is none
	// Used is 0 for a rate, as nothing of it is held.
	Used int64
}

// Text is the limit for people: 64MiB, 10,000, none.
func (u Use) Text() string {
	if u.Limit == 0 {
		return "none"
	}
	return u.Show(u.Limit)
}

// Show is a value of the quota for people.
func (u Use) Show(v int64) string {
	s := &tenantSettings[firstQuota+int(u.Quota)]
	return s.show(v)
}
