package wefttest

import (
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/weftrun/weft/sdk-guest/go/internal/cbor"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// statuses are the numbers of the error codes.
var statuses = []string{"ok", "invalid_message", "not_found", "conflict", "failed_precondition", "permission_denied",
	"limit_exceeded", "timeout", "schema_violation", "unavailable", "internal"}

// fail gives the status and response of a failing call.
func fail(code, message string) (uint32, []byte) {
	b, err := codec.Append(nil, map[string]any{"code": code, "message": message})
	if err != nil {
		panic(err) // two texts always encode
	}
	return statusOf(code), b
}

// statusOf gives the number of a code; those of workflows' own have none.
func statusOf(code string) uint32 {
	if i := slices.Index(statuses, code); i > 0 {
		return uint32(i)
	}
	return uint32(len(statuses) - 1)
}

// refuse gives the status and response of a call that failed as something else did.
func refuse(failure *Failure) (uint32, []byte) {
	fields := map[string]any{"code": failure.Code, "message": failure.Message}
	if data, ok := failure.Fields["data"]; ok {
		fields["data"] = data
	}
	b, err := codec.Append(nil, fields)
	if err != nil {
		return fail(failure.Code, failure.Message)
	}
	return statusOf(failure.Code), b
}

func answer(v any) (uint32, []byte) {
	b, err := codec.Append(nil, v)
	if err != nil {
		return fail("internal", err.Error())
	}
	return 0, b
}

// calls answers the host calls of one run of an invocation.
type calls struct {
	waiter
	run    *Run
	path   *string // of the open edit
	made   int     // calls
	staged *staged // of an atomic step
}

// Call implements [Calls].
func (c *calls) Call(name string, request []byte) (uint32, []byte) {
	if c.made++; c.made <= len(c.record) {
		if name == "wait_for_event" {
			c.count(request)
		}
		a := c.record[c.made-1]
		return a.status, slices.Clone(a.response)
	}
	status, response := c.live(name, request)
	c.record = append(c.record, answered{status, response})
	return status, response
}

// live answers a call that was not made before.
func (c *calls) live(name string, request []byte) (uint32, []byte) {
	d := cbor.NewDecoder(slices.Clone(request)) // what is decoded shares its memory
	if c.path != nil && !slices.Contains([]string{"state_get", "state_commit", "state_abort", "log", "now", "random"}, name) {
		return fail("failed_precondition", name+" may not be called within an edit")
	}
	if c.refused(name) {
		return fail("failed_precondition", name+" may not be called in an atomic step")
	}
	var status uint32
	var response []byte
	switch name {
	case "state_get":
		status, response = c.get(d)
	case "state_edit":
		status, response = c.edit(d)
	case "state_begin", "state_commit", "state_abort":
		status, response = c.region(name, d)
	case "send_event":
		status, response = c.send(d)
	case "collect_events":
		status, response = c.collect(d)
	case "write_event_to_stream":
		d.Array()
		if ev := readEvent(d); d.Err() == nil {
			c.effect(func() { c.run.publish(ev) })
		}
		status, response = answer(nil)
	case "wait_for_event":
		status, response = c.wait(d)
	case "run_workflow":
		status, response = c.child(d)
	case "call_resource":
		status, response = c.resource(d)
	case "sleep":
		status, response = c.sleep(d)
	case "now":
		status, response = answer(c.run.session.root.Clock.UnixNano())
	case "random":
		d.Array()
		b := make([]byte, d.Uint(4096))
		for i := range b {
			b[i] = byte(rand.Uint32())
		}
		status, response = answer(b)
	case "log":
		status, response = c.log(d)
	default:
		return fail("unavailable", "this host does not serve "+name)
	}
	if d.Err() != nil {
		return fail("invalid_message", d.Err().Error())
	}
	return status, response
}

func (c *calls) get(d *cbor.Decoder) (uint32, []byte) {
	n := d.Array()
	path := d.Text()
	v, err := lookup(c.run.session.store.state, path)
	if n > 1 {
		if fallback := d.Value(); err != nil {
			v, err = fallback, nil
		}
	}
	if err != nil {
		return fail("not_found", err.Error())
	}
	return answer(v)
}

// edit makes a batch of edits on a copy of the state.
func (c *calls) edit(d *cbor.Decoder) (uint32, []byte) {
	s := c.run.session
	state, err := clone(s.store.state)
	results := []any{}
	for n := d.Array(); n > 0 && err == nil && !d.Failed(); n-- {
		parts := d.Array()
		op, path := d.Text(), ""
		var value, result any
		if parts > 1 {
			path = d.Text()
		}
		if parts > 2 {
			value = d.Value()
		}
		if !d.Failed() {
			state, result, err = edit(state, s.manifest.State.Default, op, path, value)
			results = append(results, result)
		}
	}
	switch {
	case d.Failed():
		return 0, nil // told by the caller
	case errors.Is(err, errConflict):
		return fail("conflict", err.Error())
	case errors.Is(err, errNotFound):
		return fail("not_found", err.Error())
	case err != nil:
		return fail("failed_precondition", err.Error())
	}
	s.store.state = state
	return answer(results)
}

// region opens, commits or aborts an edit.
func (c *calls) region(name string, d *cbor.Decoder) (uint32, []byte) {
	s := c.run.session
	n := d.Array()
	if name == "state_begin" {
		path := d.Text()
		v, err := lookup(s.store.state, path)
		if err != nil {
			return fail("not_found", err.Error())
		}
		c.path = &path
		return answer(v)
	}
	if c.path == nil {
		return fail("failed_precondition", "no edit is open")
	}
	path := *c.path
	c.path = nil
	if name == "state_abort" || n == 0 {
		return answer(nil)
	}
	value := d.Value()
	state, err := update(s.store.state, path, func(any, bool) (any, bool, error) { return value, true, nil })
	if err != nil {
		return fail("not_found", err.Error())
	}
	s.store.state = state
	return answer(nil)
}

func (c *calls) send(d *cbor.Decoder) (uint32, []byte) {
	n := d.Array()
	ev := readEvent(d)
	to := ""
	if n > 1 {
		to = d.Text()
	}
	if d.Failed() {
		return 0, nil // told by the caller
	}
	if !c.step.mayEmit(ev.name) {
		return fail("invalid_message", "step "+c.step.Name+" does not emit "+ev.name)
	}
	ev.id, ev.in = c.run.nextID(), c.in
	if to == "" {
		c.effect(func() { c.run.route(ev) })
		return answer(nil)
	}
	for _, s := range c.run.session.manifest.accepting(ev.name) {
		if s.Name == to {
			c.effect(func() { c.run.deliver(s, ev) })
			return answer(nil)
		}
	}
	return fail("not_found", "no step "+to+" accepts "+ev.name)
}

// collect adds the event to a buffer and gives a complete set if there is one.
func (c *calls) collect(d *cbor.Decoder) (uint32, []byte) {
	n := d.Array()
	raw := d.Raw()
	ev := readEvent(cbor.NewDecoder(raw))
	var expected []string
	for k := d.Array(); k > 0 && !d.Failed(); k-- {
		expected = append(expected, d.Text())
	}
	buffer := ""
	if n > 2 {
		buffer = d.Text()
	}
	key := c.step.Name + "\x00" + buffer
	kept := append(c.run.buffers[key], pending{ev.name, raw})
	c.run.buffers[key] = kept
	var set []any
	rest := slices.Clone(kept)
	for _, name := range expected {
		i := slices.IndexFunc(rest, func(p pending) bool { return p.name == name })
		if i < 0 {
			return answer(nil)
		}
		set = append(set, codec.Raw(rest[i].raw))
		rest = slices.Delete(rest, i, i+1)
	}
	c.run.buffers[key] = rest
	return answer(set)
}

func (c *calls) log(d *cbor.Decoder) (uint32, []byte) {
	n := d.Array()
	rec := Record{Level: int(d.Int(-4, 8)), Message: d.Text()}
	if n > 2 {
		rec.Attrs, _ = d.Value().(map[string]any)
	}
	c.run.Log = append(c.run.Log, rec)
	return answer(nil)
}
