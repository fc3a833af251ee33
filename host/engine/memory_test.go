package engine

import (
	"fmt"
	"math"
	"runtime"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
)

// loop is a workflow that loops, each loop on a different path through the session. turn
// loops once from an open invocation, and returns the next one.
type loop struct {
	manifest string
	turn     func(m *machine, at uint64) uint64
}

var loops = map[string]loop{
	"hop": {chainManifest, func(m *machine, at uint64) uint64 { return m.opened(m.finish(at, one("Hop"))) }},
	"fan-out": {`{"abi": 1, "workflow": "w", "events": {"Item": {}, "Done": {}}, "steps": [
	  {"name": "start", "accepts": ["StartEvent"], "emits": [["list", ["Item"]]]},
	  {"name": "work", "accepts": ["Item"], "emits": ["Done"]},
	  {"name": "end", "accepts": [["list", ["Done"]]], "emits": [["list", ["Item"]], "StopEvent"]}]}`,
		func(m *machine, at uint64) uint64 {
			first := m.opened(m.finish(at, many("Item", 3)))
			m.finish(first, one("Done"))
			m.finish(first+1, one("Done"))
			return m.opened(m.finish(first+2, abi.StepOutput{}))
		}},
	"take": {`{"abi": 1, "workflow": "w", "events": {"Item": {}, "Done": {}}, "steps": [
	  {"name": "start", "accepts": ["StartEvent"], "emits": [["list", ["Item"]]]},
	  {"name": "work", "accepts": ["Item"], "emits": ["Done"]},
	  {"name": "end", "accepts": [["list", ["Done"], 1]], "emits": [["list", ["Item"]], "StopEvent"]}]}`,
		func(m *machine, at uint64) uint64 {
			first := m.opened(m.finish(at, many("Item", 2)))
			next := m.opened(m.finish(first, one("Done")))
			m.finish(first+1, one("Done"))
			return next
		}},
	"join": {`{"abi": 1, "workflow": "w", "events": {"A": {}, "B": {}}, "steps": [
	  {"name": "start", "accepts": ["StartEvent"], "emits": ["A", "B"]},
	  {"name": "both", "accepts": ["A", "B"], "emits": ["A", "B", "StopEvent"]}]}`,
		func(m *machine, at uint64) uint64 {
			m.call(at, 1, SendEvent{Event: abi.Event{Type: "A"}})
			return m.opened(m.finish(at, one("B")))
		}},
	"collect": {`{"abi": 1, "workflow": "w", "events": {"A": {}, "B": {}}, "steps": [
	  {"name": "start", "accepts": ["StartEvent"], "emits": ["A"]},
	  {"name": "a", "accepts": ["A"], "emits": ["A", "StopEvent"]}]}`,
		func(m *machine, at uint64) uint64 {
			m.call(at, 1, CollectEvents{Event: abi.Event{Type: "B"}, Expected: []string{"B", "B"}, Buffer: "pairs"})
			return m.opened(m.finish(at, one("A")))
		}},
	"wait": {`{"abi": 1, "workflow": "w", "events": {"A": {}, "Answer": {"kind": "human_response"}}, "steps": [
	  {"name": "start", "accepts": ["StartEvent"], "emits": ["A"]},
	  {"name": "a", "accepts": ["A"], "emits": ["A", "StopEvent"], "waits": ["Answer"]}]}`,
		func(m *machine, at uint64) uint64 {
			if inv, _ := m.s.Invocation(at); inv.Step == "a" {
				// one answer arrives during the wait, one before
				need, _ := abi.EncodeValue(map[string]any{"n": 1})
				m.call(at, 1, WaitForEvent{ID: "w", Type: "Answer", Requirements: need, Timeout: 5e9})
				m.reduce(PostEvent{RunID: fmt.Sprint("r", m.n), Event: abi.Event{Type: "Answer", Body: need}})
				m.reduce(PostEvent{RunID: fmt.Sprint("r", m.n), Event: abi.Event{Type: "Answer", Body: need}})
				m.call(at, 1, WaitForEvent{ID: "w", Type: "Answer", Requirements: need, Timeout: 5e9})
				m.call(at, 2, WaitForEvent{ID: "v", Type: "Answer"})
			}
			return m.opened(m.finish(at, one("A")))
		}},
	"sleep": {chainManifest, func(m *machine, at uint64) uint64 {
		m.call(at, 1, Sleep{Duration: 1})
		m.reduce(Timer{})
		m.call(at, 1, Sleep{Duration: 1})
		return m.opened(m.finish(at, one("Hop")))
	}},
	"retry": {`{"abi": 1, "workflow": "w", "events": {"A": {}}, "steps": [
	  {"name": "start", "accepts": ["StartEvent"], "emits": ["A"]},
	  {"name": "a", "accepts": ["A"], "emits": ["A", "StopEvent"], "timeout": 60000000000, "retry": {"wait": {"fixed": 0}}},
	  {"name": "rescue", "accepts": ["StepFailedEvent"], "catches": ["a"], "max_recoveries": 9999999, "emits": ["A"]}]}`,
		func(m *machine, at uint64) uint64 {
			broken := abi.StepOutput{Err: &abi.Error{Code: "x", Message: "broken"}}
			if inv, _ := m.s.Invocation(at); inv.Step == "a" {
				m.finish(at, broken)
				m.reduce(Timer{})
				m.reduce(Finish{Invocation: at, Attempt: 2, Output: broken})
				m.reduce(Timer{})
				at = m.opened(m.reduce(Finish{Invocation: at, Attempt: 3, Output: broken})) // rescue
			}
			return m.opened(m.finish(at, one("A")))
		}},
	"run": {chainManifest, func(m *machine, at uint64) uint64 {
		m.finish(at, one(abi.TypeStop))
		return m.start()
	}},
}

