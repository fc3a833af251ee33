package abi

import (
	"strconv"

	"github.com/weftrun/weft/abi/cbor"
)

// The requests of the host calls, and the responses that are more than a value. The Raws
// in the results of decoders share b's memory where b is canonical, so b must not be
// modified afterwards. Every error is a *[DataError].

// callRoom exceeds the size of the heads and fixed keys of any request.
const callRoom = 128

func writeStateGet(e *encoder, m StateGet) {
	if m.Default == nil {
		e.array(1)
	} else {
		e.array(2)
	}
	e.statePath("path", m.Path)
	if m.Default != nil {
		e.value("default", m.Default)
	}
}

func readStateGet(d *decoder) StateGet {
	var m StateGet
	n := d.array("", 1, 2)
	m.Path = d.statePath("path")
	if n > 1 {
		m.Default = d.value("default")
	}
	d.close()
	return m
}

// Encode writes the request.
func (m StateGet) Encode() ([]byte, error) {
	return encode(m, callRoom+len(m.Path)+len(m.Default), writeStateGet)
}

// DecodeStateGet reads a state_get request.
func DecodeStateGet(b []byte) (StateGet, error) { return decode(b, readStateGet) }

func writeStateBegin(e *encoder, m StateBegin) {
	e.array(1)
	e.statePath("path", m.Path)
}

func readStateBegin(d *decoder) StateBegin {
	d.array("", 1, 1)
	m := StateBegin{Path: d.statePath("path")}
	d.close()
	return m
}

// Encode writes the request.
func (m StateBegin) Encode() ([]byte, error) {
	return encode(m, callRoom+len(m.Path), writeStateBegin)
}

// DecodeStateBegin reads a state_begin request.
func DecodeStateBegin(b []byte) (StateBegin, error) { return decode(b, readStateBegin) }

func writeStateCommit(e *encoder, m StateCommit) {
	e.array(1)
	e.value("value", m.Value)
}

func readStateCommit(d *decoder) StateCommit {
	d.array("", 1, 1)
	m := StateCommit{Value: d.value("value")}
	d.close()
	return m
}

// Encode writes the request.
func (m StateCommit) Encode() ([]byte, error) {
	return encode(m, callRoom+len(m.Value), writeStateCommit)
}

// DecodeStateCommit reads a state_commit request.
func DecodeStateCommit(b []byte) (StateCommit, error) { return decode(b, readStateCommit) }

func writeSendEvent(e *encoder, m SendEvent) {
	if m.Step == "" {
		e.array(1)
	} else {
		e.array(2)
	}
	e.event("event", &m.Event)
	if m.Step != "" {
		e.name("step", m.Step)
	}
}

func readSendEvent(d *decoder) SendEvent {
	var m SendEvent
	n := d.array("", 1, 2)
	m.Event = d.event("event")
	if n > 1 {
		m.Step = d.name("step")
	}
	d.close()
	return m
}

// Encode writes the request.
func (m SendEvent) Encode() ([]byte, error) {
	return encode(m, callRoom+len(m.Event.Type)+len(m.Event.Body)+len(m.Step), writeSendEvent)
}

// DecodeSendEvent reads a send_event request.
func DecodeSendEvent(b []byte) (SendEvent, error) { return decode(b, readSendEvent) }

func writeTypeName(e *encoder, s *string) { e.typeName("", *s) }
func readTypeName(d *decoder) string      { return d.typeName("") }

func writeCollectEvents(e *encoder, m CollectEvents) {
	if m.Buffer == "" {
		e.array(2)
	} else {
		e.array(3)
	}
	e.event("event", &m.Event)
	writeAll(e, "expected", m.Expected, writeTypeName)
	if m.Buffer != "" {
		e.name("buffer", m.Buffer)
	}
}

func readCollectEvents(d *decoder) CollectEvents {
	var m CollectEvents
	n := d.array("", 2, 3)
	m.Event = d.event("event")
	m.Expected = list(d, "expected", 0, readTypeName)
	if n > 2 {
		m.Buffer = d.name("buffer")
	}
	d.close()
	return m
}

// Encode writes the request.
func (m CollectEvents) Encode() ([]byte, error) {
	return encode(m, callRoom+len(m.Event.Type)+len(m.Event.Body)+len(m.Buffer), writeCollectEvents)
}

// DecodeCollectEvents reads a collect_events request.
func DecodeCollectEvents(b []byte) (CollectEvents, error) { return decode(b, readCollectEvents) }

var waitFields = fieldSet{required: 1, keys: []string{
	"type", "requirements", "waiter_event", "waiter_id", "timeout", "broadcast",
}}

