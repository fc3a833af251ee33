package sqlite

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// oneStepRun is the part that a run of one step writes when it fits into one
// commit: a new private session, its journal row of 600 bytes, the finished run,
// and the four events of its stream.
func oneStepRun(tb testing.TB) host.SessionBatch {
	tb.Helper()
	body, err := abi.EncodeValue(map[string]any{"message": "a result of ordinary length", "count": int64(3)})
	if err != nil {
		tb.Fatal(err)
	}
	handler, digest := benchID(), strings.Repeat("0123abcd", 8)
	r := host.Run{
		Tenant: host.DefaultTenant, HandlerID: handler, RunID: benchID(), SessionID: handler, Workflow: "flow", Version: digest,
		Status: host.StatusCompleted, Started: 1_800_000_000_000_000_000, Updated: 1_800_000_000_001_000_000,
		Completed: 1_800_000_000_001_000_000, Steps: 1, Fuel: 12_345,
	}
	row := host.StreamRow{HandlerID: handler, RunID: r.RunID}
	for seq := range uint64(4) {
		row.Events = append(row.Events, host.StreamEvent{
			Seq: seq, RunID: r.RunID, Type: "StepStateChanged", Base: true, Body: body, Workflow: "flow",
		})
	}
	row.Events[3].Type, row.Events[3].Terminal = "StopEvent", true
	r.Result = &row.Events[3]
	return host.SessionBatch{
		Key:   host.SessionKey{Tenant: host.DefaultTenant, Session: handler},
		First: 1, Last: 3, Data: make([]byte, 600), WakeAt: host.WakeNever,
		Runs: []host.Run{r}, Started: []string{r.RunID}, Stream: []host.StreamRow{row},
		Versions: []host.VersionUse{{Digest: digest, Seq: 1}},
	}
}

// benchID is an id like those of the scheduler: roughly the time, and random bits.
func benchID() string {
	return fmt.Sprintf("%08x", time.Now().UnixNano()>>28)[4:] + rand.Text()[:8]
}

// BenchmarkAppend: batches of so many one-step runs, each batch synced. The
// time is that of a batch; runs/s counts the runs in them.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 8, 64} {
		b.Run(fmt.Sprintf("sessions=%d", n), func(b *testing.B) {
			s := mustOpen(b, b.TempDir())
			batch := host.Batch{Epoch: mustClaim(b, s), Sessions: make([]host.SessionBatch, n)}
			b.ReportAllocs()
			for b.Loop() {
				for i := range batch.Sessions {
					batch.Sessions[i] = oneStepRun(b) // some microseconds
				}
				if err := s.Append(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*n)/b.Elapsed().Seconds(), "runs/s")
		})
	}
}

// BenchmarkAppendFurther: a batch with one more row of 300 bytes for a session
// that exists, synced.
func BenchmarkAppendFurther(b *testing.B) {
	s := mustOpen(b, b.TempDir())
	part := oneStepRun(b)
	batch := host.Batch{Epoch: mustClaim(b, s), Sessions: []host.SessionBatch{part}}
	if err := s.Append(b.Context(), batch); err != nil {
		b.Fatal(err)
	}
	next := host.SessionBatch{Key: part.Key, Last: part.Last, Data: make([]byte, 300), WakeAt: host.WakeNever}
	b.ReportAllocs()
	for b.Loop() {
		next.First, next.Last = next.Last+1, next.Last+1
		batch.Sessions[0] = next
		if err := s.Append(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLoadSession: a session of so many rows of 300 bytes.
func BenchmarkLoadSession(b *testing.B) {
	for _, rows := range []uint64{1, 100} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			s := mustOpen(b, b.TempDir())
			batch := host.Batch{Epoch: mustClaim(b, s)}
			key := host.SessionKey{Tenant: host.DefaultTenant, Session: "s"}
			for n := range rows {
				batch.Sessions = append(batch.Sessions, host.SessionBatch{Key: key, First: n + 1, Last: n + 1, Data: make([]byte, 300)})
			}
			if err := s.Append(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.LoadSession(b.Context(), key); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
