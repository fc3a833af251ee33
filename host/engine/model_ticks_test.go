package engine_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
)

// The effects of ticks in the model. Each method returns an answer as text and the code
// of a refusal, "" for none.

const (
	stale    = "stale"
	conflict = "state conflict"
	unknown  = "unknown run"
)

func (w *model) tick(now int64, t engine.Tick) (answer, refusal string) {
	w.advance(now)
	w.out = nil
	switch t := t.(type) {
	case engine.StartRun:
		return "", w.start(t)
	case engine.PostEvent:
		return w.post(t)
	case engine.Call:
		return w.call(t)
	case engine.Finish:
		return "", w.finish(t)
	case engine.Timer:
		w.fireTimer()
		return "", ""
	case engine.Shift:
		for _, timer := range w.timers {
			if timer.servingTime() && !timer.stopped && !w.rests(timer) {
				timer.at += t.Lost
			}
		}
		return "", ""
	case engine.Extend: // of the timeout that is due
		w.nextTimer().at += t.By
		return "", ""
	case engine.Cancel:
		return "", w.onRun(t.RunID, func(r *modelRun) string {
			w.end(r, "cancelled", "cancelled", abi.TypeWorkflowCancelled, map[string]any{})
			return ""
		})
	case engine.Block:
		return "", w.onRun(t.RunID, func(r *modelRun) string { return w.block(r, t.Reason.Code) })
	case engine.Pause:
		return "", w.onRun(t.RunID, func(r *modelRun) string { w.pause(r); return "" })
	case engine.Resume:
		return "", w.onRun(t.RunID, w.resume)
	}
	panic(fmt.Sprintf("%T", t))
}

func (w *model) onRun(id string, do func(r *modelRun) string) string {
	r := w.run(id)
	if r == nil {
		return unknown
	}
	return do(r)
}

func (w *model) start(t engine.StartRun) string {
	h := w.handlers[t.HandlerID]
	if h != nil && w.run(h.run) != nil || w.run(t.RunID) != nil {
		return string(host.CodeConflict)
	}
	if t.Event.Type != abi.TypeStart {
		return string(host.CodeInvalidArgument)
	}
	if h == nil {
		h = &modelHandler{id: t.HandlerID}
		w.handlers[t.HandlerID] = h
	}
	h.run = t.RunID
	r := &modelRun{
		id: t.RunID, handler: h, limits: t.Limits.Complete(), timeout: t.Timeout, begun: w.now, work: t.Work, status: "running",
		outermost: &modelCollection{}, queues: map[string][]*modelInvocation{}, buffers: map[[2]string][]abi.Event{},
	}
	w.runs = append(w.runs, r)
	if t.Timeout > 0 {
		w.set(&modelTimer{what: "deadline", at: w.now + t.Timeout, run: r})
	}
	r.routed++
	w.route(r, modelEmission{event: clean(t.Event), in: r.outermost})
	w.settle(r, true)
	return ""
}

func clean(ev abi.Event) abi.Event {
	if ev.Body == nil {
		ev.Body = abi.EmptyMap
	}
	ev.ID = 0
	return ev
}

func isRuntime(typ string) bool {
	return slices.Contains([]string{
		"StepStateChanged", "UnhandledEvent", "WorkflowIdleEvent", "WorkflowFailedEvent",
		"WorkflowTimedOutEvent", "WorkflowCancelledEvent", "StepFailedEvent",
	}, typ)
}

func (w *model) post(t engine.PostEvent) (answer, refusal string) {
	r := w.run(t.RunID)
	if r == nil {
		return "", unknown
	}
	kind, known := w.g.kindOf(t.Event.Type)
	st := w.g.step(t.Step)
	switch {
	case !known || kind == abi.KindStart || kind == abi.KindStop:
		return "", string(host.CodeInvalidArgument)
	case t.Step != "" && (st == nil || !w.g.accepts(st, t.Event.Type) && !w.g.waitsFor(st, t.Event.Type)):
		return "", string(host.CodeInvalidArgument)
	case r.routed >= r.limits.RunEvents || w.overflows(r, []abi.Event{clean(t.Event)}, t.Step, r.outermost):
		return "", string(host.CodeLimitExceeded)
	}
	answer = w.deliveryOf(r, clean(t.Event), t.Step)
	r.routed++
	w.route(r, modelEmission{event: clean(t.Event), in: r.outermost, step: t.Step})
	w.settle(r, true)
	return answer, ""
}

