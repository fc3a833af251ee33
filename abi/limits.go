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
	MaxMessageDepth = 72 // of a whole message, its values included
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

// Limits bounds what a decoder accepts. A field that is zero (or less) takes
// its value from [DefaultLimits].
type Limits struct {
	// MaxBytes is the length of a whole message or value in bytes, at most
	// 1 GiB.
	MaxBytes int
	// MaxDepth is the number of arrays and maps open at once.
	MaxDepth int
	// MaxElements is the number of array items plus map pairs (which count
	// two) in the whole message. It bounds the memory that the decoded form
	// takes beyond the bytes themselves.
	MaxElements int
	// MaxText is the length of one text or byte string in bytes.
	MaxText int
}

// DefaultLimits are the limits that every function of this package keeps,
// except the methods of another Limits. Do not modify it.
var DefaultLimits = Limits{
	MaxBytes:    32 << 20,
	MaxDepth:    MaxMessageDepth,
	MaxElements: 4 << 20,
	MaxText:     16 << 20,
}

// hardMaxBytes keeps every offset, also those of a transcoder's wider
// intermediate form, within 32 bits.
const hardMaxBytes = 1 << 30

// effective fills in the defaults.
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
	// Path leads to the offending part, in segments joined by dots: field
	// names, map keys, list indices. "" is the data as a whole.
	Path string
	// Offset counts bytes from the start of the data. -1: the error was found
	// while encoding, where there are no bytes yet.
	Offset int
	// Reason is a clause for people, without a full stop.
	Reason string
}

// Error returns "path: reason (at byte offset)", without the parts that are
// absent.
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

// under puts a segment in front of the path, on the way out of a container.
func (e *DataError) under(segment string) *DataError {
	if e.Path == "" {
		e.Path = segment
	} else {
		e.Path = segment + "." + e.Path
	}
	return e
}

// segmentOf shows a map key in a path: short, and quoted when it could be
// mistaken for something else.
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