func writeWaitForEvent(e *encoder, m WaitForEvent) {
	mark := e.openMap()
	e.key(mark, "type")
	e.typeName("type", m.Type)
	if m.Timeout != 0 {
		e.key(mark, "timeout")
		e.duration("timeout", m.Timeout)
	}
	if m.Broadcast {
		e.key(mark, "broadcast")
		e.bool(true)
	}
	if m.WaiterID != "" {
		e.key(mark, "waiter_id")
		e.name("waiter_id", m.WaiterID)
	}
	if m.Requirements != nil {
		e.key(mark, "requirements")
		e.mapValue("requirements", m.Requirements)
	}
	if m.WaiterEvent != nil {
		e.key(mark, "waiter_event")
		e.event("waiter_event", m.WaiterEvent)
	}
}

func readWaitForEvent(d *decoder) WaitForEvent {
	var m WaitForEvent
	d.fields("", waitFields, func(key string) {
		switch key {
		case "type":
			m.Type = d.typeName(key)
		case "requirements":
			m.Requirements = d.mapValue(key)
		case "waiter_event":
			m.WaiterEvent = new(d.event(key))
		case "waiter_id":
			m.WaiterID = d.name(key)
		case "timeout":
			m.Timeout = d.duration(key)
		case "broadcast":
			m.Broadcast = d.bool(key)
		}
	})
	return m
}

// Encode writes the request.
func (m WaitForEvent) Encode() ([]byte, error) {
	size := callRoom + len(m.Type) + len(m.Requirements) + len(m.WaiterID)
	if m.WaiterEvent != nil {
		size += len(m.WaiterEvent.Type) + len(m.WaiterEvent.Body)
	}
	return encode(m, size, writeWaitForEvent)
}

// DecodeWaitForEvent reads a wait_for_event request.
func DecodeWaitForEvent(b []byte) (WaitForEvent, error) { return decode(b, readWaitForEvent) }

func writeWriteStream(e *encoder, m WriteStream) {
	e.array(1)
	e.event("event", &m.Event)
}

func readWriteStream(d *decoder) WriteStream {
	d.array("", 1, 1)
	m := WriteStream{Event: d.event("event")}
	d.close()
	return m
}

// Encode writes the request.
func (m WriteStream) Encode() ([]byte, error) {
	return encode(m, callRoom+len(m.Event.Type)+len(m.Event.Body), writeWriteStream)
}

// DecodeWriteStream reads a write_event_to_stream request.
func DecodeWriteStream(b []byte) (WriteStream, error) { return decode(b, readWriteStream) }

var (
	runFields     = fieldSet{required: 2, keys: []string{"workflow", "event", "id", "session", "include_stream"}}
	sessionFields = fieldSet{keys: []string{"shared", "id"}}
)

func writeRunWorkflow(e *encoder, m RunWorkflow) {
	mark := e.openMap()
	if m.ID != "" {
		e.key(mark, "id")
		e.name("id", m.ID)
	}
	e.key(mark, "event")
	e.event("event", &m.Event)
	if m.Session != nil {
		e.key(mark, "session")
		writeChildSession(e, m.Session)
	}
	e.key(mark, "workflow")
	e.workflowName("workflow", m.Workflow)
	if m.IncludeStream {
		e.key(mark, "include_stream")
		e.bool(true)
	}
}

func writeChildSession(e *encoder, s *ChildSession) {
	e.push(segment{name: "session", index: -1})
	mark := e.openMap()
	if s.ID != "" {
		e.key(mark, "id")
		e.text("id", s.ID)
	}
	if s.Shared {
		e.key(mark, "shared")
		e.bool(true)
	}
	e.pop()
}

func readRunWorkflow(d *decoder) RunWorkflow {
	var m RunWorkflow
	d.fields("", runFields, func(key string) {
		switch key {
		case "workflow":
			m.Workflow = d.workflowName(key)
		case "event":
			m.Event = d.event(key)
		case "id":
			m.ID = d.name(key)
		case "session":
			m.Session = new(readChildSession(d))
		case "include_stream":
			m.IncludeStream = d.bool(key)
		}
	})
	return m
}

func readChildSession(d *decoder) ChildSession {
	var s ChildSession
	d.fields("session", sessionFields, func(key string) {
		at := d.off
		switch key {
		case "shared":
			if s.Shared = d.bool(key); !s.Shared {
				d.failAt(at, key, "must be true, or absent")
			}
		case "id":
			s.ID = d.text(key)
		}
	})
	return s
}

// Encode writes the request.
func (m RunWorkflow) Encode() ([]byte, error) {
	size := callRoom + len(m.Workflow) + len(m.Event.Type) + len(m.Event.Body) + len(m.ID)
	if m.Session != nil {
		size += len(m.Session.ID)
	}
	return encode(m, size, writeRunWorkflow)
}

// DecodeRunWorkflow reads a run_workflow request.
func DecodeRunWorkflow(b []byte) (RunWorkflow, error) { return decode(b, readRunWorkflow) }

