package wefttest

import (
	"errors"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/weftrun/weft/sdk-guest/go/internal/cbor"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// errWaits is the error of a step that waits for an event. The step runs again
// from its start when the event comes; its calls so far are answered as they were.
var errWaits = errors.New("the step waits for an event")

// answered is the answer to a host call.
type answered struct {
	status   uint32
	response []byte
}

// waiter is an invocation that waits.
type waiter struct {
	step    *stepDecl
	trigger []event
	list    bool
	in      *stream
	record  []answered

	invocation uint64
	caught     bool           // it catches a failure
	waits      map[string]int // without a name, by what they wait for

	id    string
	name  string // of the event; none: it waits for a child
	where map[string]any

	childID string              // that the step gave it
	named   map[string]answered // how the children with an id ended
}

// waitRequest is a request of wait_for_event.
type waitRequest struct {
	Type         string
	Requirements map[string]any `weft:",omitempty"`
	WaiterID     string         `weft:"waiter_id,omitempty"`
	WaiterEvent  any            `weft:",omitempty"`
	Timeout      int64          `weft:",omitempty"`
	Broadcast    bool           `weft:",omitempty"`
}

// wait answers a wait_for_event from what has come, or unwinds the step.
func (c *calls) wait(d *cbor.Decoder) (uint32, []byte) {
	raw := d.Raw()
	var req waitRequest
	if err := codec.Unmarshal(raw, &req); err != nil {
		return fail("invalid_message", err.Error())
	}
	if !slices.Contains(c.step.Waits, req.Type) {
		return fail("failed_precondition", "step "+c.step.Name+" does not declare that it waits for "+req.Type)
	}
	w := &c.waiter
	w.name, w.where, w.id = req.Type, req.Requirements, c.nameOf(&req)
	if asks, ok := req.WaiterEvent.([]any); ok && len(asks) > 1 {
		name, _ := asks[0].(string)
		fields, _ := asks[1].(map[string]any)
		c.run.show(Event{name, fields})
	}
	for i, ev := range c.run.kept {
		if c.run.takes(w, ev) {
			c.run.kept = slices.Delete(c.run.kept, i, i+1)
			return 0, encodeEvent(ev)
		}
	}
	runtime.Goexit() // ends the step, wherever it is
	return 0, nil    // not reached
}

// nameOf gives the name of a wait: the given one, or one that counts.
func (w *waiter) nameOf(req *waitRequest) string {
	if req.WaiterID != "" {
		return req.WaiterID
	}
	w.waits[req.Type]++
	return req.Type + " #" + strconv.Itoa(w.waits[req.Type])
}

// count counts a wait that is answered from the record.
func (c *calls) count(request []byte) {
	var req waitRequest
	if codec.Unmarshal(request, &req) == nil {
		c.nameOf(&req)
	}
}

// takes tells whether the event is one that is waited for.
func (r *Run) takes(w *waiter, ev event) bool {
	if w.name == "" || !r.session.manifest.is(ev.name, w.name, w.step.AcceptSubtypes) {
		return false
	}
	body, _ := decode(ev.body)
	fields, _ := body.(map[string]any)
	for key, want := range w.where {
		if !reflect.DeepEqual(fields[key], want) {
			return false
		}
	}
	return true
}

func encodeEvent(ev event) []byte {
	e := &codec.Encoder{}
	e.List(3)
	e.Text(ev.name)
	e.Raw(ev.body)
	e.Uint(ev.id)
	return e.B
}

// answer brings an event to the invocation that has waited for it the longest.
func (r *Run) answer(ev event) bool {
	for _, w := range r.waiters {
		if !r.takes(w, ev) {
			continue
		}
		r.leave(w)
		w.record = append(w.record, answered{0, encodeEvent(ev)})
		r.queue = append(r.queue, func() error { return r.goOn(w) })
		return true
	}
	return false
}

// leave takes an invocation off those that wait and tells whether it was there.
func (r *Run) leave(w *waiter) bool {
	i := slices.Index(r.waiters, w)
	if i < 0 || r.Ended {
		return false
	}
	r.waiters = slices.Delete(r.waiters, i, i+1)
	return true
}

// Waiting lists what the run's steps wait for, oldest first: the names of their
// waits, and the ids, or else the workflows, of their children.
func (r *Run) Waiting() []string {
	var ids []string
	for _, w := range r.waiters {
		ids = append(ids, w.id)
	}
	return ids
}

// sleep lets the session's clock go on.
func (c *calls) sleep(d *cbor.Decoder) (uint32, []byte) {
	d.Array()
	c.run.session.root.Clock = c.run.session.root.Clock.Add(time.Duration(d.Int(0, 1<<63-1)))
	return answer(nil)
}
