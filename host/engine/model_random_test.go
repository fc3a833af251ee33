package engine_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/state"
)

// drawWorkflow draws a workflow that passes validation: every step may stop the run, and
// an earlier step emits what a step accepts. Collectors without a list take single events
// instead.
func drawWorkflow(rng *rand.Rand) *abi.Manifest {
	m := &abi.Manifest{ABI: 1, Workflow: "random", Events: map[string]abi.EventDecl{
		"Ask": {Kind: abi.KindInputRequired}, "Answer": {Kind: abi.KindHumanResponse}, "Yes": {Extends: "Answer"},
		"Progress": {}, "Sub": {Extends: "T1"}, "SubSub": {Extends: "Sub"}, "Note": {}, "End": {Kind: abi.KindStop},
	}}
	n := 2 + rng.IntN(5)
	waiting := ""
	for i := range n {
		st := drawStep(rng, i)
		if i > 0 {
			m.Events[fmt.Sprint("T", i)] = abi.EventDecl{}
			maker := &m.Steps[rng.IntN(i)]
			maker.Emits = append(maker.Emits, abi.Emit{Types: []string{fmt.Sprint("T", i)}, List: rng.IntN(2) == 0})
			if rng.IntN(3) == 0 {
				other := &m.Steps[rng.IntN(i)]
				other.Emits = append(other.Emits, abi.Emit{Types: []string{fmt.Sprint("T", i)}})
			}
		}
		if slices.Contains(st.Waits, "Note") {
			waiting = "Note"
		}
		m.Steps = append(m.Steps, st)
	}
	m.Events["T1"] = abi.EventDecl{}
	if waiting != "" {
		maker := &m.Steps[rng.IntN(n)]
		maker.Emits = append(maker.Emits, abi.Emit{Types: []string{waiting}})
	}
	drawCatchers(rng, m)
	mend(m)
	return m
}

func drawStep(rng *rand.Rand, i int) abi.StepDecl {
	st := abi.StepDecl{
		Name: fmt.Sprint("s", i), Emits: []abi.Emit{{Types: []string{pickOf(rng, abi.TypeStop, "End")}}}, Workers: rng.IntN(4),
		AcceptSubtypes: rng.IntN(2) == 0,
	}
	if st.Accepts = []abi.Slot{{Types: []string{abi.TypeStart}}}; i > 0 {
		st.Accepts = drawSlots(rng, i)
	}
	if rng.IntN(3) == 0 {
		st.Retry = drawRetry(rng)
	}
	if rng.IntN(4) == 0 {
		st.Timeout = time.Duration(2 + rng.IntN(6))
	}
	if rng.IntN(4) == 0 {
		st.Emits = append(st.Emits, abi.Emit{Types: []string{"Ask"}})
	}
	if rng.IntN(2) == 0 {
		st.Waits = [][]string{{"Answer"}, {"Note"}, {"Answer", "Note"}, {"T1"}}[rng.IntN(4)]
	}
	return st
}

func pickOf(rng *rand.Rand, of ...string) string { return of[rng.IntN(len(of))] }

func drawSlots(rng *rand.Rand, i int) []abi.Slot {
	own, other := fmt.Sprint("T", i), fmt.Sprint("T", 1+rng.IntN(i))
	switch rng.IntN(7) {
	case 0:
		return []abi.Slot{{Kind: abi.SlotAny, Types: []string{own, "Answer"}}}
	case 1:
		return []abi.Slot{{Types: []string{own}}, {Types: []string{other}}}
	case 2:
		return []abi.Slot{{Types: []string{own}}, {Kind: abi.SlotAny, Types: slices.Compact([]string{own, other})}, {Types: []string{other}}}
	case 3, 4:
		return []abi.Slot{{Kind: abi.SlotList, Types: []string{own}, Take: uint64(rng.IntN(4))}}
	case 5:
		return []abi.Slot{{Kind: abi.SlotAny, Types: slices.Compact([]string{own, other})}}
	}
	return []abi.Slot{{Types: []string{own}}}
}

