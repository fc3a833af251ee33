//go:build unix

package module

import (
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/weftrun/weft/host/work"
)

// BenchmarkDearChecks holds the prices of checks to what they take: units/ns should be
// between 1 and 9, as 3 units stand for a nanosecond.
func BenchmarkDearChecks(b *testing.B) {
	all := dearSchemas()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.Run(name, func(b *testing.B) {
			s, body := mustCompile(b, all[name].schema), fromJSON(b, all[name].body)
			var units uint64
			began := cpu()
			for b.Loop() {
				m := work.New(0, nil)
				_, _ = prepare(s, m, body, "event") // some are refused
				units += m.Spent()
			}
			b.ReportMetric(float64(units)/float64(cpu()-began), "units/ns")
		})
	}
}

// cpu is the time of a core that the process has had.
func cpu() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
