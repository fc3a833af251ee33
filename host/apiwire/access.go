package apiwire

import (
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
	"github.com/weftrun/weft/host/usage"
)

// Session describes a session; see [host.SessionInfo].
type Session struct {
	_         struct{} `doc:"State that is carried across runs."`
	SessionID string   `json:"session_id"`
	Created   NullTime `json:"created_at"`
	Updated   NullTime `json:"updated_at"`
	Runs      int      `json:"runs"`
	Active    int      `json:"active" doc:"Runs that have not ended."`
}

// Sessions is a page of a listing of sessions.
type Sessions struct {
	_          struct{}  `doc:"A part of a listing."`
	Sessions   []Session `json:"sessions"`
	NextCursor OrNull    `json:"next_cursor" doc:"Where the next page begins; null at the end."`
}

// Tenant is a tenant; see [host.TenantRecord].
type Tenant struct {
	Name    string `json:"name"`
	Created Time   `json:"created_at"`
}

// Tenants is a list of tenants.
type Tenants struct {
	Tenants []Tenant `json:"tenants"`
}

// Usage is what a tenant stores and has used; see [host.TenantUsage].
type Usage struct {
	_            struct{}   `doc:"What a tenant stores, and has used."`
	Tenant       string     `json:"tenant" fill:"-"`
	Runs         RunCounts  `json:"runs" fill:"-"`
	Steps        uint64     `json:"steps"`
	Fuel         uint64     `json:"fuel"`
	Handlers     int        `json:"handlers"`
	Sessions     int        `json:"sessions"`
	Plugins      int        `json:"plugins"`
	Versions     int        `json:"plugin_versions"`
	PluginBytes  int64      `json:"plugin_bytes"`
	JournalBytes int64      `json:"journal_bytes"`
	StreamBytes  int64      `json:"stream_bytes"`
	RunsStarted  uint64     `json:"runs_started" doc:"In all, like fuel and log_bytes."`
	LogBytes     uint64     `json:"log_bytes"`
	Months       []Month    `json:"months" doc:"The newest first." fill:"-"`
	Quotas       []QuotaUse `json:"quotas" fill:"-"`
}

// RunCounts counts runs by status.
type RunCounts struct {
	_         struct{} `doc:"By status."`
	Running   int      `json:"running"`
	Completed int      `json:"completed"`
	Failed    int      `json:"failed"`
	Cancelled int      `json:"cancelled"`
}

// Month is what was spent in a month; see [usage.MonthSpent].
type Month struct {
	_        struct{} `doc:"A month of UTC."`
	Month    string   `json:"month" doc:"Such as 2026-11." fill:"-"`
	Runs     uint64   `json:"runs_started"`
	Fuel     uint64   `json:"fuel"`
	LogBytes uint64   `json:"log_bytes"`
}

// QuotaUse is how much of a quota is used; see [limit.Use].
type QuotaUse struct {
	_     struct{} `doc:"A limit of the tenant."`
	Name  string   `json:"name"`
	Limit *int64   `json:"limit" api:"min=1" doc:"null: none."`
	Used  *int64   `json:"used" doc:"null for a rate."`
}

// Show sets the fields from the usage of a tenant.
func (u *Usage) Show(tenant string, of *host.TenantUsage) {
	Fill(u, of)
	u.Tenant = tenant
	u.Runs = RunCounts{
		Running: of.Runs[host.StatusRunning], Completed: of.Runs[host.StatusCompleted],
		Failed: of.Runs[host.StatusFailed], Cancelled: of.Runs[host.StatusCancelled],
	}
	for i := range of.Months {
		m := Month{Month: of.Months[i].Month.String()}
		Fill(&m, &of.Months[i])
		u.Months = append(u.Months, m)
	}
	for _, q := range of.Quotas {
		shown := QuotaUse{Name: q.Quota.String()}
		if q.Limit != 0 {
			shown.Limit = &q.Limit
		}
		if used := max(q.Used, 0); !q.Quota.IsRate() {
			shown.Used = &used
		}
		u.Quotas = append(u.Quotas, shown)
	}
}