// deliveryOf returns how a posted event will be delivered.
func (w *model) deliveryOf(r *modelRun, ev abi.Event, step string) string {
	var to []string
	for _, inv := range w.takersOf(r, ev, step, nil) {
		if !slices.Contains(to, inv.step.Name) {
			to = append(to, inv.step.Name)
		}
	}
	if to != nil {
		return fmt.Sprint(host.DeliveredWaiter, to)
	}
	for i := range w.g.m.Steps {
		st := &w.g.m.Steps[i]
		if (step == "" || step == st.Name) && w.g.accepts(st, ev.Type) && !isCollector(st) {
			to = append(to, st.Name)
		}
	}
	switch {
	case to != nil:
		return fmt.Sprint(host.DeliveredSteps, to)
	case w.keeps(ev.Type, step):
		return fmt.Sprint(host.DeliveredKept, to)
	}
	return fmt.Sprint(host.DeliveredNobody, to)
}

// end ends a run: last is its terminal event.
func (w *model) end(r *modelRun, status, code, last string, body any) {
	w.publish(r, last, body)
	for _, inv := range r.invocations {
		if inv.where == "running" && r.blocked == "" || inv.where == "suspended" || inv.where == "queued" && inv.midway {
			w.say("abandon %d", inv.id)
		}
	}
	w.drop(func(t *modelTimer) bool { return t.run == r })
	r.status, r.code, r.blocked, r.waitingFor = status, code, "", nil
	r.invocations = nil
	w.runs = slices.DeleteFunc(slices.Clone(w.runs), func(o *modelRun) bool { return o == r })
	w.gone = append(w.gone, r)
	w.say("ended %s", r.id)
}

func (w *model) block(r *modelRun, code string) string {
	if r.blocked != "" {
		return stale
	}
	for _, inv := range r.invocations {
		if inv.where == "running" {
			w.say("abandon %d", inv.id)
		}
	}
	for _, t := range w.timers {
		t.stopped = t.stopped || t.run == r
	}
	if !r.paused {
		r.heldAt = w.now
	}
	r.blocked = code
	return ""
}

func (w *model) pause(r *modelRun) {
	if r.paused {
		return
	}
	if r.blocked == "" {
		r.heldAt = w.now
		for _, t := range w.timers {
			t.stopped = t.stopped || t.run == r && t.servingTime()
		}
	}
	r.paused = true
}

func (w *model) resume(r *modelRun) string {
	if !r.held() {
		return string(host.CodeConflict)
	}
	blocked := r.blocked != ""
	r.paused, r.blocked = false, ""
	for _, t := range w.timers {
		if t.run == r && t.stopped {
			if t.stopped = false; t.servingTime() {
				t.at += w.now - r.heldAt
			}
		}
	}
	for _, inv := range r.invocations {
		if inv.where == "running" && blocked {
			w.say("attempt %d", inv.id)
		}
	}
	for i := range w.g.m.Steps {
		w.refill(r, &w.g.m.Steps[i])
	}
	w.settle(r, true)
	return ""
}

// open finds an attempt that is open.
func (w *model) open(id, attempt uint64) *modelInvocation {
	for _, r := range w.runs {
		for _, inv := range r.invocations {
			if inv.id == id && inv.attempt == attempt && inv.where == "running" && r.blocked == "" {
				return inv
			}
		}
	}
	return nil
}

// ---- the end of attempts

