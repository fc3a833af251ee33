package engine

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
)

// Dump returns everything that the session holds as canonical text. Sessions that behave
// alike have equal dumps. Dump is for tests and for people, and the form may change.
func (s *Session) Dump() string {
	d := &dumper{}
	d.line("session %s/%s seq=%d now=%d", s.key.Tenant, s.key.Session, s.seq, s.now)
	d.line("last event=%d invocation=%d timer=%d collection=%d seat=%d wait=%d", s.lastEvent, s.lastInvocation, s.lastTimer, s.lastCollection, s.lastSeat, s.lastWait)
	d.line("seats=%d wake=%d", s.seats, s.WakeAt())
	if s.lastCall > 0 {
		d.line("last call=%d", s.lastCall)
	}
	if s.lastMessage > 0 {
		d.line("last message=%d", s.lastMessage)
	}
	d.line("state %s", showRaw(s.root.Encode()))
	for _, r := range s.ran {
		d.line("ran %s version=%s", r.workflow, r.version)
	}
	for _, id := range sortedKeys(s.handlers) {
		h := s.handlers[id]
		d.line("handler %s run=%s next=%d", id, h.run, h.next)
	}
	for _, id := range sortedKeys(s.runs) {
		d.run(s.runs[id])
	}
	for at := s.turns.line.Front(); at != nil; at = at.Next() {
		q := at.Value.(*queued)
		d.line("queued %s handler=%s workflow=%s version=%s since=%d%s%s", q.rec.RunID, q.rec.HandlerID, q.rec.Workflow, q.start.Version, q.rec.Started, ofWork(q.start.Work), showEvents([]abi.Event{q.start.Event}))
	}
	timers := slices.Clone(s.timers.heap)
	slices.SortFunc(timers, func(a, b *timer) int {
		if timerHeap([]*timer{a, b}).Less(0, 1) {
			return -1
		}
		return 1
	})
	for _, t := range timers {
		d.line("timer %d %s run=%s at=%d span=%d%s", t.id, t.kind, t.run.rec.RunID, t.at, t.span, owner(t))
	}
	for _, id := range sortedKeys(s.children) {
		c := s.children[id]
		d.line("child %s of invocation %d, %s", id, c.inv.id, c.show())
	}
	for _, id := range s.OutCalls() {
		d.line("call of invocation %d %s", id, s.calls[id].show())
	}
	for _, to := range s.MailTo() {
		for _, m := range s.outbox.byTarget[to] {
			d.line("message %d to %s %s", m.ID, to, m.show())
		}
	}
	if s.ended.RunID != "" {
		d.line("ended %s", s.ended.RunID)
		d.record(s.ended)
	}
	return d.b.String()
}

// where shows requirements, if there are any.
func where(requirements string) string {
	if requirements == "" {
		return ""
	}
	return " where " + requirements
}

// ofWork marks a timeout that counts only open attempts.
func ofWork(is bool) string {
	if is {
		return " of work"
	}
	return ""
}

func owner(t *timer) string {
	if t.inv == nil {
		return ""
	}
	return fmt.Sprintf(" invocation=%d", t.inv.id)
}

type dumper struct{ b strings.Builder }

func (d *dumper) line(format string, args ...any) { fmt.Fprintf(&d.b, format+"\n", args...) }

func (d *dumper) run(r *run) {
	d.line("run %s handler=%s version=%s", r.rec.RunID, r.handler.id, r.rec.Version)
	d.record(r.rec)
	d.line("  routed=%d stream=%d alive=%d seed=%x", r.routed, r.streamBytes, r.alive, r.seed[:4])
	if p := r.parent; p != nil {
		d.line("  parent in %s stream=%t shown=%d depth=%d age=%d", p.session, p.stream, p.shown, p.depth, r.age)
	}
	d.limits(r.limits)
	if r.held() {
		d.line("  held since=%d", r.heldAt)
	}
	if r.begun != r.rec.Started {
		d.line("  begun=%d", r.begun)
	}
	if !r.stalls {
		d.line("  stays when nothing is left to do")
	}
	if r.silent != "" {
		d.line("  silent=%s", r.silent)
	}
	if e := r.ending; e != nil {
		d.line("  ending by %s span=%d active=%v", e.cause, e.span, e.active)
	}
	if t := r.deadline; t != nil {
		d.line("  deadline%s", t.show())
		if r.work {
			d.line("  deadline of work seated=%d", r.seated)
		}
		if t.slot < 0 {
			d.line("  stopped since=%d", r.stopped)
		}
	}
	for i := range r.pools {
		d.pool(r.graph.steps[i], &r.pools[i])
	}
	d.collection(r.outermost)
	for _, id := range sortedKeys(r.collections) {
		d.collection(r.collections[id])
	}
	var keys []bufferKey
	for k := range r.buffers {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b bufferKey) int {
		if a.step != b.step {
			return a.step - b.step
		}
		return strings.Compare(a.name, b.name)
	})
	for _, k := range keys {
		d.line("  buffer %s %q%s", r.graph.steps[k.step].name, k.name, r.buffers[k].show())
	}
	for _, typ := range sortedKeys(r.inbox.byType) {
		for _, e := range r.inbox.byType[typ] {
			d.line("  kept%s to=%q%s", showEvents([]abi.Event{e.event}), e.step, e.lineage.show())
		}
	}
	for inv := r.oldest; inv != nil; inv = inv.newer {
		d.invocation(inv)
	}
}

