package hosttest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weftrun/weft/cmd/weft/wire"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/audit"
	"github.com/weftrun/weft/host/hosttest"
	"github.com/weftrun/weft/host/store/sqlite"
)

// benchRuns is the number of runs in the directories of the benchmarks below:
// WEFT_BENCH_RUNS, or a small default.
func benchRuns(b *testing.B) int {
	b.Helper()
	text := os.Getenv("WEFT_BENCH_RUNS")
	if text == "" {
		return 5_000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// stored makes a data directory with n runs of a workflow, each in its own session.
func stored(b *testing.B, workflow string, n int) string {
	b.Helper()
	data := b.TempDir()
	h := hosttest.New(b, hosttest.Config{Data: data})
	h.Load(b, "tinygo", workflow)
	var clients sync.WaitGroup
	for range 64 {
		clients.Go(func() {
			for range n / 64 {
				if _, err := h.Runs.Start(b.Context(), host.StartRequest{Tenant: host.DefaultTenant, Workflow: workflow}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	clients.Wait()
	if workflow == "human" { // the question is the last event before the run waits
		for due := 1; due > 0; {
			keys, _, err := h.Store.Due(b.Context(), time.Now().UnixNano(), 1)
			if err != nil {
				b.Fatal(err)
			}
			due = len(keys)
		}
	} else {
		for running := 1; running > 0; {
			counts, err := h.Store.CountRuns(b.Context(), host.DefaultTenant)
			if err != nil {
				b.Fatal(err)
			}
			running = 0
			for _, n := range counts {
				running += n.Runs
			}
		}
	}
	h.Stop(b)
	return data
}

func size(b *testing.B, path string) float64 {
	b.Helper()
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	return float64(info.Size()) / 1e6
}

// BenchmarkData measures what an operator waits for, on directories of finished and of
// waiting runs: a check, a backup with and without its check, a restore, and the start of
// the server until it answers.
func BenchmarkData(b *testing.B) {
	n := benchRuns(b)
	for _, workflow := range []string{"counter", "human"} {
		b.Run(fmt.Sprintf("%s/runs=%d", workflow, n), func(b *testing.B) {
			data := stored(b, workflow, n)
			file := filepath.Join(data, "weft.db")
			b.Run("check", func(b *testing.B) { benchCheck(b, data) })
			b.Run("backup", func(b *testing.B) {
				for b.Loop() {
					backup(b, data, filepath.Join(b.TempDir(), "copy.db"))
				}
				b.ReportMetric(size(b, file), "MB")
			})
			b.Run("restore", func(b *testing.B) {
				for b.Loop() {
					if err := sqlite.Restore(b.Context(), file, filepath.Join(b.TempDir(), "new"), nil, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("start", func(b *testing.B) { benchOpen(b, data) })
		})
	}
}

func benchCheck(b *testing.B, data string) {
	for b.Loop() {
		s, err := sqlite.OpenOffline(data)
		if err != nil {
			b.Fatal(err)
		}
		sum, err := wire.Check(b.Context(), s, func(f audit.Fault) error { return fmt.Errorf("%+v", f) }, nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(sum.Sessions), "sessions")
	}
}

func backup(b *testing.B, data, file string) {
	b.Helper()
	s, err := sqlite.OpenShared(data)
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Backup(b.Context(), file, nil, nil); err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
}

// benchOpen opens a host on the directory until it is ready.
func benchOpen(b *testing.B, data string) {
	for b.Loop() {
		h, err := wire.Open(b.Context(), wire.Config{Data: data})
		if err != nil {
			b.Fatal(err)
		}
		if err := h.Ready(); err != nil {
			b.Fatal(err)
		}
		if _, more, err := h.Runs.List(b.Context(), host.RunQuery{Tenant: host.DefaultTenant, Limit: 20}); err != nil || !more {
			b.Fatalf("more: %t, %v", more, err)
		}
		b.StopTimer()
		if err := h.Close(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
