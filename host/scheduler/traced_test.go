package scheduler

import (
	"testing"

	"github.com/weftrun/weft/host/engine"
)

// A host without a tracer pays nothing for what could be told to one.
func TestWithoutATracerNothingIsAllocated(t *testing.T) {
	ss := &session{s: &Scheduler{}}
	at := &attempt{ss: ss}
	var open engine.AttemptOpen
	var call engine.OutCall
	got := testing.AllocsPerRun(100, func() {
		at.trace(&open)
		at.tell(1, nil, false)
		ss.tellSuspended(engine.Abandon{})
		ss.tracePost(t.Context(), "run", "Event")
		if ss.tracedCall(&call) != nil || ss.s.traceOf(t.Context(), nil) != nil || at.traced != nil {
			t.Error("there is something to tell")
		}
	})
	if got != 0 {
		t.Errorf("%v allocations", got)
	}
}
