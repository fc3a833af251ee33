package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/tetratelabs/wazero/api"

	"github.com/weftrun/weft/abi"
)

// image is what a pristine instance is like. It is a function of the module
// alone: start function, _initialize and weft_describe run at clock 0 and with
// a random stream seeded by the digest, and what is there then is the image. It
// is not changed once it is made.
type image struct {
	manifest []byte
	hash     string // SHA-256 in hex
	bytes    int    // of memory
	// snapshot makes instances like the image without running them; nil when
	// each has to be brought there by the guest's own code.
	snapshot *snapshot
}

// snapshot is a memory and the mutable globals.
type snapshot struct {
	size    int // bytes of memory
	runs    []pageRun
	globals []uint64 // as the module's rewritten.globals
}

// pageRun is a part of memory between pages that are zero. Its offset, and its
// length but for the last, are multiples of imagePage.
type pageRun struct {
	offset int
	data   []byte
}

const (
	// imagePage is the unit in which memories are compared with the image.
	imagePage = 4096
	// maxSnapshot bounds the bytes that a snapshot keeps. Modules with larger
	// images have no snapshot.
	maxSnapshot = 32 << 20
)

var zeroPage [imagePage]byte

// image gives the module's image; the first who asks has it made.
//
// # Errors
//
// CodeInvalidPlugin with a problem when the guest fails; ctx's error.
func (l *lease) image(ctx context.Context) (*image, error) {
	m := l.module
	if im := m.made.Load(); im != nil {
		return im, nil
	}
	start := func(f func()) error {
		own, err := l.again() // it may outlast the one who asked
		if err != nil {
			return err
		}
		go func() {
			defer own.release()
			f()
		}()
		return nil
	}
	return m.flight.get(ctx, start, m.makeImage)
}

func (m *module) makeImage() (*image, error) {
	g, err := m.initialized()
	if err != nil {
		return nil, err
	}
	im := &image{manifest: g.output, hash: g.imageHash(), bytes: len(g.linear.buf)}
	if m.runs.restorable {
		im.snapshot = takeSnapshot(g)
	}
	if im.snapshot != nil {
		m.runs.segments = nil // no instance begins without the snapshot any more
		m.size += im.snapshot.bytes()
	}
	m.made.Store(im)
	if !m.keep(g) {
		g.drop()
	}
	return im, nil
}

// imageHash is SHA-256, in hex, over the memory's size in bytes, as eight bytes
// with the lowest first, and the memory.
func (g *guest) imageHash() string {
	h := sha256.New()
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(g.linear.buf))))
	h.Write(g.linear.buf)
	return hex.EncodeToString(h.Sum(nil))
}

// pristine makes an instance like the image. The caller owns it.
func (m *module) pristine() (*guest, error) {
	if im := m.made.Load(); im != nil && im.snapshot != nil {
		return m.restored(im.snapshot)
	}
	return m.initialized()
}

// initialized makes an instance by running what makes the image.
func (m *module) initialized() (g *guest, err error) {
	g = m.newGuest()
	g.random.Seed(m.seed)
	defer func() { err = g.unlessMade(recover(), err) }()
	if err := g.enterFor(phaseInitialize, g.instantiate); err != nil {
		return g, err
	}
	for _, s := range m.runs.segments {
		copy(g.linear.buf[s.offset:], s.data)
	}
	if f := g.instance.ExportedFunction(abi.ExportInitialize); f != nil {
		if err := g.enterFor(phaseInitialize, caller(f)); err != nil {
			return g, err
		}
	}
	if err := g.enterFor(phaseDescribe, caller(g.instance.ExportedFunction(abi.ExportDescribe))); err != nil {
		return g, err
	}
	if g.outputs == 0 {
		return g, g.describeProblem(&abi.Error{Code: codeOutput, Message: "returned without calling output"})
	}
	return g, nil
}