func drawRetry(rng *rand.Rand) *abi.RetryPolicy {
	wait, attempts, text := time.Duration(rng.IntN(4)), uint64(1+rng.IntN(3)), "drawn"
	p := &abi.RetryPolicy{Wait: &abi.WaitRule{Fixed: &wait}, Stop: &abi.StopRule{Attempts: &attempts}}
	switch rng.IntN(4) {
	case 0:
		p.Wait = &abi.WaitRule{Incrementing: &[3]time.Duration{wait, 2, 5}}
	case 1:
		p.Stop = &abi.StopRule{Delay: &[]time.Duration{time.Duration(rng.IntN(9))}[0]}
	}
	switch rng.IntN(6) {
	case 0:
		p.When = &abi.Condition{Codes: []string{"drawn", "timeout"}}
	case 1:
		p.When = &abi.Condition{Not: &abi.Condition{Codes: []string{"timeout", "other"}}}
	case 2:
		p.When = &abi.Condition{Message: &text}
	case 3:
		p.When = &abi.Condition{Never: true}
	}
	return p
}

// drawCatchers makes steps catch the failures of one step, of all, or both.
func drawCatchers(rng *rand.Rand, m *abi.Manifest) {
	add := func(name string, targets []string, all bool) {
		st := abi.StepDecl{
			Name: name, Accepts: []abi.Slot{{Types: []string{abi.TypeStepFailed}}}, Catches: targets, CatchesAll: all,
			Emits: []abi.Emit{{Types: []string{abi.TypeStop}}, {Types: []string{"T1"}}}, Workers: 1 + rng.IntN(2),
		}
		if rng.IntN(2) == 0 {
			most := uint64(rng.IntN(4))
			st.MaxRecoveries = &most
		}
		m.Steps = append(m.Steps, st)
	}
	n := len(m.Steps)
	if rng.IntN(3) == 0 {
		add("rescue", []string{fmt.Sprint("s", rng.IntN(n))}, false)
	}
	if rng.IntN(3) == 0 {
		add("rescueAll", nil, true)
	}
}

// mend turns collectors without a list into steps that take single events.
func mend(m *abi.Manifest) {
	for range len(m.Steps) {
		_, problems := engine.Compile(m)
		for _, p := range problems {
			for i := range m.Steps {
				if m.Steps[i].Name == p.Step && p.Code == "collector_without_producer" {
					m.Steps[i].Accepts = []abi.Slot{{Types: m.Steps[i].Accepts[0].Types[:1]}}
				}
			}
		}
	}
}

// mood says how often the guests of a seed do what, in percent.
type mood struct{ finish, fail, wait int }

func drawMood(rng *rand.Rand) mood {
	return mood{finish: []int{25, 40, 60}[rng.IntN(3)], fail: []int{3, 12, 40}[rng.IntN(3)], wait: []int{10, 30, 70}[rng.IntN(3)]}
}

// guest is an attempt as the outside plays it. After a suspension it repeats its call,
// and the next attempt mostly repeats the calls of the previous one.
type guest struct {
	attempt, calls uint64
	again          *engine.Call
	bases          []region
	made, script   []engine.Request
}

// region is a value that was read for a replacement.
type region struct {
	path string
	node *state.Node
	was  map[string]int64
}

// drawTick draws something that may happen now.
func (p *pair) drawTick(rng *rand.Rand) (int64, engine.Tick) {
	p.now += int64(rng.IntN(3))
	var runs []string
	for _, r := range p.model.runs {
		runs = append(runs, r.id)
	}
	if len(runs) == 0 || len(runs) < 3 && rng.IntN(25) == 0 {
		p.started++
		return p.now, p.drawStart(rng)
	}
	id := runs[rng.IntN(len(runs))]
	switch pick := rng.IntN(100); {
	case pick < 6:
		post := engine.PostEvent{RunID: id, Event: p.drawEvent(rng, append([]string{"Answer", "Yes", "Note", "T1", "Sub"}, p.types...))}
		if rng.IntN(3) == 0 {
			post.Step = p.manifest.Steps[rng.IntN(len(p.manifest.Steps))].Name
		}
		return p.now, post
	case pick == 19:
		if due, ok := p.session.DueTimeout(p.now); ok {
			return p.now, engine.Extend{Of: due, By: int64(1 + rng.IntN(9))}
		}
		return p.now, engine.Timer{}
	case pick < 19:
		if at := p.session.NextTimer(); at != host.WakeNever && rng.IntN(3) > 0 {
			p.now = max(p.now, at)
		}
		return p.now, engine.Timer{}
	case pick == 20 && rng.IntN(3) == 0:
		return p.now, engine.Cancel{RunID: id}
	case pick == 21 && rng.IntN(2) == 0:
		return p.now, engine.Block{RunID: id, Reason: host.Blocked{Code: host.BlockedHostCrash}}
	case pick == 22:
		return p.now, engine.Pause{RunID: id}
	case pick < 27 && p.model.run(id).held() || pick == 27:
		return p.now, engine.Resume{RunID: id}
	case pick == 28:
		return p.now, engine.Shift{Lost: int64(rng.IntN(4))}
	}
	open := p.session.Open()
	if len(open) == 0 {
		return p.now, engine.Timer{}
	}
	return p.now, p.drawAttempt(rng, open[rng.IntN(len(open))])
}

