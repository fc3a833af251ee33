// The model defines what runs do a second time, in an obvious way: lists that are walked
// from end to end, without counts, indexes or caches. It shares no code with the engine,
// and cannot see the engine's unexported names. The two must agree on everything that a
// session shows: answers, refusals, the order of published events and commands, which
// attempts run, and when the next timer is due.
package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

type model struct {
	g          modelGraph
	collectors map[listEmitOf][]string

	now      int64
	state    map[string]int64 // numbers, by path
	handlers map[string]*modelHandler
	runs     []*modelRun   // active
	gone     []*modelRun   // ended
	timers   []*modelTimer // in the order in which they were set
	stands   uint64        // how often an invocation was suspended
	// What was numbered so far.
	events, invocations, waits, seats uint64

	out []string // what the tick has published and commanded
}

type modelHandler struct {
	id   string
	run  string
	next uint64 // number of its next stream event
}

type modelRun struct {
	id      string
	handler *modelHandler
	limits  host.Limits
	timeout int64
	begun   int64
	silent  string // the last step that returned nothing
	last    string // that ended last
	work    bool   // its timeout counts only while an attempt runs

	status, code string
	paused       bool
	blocked      string
	heldAt       int64
	steps, fuel  uint64
	waitingFor   []host.Waiting
	routed       int
	written      int

	outermost   *modelCollection
	collections []*modelCollection // open
	invocations []*modelInvocation // that have not ended, oldest first
	queues      map[string][]*modelInvocation
	inbox       []modelEmission
	buffers     map[[2]string][]abi.Event // by step and name, in the order of arrival
	unhandled   []modelEmission
}

// modelCollection is a collection that a list emit opens. Its live invocations are
// counted when necessary.
type modelCollection struct {
	parent     *modelCollection
	collectors []*modelCollector
	joins      map[string][][]modelEmission // by step: the events of each slot
}

type modelCollector struct {
	step    *abi.StepDecl
	events  []abi.Event
	lineage map[string]uint64
	fired   bool
}

type modelEmission struct {
	event   abi.Event
	in      *modelCollection
	lineage map[string]uint64 // recoveries by catching step
	step    string
	shown   bool
}

type modelInvocation struct {
	id      uint64
	run     *modelRun
	step    *abi.StepDecl
	trigger []abi.Event
	in      *modelCollection
	lineage map[string]uint64

	where   string // "queued", "running", "due later", "suspended", "ended"
	attempt uint64
	lastErr string
	began   bool
	start   int64
	worker  int
	seat    uint64
	midway  bool // queued in the middle of an attempt

	stood       uint64 // the order in which invocations were suspended
	since       int64
	suspendedAt uint64 // call
	waiting     *modelWait
	suspensions int
	slept       uint64 // call whose sleep is over
	waits       []*modelWait
	collects    []*modelCollect
	fresh       int // events of this attempt's collects that are not in the trigger
}

type modelWait struct {
	id, typ   string
	need      map[string]any
	shown     string // the requirements as the record shows them
	broadcast bool
	order     uint64
	since     int64
	asked     bool
	answer    *abi.Event
	late      uint64
}

// modelCollect is a call of collect_events by an invocation.
type modelCollect struct {
	buffer string
	given  uint64
	fresh  int
	sets   []modelSet
}

type modelSet struct {
	expected []string
	events   []abi.Event
}

type modelTimer struct {
	what    string // "deadline", "attempt", "retry", "sleep", "wait"
	at      int64
	stopped bool
	run     *modelRun
	inv     *modelInvocation
}

func (t *modelTimer) servingTime() bool { return t.what == "deadline" || t.what == "attempt" }

func newModel(m *abi.Manifest) *model {
	g := modelGraph{m}
	return &model{g: g, collectors: g.collectorsOf(), state: map[string]int64{}, handlers: map[string]*modelHandler{}}
}

func (w *model) say(format string, args ...any) { w.out = append(w.out, fmt.Sprintf(format, args...)) }

