package sandbox

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
)

// rewriterVersion names what rewrite does. It is part of the digest of what
// runs, and changes when the same module would run as other bytes.
const rewriterVersion = "weft-rewrite-2"

// Rewritten gives the digest of what the sandbox runs in place of the given
// module: SHA-256, in hex, over the rewriter's version, a zero byte and the
// rewritten bytes.
func (s *Sandbox) Rewritten(wasm []byte) string {
	m, err := readModule(wasm)
	if err != nil {
		return rewrittenDigest(wasm)
	}
	return rewrittenDigest(s.rewrite(wasm, m).wasm)
}

func rewrittenDigest(runs []byte) string {
	h := sha256.New()
	h.Write([]byte(rewriterVersion + "\x00"))
	h.Write(runs)
	return hex.EncodeToString(h.Sum(nil))
}

// rewritten is a module as it runs.
type rewritten struct {
	wasm []byte
	// restorable says that memory and globals are all that tells one instance
	// from another, and that both are in the host's hands: the data segments
	// are not in wasm but below, and the mutable globals are exported. If it is
	// false, the rest is empty and an instance is made by WebAssembly's rules.
	restorable bool
	segments   []segment
	globals    []string // names of exports
}

// segment is a data segment that a new memory begins with.
type segment struct {
	offset uint32
	data   []byte // part of the module
}

const (
	// globalPrefix begins the names of exported globals; modules that have such
	// names of their own are refused.
	globalPrefix = "weft:global:"
	// maxRestored bounds the mutable globals of a module that is restored: more
	// would cost more than they save.
	maxRestored = 1000
)

// rewrite makes the module that runs in place of the given one, which has no
// problems that inspect finds.
func (s *Sandbox) rewrite(wasm []byte, m *binaryModule) rewritten {
	clamped := clampTables(wasm, m, s.limits.TableEntries)
	if !s.reference {
		if m, err := readModule(clamped); err == nil {
			if r, ok := restorable(clamped, m); ok {
				return r
			}
		}
	}
	return rewritten{wasm: clamped}
}

// restorable takes the data segments out of a module and exports its mutable
// globals. It gives false for a module of which an image cannot hold all, and
// for one that it does not understand to the last byte: then it is for the
// compiler to say what is wrong with it.
func restorable(wasm []byte, m *binaryModule) (rewritten, bool) {
	payload := func(id byte) []byte {
		at := m.sections[id]
		return wasm[at.payload:at.end]
	}
	if m.sections[sectionStart].there() || len(m.memories) != 1 {
		return rewritten{}, false
	}
	if code := m.sections[sectionCode]; code.there() && !writesOnlyMemoryAndGlobals(payload(sectionCode)) {
		return rewritten{}, false
	}
	r := rewritten{restorable: true}
	globals, ok := mutableGlobals(payload(sectionGlobal), m.sections[sectionGlobal].there())
	if !ok {
		return rewritten{}, false
	}
	if r.segments, ok = m.dataSegments(payload(sectionData), payload(sectionCount)); !ok {
		return rewritten{}, false
	}
	exports := payload(sectionExport)
	count := &binaryReader{b: exports}
	section := binary.AppendUvarint(nil, count.uint(32)+uint64(len(globals)))
	section = append(section, count.b...)
	for _, index := range globals {
		name := globalPrefix + strconv.FormatUint(uint64(index), 10)
		r.globals = append(r.globals, name)
		section = binary.AppendUvarint(section, uint64(len(name)))
		section = append(section, name...)
		section = binary.AppendUvarint(append(section, kindGlobal), uint64(index))
	}
	at := m.sections[sectionExport] // it exports its memory, so there is one
	r.wasm = append(r.wasm, wasm[:at.start]...)
	r.wasm = appendSection(r.wasm, sectionExport, section)
	rest := at.end
	// In this order they stand in a module; one with another order is invalid,
	// and stays as it is.
	for _, id := range []byte{sectionCount, sectionData} {
		at := m.sections[id]
		if !at.there() {
			continue
		}
		if at.start < rest {
			return rewritten{}, false
		}
		r.wasm = append(r.wasm, wasm[rest:at.start]...)
		rest = at.end
	}
	r.wasm = append(r.wasm, wasm[rest:]...)
	return r, true
}

// mutableGlobals lists the indices of a module's mutable globals. It gives
// false for one whose value the compiler's runtime cannot set: vectors and
// references.
func mutableGlobals(payload []byte, there bool) (indices []uint32, ok bool) {
	if !there {
		return nil, true
	}
	r, n, ok := &binaryReader{b: payload}, uint32(0), true
	r.each(func() {
		kind, mutability := r.byte(), r.byte()
		switch {
		case mutability > 1:
			ok = false
		case mutability == 1 && (kind < typeF64 || kind > typeI32):
			ok = false
		case mutability == 1:
			indices = append(indices, n)
		}
		n++
		ok = ok && r.constant()
	})
	return indices, ok && r.err == nil && len(r.b) == 0 && len(indices) <= maxRestored
}

// constant skips a constant expression.
func (r *binaryReader) constant() bool {
	for len(r.b) > 0 {
		if r.b[0] == opEnd {
			r.byte()
			return true
		}
		if !r.instruction() {
			return false
		}
	}
	return false
}

// dataSegments reads what a new memory begins with. It gives false for segments
// that do not fit into the memory, or are not of the common forms. Passive ones
// are left out, as no function of the module uses them.
func (m *binaryModule) dataSegments(payload, count []byte) (segments []segment, ok bool) {
	size := m.memories[0].min * wasmPageBytes
	r, ok := &binaryReader{b: payload}, true
	if m.sections[sectionData].there() {
		r.each(func() {
			var s segment
			var active bool
			if s, active, ok = r.segment(); !ok || uint64(s.offset)+uint64(len(s.data)) > size {
				r.fail("a segment is out of range, or of an uncommon form")
			} else if active {
				segments = append(segments, s)
			}
		})
	}
	if m.sections[sectionCount].there() {
		c := &binaryReader{b: count}
		if c.u32() != m.data || c.err != nil || len(c.b) > 0 {
			return nil, false
		}
	}
	return segments, ok && r.err == nil && len(r.b) == 0
}

// segment reads one data segment.
func (r *binaryReader) segment() (s segment, active, ok bool) {
	const flagActive, flagPassive, flagIndexed = 0, 1, 2
	flag := r.u32()
	switch flag {
	case flagPassive:
	case flagIndexed:
		if r.u32() != 0 {
			return s, false, false
		}
		fallthrough
	case flagActive:
		if r.byte() != opI32Const {
			return s, false, false
		}
		offset, fits := r.i32()
		if !fits || r.byte() != opEnd {
			return s, false, false
		}
		s.offset = offset
	default:
		return s, false, false
	}
	s.data = r.take(r.uint(32))
	return s, flag != flagPassive, r.err == nil
}

// i32 reads a signed number of 32 bits, and gives its bits. It does not fit if
// its encoding has bits beyond those.
func (r *binaryReader) i32() (bits uint32, fits bool) {
	for shift := uint(0); shift < 35; shift += 7 {
		b := r.byte()
		bits |= uint32(b&0x7f) << shift
		if b >= 0x80 {
			continue
		}
		if shift == 28 {
			return bits, b <= 0x07 || b >= 0x78
		}
		if b&0x40 != 0 {
			bits |= ^uint32(0) << (shift + 7)
		}
		return bits, r.err == nil
	}
	return 0, false
}
