package abi

import (
	"math"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/weftrun/weft/abi/cbor"
)

// encoder writes a message in Core Deterministic Encoding. It enforces the same rules as
// the decoders, so that every encoded message can be decoded. It copies the Raws of a
// message unchecked (see [Raw]). It keeps the first error.
type encoder struct {
	b    []byte
	path []segment
	err  *DataError
}

// encoders keeps encoders with the memory of their paths.
var encoders = sync.Pool{New: func() any { return new(encoder) }}

// encode runs a message's writer on a buffer of the given capacity.
func encode[T any](m T, size int, write func(*encoder, T)) ([]byte, error) {
	e := encoders.Get().(*encoder)
	*e = encoder{b: make([]byte, 0, size), path: e.path[:0]}
	defer func() {
		*e = encoder{path: e.path[:0]} // so that the pool does not keep a message alive
		encoders.Put(e)
	}()
	write(e, m)
	if len(e.b) > DefaultLimits.MaxBytes {
		e.fail("", "message too long")
	}
	if e.err != nil {
		return nil, e.err
	}
	return e.b, nil
}

func (e *encoder) fail(field, reason string) {
	if e.err == nil {
		e.err = &DataError{Path: pathOf(e.path, field), Offset: -1, Reason: reason}
	}
}

func (e *encoder) check(field, fault string) {
	if fault != "" {
		e.fail(field, fault)
	}
}

func (e *encoder) push(s segment) { e.path = append(e.path, s) }
func (e *encoder) pop()           { e.path = e.path[:len(e.path)-1] }

// array begins an array of n items.
func (e *encoder) array(n int) { e.b = cbor.AppendHead(e.b, cbor.Array, uint64(n)) }

// openMap begins a map of fewer than 24 keys; key counts them.
func (e *encoder) openMap() (mark int) {
	e.b = cbor.AppendHead(e.b, cbor.Map, 0)
	return len(e.b) - 1
}

// key adds a key to the map begun at mark. Keys must come in canonical order.
func (e *encoder) key(mark int, key string) {
	e.b[mark]++
	e.b = cbor.AppendText(e.b, key)
}

// writeAll writes an array of items of one kind.
func writeAll[T any](e *encoder, field string, list []T, write func(*encoder, *T)) {
	e.push(segment{name: field, index: -1})
	e.array(len(list))
	for i := range list {
		e.push(segment{index: i})
		write(e, &list[i])
		e.pop()
	}
	e.pop()
}

func (e *encoder) text(field, s string) {
	if !utf8.ValidString(s) {
		e.fail(field, "text is not valid UTF-8")
		return
	}
	if len(s) > DefaultLimits.MaxText {
		e.fail(field, "text too long")
		return
	}
	e.b = cbor.AppendText(e.b, s)
}

func (e *encoder) textOf(field, s string, fault func(string) string) {
	e.check(field, fault(s))
	e.text(field, s)
}

func (e *encoder) name(field, s string)         { e.textOf(field, s, nameFault) }
func (e *encoder) typeName(field, s string)     { e.textOf(field, s, typeNameFault) }
func (e *encoder) workflowName(field, s string) { e.textOf(field, s, workflowNameFault) }
func (e *encoder) statePath(field, s string)    { e.textOf(field, s, pathFault) }

func (e *encoder) uint(v uint64) { e.b = cbor.AppendHead(e.b, cbor.Uint, v) }
func (e *encoder) int(v int64)   { e.b = cbor.AppendInt(e.b, v) }
func (e *encoder) bool(v bool)   { e.b = cbor.AppendBool(e.b, v) }
func (e *encoder) null()         { e.b = append(e.b, cbor.Null) }

func (e *encoder) duration(field string, d time.Duration) {
	e.check(field, durationFault(d))
	e.uint(uint64(d))
}

func (e *encoder) float(field string, f float64) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		e.fail(field, "NaN and infinities are not allowed")
		return
	}
	e.b = cbor.AppendFloat(e.b, f)
}

// value writes a required value.
func (e *encoder) value(field string, r Raw) {
	if len(r) == 0 {
		e.fail(field, "is missing")
		return
	}
	e.b = append(e.b, r...)
}

// mapValue writes a value that must be a map.
func (e *encoder) mapValue(field string, r Raw) {
	if len(r) > 0 && cbor.Major(r[0]) != cbor.Map {
		e.fail(field, "must be a map, not "+majorNames[cbor.Major(r[0])])
		return
	}
	e.value(field, r)
}
