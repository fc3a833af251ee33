package sandbox

import (
	"fmt"

	"github.com/tetratelabs/wazero/api"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/sandbox/memory"
	"github.com/weftrun/weft/host/sandbox/rewrite"
)

// A module's image is the state of a pristine instance: its memory with its size, and its
// mutable globals. The image is a function of the module alone. The start function,
// _initialize and weft_describe run at clock 0 with a random stream seeded by the
// module's digest; the state after them is the image. If an invocation can change
// anything else, or if the image is too large to keep, the guest's own code initializes
// every instance.

// maxSnapshot bounds the bytes that a snapshot keeps, not counting pages of zeros.
const maxSnapshot = 32 << 20

// pristine makes an instance in the state of the image. Its memory can grow to the given
// bytes, and at least to the size of the image. The caller owns the instance.
func (m *module) pristine(memoryBytes int) (*guest, error) {
	memoryBytes = max(memoryBytes, m.plan.ImageBytes)
	if m.snapshot != nil {
		return m.restored(memoryBytes)
	}
	g, _, err := m.initialized(&m.sandbox.stored, memoryBytes)
	return g, err
}

// initialized makes an instance by running the module's initialization within limits, and
// returns the fuel burned. The memory can grow to memoryBytes. A guest that wants more
// memory during initialization fails, because its image would otherwise depend on the
// settings.
func (m *module) initialized(limits *host.Limits, memoryBytes int) (_ *guest, fuel uint64, err error) {
	made, err := m.newGuest(limits, memoryBytes, max(m.plan.ImageBytes, wasmPageBytes))
	if err != nil {
		return nil, 0, err
	}
	g := &making{guest: made}
	g.clean()
	g.random.seed(m.seed)
	defer func() { err = g.unlessMade(recover(), err) }()
	if err := g.enterFor(phaseInitialize, g.instantiate); err != nil {
		return nil, 0, err
	}
	if err := g.begin(memoryBytes); err != nil {
		return nil, 0, err
	}
	for _, s := range m.segments {
		rewrite.Copy(g.linear.Bytes()[s.Offset:][:len(s.Data)], s.Data)
	}
	begin := []string{rewrite.ExportStart, abi.ExportInitialize}
	if m.plan.Extism != nil {
		begin = begin[:1]
	}
	for _, name := range begin {
		if f := g.instance.ExportedFunction(name); f != nil {
			if err := g.enterFor(phaseInitialize, caller(f)); err != nil {
				return nil, 0, err
			}
		}
	}
	if m.plan.Extism != nil {
		if err := g.startExtism(); err != nil {
			return nil, 0, err
		}
		return made, g.burnt, g.grownTooFar(memoryBytes)
	}
	if err := g.enterFor(phaseDescribe, caller(g.instance.ExportedFunction(abi.ExportDescribe))); err != nil {
		return nil, 0, err
	}
	if g.outputs == 0 {
		return nil, 0, g.describeProblem(&abi.Error{Code: codeOutput, Message: "returned without calling output"})
	}
	return made, g.burnt, g.grownTooFar(memoryBytes)
}

// begin gives the memory its initial size, if that is not part of the code. As for other
// modules, the limit holds for growth only.
func (g *making) begin(memoryBytes int) error {
	pages := g.module.plan.MemoryPages
	if pages == 0 {
		return nil
	}
	g.linear.SetLimit(max(uint64(memoryBytes), uint64(pages)*wasmPageBytes))
	_, ok := g.mem.Grow(pages)
	g.linear.SetLimit(uint64(memoryBytes))
	if !ok {
		return invalid(host.Problem{Code: problemInvalid, Message: fmt.Sprintf("the module cannot be instantiated: there is no room for a memory of %d pages", pages)})
	}
	return nil
}

// grownTooFar is the error of a guest that wanted more memory than memoryBytes.
func (g *making) grownTooFar(memoryBytes int) error {
	if !g.linear.Refused() {
		return nil
	}
	return g.describeProblem(&abi.Error{Code: codeLimit, Message: fmt.Sprintf("wants to grow the memory beyond %d bytes (limit memory_bytes)", memoryBytes)})
}

// restored makes an instance and fills its memory with the snapshot.
func (m *module) restored(memoryBytes int) (*guest, error) {
	g, err := m.newGuest(&m.sandbox.stored, memoryBytes, m.snapshot.Size())
	if err != nil {
		return nil, err
	}
	if !m.snapshot.Fill(g.linear) { // before instantiation, so that there is nothing to clear
		g.drop()
		return nil, fmt.Errorf("instantiate module %s: its image of %d bytes does not fit into the memory", m.digest, m.snapshot.Size())
	}
	return g.over()
}

