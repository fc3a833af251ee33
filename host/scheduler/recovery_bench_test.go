package scheduler_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/store/sqlite"
)

// BenchmarkLoad loads a session of so many entries from SQLite, as at a start of
// the server: by all of them, and by its newest snapshot.
func BenchmarkLoad(b *testing.B) {
	for _, entries := range []int{100, 10_000, 1_000_000} {
		for _, by := range []struct {
			name  string
			every int
		}{{"entries", 1 << 30}, {"snapshot", min(entries/2, 10_000)}} {
			b.Run(fmt.Sprintf("entries=%d/by=%s", entries, by.name), func(b *testing.B) {
				if entries > 100_000 && testing.Short() {
					b.Skip("it takes half a minute to write such a journal")
				}
				benchmarkLoad(b, entries/2, by.every)
			})
		}
	}
}

// benchmarkLoad makes a session of two entries, an edit and a finish, for each of
// so many events.
func benchmarkLoad(b *testing.B, events, snapshots int) {
	store, err := sqlite.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	be := &bench{
		store: store, now: time.Unix(1_700_000_000, 0),
		tokens: 1, snapshots: snapshots, snapshotBytes: math.MaxInt32, seldom: 100, log: b.Output(),
	}
	be.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
		if g.in.Step == "begin" {
			return list(events), nil
		}
		_, err := g.do(abi.ImportStateEdit, []any{[]any{"increment", "n", 1}})
		return abi.StepOutput{}, err
	}
	be.open(b)
	run := be.start("h", "s")
	be.rest()
	stored, err := store.LoadSession(b.Context(), host.SessionKey{Tenant: "t", Session: "s"})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		be.open(b)
		_, err := await(be, func() (host.Run, error) { return be.sched.Pause(b.Context(), "t", run.HandlerID) })
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(stored.Last), "entries")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(stored.Last), "ns/entry")
}

// BenchmarkLoadRuns is what it takes to load a session in which so many runs have ended,
// and to commit one request, with snapshots as the server makes them.
func BenchmarkLoadRuns(b *testing.B) {
	for _, runs := range []int{1_000, 20_000, 200_000} {
		b.Run(fmt.Sprintf("runs=%d", runs), func(b *testing.B) {
			if runs > 100_000 && testing.Short() {
				b.Skip("it takes minutes to run so many")
			}
			store, err := sqlite.Open(b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = store.Close() })
			be := (&bench{store: store, now: time.Unix(1_700_000_000, 0), tokens: 1, guest: ends, log: b.Output()}).open(b)
			for i := range runs {
				if be.start(fmt.Sprintf("h%d", i), "s"); i%100 == 99 {
					be.rest()
				}
			}
			for n := 0; b.Loop(); n++ {
				be.open(b)
				be.start(fmt.Sprintf("after%d", n), "s")
				be.rest()
			}
		})
	}
}
