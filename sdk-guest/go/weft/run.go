package weft

import (
	"errors"
	"reflect"
	"unsafe"

	"github.com/weftrun/weft/sdk-guest/go/internal/boundary"
	"github.com/weftrun/weft/sdk-guest/go/internal/cbor"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// RunOption is a setting of [Run].
type RunOption func(c *child) error

// child is a request of Run to the host.
type child struct {
	id, session    string
	shared, stream bool
}

// Run runs another workflow, or this one, as a child run and returns its result. The step
// waits for the child as it does for an event. The result of a plain stop event is
// decoded to an R; from a stop event with fields of its own, R receives these fields.
//
//	results, err := weft.Run[[]Result](ctx, "accumulator", Order{Items: items}, weft.SameSession())
//
// The start event is a struct or a map. A struct that embeds [Start] is sent under its
// type's name. Any other struct, or a map, supplies the fields of a StartEvent; nil means
// no fields.
//
// If the child fails, the error has the child's code and message. If the workflow does
// not exist, the code is "not_found"; see [CodeOf]. A child that fails does not fail the
// step, unless the step returns the error. When the run ends or the step fails, the child
// that the step waits for is cancelled, unless [As] keeps it for the next attempt.
func Run[R, S any](ctx *Context[S], workflow string, start any, options ...RunOption) (R, error) {
	var result R
	var c child
	for _, option := range options {
		if err := option(&c); err != nil {
			return result, err
		}
	}
	err := ctx.run(&c, workflow, start, reflect.TypeOf(&result).Elem(), unsafe.Pointer(&result))
	return result, err
}

// As names a child among the children that the step starts for one event. When the step
// is retried, a child with the same name does not run again, but returns its result.
// Without As a child belongs to the attempt.
func As(id string) RunOption {
	return func(c *child) error {
		if id == "" || len(id) > 128 {
			return misuse("run: a child's name has 1 to 128 bytes")
		}
		c.id = id
		return nil
	}
}

// SameSession makes the child use this session's state. Without it the child has a
// separate session.
func SameSession() RunOption {
	return func(c *child) error {
		c.shared = true
		return c.oneSession()
	}
}

// InSession makes the child use the state of the session with the given id. The session
// is created if it does not exist.
func InSession(id string) RunOption {
	return func(c *child) error {
		if id == "" {
			return misuse("run: a session's id is not empty: leave InSession out for a new one")
		}
		c.session = id
		return c.oneSession()
	}
}

func (c *child) oneSession() error {
	if c.shared && c.session != "" {
		return misuse("run: a child has one session: give SameSession() or InSession(id)")
	}
	return nil
}

// WithStream copies the child's stream to this run's stream.
func WithStream() RunOption {
	return func(c *child) error {
		c.stream = true
		return nil
	}
}

// run makes the request and decodes the child's result, of type t, to ptr.
func (inv *invocation) run(c *child, workflow string, start any, t reflect.Type, ptr unsafe.Pointer) error {
	what := "run " + quote(workflow)
	plan, err := codec.Of(t)
	if err != nil {
		return misuse(what + ": " + err.Error())
	}
	if err := c.write(&inv.request, workflow, start); err != nil {
		return misuse(what + ": " + err.Error())
	}
	status, response := boundary.RunWorkflow(inv.request.B)
	if err := callError(status, response, what, ""); err != nil {
		return err
	}
	d := cbor.NewDecoder(response)
	d.Array()
	if d.Text() == "StopEvent" {
		readResult(d, plan, ptr)
	} else {
		plan.Decode(d, ptr)
	}
	if err := d.Err(); err != nil {
		return misuse(what + ": its result cannot be read as " + typeName(t) + ": " + err.Error())
	}
	return nil
}

// readResult reads the result of a plain stop event from its body.
func readResult(d *cbor.Decoder, plan *codec.Plan, ptr unsafe.Pointer) {
	for n := d.Map(); n > 0 && !d.Failed(); n-- {
		if d.Text() == "result" {
			plan.Decode(d, ptr)
		} else {
			d.Skip()
		}
	}
}

// write writes the request. Its keys are in the order of their lengths.
func (c *child) write(e *codec.Encoder, workflow string, start any) error {
	n := 2
	for _, given := range []bool{c.id != "", c.shared || c.session != "", c.stream} {
		if given {
			n++
		}
	}
	*e = codec.Encoder{B: e.B[:0]}
	e.Map(n)
	if c.id != "" {
		e.Text("id")
		e.Text(c.id)
	}
	e.Text("event")
	if err := writeStart(e, start); err != nil {
		return err
	}
	c.writeSession(e)
	e.Text("workflow")
	e.Text(workflow)
	if c.stream {
		e.Text("include_stream")
		e.Bool(true)
	}
	return e.Err()
}

func (c *child) writeSession(e *codec.Encoder) {
	session := object{}
	put(session, "id", c.session)
	if c.shared {
		session["shared"] = true
	}
	if len(session) > 0 {
		e.Text("session")
		e.Value(session)
	}
}

func writeStart(e *codec.Encoder, start any) error {
	t := reflect.TypeOf(start)
	e.List(2)
	e.Text(startName(t))
	body := len(e.B)
	if t == nil {
		e.Map(0)
	} else {
		e.Value(start)
	}
	if e.Err() == nil && e.B[body]>>5 != cbor.MajorMap {
		return errors.New(typeName(t) + " cannot start a workflow: pass a struct, or a map[string]any")
	}
	return e.Err()
}

// startName returns the type name of the event that starts a child. A struct that is not
// declared as an event may start a child; its name counts only if it is declared.
func startName(t reflect.Type) string {
	const base = "StartEvent"
	if t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return base
	}
	et, err := eventOf(t)
	if err != nil || et.kind != "start" && et.name == t.Name() && !defined.declares(et) {
		return base
	}
	return et.name
}

// declares reports whether the workflow's steps use an event type.
func (w *workflow) declares(et *eventType) bool {
	if w == nil {
		return false
	}
	for _, known := range w.events {
		if known == et {
			return true
		}
	}
	return false
}
