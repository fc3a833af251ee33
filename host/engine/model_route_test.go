package engine_test

import (
	"math"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
)

// takersOf finds the waits for an event: all broadcast waits, and the oldest of the
// others, oldest first.
func (w *model) takersOf(r *modelRun, ev abi.Event, step string, but []*modelInvocation) []*modelInvocation {
	var waiting []*modelInvocation
	for _, inv := range r.invocations {
		wait := inv.waiting
		if wait == nil || step != "" && inv.step.Name != step || slices.Contains(but, inv) {
			continue
		}
		fits := ev.Type == wait.typ || inv.step.AcceptSubtypes && w.g.isA(ev.Type, wait.typ)
		if fits && meets(ev, wait.need) {
			waiting = append(waiting, inv)
		}
	}
	slices.SortFunc(waiting, func(a, b *modelInvocation) int { return int(a.waiting.order) - int(b.waiting.order) })
	var out []*modelInvocation
	for i, inv := range waiting {
		if i == 0 || inv.waiting.broadcast {
			out = append(out, inv)
		}
	}
	return out
}

func meets(ev abi.Event, need map[string]any) bool {
	v, err := abi.DecodeValue(ev.Body)
	body, _ := v.(map[string]any)
	for field, want := range need {
		got, has := body[field]
		if err != nil || !has || number(got) != number(want) {
			return false
		}
	}
	return true
}

// number makes equal numbers identical: 1 and 1.0.
func number(v any) any {
	if f, ok := v.(float64); ok && f == math.Trunc(f) {
		return int64(f)
	}
	return v
}

// keeps reports whether some step may wait for such an event later.
func (w *model) keeps(typ, step string) bool {
	for i := range w.g.m.Steps {
		st := &w.g.m.Steps[i]
		if (step == "" || st.Name == step) && w.g.waitsFor(st, typ) {
			return true
		}
	}
	return false
}

func (w *model) route(r *modelRun, e modelEmission) {
	w.events++
	e.event.ID = w.events
	if takers := w.takersOf(r, e.event, e.step, nil); len(takers) > 0 {
		for _, inv := range takers {
			inv.waiting.answer = &e.event
			w.wake(inv)
		}
		return
	}
	taken := false
	for i := range w.g.m.Steps {
		st := &w.g.m.Steps[i]
		if (e.step == "" || e.step == st.Name) && w.g.accepts(st, e.event.Type) {
			taken = w.deliver(r, st, e) || taken
		}
	}
	switch {
	case taken:
	case w.keeps(e.event.Type, e.step):
		r.inbox = append(r.inbox, e)
	case !e.shown:
		r.unhandled = append(r.unhandled, e)
	}
}

func (w *model) deliver(r *modelRun, st *abi.StepDecl, e modelEmission) bool {
	switch {
	case isJoin(st):
		w.join(r, st, e)
		return true
	case !isCollector(st):
		w.invoke(r, st, []abi.Event{e.event}, e.in, e.lineage)
		return true
	}
	k := e.in.collector(st)
	if k == nil {
		return false
	}
	if k.fired {
		return true // after take(n): dropped
	}
	k.events = append(k.events, e.event)
	k.lineage = merged(k.lineage, e.lineage)
	if st.Accepts[0].Take > 0 && uint64(len(k.events)) == st.Accepts[0].Take {
		w.fire(r, e.in, k)
	}
	return true
}

func (c *modelCollection) collector(st *abi.StepDecl) *modelCollector {
	for _, k := range c.collectors {
		if k.step == st {
			return k
		}
	}
	return nil
}

// join puts an event into the emptiest slot that takes it; when each has one,
// the oldest of each is a trigger.
func (w *model) join(r *modelRun, st *abi.StepDecl, e modelEmission) {
	if e.in.joins == nil {
		e.in.joins = map[string][][]modelEmission{}
	}
	slots := e.in.joins[st.Name]
	if slots == nil {
		slots = make([][]modelEmission, len(st.Accepts))
	}
	best := -1
	for i, slot := range st.Accepts {
		if w.g.slotTakes(st, slot, e.event.Type) && (best < 0 || len(slots[i]) < len(slots[best])) {
			best = i
		}
	}
	slots[best] = append(slots[best], e)
	e.in.joins[st.Name] = slots
	for _, slot := range slots {
		if len(slot) == 0 {
			return
		}
	}
	var trigger []abi.Event
	var lineage map[string]uint64
	for i := range slots {
		trigger = append(trigger, slots[i][0].event)
		lineage = merged(lineage, slots[i][0].lineage)
		slots[i] = slots[i][1:]
	}
	w.invoke(r, st, trigger, e.in, lineage)
}

