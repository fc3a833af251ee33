package wasi

import (
	"encoding/binary"
	"math"

	"github.com/tetratelabs/wazero/api"
)

// The clocks of preview 1.
const (
	clockRealtime  = 0
	clockMonotonic = 1
	clockThreadCPU = 3 // the last one
)

// read returns a clock's time. The monotonic clock and the CPU clocks are one nanosecond
// ahead of the real-time clock, because Go's runtime refuses a monotonic clock at 0,
// where the pristine image is made.
func read(h Host, clock uint32) (ns int64, ok bool) {
	switch {
	case clock == clockRealtime:
		return h.Clock(), true
	case clock <= clockThreadCPU:
		return later(h.Clock(), 1), true
	}
	return 0, false
}

// later adds, and saturates instead of overflowing.
func later(ns int64, by uint64) int64 {
	if by > uint64(math.MaxInt64) || ns > math.MaxInt64-int64(by) {
		return math.MaxInt64
	}
	return ns + int64(by)
}

func clockTime(h Host, mem api.Memory, args []uint64) uint32 {
	ns, ok := read(h, uint32(args[0]))
	if !ok {
		return errnoInval
	}
	if !mem.WriteUint64Le(uint32(args[2]), uint64(ns)) {
		return errnoFault
	}
	return errnoSuccess
}

func clockRes(_ Host, mem api.Memory, args []uint64) uint32 {
	if uint32(args[0]) > clockThreadCPU {
		return errnoInval
	}
	if !mem.WriteUint64Le(uint32(args[1]), 1) {
		return errnoFault
	}
	return errnoSuccess
}

// Layout of poll_oneoff's subscriptions and events.
const (
	subscriptionLen = 48
	eventLen        = 32
	maxSubscribed   = 1024 // in one call

	tagClock   = 0
	tagFdRead  = 1
	tagFdWrite = 2

	flagAbsolute = 1
)

// subscription is one event that poll_oneoff waits for: ready at once or, for clocks, at
// a time of the virtual clock.
type subscription struct {
	userdata uint64
	tag      byte
	errno    uint16
	at       int64 // time of a clock event; other events are ready
}

// pollOneoff moves the virtual clock to the earliest deadline, unless an event is ready
// now, and returns the events that are then due. It never waits.
func pollOneoff(h Host, mem api.Memory, args []uint64) uint32 {
	in, out, n, stored := uint32(args[0]), uint32(args[1]), uint32(args[2]), uint32(args[3])
	if n == 0 || n > maxSubscribed {
		return errnoInval
	}
	subs, readable := mem.Read(in, n*subscriptionLen)
	events, writable := mem.Read(out, n*eventLen)
	count, counted := mem.Read(stored, 4)
	if !readable || !writable || !counted {
		return errnoFault // fails before the clock has moved
	}
	h.Work(int(n))
	var few [4]subscription // a sleep has one subscription, and needs no allocation
	waits := few[:0]
	earliest := int64(math.MaxInt64)
	for ; len(subs) > 0; subs = subs[subscriptionLen:] {
		s := subscribed(h, subs)
		waits, earliest = append(waits, s), min(earliest, s.at)
	}
	h.Poll(earliest)
	due, now := uint32(0), h.Clock()
	for _, w := range waits {
		if w.at <= now {
			writeEvent(events[due*eventLen:], w)
			due++
		}
	}
	binary.LittleEndian.PutUint32(count, due)
	return errnoSuccess
}

// subscribed reads one subscription.
func subscribed(h Host, raw []byte) subscription {
	s := subscription{userdata: binary.LittleEndian.Uint64(raw), tag: raw[8], at: h.Clock()}
	switch s.tag {
	case tagClock:
		clock := binary.LittleEndian.Uint32(raw[16:])
		timeout := binary.LittleEndian.Uint64(raw[24:])
		flags := binary.LittleEndian.Uint16(raw[40:])
		now, ok := read(h, clock)
		switch {
		case !ok:
			s.errno = errnoInval
		case flags&flagAbsolute != 0:
			// Convert to the real-time clock, which the other clocks are ahead of.
			s.at = later(0, timeout) - (now - h.Clock())
		default:
			s.at = later(h.Clock(), timeout)
		}
	case tagFdRead, tagFdWrite:
		if fd := binary.LittleEndian.Uint32(raw[16:]); fd > maxStdio {
			s.errno = errnoBadf
		}
	default:
		s.errno = errnoInval
	}
	return s
}

// writeEvent writes one event of poll_oneoff.
func writeEvent(raw []byte, s subscription) {
	clear(raw[:eventLen])
	binary.LittleEndian.PutUint64(raw, s.userdata)
	binary.LittleEndian.PutUint16(raw[8:], s.errno)
	raw[10] = s.tag
	if s.tag == tagFdWrite && s.errno == 0 {
		binary.LittleEndian.PutUint64(raw[16:], math.MaxUint16) // bytes that can be written
	}
}
