package scheduler_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/deaths"
)

// turning is a workflow of which a step gives itself the next turn, and counts.
const turning = `{"abi": 1, "workflow": "one", "timeout": 0, "events": {"Turn": {}},
  "steps": [{"name": "begin", "accepts": ["StartEvent"], "emits": ["Turn"]}, {"name": "turn", "accepts": ["Turn"], "emits": ["Turn", "StopEvent"]}]}`

// A loop of very many turns goes on over kills at random moments, before and after a turn
// has counted and whether or not that is durable: each turn counts once, and the loop is
// not taken for what kills.
// A run may have a million events, which bounds the turns.
func TestLoopOverKills(t *testing.T) {
	turns, rnd := soak(2_000, 999_000), rand.New(rand.NewPCG(17, 3))
	m := newMortal(t, 2)
	m.modules = newSimModules(t, map[string]string{"one": turning})
	m.snapshots, m.keep = 200, 1
	killed := func(odds int) bool { return !m.dead() && rnd.IntN(odds) == 0 }
	next := abi.StepOutput{Events: []abi.Event{{Type: "Turn", Body: abi.EmptyMap}}}
	m.guest = func(_ context.Context, g *call) (abi.StepOutput, error) {
		if g.in.Step == "begin" {
			return next, nil
		}
		if killed(1_000) {
			return abi.StepOutput{}, m.die(deaths.DeathUnknown)
		}
		if err := increment(g, 1); err != nil {
			return abi.StepOutput{}, err
		}
		if killed(1_000) {
			m.commit()
			return abi.StepOutput{}, m.die(deaths.DeathUnknown)
		}
		raw, err := g.do(abi.ImportStateGet, []any{"n", 0})
		if err != nil {
			return abi.StepOutput{}, err
		}
		if killed(1_000) {
			return abi.StepOutput{}, m.die(deaths.DeathUnknown)
		}
		n, err := abi.DecodeValue(raw)
		if err != nil {
			return abi.StepOutput{}, err
		}
		if n.(int64) >= int64(turns) {
			return stopEvent(), nil
		}
		return next, nil
	}
	m.restart()
	m.begin("h0")
	for !m.live() {
		m.restart()
	}
	if run := m.record(t, "h0"); run.Status != host.StatusCompleted {
		t.Fatalf("the run is %s: %s, %+v", run.Status, run.Error, run.Blocked)
	}
	v, err := await(m.bench, func() (host.StateValue, error) { return m.sched.State(t.Context(), "t", "h0", "n") })
	if err != nil {
		t.Fatal(err)
	}
	if n, err := abi.DecodeValue(v.Value); err != nil || n != int64(turns) {
		t.Errorf("after %d turns and %d kills %v are counted, %v", turns, m.deaths-1, n, err)
	}
	t.Logf("%d turns, %d kills", turns, m.deaths-1)
	if m.deaths < turns/1000 {
		t.Errorf("there were only %d kills", m.deaths)
	}
}
