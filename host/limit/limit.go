// Package limit has the limits of invocations, runs and sessions, the quotas of tenants,
// their defaults and bounds, and the file that changes them for tenants and plugins.
//
// It does not depend on who enforces a limit, or on the errors of the host.
package limit

import (
	"math"
	"time"
)

// Limits limit what an invocation, run, session or request may use. The zero value of a
// field means its default ([Default]), never "none".
//
// A run takes the limits of its tenant and plugin ([Table]) when it starts, and keeps
// them: they are part of each attempt's input, and a change of the settings affects only
// new runs. In files and messages a field has its name in snake case: MemoryBytes is
// memory_bytes.
type Limits struct {
	ModuleBytes  int `cbor:"1,keyasint,omitempty"` // of an uploaded module
	MemoryBytes  int `cbor:"2,keyasint,omitempty"` // of one instance's memory
	TableEntries int `cbor:"3,keyasint,omitempty"` // of one instance's tables

	Fuel        uint64        `cbor:"4,keyasint,omitempty"`  // units an invocation may burn
	WallTime    time.Duration `cbor:"5,keyasint,omitempty"`  // of an invocation on a core
	HostCalls   int           `cbor:"6,keyasint,omitempty"`  // an invocation
	CallBytes   int           `cbor:"7,keyasint,omitempty"`  // request or response of one host call
	InputBytes  int           `cbor:"8,keyasint,omitempty"`  // of an invocation
	OutputBytes int           `cbor:"9,keyasint,omitempty"`  // of an invocation
	LogBytes    int           `cbor:"10,keyasint,omitempty"` // an invocation
	LogLines    int           `cbor:"11,keyasint,omitempty"` // an invocation
	RegionCalls int           `cbor:"12,keyasint,omitempty"` // host calls in one edit region
	RegionTime  time.Duration `cbor:"13,keyasint,omitempty"` // an edit region, without waiting for a core

	StateBytes   int `cbor:"14,keyasint,omitempty"` // of a session's state
	RunEvents    int `cbor:"15,keyasint,omitempty"` // that a run may route
	StreamBytes  int `cbor:"16,keyasint,omitempty"` // that a run may write to its stream
	RecordBytes  int `cbor:"17,keyasint,omitempty"` // of an invocation's record
	Suspensions  int `cbor:"18,keyasint,omitempty"` // of an invocation
	InboxEvents  int `cbor:"19,keyasint,omitempty"` // of a run
	QueuedStarts int `cbor:"20,keyasint,omitempty"` // of a session

	CallDepth    int           `cbor:"21,keyasint,omitempty"` // bytes of the frames of nested calls, an invocation
	RegionFuel   uint64        `cbor:"22,keyasint,omitempty"` // units one edit region may burn
	DescribeFuel uint64        `cbor:"23,keyasint,omitempty"` // units of making a module's image: _initialize and weft_describe
	DescribeTime time.Duration `cbor:"24,keyasint,omitempty"` // of making a module's image
	CompileTime  time.Duration `cbor:"25,keyasint,omitempty"` // of a module, in a process of its own
	CompileBytes int           `cbor:"26,keyasint,omitempty"` // of that process's address space

	ChildDepth  int           `cbor:"27,keyasint,omitempty"` // depth of child runs of child runs
	CleanupTime time.Duration `cbor:"28,keyasint,omitempty"` // for cleaning up after a run that was cancelled or timed out
}

// Default returns the defaults. Sources of the figures: docs/limits.md.
func Default() Limits {
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
		CallDepth:    1 << 20,
		RegionFuel:   30_000_000,
		DescribeFuel: 1_000_000_000,
		DescribeTime: 10 * time.Second,
		CompileTime:  2 * time.Minute,
		CompileBytes: min(8<<30, math.MaxInt), // the largest int, if an int has 32 bits
		ChildDepth:   16,
		CleanupTime:  10 * time.Second,
	}
}

// Most returns the largest value that each limit can be set to. A larger value is unsafe,
// or has no effect because another bound is reached first.
func Most() Limits {
	var l Limits
	for i := range limitSettings {
		s := &limitSettings[i]
		s.set(&l, s.most)
	}
	return l
}

// Complete returns the limits with zero fields replaced by their defaults.
func (l Limits) Complete() Limits { return l.over(Default()) }

// over returns the limits with zero fields replaced by those of under.
func (l Limits) over(under Limits) Limits {
	for i := range limitSettings {
		s := &limitSettings[i]
		if s.get(&l) == 0 {
			s.set(&l, s.get(&under))
		}
	}
	return l
}
