package abi

import "github.com/weftrun/weft/abi/cbor"

// eventRoom exceeds the size of the heads of an event.
const eventRoom = 5 + 5 + 9

func writeEvent(e *encoder, ev *Event) {
	if ev.ID == 0 {
		e.array(2)
	} else {
		e.array(3)
	}
	e.typeName("type", ev.Type)
	if ev.Body == nil {
		e.b = append(e.b, EmptyMap...)
	} else {
		e.mapValue("body", ev.Body)
	}
	if ev.ID != 0 {
		e.uint(ev.ID)
	}
}

// event writes an event in a field.
func (e *encoder) event(field string, ev *Event) {
	e.push(segment{name: field, index: -1})
	writeEvent(e, ev)
	e.pop()
}

func readEvent(d *decoder) Event { return d.event("") }

// event reads an event in a field.
func (d *decoder) event(field string) Event {
	var ev Event
	n := d.array(field, 2, 3)
	ev.Type = d.typeName("type")
	ev.Body = d.mapValue("body")
	if n > 2 {
		ev.ID = d.uint("id")
	}
	d.close()
	return ev
}

// Encode writes the event; a nil Body is an empty map.
func (m Event) Encode() ([]byte, error) {
	return encode(m, eventRoom+len(m.Type)+len(m.Body), func(e *encoder, m Event) { writeEvent(e, &m) })
}

// DecodeEvent reads an event. Its body shares b's memory if b is canonical, so b must not
// be modified afterwards. The error is a *[DataError].
func DecodeEvent(b []byte) (Event, error) { return decode(b, readEvent) }

// events writes one event or a list.
func (e *encoder) events(field string, list bool, events []Event) {
	switch {
	case list:
		writeAll(e, field, events, writeEvent)
	case len(events) == 1:
		e.event(field, &events[0])
	default:
		e.fail(field, "must be exactly one event unless it is a list")
	}
}

// events reads one event or a list. An event begins with text; a list begins with an
// array, or is empty.
func (d *decoder) events(field string) (events []Event, isList bool) {
	if !d.next(cbor.Array) {
		d.expected(field, "an event or an array of events")
		return nil, false
	}
	_, next, err := d.head(d.off)
	if err == nil && next < len(d.b) && cbor.Major(d.b[next]) == cbor.Text {
		ev := d.event(field)
		if d.failed() {
			return nil, false
		}
		return []Event{ev}, false
	}
	return list(d, field, 0, readEvent), true
}

func eventsRoom(events []Event) int {
	n := 9
	for i := range events {
		n += eventRoom + len(events[i].Type) + len(events[i].Body)
	}
	return n
}

var errorFields = fieldSet{required: 2, keys: []string{"code", "message", "retryable", "data"}}

func writeError(e *encoder, m *Error) {
	mark := e.openMap()
	e.key(mark, "code")
	e.text("code", m.Code)
	if m.Data != nil {
		e.key(mark, "data")
		e.value("data", m.Data)
	}
	e.key(mark, "message")
	e.text("message", m.Message)
	if m.Retryable != nil {
		e.key(mark, "retryable")
		e.bool(*m.Retryable)
	}
}

func readError(d *decoder) Error { return d.error("") }

func (d *decoder) error(field string) Error {
	var m Error
	d.fields(field, errorFields, func(key string) {
		switch key {
		case "code":
			m.Code = d.text(key)
		case "message":
			m.Message = d.text(key)
		case "retryable":
			m.Retryable = new(d.bool(key))
		case "data":
			m.Data = d.value(key)
		}
	})
	return m
}

func (e *encoder) error(field string, m *Error) {
	e.push(segment{name: field, index: -1})
	writeError(e, m)
	e.pop()
}

func errorRoom(m *Error) int {
	if m == nil {
		return 0
	}
	return 64 + len(m.Code) + len(m.Message) + len(m.Data)
}

// Encode writes the error.
func (e Error) Encode() ([]byte, error) {
	return encode(e, errorRoom(&e), func(w *encoder, e Error) { writeError(w, &e) })
}