func (m *machine) call(invocation, n uint64, req Request) Result {
	return m.reduce(Call{Invocation: invocation, Attempt: 1, N: n, Request: req})
}

// held counts what a session holds.
func held(s *Session) int {
	n := len(s.handlers) + len(s.runs) + len(s.invocations) + len(s.timers.heap) + len(s.timers.byID) + cap(s.out)
	for _, r := range s.runs {
		n += len(r.collections) + len(r.buffers) + len(r.waiting) + r.standing.Len() + r.inbox.size + cap(r.unhandled) + len(r.outermost.joins)
		for _, b := range r.buffers {
			n += len(b.events) + len(b.types)
			for _, of := range b.types {
				n += len(of.ids)
			}
		}
		for _, j := range r.outermost.joins {
			for _, slot := range j.slots {
				n += len(slot)
			}
		}
	}
	return n
}

// heapAlloc returns the size of the heap after a collection, in bytes.
func heapAlloc() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func (m *machine) startLong() uint64 {
	m.n++
	return m.opened(m.reduce(StartRun{
		RunID: fmt.Sprint("r", m.n), HandlerID: "h", Event: abi.Event{Type: abi.TypeStart}, Limits: host.Limits{RunEvents: math.MaxInt32, Suspensions: math.MaxInt32},
	}))
}

// TestLoopsKeepMemoryFlat compares the memory of a session after many turns of a loop
// with its memory after few, by the number of items it holds and by the heap. The plain
// loop makes 1,000,000 turns.
func TestLoopsKeepMemoryFlat(t *testing.T) {
	for name, l := range loops {
		t.Run(name, func(t *testing.T) {
			little, much := 1000, 30_000
			if name == "hop" {
				little, much = 10_000, 1_000_000
			}
			if few {
				much /= 10
			}
			m := newMachine(t, l.manifest)
			at := m.startLong()
			turns := func(n int) (int, uint64) {
				for range n {
					at = l.turn(m, at)
				}
				return held(m.s), heapAlloc()
			}
			held1, heap1 := turns(little)
			held2, heap2 := turns(much - little)
			t.Logf("after %d turns %d things, %d KiB; after %d turns %d things, %d KiB", little, held1, heap1>>10, much, held2, heap2>>10)
			if held2 != held1 {
				t.Errorf("the session holds %d things after %d turns, and %d after %d", held1, little, held2, much)
			}
			// A leak of 8 bytes a turn would exceed this.
			if heap2 > heap1+uint64(much)*4+64<<10 {
				t.Errorf("the heap grew from %d to %d bytes", heap1, heap2)
			}
			runtime.KeepAlive(m)
		})
	}
}

