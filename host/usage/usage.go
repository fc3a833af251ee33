// Package usage has the amounts that a tenant has spent, by months of UTC, and how many
// of its runs have not ended, and declares what counts and limits them.
//
// It does not depend on how they are counted or limited.
package usage

import (
	"fmt"
	"strings"
	"time"
)

// Month is a month of UTC as year*100 + month: 202611.
type Month int

// MonthOf returns the month of a time in Unix nanoseconds.
func MonthOf(at int64) Month {
	t := time.Unix(0, at).UTC()
	return Month(t.Year()*100 + int(t.Month()))
}

// String returns the month as 2026-11.
func (m Month) String() string { return fmt.Sprintf("%04d-%02d", int(m)/100, int(m)%100) }

// ParseMonth parses the format of String.
func ParseMonth(text string) (m Month, ok bool) {
	t, err := time.Parse("2006-01", strings.TrimSpace(text))
	return Month(t.Year()*100 + int(t.Month())), err == nil
}

// End returns when the month ends.
func (m Month) End() time.Time {
	return time.Date(int(m)/100, time.Month(int(m)%100)+1, 1, 0, 0, 0, 0, time.UTC)
}

// Spent is what the runs of a tenant have spent. It only increases, whatever happens to
// the runs.
type Spent struct {
	Runs     uint64 // that were started
	Fuel     uint64 // units that were burnt
	LogBytes uint64
}

// Add adds further amounts.
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