// DecodeError reads an error. Its data shares b's memory if b is canonical, so b must not
// be modified afterwards. The returned error is a *[DataError].
func DecodeError(b []byte) (Error, error) { return decode(b, readError) }

func writeRunInfo(e *encoder, r *RunInfo) {
	e.push(segment{name: "run", index: -1})
	if r.LastError == nil {
		e.array(7)
	} else {
		e.array(8)
	}
	e.text("tenant", r.Tenant)
	e.workflowName("workflow", r.Workflow)
	e.text("run-id", r.RunID)
	e.text("session-id", r.SessionID)
	e.uint(r.Invocation)
	e.uint(r.Attempt)
	e.int(r.Clock)
	if r.LastError != nil {
		e.error("last-error", r.LastError)
	}
	e.pop()
}

func (d *decoder) runInfo() RunInfo {
	var r RunInfo
	n := d.array("run", 7, 8)
	r.Tenant = d.text("tenant")
	r.Workflow = d.workflowName("workflow")
	r.RunID = d.text("run-id")
	r.SessionID = d.text("session-id")
	r.Invocation = d.uint("invocation-id")
	r.Attempt = d.uint("attempt")
	r.Clock = d.int("clock")
	if n > 7 {
		r.LastError = new(d.error("last-error"))
	}
	d.close()
	return r
}

func writeStepInput(e *encoder, m StepInput) {
	if m.Config == nil {
		e.array(3)
	} else {
		e.array(4)
	}
	e.name("step", m.Step)
	e.events("trigger", m.List, m.Trigger)
	writeRunInfo(e, &m.Run)
	if m.Config != nil {
		e.mapValue("config", m.Config)
	}
}

func readStepInput(d *decoder) StepInput {
	var m StepInput
	n := d.array("", 3, 4)
	m.Step = d.name("step")
	m.Trigger, m.List = d.events("trigger")
	m.Run = d.runInfo()
	if n > 3 {
		m.Config = d.mapValue("config")
	}
	d.close()
	return m
}

// Encode writes the input of a step, with one allocation. Without List there must be
// exactly one trigger.
func (m StepInput) Encode() ([]byte, error) {
	r := &m.Run
	size := 96 + len(m.Step) + len(m.Config) + eventsRoom(m.Trigger) +
		len(r.Tenant) + len(r.Workflow) + len(r.RunID) + len(r.SessionID) + errorRoom(r.LastError)
	return encode(m, size, writeStepInput)
}

// DecodeStepInput reads the input of a step. Its Raws share b's memory where b is
// canonical, so b must not be modified afterwards. The error is a *[DataError].
func DecodeStepInput(b []byte) (StepInput, error) { return decode(b, readStepInput) }

func writeStepOutput(e *encoder, m StepOutput) {
	e.array(2)
	if m.Err != nil {
		if m.List || len(m.Events) > 0 {
			e.fail("", "an error excludes events")
		}
		e.uint(1)
		e.error("error", m.Err)
		return
	}
	e.uint(0)
	if !m.List && len(m.Events) == 0 {
		e.null()
		return
	}
	e.events("events", m.List, m.Events)
}

func readStepOutput(d *decoder) StepOutput {
	var m StepOutput
	d.array("", 2, 2)
	at := d.off
	switch outcome := d.uint("outcome"); {
	case d.failed():
	case outcome == 1:
		m.Err = new(d.error("error"))
	case outcome != 0:
		d.failAt(at, "outcome", "must be 0 or 1")
	case d.null():
	default:
		m.Events, m.List = d.events("events")
	}
	d.close()
	return m
}

// Encode writes the result of a step.
func (m StepOutput) Encode() ([]byte, error) {
	return encode(m, 8+eventsRoom(m.Events)+errorRoom(m.Err), writeStepOutput)
}

// DecodeStepOutput reads the result of a step. Its Raws share b's memory where b is
// canonical, so b must not be modified afterwards. The error is a *[DataError].
func DecodeStepOutput(b []byte) (StepOutput, error) { return decode(b, readStepOutput) }
