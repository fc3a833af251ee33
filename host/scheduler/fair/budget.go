package fair

import (
	"time"

	"github.com/weftrun/weft/host/bucket"
)

// Usage is what a tenant has used since its budgets were made.
type Usage struct {
	// Fuel is what its guests burnt, in units, replays included. What a guest
	// burnt since its last turn began is missing while it runs.
	Fuel     uint64
	Attempts uint64 // runs of guests
	// Holds counts how often it had to wait because it was over its budget.
	Holds uint64
}

// A budget is a rate of units; a tenant that was idle may burn the units of
// burst at once. A tenant that is over its budget waits until it may burn the units of
// refill: it must not be held again at once.
const (
	burst  = 10 * time.Second
	refill = burst / 200
)

// Budgets counts what tenants burn, and says which are over their budget.
type Budgets struct {
	now      func() time.Time
	rate     func(tenant string) float64
	accounts map[string]*account
}

// account is what a tenant has burnt and may burn.
type account struct {
	used   Usage
	rate   float64       // units a second; 0: no budget
	credit bucket.Bucket // units that it may burn; below zero it is over its budget
}

// Init begins to count. rate gives the budget of a tenant in units a second, 0 for none.
func (b *Budgets) Init(now func() time.Time, rate func(tenant string) float64) {
	*b = Budgets{now: now, rate: rate, accounts: map[string]*account{}}
}

// account finds a tenant's account.
func (b *Budgets) account(tenant string) *account {
	a := b.accounts[tenant]
	if a == nil {
		a = &account{rate: b.rate(tenant)}
		// A new account begins with a full burst.
		a.fill(b.now())
		b.accounts[tenant] = a
	}
	return a
}

// budget is the rate of the account.
func (a *account) budget() bucket.Rate {
	return bucket.Rate{Size: a.rate * burst.Seconds(), Span: burst}
}

// fill adds what has come in since the last time.
func (a *account) fill(now time.Time) { a.credit.Fill(now, a.budget()) }

// missing is how long a tenant over its budget has to wait from the time to
// which its account is filled; 0 or less: no longer.
func (a *account) missing() time.Duration {
	return a.credit.Until(a.rate*refill.Seconds(), a.budget())
}

// Rate is a tenant's budget in units a second; 0: it has none.
func (b *Budgets) Rate(tenant string) float64 { return b.account(tenant).rate }

// Slice is what a guest of the tenant may burn before it is booked, most at most: a small
// budget is booked often.
func (b *Budgets) Slice(tenant string, most uint64) uint64 {
	// A guest that is booked once a turn could exceed a small budget by many seconds.
	if a := b.account(tenant); a.rate > 0 {
		return min(most, uint64(a.rate*refill.Seconds()))
	}
	return most
}

// Began counts a run of a guest.
func (b *Budgets) Began(tenant string) { b.account(tenant).used.Attempts++ }

// Spend books units that a tenant's guest burnt, and reports whether the tenant is over
// its budget.
func (b *Budgets) Spend(tenant string, units uint64) (over bool) {
	a := b.account(tenant)
	a.used.Fuel += units
	// Fuel is counted for everybody, and limited only with a budget.
	if a.rate == 0 {
		return false
	}
	a.fill(b.now())
	a.credit.Left -= float64(units)
	return a.credit.Left < 0
}

// CountHold counts that a tenant has to wait, as it is over its budget.
func (b *Budgets) CountHold(tenant string) { b.account(tenant).used.Holds++ }

// Missing is how long a tenant over its budget has to wait from now on; 0 or less: no
// longer.
func (b *Budgets) Missing(tenant string, now time.Time) time.Duration {
	a := b.account(tenant)
	// The credit that has come in since the last booking shortens the wait.
	a.fill(now)
	return a.missing()
}

// Usage gives what a tenant has used; nothing if it has run nothing.
func (b *Budgets) Usage(tenant string) Usage {
	if a := b.accounts[tenant]; a != nil {
		return a.used
	}
	return Usage{}
}

// Forget forgets a tenant.
func (b *Budgets) Forget(tenant string) { delete(b.accounts, tenant) }
