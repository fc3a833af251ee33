package engine

import (
	"strconv"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host"
)

// publish puts an event on the stream of the run's handler.
func (s *Session) publish(r *run, ev host.StreamEvent) host.StreamEvent {
	ev.Seq = r.handler.next
	r.handler.next++
	ev.RunID, ev.Workflow = r.rec.RunID, r.rec.Workflow
	s.emit(Publish{HandlerID: r.handler.id, Event: ev})
	s.passOn(r, ev)
	return ev
}

// streamEvent returns the stream's form of an event of the workflow's own, or of a base
// type.
func (r *run) streamEvent(ev abi.Event) host.StreamEvent {
	return host.StreamEvent{Type: ev.Type, Types: r.graph.Ancestors(ev.Type), Base: isBase(ev.Type), Body: ev.Body}
}

var (
	terminalAncestors = []string{abi.TypeStop}
	internalAncestors = []string{"InternalDispatchEvent"}
)

// runtimeEvent returns a terminal event that the runtime makes.
func runtimeEvent(typ string, body abi.Raw) host.StreamEvent {
	return host.StreamEvent{Type: typ, Types: terminalAncestors, Base: true, Body: body}
}

// publishInternal publishes an event that clients see only on request.
func (s *Session) publishInternal(r *run, typ string, body abi.Raw) {
	s.publish(r, host.StreamEvent{Type: typ, Types: internalAncestors, Base: true, Internal: true, Body: body})
}

// publishState publishes the state of an invocation.
func (s *Session) publishState(inv *invocation, stepState, worker, output string) {
	ev := host.StreamEvent{
		Type: abi.TypeStepStateChanged, Types: internalAncestors, Base: true, Internal: true,
		Body: stateChangedBody(inv.step.name, stepState, worker, inv.step.inputName(inv.trigger), output),
	}
	// Clients follow a run into its child by the child's handler.
	if on := inv.suspended; on != nil && on.child != nil {
		ev.Child = on.child.handler
	}
	s.publish(inv.run, ev)
}

// body writes a CBOR item. The item is in Core Deterministic Encoding if the keys are
// written in that order, shorter ones first. It is for the runtime's own small events, of
// which every invocation has several.
type body []byte

func (b body) uint(n uint64) body   { return cbor.AppendHead(b, cbor.Uint, n) }
func (b body) bool(v bool) body     { return cbor.AppendBool(b, v) }
func (b body) text(s string) body   { return cbor.AppendText(b, s) }
func (b body) array(n int) body     { return cbor.AppendHead(b, cbor.Array, uint64(n)) }
func (b body) pairs(n int) body     { return cbor.AppendHead(b, cbor.Map, uint64(n)) }
func (b body) item(raw []byte) body { return append(b, raw...) }

// textOrNull writes null for "".
func (b body) textOrNull(s string) body {
	if s == "" {
		return b.item(abi.Null)
	}
	return b.text(s)
}

// seconds writes nanoseconds as seconds, a float.
func (b body) seconds(ns int64) body {
	return cbor.AppendFloat(b, float64(ns)/1e9)
}

func stateChangedBody(step, stepState, worker, input, output string) abi.Raw {
	// Every invocation publishes several of these: allocate once.
	const keys = len("name") + len("worker_id") + len("step_state") + len("input_event_name") + len("output_event_name")
	b := make(body, 0, 1+keys+10*3+len(step)+len(stepState)+len(worker)+len(input)+len(output))
	b = b.pairs(5)
	b = b.text("name").text(step)
	b = b.text("worker_id").text(worker)
	b = b.text("step_state").text(stepState)
	b = b.text("input_event_name").text(input)
	b = b.text("output_event_name").textOrNull(output)
	return abi.Raw(b)
}

func unhandledBody(g *Graph, e emission, idle bool) abi.Raw {
	named := host.StreamEvent{Type: e.event.Type, Base: isBase(e.event.Type), Workflow: g.Workflow()}
	if IsRuntimeType(e.event.Type) {
		named.Base = true
	}
	b := body(nil).pairs(4)
	b = b.text("idle").bool(idle)
	b = b.text("step_name").textOrNull(e.step)
	b = b.text("event_type").text(e.event.Type)
	b = b.text("qualified_name").text(named.QualifiedName())
	return abi.Raw(b)
}

func timedOutBody(span int64, active []string) abi.Raw {
	b := body(nil).pairs(2)
	b = b.text("timeout").seconds(span)
	b = b.text("active_steps").array(len(active))
	for _, name := range active {
		b = b.text(name)
	}
	return abi.Raw(b)
}

// failure is the end of an invocation that gets no further attempt.
type failure struct {
	step     string
	err      *abi.Error
	attempts uint64
	elapsed  int64 // nanoseconds since the first attempt began
	// key and value are an additional field, for a step that answers calls. The key is
	// shorter than all other keys.
	key   string
	value abi.Raw
}

// body returns the body of the failure's event. input is nil, or the envelope of the
// events that the step failed on.
func (f failure) body(input abi.Raw) abi.Raw {
	n := 4
	if input != nil {
		n++
	}
	if f.value != nil {
		n++
	}
	b := make(body, 0, 128+len(f.err.Message)+len(input)+len(f.value)).pairs(n)
	if f.value != nil {
		b = b.text(f.key).item(f.value)
	}
	b = b.text("attempts").uint(f.attempts)
	b = b.text("exception").pairs(2)
	b = b.text("exception_type").text(f.err.Code)
	b = b.text("exception_message").text(f.err.Message)
	b = b.text("step_name").text(f.step)
	if input != nil {
		b = b.text("input_event").item(input)
	}
	b = b.text("elapsed_seconds").seconds(f.elapsed)
	return abi.Raw(b)
}

// failedBody returns the body of a StepFailedEvent. It leaves out an input that would
// make the body deeper or larger than a value may be.
func failedBody(f failure, inv *invocation) abi.Raw {
	var input body
	if inv.step.mode != modeOne {
		input = input.array(len(inv.trigger))
	}
	for _, ev := range inv.trigger {
		input = input.pairs(2).text("type").text(ev.Type).text("value").item(ev.Body)
	}
	whole := f.body(abi.Raw(input))
	// The nesting adds to the depth of the events, which may be at the limit already.
	if abi.CheckValue(whole, abi.MaxValueDepth) != nil {
		return f.body(abi.Null)
	}
	return whole
}

// showSeconds writes nanoseconds as seconds in the format of the field's reference
// server: 45.0s, 0.5s, 1e-09s.
func showSeconds(ns int64) string {
	f := float64(ns) / 1e9
	if f != 0 && (f < 1e-4 || f >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64) + "s"
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text + "s"
}
