package scheduler_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// BenchmarkLoad loads a session that has written so many entries, by all of them
// and by its newest snapshot.
func BenchmarkLoad(b *testing.B) {
	for _, events := range []int{1_000, 10_000, 100_000} {
		for name, snapshots := range map[string]int{"entries": 1 << 30, "snapshot": 10_000} {
			b.Run(fmt.Sprintf("%d/by %s", 2*events, name), func(b *testing.B) { benchmarkLoad(b, events, snapshots) })
		}
	}
}

func benchmarkLoad(b *testing.B, events, snapshots int) {
	be := &bench{tokens: 1, snapshots: snapshots, snapshotBytes: 1 << 40, log: b.Output()}
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
	for b.Loop() {
		be.open(b)
		_, err := await(be, func() (host.Run, error) { return be.sched.Pause(b.Context(), "t", run.HandlerID) })
		if err != nil {
			b.Fatal(err)
		}
	}
}