func (w *model) run(id string) *modelRun {
	for _, r := range w.runs {
		if r.id == id {
			return r
		}
	}
	return nil
}

func (r *modelRun) held() bool { return r.paused || r.blocked != "" }

// publish records an event of the stream.
func (w *model) publish(r *modelRun, typ string, body any) {
	w.say("%s %d %s %v", r.handler.id, r.handler.next, typ, normal(body))
	r.handler.next++
}

func (w *model) publishState(inv *modelInvocation, state, worker, output string) {
	var out any
	if output != "" {
		out = output
	}
	input := inv.step.Accepts[0].Types[0]
	if !isJoin(inv.step) && !isCollector(inv.step) {
		input = inv.trigger[0].Type
	}
	w.publish(inv.run, abi.TypeStepStateChanged, map[string]any{
		"name": inv.step.Name, "step_state": state, "worker_id": worker, "input_event_name": input, "output_event_name": out,
	})
}

// ---- timers

func (w *model) set(t *modelTimer) { w.timers = append(w.timers, t) }

func (w *model) drop(unwanted func(t *modelTimer) bool) {
	w.timers = slices.DeleteFunc(w.timers, unwanted)
}

// rests reports whether time does not count toward a deadline, because no attempt runs.
func (w *model) rests(t *modelTimer) bool {
	return t.what == "deadline" && t.run.work && !slices.ContainsFunc(t.run.invocations, func(inv *modelInvocation) bool { return inv.where == "running" })
}

// advance advances the time to a tick.
func (w *model) advance(now int64) {
	for _, t := range w.timers {
		if w.rests(t) && !t.stopped {
			t.at += max(now, w.now) - w.now
		}
	}
	w.now = max(now, w.now)
}

// nextTimer returns the timer that fires first.
func (w *model) nextTimer() *modelTimer {
	var next *modelTimer
	for _, t := range w.timers {
		if !t.stopped && !w.rests(t) && (next == nil || t.at < next.at) {
			next = t
		}
	}
	return next
}

// ---- invocations

func (w *model) running(r *modelRun, st *abi.StepDecl) []*modelInvocation {
	var out []*modelInvocation
	for _, inv := range r.invocations {
		if inv.step == st && inv.where == "running" {
			out = append(out, inv)
		}
	}
	return out
}

func (w *model) invoke(r *modelRun, st *abi.StepDecl, trigger []abi.Event, in *modelCollection, lineage map[string]uint64) {
	w.invocations++
	inv := &modelInvocation{id: w.invocations, run: r, step: st, trigger: trigger, in: in, lineage: lineage, attempt: 1}
	r.invocations = append(r.invocations, inv)
	w.seatOrQueue(inv)
}

func (w *model) seatOrQueue(inv *modelInvocation) {
	r := inv.run
	if len(w.running(r, inv.step)) < workersOf(inv.step) && len(r.queues[inv.step.Name]) == 0 && !r.held() {
		w.seat(inv)
		return
	}
	inv.where = "queued"
	r.queues[inv.step.Name] = append(r.queues[inv.step.Name], inv)
	w.publishState(inv, "preparing", "<enqueued>", "")
}

func (w *model) seat(inv *modelInvocation) {
	inv.worker = 0
	for slices.ContainsFunc(w.running(inv.run, inv.step), func(o *modelInvocation) bool { return o.worker == inv.worker }) {
		inv.worker++
	}
	w.seats++
	inv.where, inv.seat, inv.midway = "running", w.seats, false
	if !inv.began {
		inv.began, inv.start = true, w.now
	}
	timed := slices.ContainsFunc(w.timers, func(t *modelTimer) bool { return t.inv == inv && t.what == "attempt" })
	if inv.step.Timeout > 0 && !timed {
		w.set(&modelTimer{what: "attempt", at: w.now + int64(inv.step.Timeout), run: inv.run, inv: inv})
	}
	w.publishState(inv, "running", strconv.Itoa(inv.worker), "")
	w.say("attempt %d", inv.id)
}