func (w *model) finish(t engine.Finish) string {
	inv := w.open(t.Invocation, t.Attempt)
	if inv == nil {
		return stale
	}
	r, out := inv.run, t.Output
	r.fuel += t.Fuel
	if out.Err != nil {
		w.failed(inv, out.Err.Code, out.Err.Message)
		return ""
	}
	if code := w.badOutput(inv, out); code != "" {
		w.failed(inv, code, "")
		return ""
	}
	output := ""
	if len(out.Events) > 0 {
		output = out.Events[0].Type
	} else {
		r.silent = inv.step.Name
	}
	w.leave(inv, output)
	r.steps++
	if kind, _ := w.g.kindOf(output); !out.List && output != "" && kind == abi.KindStop {
		w.end(r, "completed", "", output, clean(out.Events[0]).Body)
		return ""
	}
	if !w.admit(inv, len(out.Events)) {
		return ""
	}
	for _, ev := range out.Events {
		if w.asks(ev) && !w.show(inv, clean(ev)) {
			return ""
		}
	}
	w.refill(r, inv.step)
	w.emit(inv, out)
	w.forget(inv)
	w.settle(r, true)
	return ""
}

func (w *model) asks(ev abi.Event) bool {
	kind, _ := w.g.kindOf(ev.Type)
	return kind == abi.KindInputRequired
}

func (w *model) badOutput(inv *modelInvocation, out abi.StepOutput) string {
	if !out.List && len(out.Events) > 1 || out.List && len(w.g.listsFor(inv.step, out.Events)) == 0 {
		return "invalid_output"
	}
	if !out.List && len(out.Events) == 1 && !w.g.mayEmit(inv.step, out.Events[0].Type) {
		return "invalid_output"
	}
	if w.overflows(inv.run, out.Events, "", w.collectionFor(inv, out)) {
		return host.RunLimitExceeded
	}
	return ""
}

// collectionFor returns the collection of the events in a result.
func (w *model) collectionFor(inv *modelInvocation, out abi.StepOutput) *modelCollection {
	if !out.List {
		return inv.in
	}
	c := &modelCollection{parent: inv.in}
	for i := range w.g.m.Steps {
		st := &w.g.m.Steps[i]
		for _, n := range w.g.listsFor(inv.step, out.Events) {
			if slices.Contains(w.collectors[listEmitOf{inv.step.Name, n}], st.Name) {
				c.collectors = append(c.collectors, &modelCollector{step: st, lineage: inv.lineage})
				break
			}
		}
	}
	return c
}

func (w *model) emit(inv *modelInvocation, out abi.StepOutput) {
	r, in := inv.run, w.collectionFor(inv, out)
	if out.List {
		r.collections = append(r.collections, in)
	}
	for _, ev := range out.Events {
		w.route(r, modelEmission{event: clean(ev), in: in, lineage: inv.lineage, shown: w.asks(ev)})
	}
	if out.List {
		w.closeIfEmpty(r, in)
	}
}

// admit counts events; a run that emits too many fails.
func (w *model) admit(inv *modelInvocation, n int) bool {
	r := inv.run
	if r.routed+n > r.limits.RunEvents {
		w.fail(inv, host.RunLimitExceeded, "")
		return false
	}
	r.routed += n
	return true
}

// show publishes an event of the workflow's own; a run that writes too much fails.
func (w *model) show(inv *modelInvocation, ev abi.Event) bool {
	r := inv.run
	if n := len(ev.Type) + len(ev.Body); r.written+n <= r.limits.StreamBytes {
		r.written += n
		w.publish(r, ev.Type, ev.Body)
		return true
	}
	w.fail(inv, host.RunLimitExceeded, "")
	return false
}

func (w *model) failure(inv *modelInvocation, code, message string) map[string]any {
	return map[string]any{
		"step_name": inv.step.Name, "attempts": int64(inv.attempt), "elapsed_seconds": float64(w.now-inv.start) / 1e9,
		"exception": map[string]any{"exception_type": code, "exception_message": message},
	}
}

func (w *model) fail(inv *modelInvocation, code, message string) {
	w.end(inv.run, "failed", code, abi.TypeWorkflowFailed, w.failure(inv, code, message))
}