// restored makes an instance and fills in the snapshot. No code of the guest
// runs: a restorable module has no start function.
func (m *module) restored(s *snapshot) (g *guest, err error) {
	g = m.newGuest()
	g.linear.expected = uint64(s.size)
	defer func() { err = g.unlessMade(recover(), err) }()
	if err := g.instantiate(&call{Context: m.sandbox.base, guest: g}); err != nil {
		if m.sandbox.base.Err() != nil {
			return g, errClosed
		}
		return g, fmt.Errorf("instantiate module %s: %w", m.digest, err)
	}
	if missing := s.size - len(g.linear.buf); missing > 0 {
		if _, ok := g.mem.Grow(uint32(missing / wasmPageBytes)); !ok {
			return g, fmt.Errorf("instantiate module %s: the memory does not grow to the %d bytes of its image", m.digest, s.size)
		}
	}
	for _, run := range s.runs { // between them it is zero
		copy(g.linear.buf[run.offset:], run.data)
	}
	g.setGlobals(s)
	return g, nil
}

func (m *module) newGuest() *guest {
	g := &guest{module: m, limits: m.sandbox.limits}
	g.linear = linear{arena: &m.sandbox.arena, limit: uint64(g.limits.MemoryBytes)}
	return g
}

// unlessMade drops the guest if making it failed or panicked.
func (g *guest) unlessMade(panicked any, err error) error {
	if panicked != nil {
		err = fmt.Errorf("instantiate module %s: %v", g.module.digest, panicked)
	}
	if err != nil {
		g.drop()
	}
	return err
}

// takeSnapshot keeps what is in a pristine instance; nil when it is too large.
func takeSnapshot(g *guest) *snapshot {
	memory := g.linear.buf
	s := &snapshot{size: len(memory)}
	total := 0
	for at := 0; at < len(memory); at += imagePage {
		page := memory[at:min(at+imagePage, len(memory))]
		if bytes.Equal(page, zeroPage[:len(page)]) {
			continue
		}
		if total += len(page); total > maxSnapshot {
			return nil
		}
		if n := len(s.runs); n > 0 && s.runs[n-1].end() == at {
			s.runs[n-1].data = memory[s.runs[n-1].offset : at+len(page)]
			continue
		}
		s.runs = append(s.runs, pageRun{at, page})
	}
	for i := range s.runs {
		s.runs[i].data = bytes.Clone(s.runs[i].data)
	}
	for _, global := range g.mutable() {
		s.globals = append(s.globals, global.Get())
	}
	return s
}

// bytes is what the snapshot takes of the host's memory.
func (s *snapshot) bytes() (n int) {
	for _, run := range s.runs {
		n += len(run.data)
	}
	return n
}

func (r pageRun) end() int { return r.offset + len(r.data) }

// mutable finds the mutable globals of a restorable module's instance.
func (g *guest) mutable() []api.MutableGlobal {
	if g.globals == nil {
		for _, name := range g.module.runs.globals {
			g.globals = append(g.globals, g.instance.ExportedGlobal(name).(api.MutableGlobal))
		}
	}
	return g.globals
}

func (g *guest) setGlobals(s *snapshot) {
	for i, global := range g.mutable() {
		global.Set(s.globals[i])
	}
}

// reset brings an instance that an invocation has used back to the snapshot:
// pages that differ are copied, so it costs what the guest wrote and a look at
// the rest. It gives false for one that cannot be brought back, or that is
// better replaced: its memory has grown, or it is so large that looking at it
// costs more than a new one.
func (g *guest) reset(s *snapshot) bool {
	memory := g.linear.buf
	if !g.unharmed || len(memory) != s.size || len(memory) > maxKeptBuffer {
		return false
	}
	at := 0
	for _, run := range s.runs {
		clearPages(memory[at:run.offset])
		copyPages(memory[run.offset:run.end()], run.data)
		at = run.end()
	}
	clearPages(memory[at:])
	g.setGlobals(s)
	// A recursion that ended well may have left hundreds of megabytes of stack
	// with the function; a new one begins with a small stack.
	g.step = g.instance.ExportedFunction(abi.ExportStep)
	g.calls, g.token, g.input, g.response, g.output = nil, nil, nil, nil, nil
	return true
}

// copyPages makes to equal to from, of the same length, and writes only pages
// that differ.
func copyPages(to, from []byte) {
	for len(to) > 0 {
		n := min(imagePage, len(to))
		if !bytes.Equal(to[:n], from[:n]) {
			copy(to[:n], from[:n])
		}
		to, from = to[n:], from[n:]
	}
}

// clearPages makes all zero, and writes only pages that are not.
func clearPages(to []byte) {
	for len(to) > 0 {
		n := min(imagePage, len(to))
		if !bytes.Equal(to[:n], zeroPage[:n]) {
			clear(to[:n])
		}
		to = to[n:]
	}
}