// crowd makes a run hold n of everything that a session can hold: queued invocations,
// waits for several types, kept and buffered events, incomplete joins, timers.
func crowd(t reporter, n int) (m *machine, at uint64) {
	m = newMachine(t, `{"abi": 1, "workflow": "crowd", "events": {"Hop": {}, "Q": {}, "W": {}, "L": {}, "R": {}, "Kept": {}, "B": {}, "S": {}, "Answer": {"kind": "human_response"}}, "steps": [
	  {"name": "start", "accepts": ["StartEvent"], "emits": ["Q", "W", "L", "R", "Kept", "S", "Hop"]},
	  {"name": "hop", "accepts": ["Hop"], "emits": ["Hop", "Kept", "Q", "L"], "workers": 2, "waits": ["Kept"]},
	  {"name": "queue", "accepts": ["Q"], "emits": ["StopEvent"]},
	  {"name": "wait", "accepts": ["W"], "emits": ["StopEvent"], "waits": ["Answer"], "workers": 1},
	  {"name": "sleep", "accepts": ["S"], "emits": ["StopEvent"], "workers": 1, "timeout": 3600000000000},
	  {"name": "join", "accepts": ["L", "R"], "emits": ["StopEvent"]}]}`)
	at = m.start()
	need := func(i int) abi.Raw {
		raw, _ := abi.EncodeValue(map[string]any{"n": i % (n/2 + 1)})
		return raw
	}
	for i := range n {
		for _, typ := range []string{"Q", "L"} {
			m.call(at, 1, SendEvent{Event: abi.Event{Type: typ}})
		}
		if i < limit.Default().InboxEvents-10 {
			m.call(at, 1, SendEvent{Event: abi.Event{Type: "Kept"}})
		}
		m.call(at, 1, CollectEvents{Event: abi.Event{Type: "B"}, Expected: []string{"B", "R"}})
		w := m.opened(m.call(at, 1, SendEvent{Event: abi.Event{Type: "W"}}))
		m.call(w, 1, WaitForEvent{ID: "w", Type: "Answer", Requirements: need(i), Timeout: 3600e9})
		s := m.opened(m.call(at, 1, SendEvent{Event: abi.Event{Type: "S"}}))
		m.call(s, 1, Sleep{Duration: 3600e9})
	}
	return m, m.opened(m.call(at, 1, SendEvent{Event: abi.Event{Type: "Hop"}}))
}

// TestTickCostsTheSameInACrowd reduces one of each tick in a session that holds few items
// and in a session that holds many. Each tick must look at as many items and make as many
// allocations in both. The bound leaves room for logarithms: a heap of timers, a tree of
// the state.
func TestTickCostsTheSameInACrowd(t *testing.T) {
	answer, _ := abi.EncodeValue(map[string]any{"n": 1})
	ticks := map[string]func(m *machine, at uint64){
		"hop":       func(m *machine, at uint64) { m.finish(at, one("Hop")) },
		"send":      func(m *machine, at uint64) { m.call(at, 1, SendEvent{Event: abi.Event{Type: "Q"}}) },
		"half join": func(m *machine, at uint64) { m.call(at, 1, SendEvent{Event: abi.Event{Type: "L"}}) },
		"write":     func(m *machine, at uint64) { m.call(at, 1, WriteStream{Event: abi.Event{Type: "Hop"}}) },
		"edit": func(m *machine, at uint64) {
			m.call(at, 1, EditState{Edits: []abi.Edit{{Op: abi.OpIncrement, Path: "n", Value: abi.Raw{1}}}})
		},
		"collect": func(m *machine, at uint64) {
			m.call(at, 1, CollectEvents{Event: abi.Event{Type: "B"}, Expected: []string{"B"}})
		},
		"sleep":            func(m *machine, at uint64) { m.call(at, 1, Sleep{Duration: 1}); m.reduce(Timer{}) },
		"wait on the kept": func(m *machine, at uint64) { m.call(at, 1, WaitForEvent{ID: "w", Type: "Kept"}) },
		"answer": func(m *machine, _ uint64) {
			m.reduce(PostEvent{RunID: "r1", Event: abi.Event{Type: "Answer", Body: answer}})
		},
		"unhandled": func(m *machine, _ uint64) { m.reduce(PostEvent{RunID: "r1", Event: abi.Event{Type: "B"}}) },
		"fail":      func(m *machine, at uint64) { m.call(at, 1, SendEvent{Event: abi.Event{Type: "Kept"}}) },
	}
	for name, tick := range ticks {
		t.Run(name, func(t *testing.T) {
			cost := func(n int) (visited uint64, allocs float64) {
				m, at := crowd(t, n)
				before := m.s.visited
				var start, end runtime.MemStats
				runtime.ReadMemStats(&start)
				tick(m, at)
				runtime.ReadMemStats(&end)
				return m.s.visited - before, float64(end.Mallocs - start.Mallocs)
			}
			few, fewAllocs := cost(20)
			many, manyAllocs := cost(2000)
			t.Logf("among 20: %d looked at, %.0f allocations; among 2,000: %d, %.0f", few, fewAllocs, many, manyAllocs)
			if many > few+2 || manyAllocs > 1.5*fewAllocs+20 {
				t.Errorf("the tick looks at %d items and makes %.0f allocations among 20, %d and %.0f among 2,000", few, fewAllocs, many, manyAllocs)
			}
		})
	}
}
