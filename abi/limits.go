package abi

import (
	"math"
	"strconv"
	"strings"
)

// Nesting limits, counted in open arrays and maps: a scalar is level 0, a map
// of scalars level 1.
const (
	MaxValueDepth   = 64 // of one value: an event's body, a state
	MaxMessageDepth = 72 // of a whole message, including its values
)

// Sizes of the text fields of abi.cddl, in bytes of UTF-8.
const (
	MaxTypeName     = 256
	MaxName         = 128
	MaxWorkflowName = 128
	MaxPath         = 4096
	MaxPathSegments = 64
)

// Numeric bounds of abi.cddl.
const (
	MaxWorkers     = 1000
	MaxTake        = math.MaxUint32
	MaxRandomBytes = 4096
)

// Limits bounds what a decoder accepts. A field that is zero or negative has the value of
// [DefaultLimits].
type Limits struct {
	// MaxBytes is the length of a whole message or value in bytes, at most
	// 1 GiB.
	MaxBytes int
	// MaxDepth is the number of arrays and maps open at once.
	MaxDepth int
	// MaxElements is the number of array items plus map pairs (which count twice) in the
	// whole message. It bounds the memory that the decoded form needs in addition to the
	// bytes.
	MaxElements int
	// MaxText is the length of one text or byte string in bytes.
	MaxText int
}

// DefaultLimits are the limits of every function of this package, except methods of a
// different Limits. Do not modify it.
var DefaultLimits = Limits{
	MaxBytes:    32 << 20,
	MaxDepth:    MaxMessageDepth,
	MaxElements: 4 << 20,
	MaxText:     16 << 20,
}

// hardMaxBytes keeps every offset within 32 bits, including offsets in a transcoder's
// wider intermediate form.
const hardMaxBytes = 1 << 30

// effective returns the limits with the defaults filled in.
func (l Limits) effective() Limits {
	set := func(field *int, def int) {
		if *field <= 0 {
			*field = def
		}
	}
	set(&l.MaxBytes, DefaultLimits.MaxBytes)
	set(&l.MaxDepth, DefaultLimits.MaxDepth)
	set(&l.MaxElements, DefaultLimits.MaxElements)
	set(&l.MaxText, DefaultLimits.MaxText)
	l.MaxBytes = min(l.MaxBytes, hardMaxBytes)
	return l
}

// DataError says what is wrong with data, and where. Every decoder and
// encoder of this package fails with a *DataError.
type DataError struct {
	// Path is the position of the invalid part, as segments joined by dots: field names,
	// map keys, list indices. "" means the data as a whole.
	Path string
	// Offset counts bytes from the start of the data. It is -1 for an error of an
	// encoder, which has not produced any data.
	Offset int
	// Reason is a clause for people, without a full stop.
	Reason string
}

// Error returns "path: reason (at byte offset)", without absent parts.
func (e *DataError) Error() string {
	var s strings.Builder
	if e.Path != "" {
		s.WriteString(e.Path)
		s.WriteString(": ")
	}
	s.WriteString(e.Reason)
	if e.Offset >= 0 {
		s.WriteString(" (at byte ")
		s.WriteString(strconv.Itoa(e.Offset))
		s.WriteByte(')')
	}
	return s.String()
}

// under prepends a segment to the path, when leaving a container.
func (e *DataError) under(segment string) *DataError {
	if e.Path == "" {
		e.Path = segment
	} else {
		e.Path = segment + "." + e.Path
	}
	return e
}

// segmentOf formats a map key for a path: shortened, and quoted if it could be mistaken
// for something else.
func segmentOf(key []byte) string {
	const most = 48
	if len(key) > most {
		return strconv.Quote(string(key[:most]) + "...")
	}
	for _, c := range key {
		if c <= ' ' || c == '.' || c == '"' || c == ':' || c >= 0x7f {
			return strconv.Quote(string(key))
		}
	}
	if len(key) == 0 {
		return `""`
	}
	return string(key)
}
