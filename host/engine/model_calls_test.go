package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
)

func (w *model) call(t engine.Call) (answer, refusal string) {
	inv := w.open(t.Invocation, t.Attempt)
	if inv == nil {
		return "", stale
	}
	switch req := t.Request.(type) {
	case engine.EditState:
		return w.increment(req.Edits[0].Path)
	case engine.SendEvent:
		return "", w.send(inv, req)
	case engine.WriteStream:
		return w.write(inv, req)
	case engine.CollectEvents:
		return w.collect(inv, req)
	case engine.WaitForEvent:
		return w.waitFor(inv, t.N, req)
	case engine.Sleep:
		return w.sleep(inv, t.N, req)
	}
	panic(fmt.Sprintf("%T", t.Request))
}

func (w *model) increment(path string) (answer, refusal string) {
	w.state[path]++
	return fmt.Sprint(w.state[path]), ""
}

// part returns the values of the state at a path and below.
func (w *model) part(path string) map[string]int64 {
	out := map[string]int64{}
	for at, n := range w.state {
		if at == path || strings.HasPrefix(at, path+".") {
			out[at] = n
		}
	}
	return out
}

// commit replaces the values at a path and below, if they have not changed since. Numbers
// only grow, so equal values have not changed.
func (w *model) commit(path string, was, now map[string]int64) string {
	if !maps.Equal(w.part(path), was) {
		return conflict
	}
	for at := range was {
		delete(w.state, at)
	}
	maps.Copy(w.state, now)
	return ""
}

func (w *model) send(inv *modelInvocation, req engine.SendEvent) string {
	typ, r := req.Event.Type, inv.run
	kind, known := w.g.kindOf(typ)
	to := w.g.step(req.Step)
	switch {
	case isRuntime(typ):
		return "permission_denied"
	case known && (kind == abi.KindStop || kind == abi.KindStart):
		return "failed_precondition"
	case !w.g.mayEmit(inv.step, typ):
		return "invalid_output"
	case req.Step != "" && to == nil:
		return "not_found"
	case req.Step != "" && !w.g.accepts(to, typ) && !w.g.waitsFor(to, typ):
		return "failed_precondition"
	case w.overflows(r, []abi.Event{clean(req.Event)}, req.Step, inv.in):
		return host.RunLimitExceeded
	}
	ev := clean(req.Event)
	if !w.admit(inv, 1) || w.asks(ev) && !w.show(inv, ev) {
		return ""
	}
	w.route(r, modelEmission{event: ev, in: inv.in, lineage: inv.lineage, step: req.Step, shown: w.asks(ev)})
	w.settle(r, false)
	return ""
}

func (w *model) write(inv *modelInvocation, req engine.WriteStream) (answer, refusal string) {
	kind, known := w.g.kindOf(req.Event.Type)
	switch {
	case isRuntime(req.Event.Type):
		return "", "permission_denied"
	case !known:
		return "", "invalid_output"
	case kind == abi.KindStop:
		return "warning", ""
	}
	w.show(inv, clean(req.Event))
	return "", ""
}

func (w *model) sleep(inv *modelInvocation, n uint64, req engine.Sleep) (answer, refusal string) {
	switch {
	case req.Duration <= 0 || inv.slept == n:
		return "", ""
	case inv.suspensions >= inv.run.limits.Suspensions:
		return "", host.RunLimitExceeded
	}
	w.set(&modelTimer{what: "sleep", at: w.now + req.Duration, run: inv.run, inv: inv})
	w.suspend(inv, n, nil)
	w.settle(inv.run, false)
	return "suspended", ""
}

func (w *model) waitFor(inv *modelInvocation, n uint64, req engine.WaitForEvent) (answer, refusal string) {
	if !slices.Contains(inv.step.Waits, req.Type) {
		return "", "failed_precondition"
	}
	var wait *modelWait
	for _, before := range inv.waits {
		if before.id == req.ID {
			wait = before
		}
	}
	switch {
	case wait != nil && wait.typ != req.Type:
		return "", "failed_precondition"
	case wait != nil && wait.answer != nil:
		return showEvent(*wait.answer), ""
	case wait != nil && wait.late == n:
		return "", "timeout"
	}
	ask := req.Ask != nil && (wait == nil || !wait.asked)
	if ask {
		kind, known := w.g.kindOf(req.Ask.Type)
		switch {
		case isRuntime(req.Ask.Type):
			return "", "permission_denied"
		case !known:
			return "", "invalid_output"
		case kind == abi.KindStop || kind == abi.KindStart:
			return "", "failed_precondition"
		}
	}
	need := map[string]any{}
	if v, err := abi.DecodeValue(req.Requirements); err == nil && req.Requirements != nil {
		need = v.(map[string]any)
	}
	found := w.inInbox(inv, req.Type, need)
	if found < 0 && inv.suspensions >= inv.run.limits.Suspensions {
		return "", host.RunLimitExceeded
	}
	if wait == nil {
		wait = &modelWait{id: req.ID, typ: req.Type}
		inv.waits = append(inv.waits, wait)
	}
	return w.ask(inv, n, req, wait, ask, need, found), ""
}

