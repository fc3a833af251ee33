package engine

import (
	"cmp"
	"container/list"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
)

// An invocation that sleeps or waits for an event is suspended: its guest is unwound, and
// it holds no worker slot. When the event or the time arrives, the attempt gets a slot
// again. It is replayed up to the call that waited, makes that call again, and finds the
// answer here.
//
// An event takes one of three ways. It answers the oldest waiter that it matches, and all
// matching waiters that asked for a broadcast. Without a waiter it goes to the steps that
// accept it. Without such a step it goes into the inbox of the run, if some step declares
// that it waits for the type: a later wait finds it there.

// waiter is an invocation's wait for an event. It belongs to the invocation and not to
// the attempt: an answer stays, and people are asked only once.
type waiter struct {
	id   string
	inv  *invocation
	step *step

	typ       string
	shape     *waitShape    // nil while the invocation is not suspended in this wait
	place     *list.Element // its place in its queue
	values    string        // the wanted values of the shape's fields
	need      string        // the requirements as JSON; see host.Waiting
	broadcast bool
	seq       uint64 // the order in which the waits began
	since     int64

	asked  bool       // the event that asks is on the stream
	answer *abi.Event // nil until one came
	late   uint64     // the call of this attempt that timed out
}

// suspension is what a suspended invocation waits for.
type suspension struct {
	n      uint64  // the call
	waiter *waiter // nil: it sleeps, or waits for a child or a resource
	child  *child
	call   *outcall
	timer  *timer // nil: no time limit
}

// waiting holds the waiters for one type of event, grouped by the fields that they
// compare. An event is compared with each group, not with each waiter.
type waiting struct {
	shapes []*waitShape
}

// waitShape holds the waiters that compare the same fields.
type waitShape struct {
	key    string   // the fields, as one text
	fields []string // sorted
	byWant map[string]*waitQueue
}

// waitQueue holds the waiters that want the same values, oldest first. Waiters for
// broadcasts have a list of their own. The elements are *waiter.
type waitQueue struct {
	single, broadcast list.List
}

func (q *waitQueue) of(w *waiter) *list.List {
	if w.broadcast {
		return &q.broadcast
	}
	return &q.single
}

// bytesPerVisit is how many bytes of an event are decoded for the cost of one visited
// item.
const bytesPerVisit = 128

// requirement is a set of fields with the wanted values.
type requirement struct {
	fields []string
	values string
}

// readRequirement decodes the requirements of a wait. nil: it has none.
func readRequirement(raw abi.Raw) (requirement, error) {
	if raw == nil {
		return requirement{}, nil
	}
	node, err := state.Decode(raw)
	if err != nil {
		return requirement{}, err
	}
	var q requirement
	var values []byte
	// Entries are sorted by key, so equal requirements have equal fields and values.
	for key, value := range node.Entries() {
		q.fields = append(q.fields, key)
		values = appendText(values, value.Identity())
	}
	q.values = string(values)
	return q, nil
}

// shownRequirements returns the requirements as the run's record shows them.
func shownRequirements(raw abi.Raw) string {
	text, err := abi.ToJSON(raw)
	if err != nil || len(raw) == 0 || len(text) > maxRequirements || string(text) == "{}" {
		return ""
	}
	return string(text)
}

// appendText appends a text with its length, so that no two lists of texts look the same.
func appendText(dst []byte, text string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	return append(dst, text...)
}

func (q requirement) shape() string {
	var b []byte
	for _, f := range q.fields {
		b = appendText(b, f)
	}
	return string(b)
}

// valuesIn returns the values of the fields in an event's body, false if a field is
// missing.
func valuesIn(body *state.Node, fields []string) (string, bool) {
	var b []byte
	for _, f := range fields {
		v := body.Field(f)
		if v == nil {
			return "", false
		}
		b = appendText(b, v.Identity())
	}
	return string(b), true
}

// matches reports whether an event meets the requirement.
func (q requirement) matches(ev abi.Event) bool {
	if len(q.fields) == 0 {
		return true
	}
	body, err := state.Decode(ev.Body)
	if err != nil {
		return false
	}
	values, ok := valuesIn(body, q.fields)
	return ok && values == q.values
}

// enlist adds a waiter to the lists of the run.
func (r *run) enlist(w *waiter, q requirement) {
	if r.waiting == nil {
		r.waiting = make(map[string]*waiting)
	}
	of := r.waiting[w.key()]
	if of == nil {
		of = &waiting{}
		r.waiting[w.key()] = of
	}
	key := q.shape()
	for _, shape := range of.shapes {
		if shape.key == key {
			w.shape = shape
		}
	}
	if w.shape == nil {
		w.shape = &waitShape{key: key, fields: q.fields, byWant: make(map[string]*waitQueue)}
		of.shapes = append(of.shapes, w.shape)
	}
	w.values = q.values
	queue := w.shape.byWant[q.values]
	if queue == nil {
		queue = &waitQueue{}
		w.shape.byWant[q.values] = queue
	}
	w.place = queue.of(w).PushBack(w)
	r.outside++
}

