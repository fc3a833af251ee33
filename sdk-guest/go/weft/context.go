package weft

import (
	"reflect"
	"time"
	"unsafe"

	"github.com/weftrun/weft/sdk-guest/go/internal/boundary"
	"github.com/weftrun/weft/sdk-guest/go/internal/cbor"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// Untyped is the state type of a workflow that declares none: any path may hold any
// value. Use it as the S of a [Context] if a step does not depend on the state's type.
type Untyped = map[string]any

// Context is a step's access to its run: the session's state, whose type is S, events,
// the stream and the log. It is valid until the step returns.
type Context[S any] struct {
	*invocation
}

// invocation is the part of a Context that does not depend on the state's
// type.
type invocation struct {
	input   []byte
	in      *cbor.Decoder // after the trigger, once the trigger is read
	step    *step
	trigger []byte // the event as the host gave it; nil for several events
	info    *RunInfo
	config  []byte
	request codec.Encoder
	output  []byte
}

// RunInfo identifies the run, the session and the attempt that a step works for.
type RunInfo struct {
	Tenant     string
	Workflow   string
	RunID      string
	SessionID  string
	Invocation uint64 // unique in the run; the same for all attempts
	Attempt    uint64 // 1 for the first
	// LastError is the error of the previous attempt; nil for the first attempt.
	LastError *Error

	clock int64
}

// Started is when the attempt started.
func (r RunInfo) Started() time.Time { return time.Unix(0, r.clock) }

// RunInfo returns the run, session and attempt that the step works for.
func (inv *invocation) RunInfo() RunInfo {
	inv.readInfo()
	return *inv.info
}

// readInfo reads what follows the trigger, on first use.
func (inv *invocation) readInfo() {
	if inv.info != nil {
		return
	}
	info := readRunInfo(inv.in)
	inv.info = &info
	if !inv.in.Failed() && inv.in.Offset() < len(inv.input) {
		inv.config = inv.in.Raw()
	}
}

// Config reads the step's configuration to *target, a struct or map. The configuration is
// part of the workflow's settings. Without a configuration *target gets its defaults. The
// configuration is the same in all attempts of a run.
func (inv *invocation) Config(target any) error {
	inv.readInfo()
	config := inv.config
	if config == nil {
		config = []byte{cbor.MajorMap << 5}
	}
	if err := codec.Unmarshal(config, target); err != nil {
		return misuse("config: " + err.Error())
	}
	return nil
}

// begin starts a request that is a list of n items. The encoder belongs to the
// invocation, which uses it again for the next request.
func (inv *invocation) begin(n int) *codec.Encoder {
	inv.request = codec.Encoder{B: inv.request.B[:0]}
	inv.request.List(n)
	return &inv.request
}

// Send emits an event at once, without waiting for the step to end. Every step that
// accepts the event receives it. The step must list the type in [Emits].
func (inv *invocation) Send(ev Event) error { return inv.send(ev, "") }

// SendTo emits an event to the step with the given name only.
func (inv *invocation) SendTo(step string, ev Event) error { return inv.send(ev, step) }

func (inv *invocation) send(ev Event, to string) error {
	n := 1
	if to != "" {
		n = 2
	}
	e := inv.begin(n)
	if err := writeBoxed(e, inv.step.emits, ev); err != nil {
		return misuse("send: " + err.Error())
	}
	if to != "" {
		e.Text(to)
	}
	if e.Err() != nil {
		return misuse("send: " + e.Err().Error())
	}
	status, response := boundary.SendEvent(e.B)
	return callError(status, response, "send", "")
}

// Stream writes an event to the run's stream, where clients see it at once. No step
// receives it. The step must list the type in [Streams].
func (inv *invocation) Stream(ev Event) error {
	e := inv.begin(1)
	if writeBoxed(e, inv.step.streams, ev) != nil {
		t := reflect.TypeOf(ev)
		if t == nil || t.Kind() != reflect.Struct {
			return misuse("stream: pass an event, a struct, by value")
		}
		return misuse("stream: " + typeName(t) + " is not declared: add it to the step's options, weft.Streams(" + t.Name() + "{})")
	}
	if e.Err() != nil {
		return misuse("stream: " + e.Err().Error())
	}
	status, response := boundary.WriteEventToStream(e.B)
	return callError(status, response, "stream", "")
}

// Collect stores the step's event until there is one event for each target, and returns
// false until then. With the event that completes the set, Collect fills the targets,
// which are pointers to event structs, and returns true. Events of the same type fill
// their targets in the order of arrival; surplus events wait for the next set.
//
//	var a StepAEvent
//	var b StepBEvent
//	complete, err := ctx.Collect(&a, &b)
//	if err != nil || !complete {
//		return nil, err
//	}
func (inv *invocation) Collect(targets ...any) (complete bool, err error) {
	return inv.CollectIn("", targets...)
}

// CollectIn is [Context.Collect] with a separate buffer, for steps that collect several
// sets.
func (inv *invocation) CollectIn(buffer string, targets ...any) (complete bool, err error) {
	types := make([]*eventType, len(targets))
	for i, target := range targets {
		t := reflect.TypeOf(target)
		if t == nil || t.Kind() != reflect.Pointer {
			return false, misuse("collect: pass pointers to events: Collect(&first, &second)")
		}
		if types[i], err = eventOf(t.Elem()); err != nil {
			return false, misuse("collect: " + err.Error())
		}
	}
	d, err := inv.collect(buffer, types)
	if d == nil || err != nil {
		return false, err
	}
	for i, target := range targets {
		v := reflect.ValueOf(target)
		v.Elem().SetZero()
		collected := invocation{in: d, step: inv.step}
		collected.readEvent(types[i], v.UnsafePointer())
	}
	if err := d.Err(); err != nil {
		return false, misuse("collect: " + err.Error())
	}
	return true, nil
}

// CollectN stores the step's event until there are n events of type E. It returns nil
// until then.
func CollectN[E, S any](ctx *Context[S], n int) ([]E, error) {
	et, err := eventOf(reflect.TypeOf((*E)(nil)).Elem())
	if err != nil {
		return nil, misuse("collect: " + err.Error())
	}
	types := make([]*eventType, n)
	for i := range types {
		types[i] = et
	}
	d, err := ctx.collect("", types)
	if d == nil || err != nil {
		return nil, err
	}
	events := make([]E, n)
	collected := invocation{in: d, step: ctx.step}
	for i := range events {
		collected.readEvent(et, unsafe.Pointer(&events[i]))
	}
	if err := d.Err(); err != nil {
		return nil, misuse("collect: " + err.Error())
	}
	return events, nil
}

// collect returns a decoder positioned at the first of the collected events, or nil while
// the set is incomplete.
func (inv *invocation) collect(buffer string, types []*eventType) (*cbor.Decoder, error) {
	if inv.trigger == nil {
		return nil, misuse("collect: the step takes several events at once already: let it take a single one")
	}
	if len(types) == 0 {
		return nil, misuse("collect: nothing to collect: pass a pointer for each event")
	}
	n := 2
	if buffer != "" {
		n = 3
	}
	e := inv.begin(n)
	e.Raw(inv.trigger)
	e.List(len(types))
	for _, et := range types {
		e.Text(et.name)
	}
	if buffer != "" {
		e.Text(buffer)
	}
	status, response := boundary.CollectEvents(e.B)
	if err := callError(status, response, "collect", ""); err != nil {
		return nil, err
	}
	d := cbor.NewDecoder(response)
	if d.TryNull() {
		return nil, nil
	}
	if got := d.Array(); got != len(types) {
		return nil, misuse("collect: the host gave another number of events than were asked for")
	}
	return d, nil
}

// Now returns the time. The time does not advance while a step computes, and is the same
// when the step is replayed.
func (inv *invocation) Now() time.Time {
	status, response := boundary.Now(inv.begin(0).B)
	if status == boundary.OK {
		d := cbor.NewDecoder(response)
		if ns := d.Int(-1<<63, 1<<63-1); !d.Failed() {
			return time.Unix(0, ns)
		}
	}
	return inv.RunInfo().Started()
}

// Random returns n random bytes, at most 4096. They are the same when the step is
// replayed.
func (inv *invocation) Random(n int) ([]byte, error) {
	if n < 0 || n > 4096 {
		return nil, misuse("random: ask for 0 to 4096 bytes at a time")
	}
	e := inv.begin(1)
	e.Int(int64(n))
	status, response := boundary.Random(e.B)
	if err := callError(status, response, "random", ""); err != nil {
		return nil, err
	}
	d := cbor.NewDecoder(response)
	return d.Bytes(), d.Err()
}

// Levels of log records.
const (
	LevelDebug = -4
	LevelInfo  = 0
	LevelWarn  = 4
	LevelError = 8
)

// Debug writes a log record; see [Context.Log].
func (inv *invocation) Debug(message string, attrs ...any) { inv.Log(LevelDebug, message, attrs...) }

// Info writes a log record; see [Context.Log].
func (inv *invocation) Info(message string, attrs ...any) { inv.Log(LevelInfo, message, attrs...) }

// Warn writes a log record; see [Context.Log].
func (inv *invocation) Warn(message string, attrs ...any) { inv.Log(LevelWarn, message, attrs...) }

// Error writes a log record; see [Context.Log].
func (inv *invocation) Error(message string, attrs ...any) { inv.Log(LevelError, message, attrs...) }

// Log writes a log record of the given level. Attributes are alternating keys and values:
//
//	ctx.Info("counted", "words", n)
//
// A record whose attributes cannot be encoded is dropped. An attempt that logs more than
// the limits log_lines and log_bytes allow ends with the code "limit_exceeded".
func (inv *invocation) Log(level int, message string, attrs ...any) {
	n := 2
	if len(attrs) > 0 {
		n = 3
	}
	e := inv.begin(n)
	e.Int(int64(level))
	e.Text(message)
	if len(attrs) > 0 {
		e.Value(pairs(attrs))
	}
	if e.Err() == nil {
		boundary.Log(e.B)
	}
}

// pairs makes a map of alternating keys and values.
func pairs(attrs []any) map[string]any {
	m := make(map[string]any, len(attrs)/2)
	for i := 0; i < len(attrs); i += 2 {
		key, ok := attrs[i].(string)
		if !ok || i+1 == len(attrs) {
			m["!badkey"] = textOf(attrs[i])
			break
		}
		v := attrs[i+1]
		if err, ok := v.(error); ok {
			v = err.Error()
		}
		m[key] = v
	}
	return m
}
