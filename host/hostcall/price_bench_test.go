//go:build unix

package hostcall_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
)

// BenchmarkDearCalls compares the prices of host calls with their cost. units/ns should
// be between 1 and 9: 3 units correspond to a nanosecond.
func BenchmarkDearCalls(b *testing.B) {
	for _, d := range dearCalls() {
		if d.most > 0 {
			continue // refused at once
		}
		b.Run(d.name, func(b *testing.B) {
			idle := dear{make: d.make, im: abi.ImportNow, req: []any{}}
			var units uint64
			var took time.Duration
			for b.Loop() {
				began := cpu()
				_, a, _ := d.play(b, 1e12, func(uint64) error { return nil })
				middle := cpu()
				units += a.Charged()
				_, _, _ = idle.play(b, 1e12, func(uint64) error { return nil })
				took += middle - began - (cpu() - middle) // without making the world
			}
			b.ReportMetric(float64(units)/float64(max(took, 1)), "units/ns")
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