// strike removes a waiter from the lists of the run.
func (r *run) strike(w *waiter) {
	queue := w.shape.byWant[w.values]
	queue.of(w).Remove(w.place)
	if queue.single.Len()+queue.broadcast.Len() == 0 {
		delete(w.shape.byWant, w.values)
	}
	if of := r.waiting[w.key()]; len(w.shape.byWant) == 0 {
		for i, shape := range of.shapes {
			if shape == w.shape {
				of.shapes = slices.Delete(of.shapes, i, i+1)
				break
			}
		}
		if len(of.shapes) == 0 {
			delete(r.waiting, w.key())
		}
	}
	w.shape, w.place = nil, nil
	r.outside--
}

// subtypes is the key in r.waiting for waiters that accept subtypes of a type too.
func subtypes(typ string) string { return typ + "+" }

// key is the waiter's key in r.waiting.
func (w *waiter) key() string {
	if w.step.decl.AcceptSubtypes {
		return subtypes(w.typ)
	}
	return w.typ
}

// shapes returns the groups of waiters that an event of a type is compared with.
func (r *run) shapes(typ string) []*waitShape {
	if len(r.waiting) == 0 {
		return nil
	}
	var out []*waitShape
	add := func(key string) {
		if of := r.waiting[key]; of != nil {
			out = append(out, of.shapes...)
		}
	}
	add(typ)
	add(subtypes(typ))
	for _, ancestor := range r.graph.Ancestors(typ) {
		add(subtypes(ancestor))
	}
	return out
}

// takers returns the waiters that take an event: the oldest waiter that it matches, and
// all that asked for a broadcast. step, if not "", is the only step that the event is
// meant for. For queues in served, only the waiters from the given element on still wait.
func (s *Session) takers(r *run, ev abi.Event, step string, served map[*list.List]*list.Element) []*waiter {
	shapes := r.shapes(ev.Type)
	if len(shapes) == 0 {
		return nil
	}
	var body *state.Node
	var oldest *waiter
	var all []*waiter
	consider := func(queue *list.List, broadcast bool) {
		at := queue.Front()
		if rest, ok := served[queue]; ok {
			at = rest
		}
		for ; at != nil; at = at.Next() {
			s.visited++
			w := at.Value.(*waiter)
			// The event is addressed to another step.
			if step != "" && w.step.name != step {
				continue
			}
			if broadcast {
				all = append(all, w)
			}
			if oldest == nil || w.seq < oldest.seq {
				oldest = w
			}
			// The queue is oldest first, so its first waiter is the only candidate.
			if !broadcast {
				return
			}
		}
	}
	for _, shape := range shapes {
		s.visited++
		values := ""
		if len(shape.fields) > 0 {
			// Decode once for all groups, and only if some group compares fields.
			if body == nil {
				var err error
				s.visited += uint64(len(ev.Body)) / bytesPerVisit
				if body, err = state.Decode(ev.Body); err != nil {
					return nil
				}
			}
			var ok bool
			if values, ok = valuesIn(body, shape.fields); !ok {
				continue
			}
		}
		if queue := shape.byWant[values]; queue != nil {
			consider(&queue.single, false)
			consider(&queue.broadcast, true)
		}
	}
	// A broadcast waiter is in the list already.
	if oldest != nil && !oldest.broadcast {
		all = append(all, oldest)
	}
	slices.SortFunc(all, func(a, b *waiter) int { return cmp.Compare(a.seq, b.seq) })
	return all
}

// answerWaiters gives an event to its waiters. It returns false if there are none.
func (s *Session) answerWaiters(r *run, ev abi.Event, step string) bool {
	takers := s.takers(r, ev, step, nil)
	for _, w := range takers {
		w.answer = &ev
		r.strike(w)
		s.resume(w.inv)
	}
	return len(takers) > 0
}

// Bounds of what a run's record says about waits.
const (
	MaxWaitingFor   = 20      // entries; of kept events too
	maxRequirements = 1 << 10 // bytes of one requirement
)

// waitingFor returns what the run's record says about what the run waits for: the waits
// of its steps and, if the run is idle, the answers of people that steps accept.
func (r *run) waitingFor(idle bool, now int64) []host.Waiting {
	var out []host.Waiting
	for at := r.standing.Front(); at != nil && len(out) < MaxWaitingFor; at = at.Next() {
		inv := at.Value.(*invocation)
		on := inv.suspended
		if on != nil && on.waiter != nil && r.graph.correlation.inner(on.waiter.typ) {
			continue // the step that is called says what it waits for
		}
		if on == nil || on.child == nil || on.child.begun {
			out = append(out, inv.waitingFor())
		}
	}
	if !idle {
		return out
	}
	for _, wait := range r.graph.answers[:min(len(r.graph.answers), MaxWaitingFor-len(out))] {
		// Keep the time of an earlier record: the run has been waiting since then.
		wait.Since = now
		for _, before := range r.rec.WaitingFor {
			if before.WaiterID == "" && before.Step == wait.Step && before.Type == wait.Type {
				wait.Since = before.Since
			}
		}
		out = append(out, wait)
	}
	return out
}