// inInbox finds the oldest kept event that fits a wait; -1: none.
func (w *model) inInbox(inv *modelInvocation, typ string, need map[string]any) int {
	return slices.IndexFunc(inv.run.inbox, func(e modelEmission) bool {
		fits := e.event.Type == typ || inv.step.AcceptSubtypes && w.g.isA(e.event.Type, typ)
		return fits && (e.step == "" || e.step == inv.step.Name) && meets(e.event, need)
	})
}

// ask begins a wait that is not refused; found is the event of the inbox that answers it
// at once.
func (w *model) ask(inv *modelInvocation, n uint64, req engine.WaitForEvent, wait *modelWait, ask bool, need map[string]any, found int) string {
	r := inv.run
	answer := "suspended"
	if found >= 0 {
		answer = showEvent(r.inbox[found].event)
	}
	if ask {
		if wait.asked = true; !w.show(inv, clean(*req.Ask)) {
			return answer
		}
	}
	if found >= 0 {
		wait.answer = &r.inbox[found].event
		r.inbox = slices.Delete(slices.Clone(r.inbox), found, found+1)
		return answer
	}
	w.waits++
	wait.shown = ""
	if len(need) > 0 {
		wait.shown = fmt.Sprintf(`{"i":%v}`, need["i"])
	}
	wait.order, wait.since, wait.broadcast, wait.need = w.waits, w.now, req.Broadcast, need
	if req.Timeout > 0 {
		w.set(&modelTimer{what: "wait", at: w.now + req.Timeout, run: r, inv: inv})
	}
	w.suspend(inv, n, wait)
	w.settle(r, true)
	return answer
}

func (w *model) collect(inv *modelInvocation, req engine.CollectEvents) (answer, refusal string) {
	r := inv.run
	var own *abi.Event
	for _, ev := range inv.trigger {
		if ev.ID == req.Event.ID && ev.ID != 0 {
			own = &ev
		}
	}
	if own == nil || own.Type != req.Event.Type {
		if isRuntime(req.Event.Type) {
			return "", "permission_denied"
		}
		if _, known := w.g.kindOf(req.Event.Type); !known {
			return "", "invalid_output"
		}
	}
	ev := req.Event
	if ev.Body == nil {
		ev.Body = abi.EmptyMap
	}
	id := modelCollect{buffer: req.Buffer, fresh: inv.fresh + 1}
	if own != nil {
		id = modelCollect{buffer: req.Buffer, given: own.ID}
	}
	var call *modelCollect
	for _, before := range inv.collects {
		if before.buffer == id.buffer && before.given == id.given && before.fresh == id.fresh {
			call = before
		}
	}
	at := [2]string{inv.step.Name, req.Buffer}
	if call == nil {
		if own == nil && r.routed >= r.limits.RunEvents {
			return "", host.RunLimitExceeded
		}
		call = &id
		inv.collects = append(inv.collects, call)
		if ev.ID = id.given; own == nil {
			w.events++
			r.routed++
			ev.ID = w.events
		}
		r.buffers[at] = append(r.buffers[at], ev)
	}
	if own == nil {
		inv.fresh++
	}
	for _, set := range call.sets {
		if slices.Equal(set.expected, req.Expected) {
			return "collected" + showEvents(set.events), ""
		}
	}
	set, rest := pick(r.buffers[at], req.Expected)
	if len(set) < len(req.Expected) {
		return "", ""
	}
	r.buffers[at] = rest
	call.sets = append(call.sets, modelSet{req.Expected, set})
	return "collected" + showEvents(set), ""
}

// pick takes the oldest event of each expected type.
func pick(events []abi.Event, expected []string) (set, rest []abi.Event) {
	rest = slices.Clone(events)
	for _, typ := range expected {
		i := slices.IndexFunc(rest, func(ev abi.Event) bool { return ev.Type == typ })
		if i < 0 {
			return nil, events
		}
		set = append(set, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	return set, rest
}

func showEvent(ev abi.Event) string { return fmt.Sprintf(" %s#%d%v", ev.Type, ev.ID, normal(ev.Body)) }

func showEvents(events []abi.Event) string {
	var b strings.Builder
	for _, ev := range events {
		b.WriteString(showEvent(ev))
	}
	return b.String()
}