// overflows reports whether keeping some of these events would exceed the limit of the
// inbox.
func (w *model) overflows(r *modelRun, events []abi.Event, step string, in *modelCollection) bool {
	kept := len(r.inbox)
	var served []*modelInvocation
	for _, ev := range events {
		if takers := w.takersOf(r, ev, step, served); len(takers) > 0 {
			served = append(served, takers...)
			continue
		}
		taken := false
		for i := range w.g.m.Steps {
			st := &w.g.m.Steps[i]
			if (step == "" || step == st.Name) && w.g.accepts(st, ev.Type) {
				taken = taken || !isCollector(st) || in.collector(st) != nil
			}
		}
		if !taken && w.keeps(ev.Type, step) {
			kept++
		}
	}
	return kept > len(r.inbox) && kept > r.limits.InboxEvents
}

// settle applies the effects of a tick to a run that continues.
func (w *model) settle(r *modelRun, mayBeIdle bool) {
	if !slices.Contains(w.runs, r) {
		return
	}
	idle := w.idle(r)
	for _, e := range r.unhandled {
		name := w.g.m.Workflow + "." + e.event.Type
		if _, base := abi.BaseKinds[e.event.Type]; base {
			name = "workflows.events." + e.event.Type
		}
		var step any
		if e.step != "" {
			step = e.step
		}
		w.publish(r, abi.TypeUnhandled, map[string]any{"idle": idle, "step_name": step, "event_type": e.event.Type, "qualified_name": name})
	}
	r.unhandled = nil
	if len(r.invocations) == 0 && !w.g.fed() {
		step := r.silent
		if step == "" {
			step = r.last
		}
		w.end(r, "failed", host.RunStalled, abi.TypeWorkflowFailed, map[string]any{
			"step_name": step, "attempts": int64(0), "elapsed_seconds": float64(w.now-r.begun) / 1e9,
			"exception": map[string]any{"exception_type": host.RunStalled, "exception_message": ""},
		})
		return
	}
	if mayBeIdle && idle && !r.held() {
		w.publish(r, abi.TypeIdle, map[string]any{})
	}
}

// keeps returns the inbox in the form of the record.
func (r *modelRun) keeps() []host.Kept {
	var out []host.Kept
	if r.status != "running" {
		return nil
	}
	for _, e := range r.inbox {
		out = append(out, host.Kept{Type: e.event.Type, Step: e.step})
	}
	slices.SortStableFunc(out, func(a, b host.Kept) int { return strings.Compare(a.Type, b.Type) })
	return out[:min(len(out), engine.MaxWaitingFor)]
}

// timerOf returns when one of the timers of an invocation is due.
func (w *model) timerOf(inv *modelInvocation, what ...string) int64 {
	for _, t := range w.timers {
		if t.inv == inv && slices.Contains(what, t.what) {
			return t.at
		}
	}
	return 0
}

// idle reports whether only the outside can continue the run.
func (w *model) idle(r *modelRun) bool {
	for _, inv := range r.invocations {
		if inv.waiting == nil {
			return false
		}
	}
	return true
}

// waitingNow returns what a run waits for in the form of the record.
func (w *model) waitingNow(r *modelRun) []host.Waiting {
	var waits []*modelInvocation
	for _, inv := range r.invocations {
		if inv.where == "suspended" || inv.where == "due later" {
			waits = append(waits, inv)
		}
	}
	slices.SortFunc(waits, func(a, b *modelInvocation) int { return int(a.stood) - int(b.stood) })
	var out []host.Waiting
	for _, inv := range waits {
		wait := host.Waiting{Step: inv.step.Name, Since: inv.since}
		if inv.waiting != nil {
			wait.Type, wait.WaiterID, wait.Requirements = inv.waiting.typ, inv.waiting.id, inv.waiting.shown
			if strings.HasPrefix(wait.WaiterID, wait.Type+" ") {
				wait.WaiterID = ""
			}
		} else {
			wait.Until = w.timerOf(inv, "sleep", "retry")
		}
		if inv.where == "due later" {
			wait.Reason = host.WaitsForRetry
		}
		out = append(out, wait)
	}
	if w.idle(r) {
		for i := range w.g.m.Steps {
			for _, typ := range w.g.allTypes() {
				if kind, _ := w.g.kindOf(typ); kind != abi.KindHumanResponse || !w.g.accepts(&w.g.m.Steps[i], typ) {
					continue
				}
				wait := host.Waiting{Step: w.g.m.Steps[i].Name, Type: typ, Since: w.now}
				for _, before := range r.waitingFor {
					if before.WaiterID == "" && before.Step == wait.Step && before.Type == typ {
						wait.Since = before.Since
					}
				}
				out = append(out, wait)
			}
		}
	}
	return out[:min(len(out), engine.MaxWaitingFor)]
}