func (p *pair) drawStart(rng *rand.Rand) engine.StartRun {
	pick := func(of ...int) int { return of[rng.IntN(len(of))] }
	return engine.StartRun{
		RunID: fmt.Sprint("r", p.started-uint64(pick(0, 0, 0, 0, 0, 1))), HandlerID: fmt.Sprint("h", rng.IntN(3)), Version: "v1",
		Event: abi.Event{Type: pickOf(rng, abi.TypeStart, abi.TypeStart, abi.TypeStart, abi.TypeStart, "T1")}, Timeout: int64(pick(0, 0, 30, 60)), Work: rng.IntN(2) == 0,
		Limits: host.Limits{RunEvents: pick(12, 1000, 1000), StreamBytes: pick(20, 1000, 1000), InboxEvents: pick(1, 2, 100), Suspensions: pick(2, 100)},
	}
}

func (p *pair) drawEvent(rng *rand.Rand, types []string) abi.Event {
	ev := abi.Event{Type: types[rng.IntN(len(types))]}
	switch rng.IntN(6) {
	case 0:
	case 1:
		ev.Body, _ = abi.EncodeValue(map[string]any{"i": float64(rng.IntN(3)), "j": "x"})
	default:
		ev.Body, _ = abi.EncodeValue(map[string]any{"i": rng.IntN(3)})
	}
	return ev
}

// drawAttempt draws what an open attempt does next.
func (p *pair) drawAttempt(rng *rand.Rand, id uint64) engine.Tick {
	inv, _ := p.session.Invocation(id)
	g := p.guests[id]
	if g == nil || g.attempt != inv.Attempt {
		next := &guest{attempt: inv.Attempt}
		if g != nil && rng.IntN(4) > 0 {
			next.script = g.made
		}
		g = next
		p.guests[id] = g
	}
	attempt := inv.Attempt
	if rng.IntN(40) == 0 {
		attempt++ // not open
	}
	if g.again != nil {
		return *g.again
	}
	st := modelGraph{p.manifest}.step(inv.Step)
	if rng.IntN(100) < p.mood.finish && len(g.script) == 0 {
		return engine.Finish{Invocation: id, Attempt: attempt, Output: p.drawOutput(rng, st), Fuel: uint64(rng.IntN(5))}
	}
	g.calls++
	c := engine.Call{Invocation: id, Attempt: attempt, N: g.calls}
	if len(g.script) > 0 {
		c.Request, g.script = g.script[0], g.script[1:]
	} else {
		c.Request = p.drawRequest(rng, inv, st, g)
	}
	if _, ok := c.Request.(engine.CommitState); !ok { // its base is of then
		g.made = append(g.made, c.Request)
	}
	return c
}

func (p *pair) drawRequest(rng *rand.Rand, inv engine.Invocation, st *abi.StepDecl, g *guest) engine.Request {
	if rng.IntN(100) < p.mood.wait {
		return p.drawWait(rng, st)
	}
	paths := []string{"a", "m.x", "m.y"}
	switch rng.IntN(9) {
	case 0:
		return engine.EditState{Edits: []abi.Edit{{Op: abi.OpIncrement, Path: paths[rng.IntN(3)], Value: abi.Raw{1}}}}
	case 1: // begin a region, or commit an open one
		if len(g.bases) > 0 && rng.IntN(2) == 0 {
			return p.drawCommit(g)
		}
		p.begin(g, append(paths, "m")[rng.IntN(4)])
		return p.drawCommit(g)
	case 2, 3, 4:
		send := engine.SendEvent{Event: p.drawEvent(rng, p.emittable(rng, st))}
		if rng.IntN(4) == 0 {
			send.Step = append([]string{"nobody"}, p.names...)[rng.IntN(1+len(p.names))]
		}
		return send
	case 5:
		return engine.WriteStream{Event: p.drawEvent(rng, append([]string{"Progress", "Progress", abi.TypeStepFailed}, p.types...))}
	case 6, 7:
		return p.drawCollect(rng, inv)
	}
	return engine.Sleep{Duration: int64(rng.IntN(5))}
}

