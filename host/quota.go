package host

import (
	"context"
	"slices"

	"github.com/weftrun/weft/host/usage"
)

// SetMonths sets what was spent by months, oldest first.
func (u *TenantUsage) SetMonths(months []usage.MonthSpent) {
	var all usage.Spent
	for i := range months {
		all.Add(months[i].Spent)
	}
	u.Months = slices.Clone(months)
	slices.Reverse(u.Months)
	u.RunsStarted, u.Fuel, u.LogBytes = all.Runs, all.Fuel, all.LogBytes
}

// QuotaStore is the part of a [Store] with what tenants hold and have spent. Records of
// what a tenant has spent are deleted only with the tenant.
type QuotaStore interface {
	// RunsHeld counts the runs of all tenants that have not ended, by name. Tenants
	// without such runs may be omitted.
	RunsHeld(ctx context.Context) ([]usage.RunsHeld, error)
	// BytesHeld returns the bytes of the journals and of the states of a tenant's
	// sessions. The data of its resources of kind kv counts as state. A state counts as
	// of the last write of its session. The sums include SessionCharge, RunCharge and
	// KeyCharge for each session that is not being deleted, each run and each key.
	BytesHeld(ctx context.Context, tenant string) (journal, state int64, err error)
	// PluginsHeld counts a tenant's versions of plugins, and their bytes.
	PluginsHeld(ctx context.Context, tenant string) (versions int, bytes int64, err error)
	// Spent lists what a tenant ("" for all) has spent since a month, by tenant and
	// month.
	Spent(ctx context.Context, tenant string, from usage.Month) ([]usage.MonthSpent, error)
}
