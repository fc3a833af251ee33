//go:build unix

package pattern_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weftrun/weft/host/pattern"
	"github.com/weftrun/weft/host/work"
)

// BenchmarkMatch compares the prices with the cost of matches. The metric units/ns should
// be between 1 and 9: 3 units correspond to a nanosecond.
func BenchmarkMatch(b *testing.B) {
	text := strings.Repeat("aaaabbbbab cd ", 5000)
	for _, s := range []struct{ name, pattern string }{
		{"one", `^[ab]*$`}, {"ways", `(a|b|ab|ba|aab){0,40}x`}, {"class", `^(\pL|\pN|\pM)*!`}, {"fold", `(?i)^([a-z]|k)*!`},
		{"words", `\b\w+\b\d`}, {"literal", `zzzz`}, {"near", `aaaabbbbabc`}, {"counted", `^[^x]{400}$`},
	} {
		b.Run(s.name, func(b *testing.B) {
			p, err := pattern.Compile(s.pattern, pattern.Most{Bytes: 1024, States: 2000})
			if err != nil {
				b.Fatal(err)
			}
			var units uint64
			began := cpu()
			for b.Loop() {
				m := work.New(0, nil)
				if _, err := p.Match(m, text); err != nil {
					b.Fatal(err)
				}
				units += m.Spent()
			}
			b.ReportMetric(float64(units)/float64(cpu()-began), "units/ns")
		})
	}
}

// BenchmarkCompile measures compiling patterns that are compiled when they are used.
func BenchmarkCompile(b *testing.B) {
	for _, s := range []struct{ name, pattern string }{
		{"plain", `^[ab]*$`}, {"classes", strings.Repeat(`\pL`, 300)}, {"fold", `(?i)` + strings.Repeat(`[\pL\pN]`, 120)},
		{"repeats", `(a{9}b{9}c?){24}`}, {"alternatives", strings.Repeat(`ab|`, 160)}, {"nested", strings.Repeat(`(`, 400) + strings.Repeat(`)`, 400)},
	} {
		b.Run(s.name, func(b *testing.B) {
			for b.Loop() {
				if _, err := pattern.Compile(s.pattern, pattern.Most{Bytes: 1024, States: 2000}); err != nil {
					b.Fatal(err)
				}
			}
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
