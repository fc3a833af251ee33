package weft

import (
	"errors"
	"reflect"
	"time"
	"unsafe"

	"github.com/weftrun/weft/sdk-guest/go/internal/cbor"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// step is a step's declaration and the plan for running it.
type step struct {
	name, doc string
	workers   int
	take      int
	timeout   time.Duration
	retry     codec.Raw

	state, takes, gives reflect.Type

	input     inputMode
	accepts   []*eventType
	slots     []uintptr // for a join: the offset of each accepted event
	output    outputMode
	emits     []*eventType
	emitLists []*eventType // one list of all of these
	streams   []*eventType
	waits     []*eventType
	catches   []string
	// catchesAll and maxRecoveries belong to catches; nil means the host's default.
	catchesAll    bool
	maxRecoveries *uint64

	atomic, subtypes bool

	run    func(inv *invocation) error
	faults []error
}

type inputMode uint8

const (
	inputOne inputMode = iota
	inputAny
	inputList
	inputListAny
	inputJoin
)

type outputMode uint8

const (
	outputOne outputMode = iota
	outputPointer
	outputAny
	outputList
	outputListAny
	outputNothing
)

// Step declares a function as a step of the workflow. The function's types say what the
// step takes and returns; see the package comment.
func Step[S, E, R any](name string, fn func(ctx *Context[S], ev E) (R, error), options ...StepOption) Option {
	s := &step{
		name:  name,
		state: reflect.TypeOf((*S)(nil)).Elem(),
		takes: reflect.TypeOf((*E)(nil)).Elem(),
		gives: reflect.TypeOf((*R)(nil)).Elem(),
	}
	s.run = func(inv *invocation) error {
		var ev E
		if err := inv.readTrigger(unsafe.Pointer(&ev)); err != nil {
			return err
		}
		result, err := fn(&Context[S]{inv}, ev)
		if err != nil {
			return err
		}
		return inv.writeResult(unsafe.Pointer(&result))
	}
	s.build(options)
	return s
}

func (s *step) applyWorkflow(w *workflow) error {
	for _, fault := range s.faults {
		w.note(errors.New("step " + quote(s.name) + ": " + fault.Error()))
	}
	if len(s.faults) > 0 {
		return nil
	}
	for _, other := range w.steps {
		if other.name == s.name {
			return errors.New("step " + quote(s.name) + " is there twice: name one of them differently")
		}
	}
	w.steps = append(w.steps, s)
	w.useState(s.state)
	for _, types := range [][]*eventType{s.accepts, s.emits, s.emitLists, s.streams, s.waits} {
		if err := w.useEvents(types); err != nil {
			return err
		}
	}
	return nil
}

// build reads the step's options and types, and records every fault in them.
func (s *step) build(options []StepOption) {
	for _, option := range options {
		s.note(option.applyStep(s))
	}
	s.note(s.buildInput())
	if s.take > 0 && s.input != inputList && s.input != inputListAny {
		s.note(errors.New("Take needs a step that takes a list: make its argument a slice of events"))
	}
	if s.atomic && len(s.waits) > 0 {
		s.note(errors.New("an atomic step cannot wait: drop Atomic, or let another step wait"))
	}
	s.note(s.buildOutput())
}

func (s *step) note(fault error) {
	if e, ok := fault.(*Error); ok {
		fault = errors.New(e.Message) // codes are for calls only
	}
	if fault != nil {
		s.faults = append(s.faults, fault)
	}
}

func isEvent(t reflect.Type) bool { return t.Kind() == reflect.Interface && t.NumMethod() == 0 }

func (s *step) buildInput() error {
	t := s.takes
	listed := len(s.accepts) > 0
	switch {
	case isEvent(t):
		s.input = inputAny
	case t.Kind() == reflect.Slice && isEvent(t.Elem()):
		s.input = inputListAny
	case listed:
		return errors.New("Accepts needs an argument of type weft.Event: remove the option, or change the argument's type")
	case t.Kind() == reflect.Slice:
		s.input = inputList
		return s.addAccepted(t.Elem())
	case isJoin(t):
		s.input = inputJoin
		return s.buildJoin()
	default:
		return s.addAccepted(t)
	}
	if !listed {
		return errors.New("its argument may be any event: list the events that it takes, weft.Accepts(FirstEvent{}, OtherEvent{})")
	}
	return nil
}

func (s *step) addAccepted(t reflect.Type) error {
	et, err := eventOf(t)
	if err == nil {
		s.accepts = append(s.accepts, et)
	}
	return err
}

func isJoin(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t.NumField() > 0 && t.Field(0).Type == typeJoin && t.Field(0).Anonymous
}

func (s *step) buildJoin() error {
	for i := 1; i < s.takes.NumField(); i++ {
		f := s.takes.Field(i)
		if err := s.addAccepted(f.Type); err != nil {
			return errors.New("field " + f.Name + " of the join: " + err.Error())
		}
		s.slots = append(s.slots, f.Offset)
	}
	if len(s.slots) < 2 {
		return errors.New("a join needs two fields or more: take a single event without weft.Join")
	}
	return nil
}

func (s *step) buildOutput() error {
	t := s.gives
	var et *eventType
	var err error
	switch {
	case t == typeNothing:
		s.output = outputNothing
	case isEvent(t):
		s.output = outputAny
	case t.Kind() == reflect.Slice && isEvent(t.Elem()):
		s.output = outputListAny
	case t.Kind() == reflect.Slice:
		s.output = outputList
		if et, err = eventOf(t.Elem()); err == nil {
			s.emitLists = append([]*eventType{et}, s.emitLists...)
		}
		return err
	default:
		if t.Kind() == reflect.Pointer {
			s.output, t = outputPointer, t.Elem()
		}
		if et, err = eventOf(t); err == nil {
			s.emits = append([]*eventType{et}, s.emits...)
		}
		return err
	}
	if s.output == outputAny && len(s.emits)+len(s.emitLists) == 0 {
		return errors.New("its result may be any event: list the events that it returns, weft.Emits(FirstEvent{}, OtherEvent{})")
	}
	if s.output == outputListAny && len(s.emitLists) == 0 {
		return errors.New("its result is a list of any events: list the events in it, weft.Emits([]FirstEvent{}, []OtherEvent{})")
	}
	return nil
}

// readTrigger decodes the event or events that triggered the step to the step's argument.
func (inv *invocation) readTrigger(argument unsafe.Pointer) error {
	s, d := inv.step, inv.in
	switch s.input {
	case inputOne:
		start := d.Offset()
		inv.readEvent(s.accepts[0], argument)
		inv.trigger = inv.input[start:d.Offset()]
	case inputAny:
		start := d.Offset()
		*(*any)(argument) = inv.readAnyEvent()
		inv.trigger = inv.input[start:d.Offset()]
	case inputList:
		n := d.Array()
		list := reflect.MakeSlice(s.takes, n, n)
		size := s.takes.Elem().Size()
		for i := 0; i < n && !d.Failed(); i++ {
			inv.readEvent(s.accepts[0], unsafe.Add(list.UnsafePointer(), uintptr(i)*size))
		}
		*(*slice)(argument) = slice{list.UnsafePointer(), n, n}
	case inputListAny:
		list := make([]any, d.Array())
		for i := range list {
			list[i] = inv.readAnyEvent()
		}
		*(*[]any)(argument) = list
	case inputJoin:
		if n := d.Array(); n != len(s.slots) {
			d.Fail(d.Offset(), "a join with another number of events")
		}
		for i, offset := range s.slots {
			inv.readEvent(s.accepts[i], unsafe.Add(argument, offset))
		}
	}
	if err := d.Err(); err != nil {
		return misuse("cannot read the event of step " + quote(s.name) + ": " + err.Error())
	}
	return nil
}

// slice is the memory layout of any slice.
type slice struct {
	data     unsafe.Pointer
	len, cap int
}

// readEvent decodes an event of one type to ptr.
func (inv *invocation) readEvent(want *eventType, ptr unsafe.Pointer) {
	d := inv.in
	start := d.Offset()
	n := d.Array()
	if name := d.Text(); name != want.name && !inv.step.subtypes && !d.Failed() {
		d.Fail(start, "event "+name+" where "+want.name+" is expected")
	}
	inv.readBody(n, want, ptr)
}

// readAnyEvent reads an event of one of the accepted types.
func (inv *invocation) readAnyEvent() any {
	d := inv.in
	start := d.Offset()
	n := d.Array()
	name := d.Text()
	et := inv.step.accepted(name)
	if et == nil {
		d.Fail(start, "event "+name+" is not a type that the step accepts")
		return nil
	}
	ptr, unbox := et.plan.New()
	inv.readBody(n, et, ptr)
	return unbox()
}

// accepted returns the type as which the step takes an event with the given name. An
// event that extends an accepted event keeps its own type if the plugin knows that type.
func (s *step) accepted(name string) *eventType {
	for _, et := range s.accepts {
		if et.name == name {
			return et
		}
	}
	if !s.subtypes {
		return nil
	}
	for _, et := range defined.events {
		if et.name == name {
			return et
		}
	}
	if len(s.accepts) == 1 {
		return s.accepts[0]
	}
	return nil
}

// readBody decodes the rest of an event of n parts, after its type.
func (inv *invocation) readBody(n int, et *eventType, ptr unsafe.Pointer) {
	d := inv.in
	if n < 2 {
		d.Fail(d.Offset(), "an event without a body")
		return
	}
	et.plan.Decode(d, ptr)
	if d.Failed() {
		d.Within(et.name)
	}
	for ; n > 2 && !d.Failed(); n-- { // the event's id, and fields added by later versions
		d.Skip()
	}
}

// writeResult writes the output of a step that succeeded.
func (inv *invocation) writeResult(result unsafe.Pointer) error {
	s := inv.step
	e := &codec.Encoder{B: make([]byte, 0, outputRoom)}
	e.List(2)
	e.Uint(0)
	var err error
	switch s.output {
	case outputNothing:
		e.Null()
	case outputOne:
		writeEvent(e, s.emits[0], result)
	case outputPointer:
		if target := *(*unsafe.Pointer)(result); target != nil {
			writeEvent(e, s.emits[0], target)
		} else {
			e.Null()
		}
	case outputList:
		list := *(*slice)(result)
		et, size := s.emitLists[0], s.gives.Elem().Size()
		e.List(list.len)
		for i := 0; i < list.len; i++ {
			writeEvent(e, et, unsafe.Add(list.data, uintptr(i)*size))
		}
	case outputListAny:
		err = writeAnyList(e, s, *(*[]any)(result))
	case outputAny:
		err = writeAny(e, s, *(*any)(result))
	}
	if err == nil {
		err = e.Err()
	}
	if err != nil {
		return misuse("cannot give the result of step " + quote(s.name) + ": " + err.Error())
	}
	inv.output = e.B
	return nil
}

// outputRoom is enough space for an ordinary output, which then need not move while it
// grows.
const outputRoom = 256

func writeEvent(e *codec.Encoder, et *eventType, ptr unsafe.Pointer) {
	e.List(2)
	e.Text(et.name)
	et.plan.Encode(e, ptr)
}

// writeBoxed writes an event of unknown type, which must be in a list.
func writeBoxed(e *codec.Encoder, types []*eventType, ev any) error {
	t := reflect.TypeOf(ev)
	for _, et := range types {
		if et.plan.Type() == t {
			writeEvent(e, et, et.plan.Box(ev))
			return nil
		}
	}
	if t == nil {
		return errors.New("the event is nil: leave it out")
	}
	if t.Kind() == reflect.Pointer {
		return errors.New(typeName(t) + " is a pointer: use the event itself")
	}
	return errors.New(typeName(t) + " is not declared: add it to the step's options, weft.Emits(" + t.Name() + "{})")
}

// writeAny writes a result of type Event: nothing, an event or a list.
func writeAny(e *codec.Encoder, s *step, result any) error {
	if result == nil {
		e.Null()
		return nil
	}
	v := reflect.ValueOf(result)
	if v.Kind() != reflect.Slice {
		return writeBoxed(e, s.emits, result)
	}
	e.List(v.Len())
	for i := 0; i < v.Len(); i++ {
		if err := writeBoxed(e, s.emitLists, v.Index(i).Interface()); err != nil {
			return err
		}
	}
	return nil
}

func writeAnyList(e *codec.Encoder, s *step, list []any) error {
	e.List(len(list))
	for _, ev := range list {
		if err := writeBoxed(e, s.emitLists, ev); err != nil {
			return err
		}
	}
	return nil
}

// readRunInfo reads the run-info array that follows the trigger.
func readRunInfo(d *cbor.Decoder) RunInfo {
	n := d.Array()
	info := RunInfo{
		Tenant:     d.Text(),
		Workflow:   d.Text(),
		RunID:      d.Text(),
		SessionID:  d.Text(),
		Invocation: d.Uint(1<<64 - 1),
		Attempt:    d.Uint(1<<64 - 1),
		clock:      d.Int(-1<<63, 1<<63-1),
	}
	if n > 7 {
		info.LastError = decodeError(d)
	}
	for ; n > 8 && !d.Failed(); n-- {
		d.Skip()
	}
	return info
}
