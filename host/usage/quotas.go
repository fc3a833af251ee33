package usage

import "context"

// Quotas counts what tenants have and use, and refuses what would be more than they
// may. Its errors are [*host.Error]s. All methods except Ready and Grow are called
// under mutexes: they must neither block nor call back.
type Quotas interface {
	// Ready is called before Begin, and asks the store if need be.
	Ready(ctx context.Context, tenant string) error
	// Grow refuses what a client would add to a session.
	Grow(ctx context.Context, tenant string) error
	// Begin takes the place of a run; Room says whether there is one.
	Begin(tenant string, waits bool) error
	Room(tenant string) error
	// Runs counts runs that have begun, or ended, besides those of Begin.
	Runs(tenant string, active, waiting int)
	// Spend counts what was used up at a time in Unix nanoseconds.
	Spend(tenant string, at int64, spent Spent)
}

// Unlimited returns the quotas of tenants that have none.
func Unlimited() Quotas { return unlimited{} }

type unlimited struct{}

func (unlimited) Ready(context.Context, string) error { return nil }
func (unlimited) Grow(context.Context, string) error  { return nil }
func (unlimited) Begin(string, bool) error            { return nil }
func (unlimited) Room(string) error                   { return nil }
func (unlimited) Runs(string, int, int)               {}
func (unlimited) Spend(string, int64, Spent)          {}
