package weft

import (
	"errors"
	"reflect"
	"time"

	"github.com/weftrun/weft/sdk-guest/go/internal/boundary"
	"github.com/weftrun/weft/sdk-guest/go/internal/cbor"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// abiVersion is the version of the ABI that this SDK uses.
const abiVersion = 1

// workflow is the definition given to Define.
type workflow struct {
	name, version, doc string
	steps              []*step
	events             []*eventType
	resources          []any
	part               bool
	timeout            time.Duration
	hasTimeout         bool
	state              reflect.Type // nil: untyped
	statePlan          *codec.Plan
	initial            any
	faults             []error // faults in the definition
}

// defined is the module's workflow.
var defined *workflow

// Define declares the module's workflow. Call it once, in init. If the declaration has
// faults, Define panics with a message that names all of them and says how to correct
// them; the server then refuses the module when it is uploaded.
func Define(name string, options ...Option) {
	w := &workflow{name: name}
	if defined != nil {
		panic("weft: workflow " + quote(name) + ": a module holds one workflow, and " + quote(defined.name) + " is there already")
	}
	for _, option := range options {
		w.note(option.applyWorkflow(w))
	}
	w.note(w.buildState())
	if len(w.faults) > 0 {
		w.refuse()
	}
	defined = w
	boundary.Describe, boundary.Step = describe, runStep
}

// note records a fault of the definition once.
func (w *workflow) note(fault error) {
	if fault == nil {
		return
	}
	if e, ok := fault.(*Error); ok {
		fault = errors.New(e.Message) // codes are for calls only
	}
	for _, known := range w.faults {
		if known.Error() == fault.Error() {
			return
		}
	}
	w.faults = append(w.faults, fault)
}

// refuse panics with all recorded faults.
func (w *workflow) refuse() {
	text := "weft: workflow " + quote(w.name) + ": "
	if len(w.faults) == 1 {
		panic(text + w.faults[0].Error())
	}
	text += textOf(len(w.faults)) + " faults:"
	for _, fault := range w.faults {
		text += "\n- " + fault.Error()
	}
	panic(text)
}

// untyped reports whether a context's type declares no state.
func untyped(t reflect.Type) bool {
	return isEvent(t) || t == reflect.TypeOf(Untyped{}) || t.Kind() == reflect.Struct && t.NumField() == 0
}

func (w *workflow) useState(t reflect.Type) {
	switch {
	case untyped(t) || w.state == t:
	case w.state != nil:
		w.note(errors.New("two types of state, " + typeName(w.state) + " and " + typeName(t) +
			": give all steps a context of the one type (weft.Untyped fits any)"))
	case t.Kind() != reflect.Struct:
		w.note(errors.New(typeName(t) + " cannot be the state's type: use a struct, or weft.Untyped"))
	default:
		w.state = t
	}
}

func (w *workflow) useEvents(types []*eventType) error {
next:
	for _, et := range types {
		for _, known := range w.events {
			if known == et {
				continue next
			}
			if known.name == et.name {
				return errors.New("two event types are named " + et.name + ": name one by a field _ struct{} `weft:\"OtherEvent\"`")
			}
		}
		w.events = append(w.events, et)
	}
	return nil
}

func (w *workflow) buildState() (err error) {
	if w.state == nil {
		return nil
	}
	w.statePlan, err = codec.Of(w.state)
	return err
}

// runStep runs one invocation, whose input has n bytes.
func runStep(n int) int {
	inv := &invocation{input: boundary.Input(n)}
	inv.in = cbor.NewDecoder(inv.input)
	if err := guard(inv.runStep); err != nil {
		e := &codec.Encoder{}
		e.List(2)
		e.Uint(1)
		encodeError(e, err)
		boundary.Output(e.B)
		return 1
	}
	boundary.Output(inv.output)
	return 0
}

func (inv *invocation) runStep() error {
	inv.in.Array()
	name := inv.in.Text()
	for _, s := range defined.steps {
		if s.name == name {
			inv.step = s
			return s.run(inv)
		}
	}
	return misuse("the workflow " + quote(defined.name) + " has no step " + quote(name))
}
