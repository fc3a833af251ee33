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

// QuotaStore is the part of a [Store] that says what tenants hold and have spent.
// What a tenant has spent goes with the tenant only.
type QuotaStore interface {
	// RunsHeld counts the runs of all tenants that have not ended, by name; who has
	// none may be left out.
	RunsHeld(ctx context.Context) ([]usage.RunsHeld, error)
	// BytesHeld returns the bytes of the journals and of the states of a tenant's
	// sessions, with what its resources of the kind kv keep counted as states. A state
	// counts as it was when its session was last written. SessionCharge, RunCharge and
	// KeyCharge are in them, for each session that is not being deleted, run and key.
	BytesHeld(ctx context.Context, tenant string) (journal, state int64, err error)
	// PluginsHeld counts a tenant's versions of plugins, and their bytes.
	PluginsHeld(ctx context.Context, tenant string) (versions int, bytes int64, err error)
	// Spent lists what a tenant ("" for all) has spent from a month on, by tenant
	// and month.
	Spent(ctx context.Context, tenant string, from usage.Month) ([]usage.MonthSpent, error)
}