// failed ends an attempt that failed.
func (w *model) failed(inv *modelInvocation, code, message string) {
	r, catcher := inv.run, w.g.catcherOf(inv.step)
	delay, again := retries(inv, code, message, w.now)
	w.leave(inv, "")
	if again {
		inv.attempt++
		inv.lastErr, inv.where, inv.slept, inv.fresh = code, "due later", 0, 0
		for _, wait := range inv.waits {
			wait.late = 0
		}
		w.set(&modelTimer{what: "retry", at: w.now + delay, run: r, inv: inv})
		w.stand(inv)
		w.refill(r, inv.step)
		w.settle(r, true)
		return
	}
	r.steps++
	if catcher == nil || inv.lineage[catcher.Name] >= recoveries(catcher) {
		w.fail(inv, code, message)
		return
	}
	w.refill(r, inv.step)
	body := w.failure(inv, code, message)
	body["input_event"] = inputOf(inv)
	raw, err := abi.EncodeValue(body)
	if err != nil {
		panic(err)
	}
	w.events++
	lineage := merged(inv.lineage, map[string]uint64{catcher.Name: inv.lineage[catcher.Name] + 1})
	w.invoke(r, catcher, []abi.Event{{Type: abi.TypeStepFailed, ID: w.events, Body: raw}}, inv.in, lineage)
	w.forget(inv)
	w.settle(r, true)
}

func recoveries(st *abi.StepDecl) uint64 {
	if st.MaxRecoveries == nil {
		return 1
	}
	return *st.MaxRecoveries
}

// inputOf returns the trigger in the form of a failure.
func inputOf(inv *modelInvocation) any {
	var all []any
	for _, ev := range inv.trigger {
		all = append(all, map[string]any{"type": ev.Type, "value": ev.Body})
	}
	if isJoin(inv.step) || isCollector(inv.step) {
		return append([]any{}, all...)
	}
	return all[0]
}

// retries evaluates the policies that the generator draws.
func retries(inv *modelInvocation, code, message string, now int64) (delay int64, again bool) {
	p := inv.step.Retry
	if p == nil {
		return 0, false
	}
	attempts := uint64(3)
	if p.Stop != nil && p.Stop.Attempts != nil {
		attempts = *p.Stop.Attempts
	}
	if p.Stop != nil && p.Stop.Delay != nil {
		attempts = inv.attempt + 1
		if now-inv.start >= int64(*p.Stop.Delay) {
			attempts = 0
		}
	}
	switch {
	case inv.attempt >= attempts:
		return 0, false
	case p.When != nil && p.When.Never:
		return 0, false
	case p.When != nil && p.When.Codes != nil && !slices.Contains(p.When.Codes, code):
		return 0, false
	case p.When != nil && p.When.Not != nil && slices.Contains(p.When.Not.Codes, code):
		return 0, false
	case p.When != nil && p.When.Message != nil && !strings.Contains(message, *p.When.Message):
		return 0, false
	case p.Wait == nil:
		return 5e9, true
	case p.Wait.Incrementing != nil:
		rule := p.Wait.Incrementing
		return min(int64(rule[0])+int64(rule[1])*int64(inv.attempt-1), int64(rule[2])), true
	}
	return int64(*p.Wait.Fixed), true
}

func (w *model) fireTimer() {
	t := w.nextTimer()
	if t == nil || t.at > w.now {
		return
	}
	w.drop(func(o *modelTimer) bool { return o == t })
	switch t.what {
	case "deadline":
		var active []any
		for i := range w.g.m.Steps {
			if slices.ContainsFunc(t.run.invocations, func(inv *modelInvocation) bool {
				return inv.step == &w.g.m.Steps[i] && (inv.where == "running" || inv.where == "suspended")
			}) {
				active = append(active, w.g.m.Steps[i].Name)
			}
		}
		w.end(t.run, "failed", host.RunTimeout, abi.TypeWorkflowTimedOut,
			map[string]any{"timeout": float64(t.run.timeout) / 1e9, "active_steps": append([]any{}, active...)})
		return
	case "attempt":
		w.say("abandon %d", t.inv.id)
		w.failed(t.inv, host.RunTimeout, "")
		return
	case "sleep":
		t.inv.slept = t.inv.suspendedAt
		w.wake(t.inv)
	case "wait":
		t.inv.waiting.late = t.inv.suspendedAt
		w.wake(t.inv)
	case "retry":
		w.seatOrQueue(t.inv)
	}
	w.settle(t.run, false)
}