// waitingFor returns what the record says about what an invocation waits for.
func (inv *invocation) waitingFor() host.Waiting {
	on := inv.suspended
	wait := host.Waiting{Step: inv.step.name, Since: inv.since}
	switch {
	case on == nil:
		wait.Reason, wait.Until = host.WaitsForRetry, inv.timer.at
	case on.waiter != nil:
		wait.Type, wait.Requirements = on.waiter.typ, on.waiter.need
		if !strings.HasPrefix(on.waiter.id, wait.Type+" ") { // else the guest gave no id, and the host made one
			wait.WaiterID = on.waiter.id
		}
	case on.child != nil:
		wait.Child = on.child.handler
	case on.call != nil:
		wait.Resource = on.call.part.Resource
	default:
		wait.Until = on.timer.at
	}
	return wait
}

// suspend takes the slot from an attempt that begins to wait.
func (s *Session) suspend(inv *invocation, on suspension) {
	inv.suspended = &on
	inv.suspensions++
	s.stand(inv)
	inv.phase = phaseSuspended
	inv.run.pools[inv.step.index].suspended++
	s.vacate(inv, "")
	s.changed(inv.run)
	s.refill(inv.run, inv.step)
}

// wake ends a suspension, for whatever reason.
func (s *Session) wake(inv *invocation) {
	on := inv.suspended
	if on.waiter != nil && on.waiter.shape != nil {
		inv.run.strike(on.waiter)
	}
	if on.call != nil {
		s.endOutcall(on.call)
	}
	s.disarm(on.timer)
	inv.run.pools[inv.step.index].suspended--
	inv.suspended = nil
	inv.moveOn()
}

// stand adds an invocation to the list of those that stand still: it waits for something
// that does not depend on the steps' workers.
func (s *Session) stand(inv *invocation) {
	inv.line, inv.since = inv.run.standing.PushBack(inv), s.now
}

func (inv *invocation) moveOn() {
	inv.run.standing.Remove(inv.line)
	inv.line = nil
}

// resume continues an attempt after its suspension.
func (s *Session) resume(inv *invocation) {
	s.wake(inv)
	s.changed(inv.run)
	inv.halfway = true
	s.seatOrQueue(inv)
}

// inbox keeps events that steps may wait for later.
type inbox struct {
	byType map[string][]emission
	size   int
}

func (b *inbox) put(e emission) {
	if b.byType == nil {
		b.byType = make(map[string][]emission)
	}
	b.byType[e.event.Type] = append(b.byType[e.event.Type], e)
	b.size++
}

// find returns the oldest event, of one of the types, that a wait of a step may take. It
// adds the work to looked.
func (b *inbox) find(looked *uint64, types map[string]bool, q requirement, step string) (abi.Event, bool) {
	var oldest abi.Event
	for typ := range types {
		for _, e := range b.byType[typ] {
			*looked += 1 + uint64(len(e.event.Body))/bytesPerVisit
			if (e.step == "" || e.step == step) && q.matches(e.event) {
				if oldest.ID == 0 || e.event.ID < oldest.ID {
					oldest = e.event
				}
				// The list is oldest first: later events of the type cannot be older.
				break
			}
		}
	}
	return oldest, oldest.ID != 0
}

// take removes an event, of one of the types, by its id.
func (b *inbox) take(types map[string]bool, id uint64) (abi.Event, bool) {
	for typ := range types {
		kept := b.byType[typ]
		i := slices.IndexFunc(kept, func(e emission) bool { return e.event.ID == id })
		if i < 0 {
			continue
		}
		ev := kept[i].event
		if b.byType[typ] = slices.Delete(kept, i, i+1); len(kept) == 1 {
			delete(b.byType, typ)
		}
		b.size--
		return ev, true
	}
	return abi.Event{}, false
}

// kept returns what the record says about the events in the inbox.
func (r *run) kept() []host.Kept {
	if r.inbox.size == 0 {
		return nil
	}
	var out []host.Kept
	for _, typ := range sortedKeys(r.inbox.byType) {
		for _, e := range r.inbox.byType[typ] {
			if len(out) == MaxWaitingFor {
				return out
			}
			out = append(out, host.Kept{Type: typ, Step: e.step})
		}
	}
	return out
}

// keeps reports whether the inbox keeps an event that no step takes.
func (g *Graph) keeps(typ, step string) bool {
	for _, st := range g.waits[typ] {
		if step == "" || st.name == step {
			return true
		}
	}
	return false
}
