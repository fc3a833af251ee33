package engine

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

const chainManifest = `{"abi": 1, "workflow": "chain", "events": {"Hop": {}}, "steps": [
  {"name": "start", "accepts": ["StartEvent"], "emits": ["Hop"]},
  {"name": "hop", "accepts": ["Hop"], "emits": ["Hop", "StopEvent"]}]}`

const fanManifest = `{"abi": 1, "workflow": "fan", "events": {"Item": {}, "Done": {}}, "steps": [
  {"name": "start", "accepts": ["StartEvent"], "emits": [["list", ["Item"]]]},
  {"name": "work", "accepts": ["Item"], "emits": ["Done"]},
  {"name": "end", "accepts": [["list", ["Done"]]], "emits": ["StopEvent"]}]}`

const collectManifest = `{"abi": 1, "workflow": "collect", "events": {"Item": {}, "Done": {}}, "steps": [
  {"name": "start", "accepts": ["StartEvent"], "emits": [["list", ["Item"]]]},
  {"name": "work", "accepts": ["Item"], "emits": ["Done"]},
  {"name": "end", "accepts": ["Done"], "emits": ["StopEvent"]}]}`

const waitsManifest = `{"abi": 1, "workflow": "waits", "events": {"Item": {}, "Done": {}, "Answer": {"kind": "human_response"}}, "steps": [
  {"name": "start", "accepts": ["StartEvent"], "emits": [["list", ["Item"]]]},
  {"name": "work", "accepts": ["Item"], "emits": ["Done"], "waits": ["Answer"]},
  {"name": "end", "accepts": [["list", ["Done"]]], "emits": ["StopEvent"]}]}`

// machine drives a session with one workflow.
type machine struct {
	t reporter
	s *Session
	n int // runs started
}

func newMachine(t reporter, manifest string) *machine {
	g := mustGraph(t, manifest)
	key := host.SessionKey{Tenant: "t", Session: "s"}
	return &machine{t: t, s: New(key, func(string) (*Graph, error) { return g, nil })}
}

func (m *machine) reduce(tick Tick) Result {
	res, err := m.s.Reduce(m.s.Now()+1, tick)
	if err != nil {
		m.t.Fatalf("%T: %v", tick, err)
	}
	return res
}

// start starts a run and returns its first invocation.
func (m *machine) start() uint64 {
	m.n++
	return m.opened(m.reduce(StartRun{RunID: fmt.Sprint("r", m.n), HandlerID: "h", Event: abi.Event{Type: abi.TypeStart}}))
}

// opened returns the first invocation that a result starts.
func (m *machine) opened(res Result) uint64 {
	for _, c := range res.Commands {
		if c, ok := c.(StartAttempt); ok {
			return c.Invocation
		}
	}
	m.t.Fatal("nothing was started")
	return 0
}

func (m *machine) finish(invocation uint64, out abi.StepOutput) Result {
	return m.reduce(Finish{Invocation: invocation, Attempt: 1, Output: out})
}

func one(typ string) abi.StepOutput {
	return abi.StepOutput{Events: []abi.Event{{Type: typ, Body: abi.EmptyMap}}}
}

func many(typ string, n int) abi.StepOutput {
	out := abi.StepOutput{List: true, Events: make([]abi.Event, n)}
	for i := range out.Events {
		out.Events[i] = abi.Event{Type: typ, Body: abi.EmptyMap}
	}
	return out
}

// attempts are the started attempts that the test has not taken yet, in order.
type attempts []uint64

func (a *attempts) take(res Result) {
	for _, c := range res.Commands {
		if c, ok := c.(StartAttempt); ok {
			*a = append(*a, c.Invocation)
		}
	}
}

func (a *attempts) next() uint64 {
	id := (*a)[0]
	*a = (*a)[1:]
	return id
}

// fanOut runs a fan-out of n to its end.
func (m *machine) fanOut(n int) {
	var open attempts
	open.take(m.finish(m.start(), many("Item", n)))
	for range n {
		open.take(m.finish(open.next(), one("Done")))
	}
	inv, ok := m.s.Invocation(open[0])
	if !ok || !inv.List || len(inv.Trigger) != n {
		m.t.Fatalf("the collector got %d events of %d", len(inv.Trigger), n)
	}
	m.finish(open[0], one(abi.TypeStop))
}

// collectAll runs n branches, each of which asks for all n events.
func (m *machine) collectAll(n int) {
	expected := make([]string, n)
	for i := range expected {
		expected[i] = "Done"
	}
	var open attempts
	open.take(m.finish(m.start(), many("Item", n)))
	for done := 0; m.s.Active() > 0; {
		id := open.next()
		inv, _ := m.s.Invocation(id)
		if inv.Step == "work" {
			open.take(m.finish(id, one("Done")))
			continue
		}
		res := m.reduce(Call{Invocation: id, Attempt: 1, N: 1, Request: CollectEvents{Event: inv.Trigger[0], Expected: expected}})
		done++
		if res.Response.Complete != (done == n) {
			m.t.Fatalf("complete is %t after %d of %d", res.Response.Complete, done, n)
		}
		if res.Response.Complete {
			m.finish(id, one(abi.TypeStop))
		} else {
			open.take(m.finish(id, abi.StepOutput{}))
		}
	}
}

// sendAll sends n events that wait for four workers.
func (m *machine) sendAll(n int) {
	at := m.start()
	var open attempts
	for range n {
		open.take(m.call(at, 1, SendEvent{Event: abi.Event{Type: "Hop"}}))
	}
	m.finish(at, abi.StepOutput{})
	for range n - 1 {
		open.take(m.finish(open.next(), abi.StepOutput{}))
	}
	m.finish(open.next(), one(abi.TypeStop))
}

