package weft

import (
	"reflect"
	"time"
	"unsafe"

	"github.com/weftrun/weft/sdk-guest/go/internal/boundary"
	"github.com/weftrun/weft/sdk-guest/go/internal/cbor"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// WaitOption is a setting of [Wait].
type WaitOption interface {
	applyWait(w *wait) error
}

type waitOption func(*wait) error

func (f waitOption) applyWait(w *wait) error { return f(w) }

// wait is a request of Wait to the host.
type wait struct {
	inv       *invocation
	id        string
	ask       any
	asks      bool
	where     map[string]any
	timeout   time.Duration
	broadcast bool
}

// Wait waits for an event of type E, without a limit on time unless [Timeout] sets one.
// While it waits, the plugin uses neither CPU nor memory, and a restart of the server
// does not disturb the wait. The step must list E in [Waits].
//
//	answer, err := weft.Wait[HumanResponse](ctx,
//		weft.For("manager"),
//		weft.Ask(InputRequired{Prefix: "approve?"}),
//		weft.Where("role", "manager"),
//		weft.Timeout(24*time.Hour))
//
// Two waits in a row receive two events. When the step is retried after a failure, a wait
// that was answered returns the same answer, and nobody is asked twice. After a timeout
// the error has the code "timeout"; see [CodeOf].
func Wait[E, S any](ctx *Context[S], options ...WaitOption) (E, error) {
	var ev E
	et, err := eventOf(reflect.TypeOf((*E)(nil)).Elem())
	if err != nil {
		return ev, misuse("wait: " + err.Error())
	}
	w := &wait{inv: ctx.invocation}
	for _, option := range options {
		if err := option.applyWait(w); err != nil {
			return ev, err
		}
	}
	response, err := w.call(et)
	if err != nil {
		return ev, err
	}
	answer := invocation{in: cbor.NewDecoder(response), step: ctx.step}
	answer.readEvent(et, unsafe.Pointer(&ev))
	if err := answer.in.Err(); err != nil {
		return ev, misuse("wait: " + err.Error())
	}
	return ev, nil
}

// call makes the request. Its keys are in the order of their lengths.
func (w *wait) call(et *eventType) ([]byte, error) {
	declared := false
	for _, may := range w.inv.step.waits {
		declared = declared || may == et
	}
	if !declared {
		return nil, misuse("wait: " + et.name + " is not declared: add it to the step's options, weft.Waits(" + et.plan.Type().Name() + "{})")
	}
	n := 1
	for _, given := range []bool{w.timeout > 0, w.broadcast, w.id != "", w.where != nil, w.asks} {
		if given {
			n++
		}
	}
	w.inv.request = codec.Encoder{B: w.inv.request.B[:0]}
	e := &w.inv.request
	e.Map(n)
	e.Text("type")
	e.Text(et.name)
	if w.timeout > 0 {
		e.Text("timeout")
		e.Uint(uint64(w.timeout))
	}
	if w.broadcast {
		e.Text("broadcast")
		e.Bool(true)
	}
	if w.id != "" {
		e.Text("waiter_id")
		e.Text(w.id)
	}
	if w.where != nil {
		e.Text("requirements")
		e.Value(w.where)
	}
	if w.asks {
		e.Text("waiter_event")
		if writeBoxed(e, w.inv.step.streams, w.ask) != nil {
			t := reflect.TypeOf(w.ask)
			if t == nil || t.Kind() != reflect.Struct {
				return nil, misuse("wait: ask by an event, a struct, by value")
			}
			return nil, misuse("wait: " + typeName(t) + " is not declared: add it to the step's options, weft.Streams(" + t.Name() + "{})")
		}
	}
	if e.Err() != nil {
		return nil, misuse("wait: " + e.Err().Error())
	}
	status, response := boundary.WaitForEvent(e.B)
	return response, callError(status, response, "wait", "")
}

// Waits lists, as empty values, the events that a step waits for by [Wait]. Such events
// may come before the step waits; the host keeps them for the step.
func Waits(events ...Event) StepOption {
	return stepOption(func(s *step) error {
		for _, ev := range events {
			et, err := eventOf(reflect.TypeOf(ev))
			if err != nil {
				return err
			}
			s.waits = append(s.waits, et)
		}
		return nil
	})
}

// For names a wait, for people and for the step's next attempt, which finds the answer by
// the name. A second wait under the same name is separate: the next attempt matches waits
// of the same name in order. A wait without a name is identified by what it waits for and
// by how many such waits the step made before.
func For(id string) WaitOption {
	return waitOption(func(w *wait) error {
		if id == "" || len(id) > 128 {
			return misuse("wait: a name has 1 to 128 bytes")
		}
		w.id = id
		return nil
	})
}

// Ask publishes an event on the run's stream, once, when the wait begins. The step must
// list its type in [Streams].
func Ask(ev Event) WaitOption {
	return waitOption(func(w *wait) error {
		w.ask, w.asks = ev, true
		return nil
	})
}

// Where accepts only events whose field has the given value.
func Where(field string, value any) WaitOption {
	return waitOption(func(w *wait) error {
		if w.where == nil {
			w.where = map[string]any{}
		}
		w.where[field] = value
		return nil
	})
}

// Broadcast accepts an event without taking it from other waits. Without Broadcast, an
// event goes only to the wait that began first.
func Broadcast() WaitOption {
	return waitOption(func(w *wait) error {
		w.broadcast = true
		return nil
	})
}

func (t TimeoutOption) applyWait(w *wait) error {
	if t <= 0 {
		return misuse("wait: a timeout must be above 0: leave it out for none")
	}
	w.timeout = time.Duration(t)
	return nil
}

// Sleep waits for the given time, which may be long. While it waits, the plugin uses
// neither CPU nor memory, and a restart of the server does not disturb it. Sleep uses
// wall time, which continues while the server is down.
func (inv *invocation) Sleep(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	e := inv.begin(1)
	e.Uint(uint64(d))
	status, response := boundary.Sleep(e.B)
	return callError(status, response, "sleep", "")
}