// record shows the record of a run.
func (d *dumper) record(r host.Run) {
	d.line("  handler=%s workflow=%s %s steps=%d fuel=%d started=%d updated=%d", r.HandlerID, r.Workflow, r.Status, r.Steps, r.Fuel, r.Started, r.Updated)
	if r.Completed != 0 {
		d.line("  completed=%d error=%q code=%q step=%q attempt=%d", r.Completed, r.Error, r.ErrorCode, r.ErrorStep, r.ErrorAttempt)
	}
	if ev := r.Result; ev != nil {
		d.line("  result %d run=%s %s types=%v internal=%t terminal=%t %s", ev.Seq, ev.RunID, ev.QualifiedName(), ev.Types, ev.Internal, ev.Terminal, showRaw(ev.Body))
	}
	if r.ParentRun+r.ParentStep != "" {
		d.line("  child of %s step=%s", r.ParentRun, r.ParentStep)
	}
	if r.ForkedFrom != "" || r.ForkedAt != 0 {
		d.line("  fork of %s at %d", r.ForkedFrom, r.ForkedAt)
	}
	if r.RetriedFrom != "" {
		d.line("  retry of %s", r.RetriedFrom)
	}
	if r.Paused {
		d.line("  paused")
	}
	if b := r.Blocked; b != nil {
		d.line("  blocked %s %q", b.Code, b.Message)
	}
	for _, k := range r.Kept {
		d.line("  keeps %s for=%q", k.Type, k.Step)
	}
	for _, w := range r.WaitingFor {
		d.line("  waits step=%s for=%s id=%q child=%s resource=%s until=%d reason=%q since=%d%s", w.Step, w.Type, w.WaiterID, w.Child, w.Resource, w.Until, w.Reason, w.Since, where(w.Requirements))
	}
}

// limits shows the limits that differ from their defaults.
func (d *dumper) limits(l host.Limits) {
	got, usual := reflect.ValueOf(l), reflect.ValueOf(limit.Default())
	for f, v := range got.Fields() {
		if !v.Equal(usual.FieldByIndex(f.Index)) {
			d.line("  limit %s=%v", f.Name, v)
		}
	}
}

func (t *timer) show() string {
	return fmt.Sprintf(" timer=%d at=%d span=%d armed=%t", t.id, t.at, t.span, t.slot >= 0)
}

func (d *dumper) pool(st *step, p *pool) {
	if p.busy == 0 && p.first == nil {
		return
	}
	var queue []uint64
	for inv := p.first; inv != nil; inv = inv.behind {
		queue = append(queue, inv.id)
	}
	d.line("  step %s busy=%d queue=%v", st.name, p.busy, queue)
}

func (d *dumper) collection(c *collection) {
	parent := "none"
	if c.parent != nil {
		parent = fmt.Sprint(c.parent.id)
	}
	d.line("  collection %d parent=%s alive=%d", c.id, parent, c.alive)
	for i := range c.collectors {
		k := &c.collectors[i]
		d.line("    collector %s fired=%t%s%s", k.step.name, k.fired, showEvents(k.events), k.lineage.show())
	}
	for _, index := range sortedKeys(c.joins) {
		j := c.joins[index]
		if j.ready == 0 {
			continue
		}
		var b strings.Builder
		for _, slot := range j.slots {
			b.WriteString(" [")
			for _, e := range slot {
				b.WriteString(showEvents([]abi.Event{e.event}) + e.lineage.show())
			}
			b.WriteString(" ]")
		}
		d.line("    join %d%s", index, b.String())
	}
}

func (d *dumper) invocation(inv *invocation) {
	d.line("  invocation %d step=%s %s attempt=%d in=%d%s%s", inv.id, inv.step.name, inv.phase, inv.attempt, inv.in.id, showEvents(inv.trigger), inv.lineage.show())
	if inv.began {
		d.line("    start=%d worker=%d seat=%d", inv.start, inv.worker, inv.seat)
	}
	if inv.line != nil {
		d.line("    stands still since=%d", inv.since)
	}
	if inv.halfway {
		d.line("    goes on")
	}
	if inv.timer != nil {
		d.line("   %s", inv.timer.show())
	}
	if on := inv.suspended; on != nil {
		what := ""
		if on.child != nil {
			what = " for " + on.child.run
		}
		if on.call != nil {
			what = " for " + on.call.part.Resource
		}
		d.line("    suspended at call %d%s", on.n, what)
		if on.timer != nil {
			d.line("     %s", on.timer.show())
		}
	}
	if inv.suspensions > 0 {
		d.line("    suspensions=%d slept=%d", inv.suspensions, inv.slept)
	}
	for _, id := range sortedKeys(inv.waiters) {
		d.waiter(inv.waiters[id])
	}
	for _, key := range sortedKeys(inv.children) {
		d.line("    child %s %s", key, inv.children[key].show())
	}
	for _, id := range sortedKeys(inv.asked) {
		d.line("    called %s %s", id, inv.asked[id].show())
	}
	if inv.askedBytes > 0 {
		d.line("    asked=%d bytes", inv.askedBytes)
	}
	if inv.lastErr != nil {
		d.line("    error %s", inv.lastErr)
	}
	if inv.calls.fresh > 0 {
		d.line("    fresh=%d", inv.calls.fresh)
	}
	var keys []collectKey
	for k := range inv.calls.made {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b collectKey) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	for _, k := range keys {
		d.line("    collected %q given=%d fresh=%d", k.buffer, k.given, k.fresh)
		for _, set := range inv.calls.made[k].sets {
			d.line("      %v%s", set.expected, showEvents(set.events))
		}
	}
}

