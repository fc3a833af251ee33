package wefttest

import (
	"errors"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/sdk-guest/go/internal/boundary"
	"github.com/weftrun/weft/sdk-guest/go/internal/cbor"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

func encodeValue(v any) (abi.Raw, error) { return codec.Append(nil, v) }

// decodeValue decodes a value of the engine; nil for nothing.
func decodeValue(b abi.Raw) any {
	if b == nil {
		return nil
	}
	return cbor.NewDecoder(b).Value()
}

// bodyOf encodes the fields of an event: a map, a struct or nil.
func bodyOf(v any) (abi.Raw, error) {
	if v == nil {
		return abi.EmptyMap, nil
	}
	b, err := encodeValue(v)
	if err == nil && (len(b) == 0 || b[0]>>5 != cbor.MajorMap) {
		err = errors.New("the fields of an event are a struct or a map")
	}
	return b, err
}

// typedEvent encodes a value of an event type of this process.
func typedEvent(v any) (name string, body abi.Raw, err error) {
	if ev, ok := v.(Event); ok {
		body, err = bodyOf(ev.Body)
		return ev.Type, body, err
	}
	if boundary.EventName == nil {
		return "", nil, errors.New("this process defines no workflow: name the event's type, wefttest.Event{Type: ...}")
	}
	if name, err = boundary.EventName(v); err == nil {
		body, err = bodyOf(v)
	}
	return name, body, err
}

func eventOf(name string, body abi.Raw) Event {
	fields, _ := decodeValue(body).(map[string]any)
	return Event{Type: name, Body: fields}
}

func recordOf(l *engine.LogRecord) Record {
	attrs, _ := decodeValue(l.Attrs).(map[string]any)
	return Record{Level: int(l.Level), Message: l.Message, Attrs: attrs}
}

func durationOf(ns int64) time.Duration { return time.Duration(ns) }

// failureOf converts an error of the engine for tests.
func failureOf(e *abi.Error) *Failure {
	f := &Failure{Code: e.Code, Message: e.Message, Fields: map[string]any{"code": e.Code, "message": e.Message}}
	if e.Retryable != nil {
		f.Fields["retryable"] = *e.Retryable
	}
	if e.Data != nil {
		f.Fields["data"] = decodeValue(e.Data)
	}
	return f
}

// guestError converts any error for the engine.
func guestError(err error) *abi.Error {
	var failure *Failure
	var already *abi.Error
	var refused *host.Error
	switch {
	case errors.As(err, &already):
		return already
	case errors.As(err, &failure):
		e := &abi.Error{Code: failure.Code, Message: failure.Message}
		if again, ok := failure.Fields["retryable"].(bool); ok {
			e.Retryable = &again
		}
		if data, ok := failure.Fields["data"]; ok {
			e.Data, _ = encodeValue(data)
		}
		return e
	case errors.As(err, &refused):
		return &abi.Error{Code: string(refused.Code), Message: refused.Message}
	}
	return &abi.Error{Code: "error", Message: err.Error()}
}

// refusal returns the status and response of a failed call.
func refusal(code, message string) (uint32, []byte) {
	b, err := (&abi.Error{Code: code, Message: message}).Encode()
	if err != nil {
		panic(err) // encoding two texts cannot fail
	}
	return uint32(abi.StatusOf(code)), b
}