func (p *pair) drawWait(rng *rand.Rand, st *abi.StepDecl) engine.Request {
	wait := engine.WaitForEvent{ID: pickOf(rng, "w1", "w2", "Answer 1"), Type: "Answer", Timeout: int64(rng.IntN(3) * rng.IntN(5)), Broadcast: rng.IntN(4) == 0}
	if len(st.Waits) > 0 && rng.IntN(8) > 0 {
		wait.Type = st.Waits[rng.IntN(len(st.Waits))]
	}
	if rng.IntN(3) == 0 {
		wait.Requirements, _ = abi.EncodeValue(map[string]any{"i": rng.IntN(3)})
	}
	if rng.IntN(3) == 0 {
		ask := p.drawEvent(rng, []string{"Ask", "Ask", "Ask", "Ask", "Progress", "End", "Nothing", abi.TypeIdle})
		wait.Ask = &ask
	}
	return wait
}

// emittable returns mostly types that the step may send.
func (p *pair) emittable(rng *rand.Rand, st *abi.StepDecl) []string {
	var out []string
	for _, emit := range st.Emits {
		if !emit.List && emit.Types[0] != "End" && emit.Types[0] != abi.TypeStop {
			out = append(out, emit.Types[0])
		}
	}
	if len(out) == 0 || rng.IntN(8) == 0 {
		return append(p.types, abi.TypeStepFailed)
	}
	return out
}

func (p *pair) begin(g *guest, path string) {
	at, err := state.ParsePath(path)
	if err != nil {
		panic(err)
	}
	node, _ := state.Get(p.session.State(), at)
	g.bases = append(g.bases, region{path: path, node: node, was: p.model.part(path)})
}

// drawCommit commits an open region. The new value has new numbers.
func (p *pair) drawCommit(g *guest) engine.Request {
	at, _ := state.ParsePath(g.bases[0].path)
	p.fresh += 1000
	var value *state.Node
	if g.bases[0].path == "m" {
		raw, _ := abi.EncodeValue(map[string]any{"x": p.fresh, "y": p.fresh + 500})
		value, _ = state.Decode(raw)
	} else {
		raw, _ := abi.EncodeValue(p.fresh)
		value, _ = state.Decode(raw)
	}
	return engine.CommitState{Path: at, Base: g.bases[0].node, Value: value}
}

func (p *pair) drawCollect(rng *rand.Rand, inv engine.Invocation) engine.Request {
	ev := p.drawEvent(rng, append([]string{"T1", "Sub", abi.TypeStepFailed, "Nothing"}, p.types...))
	ev.ID = uint64(rng.IntN(2) * rng.IntN(30)) // mostly a forged one
	if len(inv.Trigger) > 0 && rng.IntN(4) > 0 {
		own := inv.Trigger[rng.IntN(len(inv.Trigger))]
		if ev.ID = own.ID; rng.IntN(6) > 0 {
			ev = own
		}
	}
	expected := [][]string{{"T1"}, {"T1", "T1"}, {"T2", "T1"}, {ev.Type}, {ev.Type, ev.Type}, {}}[rng.IntN(6)]
	return engine.CollectEvents{Event: ev, Expected: expected, Buffer: pickOf(rng, "", "b")}
}

func (p *pair) drawOutput(rng *rand.Rand, st *abi.StepDecl) abi.StepOutput {
	var lists []abi.Emit
	var single []string
	for _, emit := range st.Emits {
		if emit.List {
			lists = append(lists, emit)
		} else {
			single = append(single, emit.Types[0])
		}
	}
	pick := rng.IntN(12)
	switch {
	case pick == 0:
		return abi.StepOutput{}
	case rng.IntN(100) < p.mood.fail:
		err := &abi.Error{Code: pickOf(rng, "drawn", "other"), Message: drawnMessage}
		return abi.StepOutput{Err: err}
	case pick <= 7 && len(lists) > 0:
		types := slices.Clone(lists[rng.IntN(len(lists))].Types)
		if types[0] == "T1" {
			types = append(types, "Sub")
		}
		out := abi.StepOutput{List: true}
		for range rng.IntN(5) {
			out.Events = append(out.Events, p.drawEvent(rng, types))
		}
		return out
	case pick == 8:
		return abi.StepOutput{List: rng.IntN(4) == 0, Events: []abi.Event{p.drawEvent(rng, append(p.types, abi.TypeStepFailed))}}
	case pick == 9 && rng.IntN(4) == 0:
		return abi.StepOutput{Events: []abi.Event{{Type: "T1"}, {Type: "T1"}}}
	}
	if len(single) > 1 && rng.IntN(8) > 0 {
		single = single[1:] // not the stop event
	}
	return abi.StepOutput{Events: []abi.Event{p.drawEvent(rng, single)}}
}
