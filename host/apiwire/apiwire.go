// Package apiwire has the JSON objects of the HTTP API as structs: what the server sends
// and what it accepts. The server writes them with [Append], the client reads them with
// encoding/json, and the description of the API is derived from their tags. Adding a
// field to an answer takes one line here.
//
// A field has these tags:
//
//	json  its name, and omitempty if the field is absent when it is empty
//	doc   its text in the description of the API; the doc of a field named _ is the struct's
//	api   its bounds in the description, see [Field]
//	fill  "-" if [Fill] does not set the field: code sets it
//
// The package does not depend on how an object is sent, or on what the server does to
// make the object.
package apiwire

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/weftrun/weft/abi"
)

// Time is a moment in Unix nanoseconds. It is shown in UTC with microseconds.
type Time int64

// NullTime is a Time that may be unknown: 0 is null.
type NullTime int64

// NanoTime is a moment in Unix nanoseconds. It is shown in UTC with nanoseconds.
type NanoTime int64

// Seconds is a duration in nanoseconds. It is shown in seconds.
type Seconds int64

// OrNull is a text; "" is null.
type OrNull string

// Value is an encoded value of a user. It is shown as JSON; nil is null.
type Value abi.Raw

// The resolution of times, in nanoseconds, and the suffix for their zone.
const (
	micro, utc = 1000, "+00:00"
	nano, zulu = 1, "Z"
)

// Time returns the moment as a [time.Time].
func (t NanoTime) Time() time.Time { return time.Unix(0, int64(t)) }

// UnmarshalJSON implements [json.Unmarshaler].
func (t *Time) UnmarshalJSON(b []byte) error { return readTime((*int64)(t), b) }

// UnmarshalJSON implements [json.Unmarshaler].
func (t *NullTime) UnmarshalJSON(b []byte) error { return readTime((*int64)(t), b) }

// UnmarshalJSON implements [json.Unmarshaler].
func (t *NanoTime) UnmarshalJSON(b []byte) error { return readTime((*int64)(t), b) }

// MarshalJSON implements [json.Marshaler].
func (t Time) MarshalJSON() ([]byte, error) { return appendTime(nil, int64(t), micro, utc), nil }

// MarshalJSON implements [json.Marshaler].
func (t NullTime) MarshalJSON() ([]byte, error) {
	if t == 0 {
		return []byte("null"), nil
	}
	return Time(t).MarshalJSON()
}

// MarshalJSON implements [json.Marshaler].
func (t NanoTime) MarshalJSON() ([]byte, error) { return appendTime(nil, int64(t), nano, zulu), nil }

// MarshalJSON implements [json.Marshaler].
func (s OrNull) MarshalJSON() ([]byte, error) { return appendOrNull(nil, string(s)), nil }

func appendOrNull(dst []byte, s string) []byte {
	if s == "" {
		return append(dst, "null"...)
	}
	return AppendString(dst, s)
}

func readTime(nanos *int64, b []byte) error {
	var t *time.Time
	err := json.Unmarshal(b, &t)
	if *nanos = 0; t != nil {
		*nanos = t.UnixNano()
	}
	return err
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *Seconds) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(string(b), 64)
	*s = Seconds(math.Round(f * 1e9))
	return err
}

// MarshalJSON implements [json.Marshaler].
func (s Seconds) MarshalJSON() ([]byte, error) { return appendSeconds(nil, int64(s)), nil }

func appendSeconds(dst []byte, nanos int64) []byte {
	return strconv.AppendFloat(dst, time.Duration(nanos).Seconds(), 'f', -1, 64)
}

// UnmarshalJSON implements [json.Unmarshaler]. A JSON null is a value, not nil.
func (v *Value) UnmarshalJSON(b []byte) error {
	raw, err := abi.FromJSON(b)
	*v = Value(raw)
	return err
}

// MarshalJSON implements [json.Marshaler].
func (v Value) MarshalJSON() ([]byte, error) { return AppendValue(nil, abi.Raw(v)) }

// String returns the value as JSON; "" for nil.
func (v Value) String() string {
	text, err := v.MarshalJSON()
	if v == nil || err != nil {
		return ""
	}
	return string(text)
}
