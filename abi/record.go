package abi

import (
	"fmt"
	"reflect"

	codec "github.com/fxamacker/cbor/v2"

	"github.com/weftrun/weft/abi/cbor"
)

// MaxRecord is the largest length in bytes that [Unmarshal] accepts. A record contains
// one or a few messages and its own fields.
const MaxRecord = 64 << 20

// maxRecordDepth leaves room for a record's own fields around a message.
const maxRecordDepth = MaxMessageDepth + 24

var recordEncoding = must(codec.EncOptions{
	Sort:          codec.SortCoreDeterministic,
	ShortestFloat: codec.ShortestFloat16,
	NaNConvert:    codec.NaNConvertReject,
	InfConvert:    codec.InfConvertReject,
	BigIntConvert: codec.BigIntConvertReject,
	Time:          codec.TimeRFC3339NanoUTC,
	TimeTag:       codec.EncTagNone,
	IndefLength:   codec.IndefLengthForbidden,
	TagsMd:        codec.TagsForbidden,
}.EncMode())

var recordDecoding = must(codec.DecOptions{
	DupMapKey:         codec.DupMapKeyEnforcedAPF,
	IndefLength:       codec.IndefLengthForbidden,
	TagsMd:            codec.TagsForbidden,
	NaN:               codec.NaNDecodeForbidden,
	Inf:               codec.InfDecodeForbidden,
	UTF8:              codec.UTF8RejectInvalid,
	FieldNameMatching: codec.FieldNameMatchingCaseSensitive,
	ExtraReturnErrors: codec.ExtraDecErrorUnknownField,
	MaxNestedLevels:   maxRecordDepth,
	MaxArrayElements:  DefaultLimits.MaxElements,
	MaxMapPairs:       DefaultLimits.MaxElements / 2,
	DefaultMapType:    reflect.TypeFor[map[string]any](),
}.DecMode())

// must returns a codec's mode. An error is a mistake in the options above.
func must[M any](mode M, err error) M {
	if err != nil {
		panic(err)
	}
	return mode
}

// Marshal encodes one of the host's own records (journal rows, database columns) in Core
// Deterministic Encoding, by its "cbor" struct tags. [Raw], [Event] and [Error] values
// are written as they cross the boundary, except that a nil Raw becomes CBOR undefined,
// so that Unmarshal returns nil. In structs with keys, "omitzero" leaves a nil Raw out;
// "omitempty" does not.
//
// Marshal may be called from any goroutine.
func Marshal(v any) ([]byte, error) {
	b, err := recordEncoding.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode record %T: %w", v, err)
	}
	return b, nil
}

// Unmarshal decodes a record that [Marshal] wrote into v, a pointer. Unmarshal refuses
// what Marshal cannot have written: unknown and duplicate keys, tags, indefinite lengths,
// NaN, infinities, invalid UTF-8, trailing data, more than [MaxRecord] bytes. Nothing in
// v refers to b afterwards.
//
// Unmarshal may be called from any goroutine.
func Unmarshal(b []byte, v any) error {
	if len(b) > MaxRecord {
		return fmt.Errorf("decode record %T: %w", v,
			&DataError{Offset: MaxRecord, Reason: fmt.Sprintf("longer than %d bytes", MaxRecord)})
	}
	if err := recordDecoding.Unmarshal(b, v); err != nil {
		return fmt.Errorf("decode record %T: %w", v, err)
	}
	return nil
}

// MarshalCBOR returns the item itself, undefined for nil. It implements
// cbor.Marshaler.
func (r Raw) MarshalCBOR() ([]byte, error) {
	if r == nil {
		return []byte{cbor.Undefined}, nil
	}
	return r, nil
}

// UnmarshalCBOR copies the item, in canonical form. It implements cbor.Unmarshaler.
func (r *Raw) UnmarshalCBOR(b []byte) error {
	if len(b) == 1 && b[0] == cbor.Undefined {
		*r = nil
		return nil
	}
	canonical, err := Canonical(b, MaxValueDepth)
	if err != nil {
		return err
	}
	*r = append(Raw(nil), canonical...)
	return nil
}

// MarshalCBOR is [Event.Encode]. It implements cbor.Marshaler.
func (m Event) MarshalCBOR() ([]byte, error) { return m.Encode() }

// UnmarshalCBOR is [DecodeEvent] of a copy. It implements cbor.Unmarshaler.
func (m *Event) UnmarshalCBOR(b []byte) error {
	ev, err := DecodeEvent(append([]byte(nil), b...))
	if err != nil {
		return err
	}
	*m = ev
	return nil
}

// MarshalCBOR is [Error.Encode]. It implements cbor.Marshaler.
func (e Error) MarshalCBOR() ([]byte, error) { return e.Encode() }

// UnmarshalCBOR is [DecodeError] of a copy. It implements cbor.Unmarshaler.
func (e *Error) UnmarshalCBOR(b []byte) error {
	m, err := DecodeError(append([]byte(nil), b...))
	if err != nil {
		return err
	}
	*e = m
	return nil
}