// hops runs one step n times.
func (m *machine) hops(n int) {
	at := m.start()
	for range n {
		at = m.opened(m.finish(at, one("Hop")))
	}
	m.finish(at, one(abi.TypeStop))
}

// waits makes n branches wait, each for its own answer, and answers them.
func (m *machine) waits(n int) {
	need := func(i int) abi.Raw {
		raw, _ := abi.EncodeValue(map[string]any{"n": i})
		return raw
	}
	var open attempts
	open.take(m.finish(m.start(), many("Item", n)))
	ids := make([]uint64, n)
	for i := range n {
		ids[i] = open.next()
		open.take(m.call(ids[i], 1, WaitForEvent{ID: "w", Type: "Answer", Requirements: need(i), Timeout: 3600e9}))
	}
	for i := range n {
		open.take(m.reduce(PostEvent{RunID: fmt.Sprint("r", m.n), Event: abi.Event{Type: "Answer", Body: need(n - 1 - i)}}))
		m.call(ids[n-1-i], 1, WaitForEvent{ID: "w", Type: "Answer", Requirements: need(n - 1 - i), Timeout: 3600e9})
		open.take(m.finish(open.next(), one("Done")))
	}
	m.finish(open.next(), one(abi.TypeStop))
}

// TestWorkIsProportional counts the items that the session looks at. A fan-out with ten
// times as many branches may cost ten times as much, with ten times as many allocations,
// except for a few that grow by doubling.
func TestWorkIsProportional(t *testing.T) {
	shapes := map[string]struct {
		manifest string
		run      func(m *machine, n int)
	}{
		"fan-out": {fanManifest, (*machine).fanOut},
		"collect": {collectManifest, (*machine).collectAll},
		"hops":    {chainManifest, (*machine).hops},
		"queue":   {chainManifest, (*machine).sendAll},
		"waits":   {waitsManifest, (*machine).waits},
		"cancel": {fanManifest, func(m *machine, n int) { // with all branches queued
			m.finish(m.start(), many("Item", n))
			m.reduce(Cancel{RunID: fmt.Sprint("r", m.n)})
		}},
	}
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			var looked, made []float64
			for _, n := range []int{100, 1000, 10_000, 100_000} {
				if n == 100_000 && (name == "waits" || few) {
					continue // nothing new in ten seconds
				}
				m := newMachine(t, shape.manifest)
				before := mallocs()
				shape.run(m, n)
				looked = append(looked, float64(m.s.visited)/float64(n))
				made = append(made, float64(mallocs()-before)/float64(n))
			}
			t.Logf("of 100, 1,000, 10,000, 100,000: looked at %.2f items each, %.1f allocations", looked, made)
			for i := range looked {
				if looked[i] > looked[0]*1.05 || looked[i] > 20 || made[i] > made[0]*1.15 {
					t.Errorf("each branch looked at %.2f items and made %.1f allocations, of 100, 1,000, 10,000, 100,000; want the same", looked, made)
				}
			}
		})
	}
}

func mallocs() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.Mallocs
}

// hopAllocs is the budget of allocations for one tick of a chain, which ends an
// invocation and starts the next: the entry with its event, the invocation with its
// trigger, and the commands.
const hopAllocs = 15

func TestHopAllocations(t *testing.T) {
	m := newMachine(t, chainManifest)
	at := m.start()
	out := one("Hop")
	got := testing.AllocsPerRun(1000, func() { at = m.opened(m.finish(at, out)) })
	t.Logf("%.1f allocations", got)
	if got > hopAllocs {
		t.Errorf("a tick of a chain makes %.1f allocations, budget %d", got, hopAllocs)
	}
}

func BenchmarkHop(b *testing.B) {
	m := newMachine(b, chainManifest)
	at := m.start()
	out := one("Hop")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if i%100_000 == 99_999 { // below the limit of events
			m.finish(at, one(abi.TypeStop))
			at = m.start()
		}
		at = m.opened(m.finish(at, out))
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ticks/s")
}

func BenchmarkFanOut(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := newMachine(b, fanManifest)
			b.ReportAllocs()
			for b.Loop() {
				m.fanOut(n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/branch")
		})
	}
}

func BenchmarkIncrement(b *testing.B) {
	m := newMachine(b, chainManifest)
	at := m.start()
	edits := []abi.Edit{{Op: abi.OpIncrement, Path: "count", Value: abi.Raw{1}}}
	b.ReportAllocs()
	for b.Loop() {
		m.reduce(Call{Invocation: at, Attempt: 1, Request: EditState{Edits: edits}})
	}
}

func BenchmarkFold(b *testing.B) {
	m := newMachine(b, chainManifest)
	at := m.start()
	m.reduce(Call{Invocation: at, Attempt: 1, Request: WriteStream{Event: abi.Event{Type: "Hop"}}})
	e := &Entry{Kind: EntryStream, RunID: "r1", Invocation: at, Attempt: 1, Event: &abi.Event{Type: "Hop", Body: abi.EmptyMap}}
	b.ReportAllocs()
	for b.Loop() {
		e.Seq, e.At = m.s.Seq()+1, m.s.Now()
		if _, err := m.s.Fold(e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWaits(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := newMachine(b, waitsManifest)
			b.ReportAllocs()
			for b.Loop() {
				m.waits(n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/branch")
		})
	}
}