func writeCallResource(e *encoder, m CallResource) {
	e.array(3)
	e.name("resource", m.Resource)
	e.text("method", m.Method)
	e.value("payload", m.Payload)
}

func readCallResource(d *decoder) CallResource {
	var m CallResource
	d.array("", 3, 3)
	m.Resource = d.name("resource")
	m.Method = d.text("method")
	m.Payload = d.value("payload")
	d.close()
	return m
}

// Encode writes the request.
func (m CallResource) Encode() ([]byte, error) {
	return encode(m, callRoom+len(m.Resource)+len(m.Method)+len(m.Payload), writeCallResource)
}

// DecodeCallResource reads a call_resource request.
func DecodeCallResource(b []byte) (CallResource, error) { return decode(b, readCallResource) }

func writeSleep(e *encoder, m Sleep) {
	e.array(1)
	e.duration("duration", m.Duration)
}

func readSleep(d *decoder) Sleep {
	d.array("", 1, 1)
	m := Sleep{Duration: d.duration("duration")}
	d.close()
	return m
}

// Encode writes the request.
func (m Sleep) Encode() ([]byte, error) { return encode(m, 16, writeSleep) }

// DecodeSleep reads a sleep request.
func DecodeSleep(b []byte) (Sleep, error) { return decode(b, readSleep) }

func writeRandom(e *encoder, m Random) {
	e.array(1)
	e.check("n", randomFault(m.N))
	e.uint(m.N)
}

func readRandom(d *decoder) Random {
	d.array("", 1, 1)
	m := Random{N: d.uintOf("n", randomFault)}
	d.close()
	return m
}

// Encode writes the request.
func (m Random) Encode() ([]byte, error) { return encode(m, 16, writeRandom) }

// DecodeRandom reads a random request.
func DecodeRandom(b []byte) (Random, error) { return decode(b, readRandom) }

func writeLog(e *encoder, m Log) {
	if m.Attrs == nil {
		e.array(2)
	} else {
		e.array(3)
	}
	e.check("level", levelFault(m.Level))
	e.int(m.Level)
	e.text("message", m.Message)
	if m.Attrs != nil {
		e.mapValue("attrs", m.Attrs)
	}
}

func readLog(d *decoder) Log {
	var m Log
	n := d.array("", 2, 3)
	at := d.off
	if m.Level = d.int("level"); !d.failed() {
		d.check(at, "level", levelFault(m.Level))
	}
	m.Message = d.text("message")
	if n > 2 {
		m.Attrs = d.mapValue("attrs")
	}
	d.close()
	return m
}

// Encode writes the request.
func (m Log) Encode() ([]byte, error) {
	return encode(m, callRoom+len(m.Message)+len(m.Attrs), writeLog)
}

// DecodeLog reads a log request.
func DecodeLog(b []byte) (Log, error) { return decode(b, readLog) }

// EncodeEmpty writes the request of a call without content (state_abort, now).
func EncodeEmpty() ([]byte, error) { return cbor.AppendHead(nil, cbor.Array, 0), nil }

// DecodeEmpty reads the request of a call without content.
func DecodeEmpty(b []byte) error {
	_, err := decode(b, func(d *decoder) struct{} {
		d.array("", 0, 0)
		d.close()
		return struct{}{}
	})
	return err
}

// EncodeEvents writes the response of collect_events: null for nil (the set is
// incomplete), otherwise an array.
func EncodeEvents(events []Event) ([]byte, error) {
	return encode(events, eventsRoom(events), func(e *encoder, events []Event) {
		if events == nil {
			e.null()
			return
		}
		writeAll(e, "", events, writeEvent)
	})
}

// DecodeEvents reads the response of collect_events.
func DecodeEvents(b []byte) ([]Event, error) {
	return decode(b, func(d *decoder) []Event {
		if d.null() {
			return nil
		}
		if events := list(d, "", 0, readEvent); events != nil {
			return events
		}
		return []Event{}
	})
}

// EncodeResults writes the response of state_edit, one result for each edit.
// A nil Raw is null.
func EncodeResults(results []Raw) ([]byte, error) {
	size := 9
	for _, r := range results {
		size += len(r) + 1
	}
	return encode(results, size, func(e *encoder, results []Raw) {
		if len(results) == 0 {
			e.fail("", tooFew(0, 1))
		}
		e.array(len(results))
		for i, r := range results {
			if r == nil {
				r = Null
			}
			e.value(strconv.Itoa(i), r)
		}
	})
}

// DecodeResults reads the response of state_edit.
func DecodeResults(b []byte) ([]Raw, error) {
	return decode(b, func(d *decoder) []Raw {
		return list(d, "", 1, func(d *decoder) Raw { return d.value("") })
	})
}