func (d *dumper) waiter(w *waiter) {
	d.line("    wait %s for %s asked=%t broadcast=%t late=%d seq=%d since=%d", w.id, w.typ, w.asked, w.broadcast, w.late, w.seq, w.since)
	if w.need != "" {
		d.line("      needs %s", w.need)
	}
	if w.shape != nil {
		d.line("      compares %q with %x", w.shape.fields, w.values)
	}
	if w.answer != nil {
		d.line("      answer%s", showEvents([]abi.Event{*w.answer}))
	}
}

func (c *child) show() string {
	out := fmt.Sprintf("%q %s run=%s handler=%s session=%q begun=%t stream=%t seen=%d since=%d", c.key, c.workflow, c.run, c.handler, c.session, c.begun, c.stream, c.seen, c.since)
	if p := c.start; p != nil {
		out += fmt.Sprintf(" begins handler=%s version=%s timeout=%d%s%s seed=%x parent=%+v age=%d", p.HandlerID, p.Version, p.Timeout, ofWork(p.Work), showEvents([]abi.Event{p.Event}), p.Seed[:4], *p.Parent, p.Age)
	}
	switch {
	case c.result != nil:
		out += " result" + showEvents([]abi.Event{*c.result})
	case c.err != nil:
		out += " " + c.err.Error()
	}
	return out
}

func (c *outcall) show() string {
	out := fmt.Sprintf("%d %s %s ordinal=%d mode=%s at %d/%d key=%s", c.order, c.part.Resource, c.part.Method, c.part.Ordinal, c.part.Mode, c.attempt, c.n, c.key())
	if c.streamed > 0 || c.hash != [32]byte{} {
		out += fmt.Sprintf(" streamed=%d %x", c.streamed, c.hash)
	}
	switch {
	case c.err != nil:
		return out + " " + c.err.Error()
	case c.value != nil:
		return out + " " + showRaw(c.value)
	}
	return out + " payload " + showRaw(c.part.Payload)
}

func (m *Message) show() string {
	switch {
	case m.Start != nil:
		return fmt.Sprintf("start %s handler=%s version=%s timeout=%d%s%s seed=%x parent=%+v age=%d", m.Start.RunID, m.Start.HandlerID, m.Start.Version, m.Start.Timeout, ofWork(m.Start.Work), showEvents([]abi.Event{m.Start.Event}), m.Start.Seed[:4], *m.Start.Parent, m.Start.Age)
	case m.Ended != nil:
		return "ended " + m.Ended.show()
	case m.Shown != nil:
		return fmt.Sprintf("shown %s %d %s.%s base=%t types=%v%s", m.Shown.RunID, m.Shown.Seq, m.Shown.Workflow, m.Shown.Type, m.Shown.Base, m.Shown.Types, showRaw(m.Shown.Body))
	}
	return "cancel " + m.Cancel
}

func (c *ChildEnd) show() string {
	if c.Err != nil {
		return c.RunID + " " + c.Err.Error()
	}
	return c.RunID + showEvents([]abi.Event{*c.Result})
}

func (p phase) String() string {
	return [...]string{phaseQueued: "queued", phaseRunning: "running", phaseWaiting: "waiting", phaseSuspended: "suspended"}[p]
}

func (l lineage) show() string {
	if len(l) == 0 {
		return ""
	}
	return fmt.Sprintf(" recovered=%v", []recovery(l))
}

// show lists the buffered events by type, in the order of arrival.
func (b *buffer) show() string {
	var out strings.Builder
	for _, typ := range sortedKeys(b.types) {
		of := b.types[typ]
		for _, id := range of.ids[len(of.ids)-of.live:] {
			out.WriteString(showEvents([]abi.Event{b.events[id]}))
		}
	}
	return out.String()
}

func showEvents(events []abi.Event) string {
	var b strings.Builder
	for _, ev := range events {
		fmt.Fprintf(&b, " %s#%d%s", ev.Type, ev.ID, showRaw(ev.Body))
	}
	return b.String()
}

func showRaw(r abi.Raw) string {
	text, err := abi.ToJSON(r)
	if err != nil {
		return fmt.Sprintf("%x", []byte(r))
	}
	return string(text)
}