// replaced makes an instance in the state of the image and drops used, which may be nil.
// If possible it reuses the memory of used, because that memory holds most of a large
// image already.
func (m *module) replaced(used *guest) (*guest, error) {
	memoryBytes := m.sandbox.limits.MemoryBytes
	switch {
	case used == nil:
		return m.pristine(memoryBytes)
	case m.snapshot == nil || !used.unharmed:
		used.drop()
		return m.pristine(memoryBytes)
	}
	used.end()
	if !m.snapshot.Renew(used.linear) {
		used.linear.Release()
		return m.pristine(memoryBytes)
	}
	return m.guestIn(used.linear, &m.sandbox.stored, memoryBytes).over()
}

// over makes the instance of a guest whose memory equals the snapshot. No guest code
// runs: the start function of a restorable module is an export. After an error the guest
// is dropped.
func (g *guest) over() (_ *guest, err error) {
	m := g.module
	defer func() { err = g.unlessMade(recover(), err) }()
	g.call = call{Context: m.sandbox.base, guest: g}
	if err := g.instantiate(&g.call); err != nil {
		if m.sandbox.base.Err() != nil {
			return nil, errClosed
		}
		return nil, fmt.Errorf("instantiate module %s: %w", m.digest, err)
	}
	if missing := m.snapshot.Size() - len(g.linear.Bytes()); missing > 0 {
		if _, ok := g.mem.Grow(uint32(missing / wasmPageBytes)); !ok {
			return nil, fmt.Errorf("instantiate module %s: the memory does not grow to the %d bytes of its image", m.digest, m.snapshot.Size())
		}
	}
	g.setGlobals()
	return g, nil
}

// newGuest reserves the memory of an instance. The memory begins with about size bytes
// and can grow to memoryBytes.
func (m *module) newGuest(limits *host.Limits, memoryBytes, size int) (*guest, error) {
	linear, err := m.sandbox.memories.Take(uint64(memoryBytes), uint64(size))
	if err != nil {
		return nil, fmt.Errorf("memory for an instance of module %s: %w", m.digest, err)
	}
	return m.guestIn(linear, limits, memoryBytes), nil
}

func (m *module) guestIn(linear *memory.Linear, limits *host.Limits, memoryBytes int) *guest {
	linear.SetLimit(uint64(memoryBytes))
	g := &guest{module: m, limits: *limits, linear: linear}
	if m.plan.Extism != nil {
		g.extism = &extismCall{plugin: m.plan.Extism}
	}
	return g
}

// unlessMade drops the guest if making the guest failed or panicked.
func (g *guest) unlessMade(panicked any, err error) error {
	if panicked != nil {
		err = fmt.Errorf("instantiate module %s: %v", g.module.digest, panicked)
	}
	if err != nil {
		g.drop()
	}
	return err
}

// takeImage records the image of a pristine instance, and keeps a snapshot if the module
// can be restored from a snapshot.
func (m *module) takeImage(g *guest, fuel uint64) {
	p := m.plan
	p.Manifest, p.DescribeFuel = g.output, fuel
	if p.Extism != nil {
		p.Manifest = p.Extism.Manifest
	}
	p.ImageHash, p.ImageBytes = g.linear.Hash(), len(g.linear.Bytes())
	if !p.Restorable {
		return
	}
	if m.snapshot = memory.Take(g.linear, maxSnapshot); m.snapshot == nil {
		p.Restorable = false
		p.Fallback = append(p.Fallback, fmt.Sprintf("the image has more than %d bytes that are not zero", maxSnapshot))
		return
	}
	for _, global := range g.mutable() {
		p.GlobalValues = append(p.GlobalValues, global.Get())
	}
	m.segments = nil // from now on every instance begins with the snapshot
	m.size += m.snapshot.Kept()
}

// mutable returns the mutable globals of an instance of a restorable module.
func (g *guest) mutable() []api.MutableGlobal {
	if g.globals == nil {
		for _, global := range g.module.plan.Globals {
			g.globals = append(g.globals, g.instance.ExportedGlobal(global.Name).(api.MutableGlobal))
		}
	}
	return g.globals
}

func (g *guest) setGlobals() {
	for i, global := range g.mutable() {
		global.Set(g.module.plan.GlobalValues[i])
	}
}

// reset restores the image in an instance that an invocation has used. It costs a scan of
// the memory and a copy of the pages that the guest wrote. It returns false if the
// instance cannot be restored.
func (g *guest) reset() bool {
	image := g.module.snapshot
	if !g.unharmed || !image.Reset(g.linear) && (g.mem == nil || !image.Shrink(g.linear, g.mem.Grow)) {
		return false
	}
	g.setGlobals()
	if g.deep {
		// A deep recursion may have left megabytes of stack with the function; a new
		// function object begins with a small stack.
		g.step = g.instance.ExportedFunction(abi.ExportStep)
		clear(g.exports)
	}
	if g.extism != nil {
		g.extism.begin()
	}
	g.calls, g.token, g.input, g.buffer, g.response, g.output = nil, nil, nil, nil, nil, nil
	g.call.Context = nil
	return true
}