// TenantUsage returns the usage as the host's type. It omits quotas that this version
// does not know.
func (u *Usage) TenantUsage() host.TenantUsage {
	out := host.TenantUsage{Runs: map[host.Status]int{
		host.StatusRunning: u.Runs.Running, host.StatusCompleted: u.Runs.Completed,
		host.StatusFailed: u.Runs.Failed, host.StatusCancelled: u.Runs.Cancelled,
	}}
	Fill(&out, u)
	for i := range u.Months {
		if month, ok := usage.ParseMonth(u.Months[i].Month); ok {
			spent := usage.MonthSpent{Tenant: u.Tenant, Month: month}
			Fill(&spent.Spent, &u.Months[i])
			out.Months = append(out.Months, spent)
		}
	}
	for _, q := range u.Quotas {
		if quota, ok := limit.ParseQuota(q.Name); ok {
			use := limit.Use{Quota: quota}
			if q.Limit != nil {
				use.Limit = *q.Limit
			}
			if q.Used != nil {
				use.Used = *q.Used
			}
			out.Quotas = append(out.Quotas, use)
		}
	}
	return out
}

// Key is a key without its secret; see [host.KeyRecord].
type Key struct {
	_              struct{}  `doc:"A key, without itself."`
	ID             string    `json:"id"`
	Prefix         string    `json:"prefix" doc:"How the key begins."`
	Tenant         string    `json:"tenant"`
	Role           host.Role `json:"role"`
	Name           string    `json:"name"`
	Created        NullTime  `json:"created_at"`
	Expires        NullTime  `json:"expires_at"`
	LastUsed       NullTime  `json:"last_used_at"`
	Revoked        NullTime  `json:"revoked_at"`
	PreviousPrefix string    `json:"previous_prefix,omitempty" doc:"How the key began that it was before, which is good for a while still."`
	PreviousUntil  Time      `json:"previous_until,omitempty"`
}

// Identity is who asks; see [host.Identity].
type Identity struct {
	_       struct{}  `doc:"Who asks, and what the request may do."`
	Keyless bool      `json:"keyless" doc:"The server needs no keys: every request may do everything."`
	Server  bool      `json:"server_admin" doc:"The request may do what needs the server's own key."`
	Tenant  string    `json:"tenant" doc:"The tenant in which the request acts."`
	Role    host.Role `json:"role"`
	Key     *OwnKey   `json:"key" api:"null" doc:"null: the server's own key, or none."`
	Version string    `json:"version" doc:"The server's."`
	Started Time      `json:"started_at" doc:"When the server began to serve."`
}

// OwnKey is the key of a request.
type OwnKey struct {
	_       struct{} `doc:"The key of the request, without itself."`
	ID      string   `json:"id"`
	Prefix  string   `json:"prefix" doc:"How the key begins."`
	Name    string   `json:"name"`
	Expires NullTime `json:"expires_at"`
}

// NewKey is a key with its secret.
type NewKey struct {
	_ struct{} `doc:"A key."`
	Key
	Secret string `json:"key" doc:"The key itself; it is not shown again." fill:"-"`
}

// Keys is a list of keys.
type Keys struct {
	Keys []Key `json:"keys"`
}

// Audit is a page of the audit log.
type Audit struct {
	_          struct{} `doc:"A part of a listing."`
	Entries    []Act    `json:"entries"`
	NextCursor OrNull   `json:"next_cursor" doc:"Where the next page begins; null at the end."`
}

// Act is an entry of the audit log; see [host.AuditEntry].
type Act struct {
	_       struct{} `doc:"An entry of the audit log."`
	ID      int64    `json:"id" api:"min=1"`
	Time    Time     `json:"time"`
	Who     string   `json:"who"`
	Tenant  string   `json:"tenant"`
	Act     string   `json:"act"`
	Target  string   `json:"target"`
	Detail  string   `json:"detail"`
	Outcome string   `json:"outcome"`
}