// refill gives free workers of a step to the invocations that have waited longest.
func (w *model) refill(r *modelRun, st *abi.StepDecl) {
	for len(r.queues[st.Name]) > 0 && len(w.running(r, st)) < workersOf(st) && !r.held() {
		next := r.queues[st.Name][0]
		r.queues[st.Name] = r.queues[st.Name][1:]
		w.seat(next)
	}
}

// leave ends an attempt, in whatever place.
func (w *model) leave(inv *modelInvocation, output string) {
	w.drop(func(t *modelTimer) bool { return t.inv == inv })
	where := inv.where
	inv.where, inv.waiting, inv.midway = "ended", nil, false
	switch where {
	case "queued":
		name := inv.step.Name
		inv.run.queues[name] = slices.DeleteFunc(slices.Clone(inv.run.queues[name]), func(o *modelInvocation) bool { return o == inv })
		w.publishState(inv, "not_running", "<enqueued>", output)
	case "running":
		w.publishState(inv, "not_running", strconv.Itoa(inv.worker), output)
	}
}

// forget removes an ended invocation, and closes collections that it leaves empty.
func (w *model) forget(inv *modelInvocation) {
	inv.run.invocations = slices.DeleteFunc(slices.Clone(inv.run.invocations), func(o *modelInvocation) bool { return o == inv })
	inv.run.last = inv.step.Name
	w.closeIfEmpty(inv.run, inv.in)
}

// suspend takes the worker from an attempt.
func (w *model) suspend(inv *modelInvocation, n uint64, wait *modelWait) {
	inv.suspensions++
	inv.where, inv.suspendedAt, inv.waiting = "suspended", n, wait
	w.stand(inv)
	w.publishState(inv, "not_running", strconv.Itoa(inv.worker), "")
	w.refill(inv.run, inv.step)
}

// stand records when an invocation was suspended, and its order.
func (w *model) stand(inv *modelInvocation) {
	w.stands++
	inv.stood, inv.since = w.stands, w.now
}

// wake continues a suspended attempt.
func (w *model) wake(inv *modelInvocation) {
	w.drop(func(t *modelTimer) bool { return t.inv == inv && !t.servingTime() })
	inv.waiting, inv.midway = nil, true
	w.seatOrQueue(inv)
}

// ---- collections

func (r *modelRun) alive(c *modelCollection) int {
	n := 0
	for _, inv := range r.invocations {
		if inv.in == c {
			n++
		}
	}
	for _, inner := range r.collections {
		if inner.parent == c {
			n++
		}
	}
	return n
}

// closeIfEmpty closes a collection without live invocations, and the collections around
// it.
func (w *model) closeIfEmpty(r *modelRun, c *modelCollection) {
	if c == r.outermost || r.alive(c) > 0 {
		return
	}
	for _, k := range c.collectors {
		if !k.fired {
			w.fire(r, c, k)
		}
	}
	r.collections = slices.DeleteFunc(slices.Clone(r.collections), func(o *modelCollection) bool { return o == c })
	w.closeIfEmpty(r, c.parent)
}

func (w *model) fire(r *modelRun, c *modelCollection, k *modelCollector) {
	k.fired = true
	w.invoke(r, k.step, k.events, c.parent, k.lineage)
}

func merged(a, b map[string]uint64) map[string]uint64 {
	out := maps.Clone(a)
	if out == nil {
		out = map[string]uint64{}
	}
	for name, n := range b {
		out[name] = max(out[name], n)
	}
	return out
}

// normal makes a body comparable: the engine's own messages are not the model's.
func normal(v any) any {
	switch v := v.(type) {
	case abi.Raw:
		body, err := abi.DecodeValue(v)
		if err != nil {
			return err
		}
		return normal(body)
	case map[string]any:
		for key, value := range v {
			if text, ok := value.(string); ok && key == "exception_message" && text != drawnMessage {
				v[key] = "*"
			} else {
				v[key] = normal(value)
			}
		}
	case []any:
		for i := range v {
			v[i] = normal(v[i])
		}
	}
	return v
}

const drawnMessage = "drawn error"
