package host

import "time"

// Limits bound what one invocation, run, session or request may use. The zero
// value of a field means its default ([DefaultLimits]), never "none". A limit
// in force is part of an attempt's input: a change of the settings does not
// reach attempts that are open.
type Limits struct {
	ModuleBytes  int `cbor:"1,keyasint,omitempty"` // of an uploaded module
	MemoryBytes  int `cbor:"2,keyasint,omitempty"` // of one instance's memory
	TableEntries int `cbor:"3,keyasint,omitempty"` // of one instance's tables

	Fuel        uint64        `cbor:"4,keyasint,omitempty"`  // units an invocation may burn
	WallTime    time.Duration `cbor:"5,keyasint,omitempty"`  // of holding a run token, an invocation
	HostCalls   int           `cbor:"6,keyasint,omitempty"`  // an invocation
	CallBytes   int           `cbor:"7,keyasint,omitempty"`  // request or response of one host call
	InputBytes  int           `cbor:"8,keyasint,omitempty"`  // of an invocation
	OutputBytes int           `cbor:"9,keyasint,omitempty"`  // of an invocation
	LogBytes    int           `cbor:"10,keyasint,omitempty"` // an invocation
	LogLines    int           `cbor:"11,keyasint,omitempty"` // an invocation
	RegionCalls int           `cbor:"12,keyasint,omitempty"` // host calls in one edit region
	RegionTime  time.Duration `cbor:"13,keyasint,omitempty"` // an edit region

	StateBytes   int `cbor:"14,keyasint,omitempty"` // of a session's state
	RunEvents    int `cbor:"15,keyasint,omitempty"` // that a run may route
	StreamBytes  int `cbor:"16,keyasint,omitempty"` // that a run may write to its stream
	RecordBytes  int `cbor:"17,keyasint,omitempty"` // of an invocation's record
	Suspensions  int `cbor:"18,keyasint,omitempty"` // of an invocation
	InboxEvents  int `cbor:"19,keyasint,omitempty"` // of a run
	QueuedStarts int `cbor:"20,keyasint,omitempty"` // of a session
}

// DefaultLimits returns the defaults. Sources of the figures: docs/limits.md.
func DefaultLimits() Limits {
	return Limits{
		ModuleBytes:  32 << 20,
		MemoryBytes:  256 << 20,
		TableEntries: 65_536,
		Fuel:         10_000_000_000,
		WallTime:     30 * time.Second,
		HostCalls:    1_000_000,
		CallBytes:    32 << 20,
		InputBytes:   32 << 20,
		OutputBytes:  32 << 20,
		LogBytes:     1 << 20,
		LogLines:     1_000,
		RegionCalls:  10_000,
		RegionTime:   10 * time.Second,
		StateBytes:   64 << 20,
		RunEvents:    1_000_000,
		StreamBytes:  256 << 20,
		RecordBytes:  16 << 20,
		Suspensions:  1_000,
		InboxEvents:  1_000,
		QueuedStarts: 1_000,
	}
}

// DefaultRunTimeout is the timeout of a run whose manifest names none: time in
// which the server was serving.
const DefaultRunTimeout = 45 * time.Second

// MaxRequestBytes bounds the body of an HTTP request other than an upload.
const MaxRequestBytes = 16 << 20
