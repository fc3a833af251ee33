package sandbox

import "errors"

// Pristine instances are kept as a module's spares. An invocation takes one,
// and puts it back when it is reset; those that cannot be reset are replaced
// ahead of use by one goroutine of the sandbox, the filler. Ownership: whoever
// takes an instance out of the spares (Invoke, or the module's close) puts it
// back or drops it. Close ends the filler and then closes the modules.

// acquire gives a pristine instance, which the caller owns: a spare if there is
// one, else it makes one.
func (m *module) acquire() (*guest, error) {
	select {
	case g := <-m.spares:
		m.sandbox.spareBytes.Add(-int64(cap(g.linear.buf)))
		return g, nil
	default:
		return m.pristine()
	}
}

// recycle takes an instance from an invocation: it is reset and kept, or else
// dropped and replaced.
func (s *Sandbox) recycle(l *lease, g *guest) {
	m := l.module
	if im := m.made.Load(); im.snapshot != nil && len(m.spares) < cap(m.spares) && g.reset(im.snapshot) && m.keep(g) {
		return
	}
	g.drop()
	s.refill(l)
}

// keep puts a pristine instance among the spares, if there is room.
func (m *module) keep(g *guest) bool {
	bytes := int64(cap(g.linear.buf))
	if m.sandbox.spareBytes.Add(bytes) <= maxSpareBytes {
		select {
		case m.spares <- g:
			return true
		default:
		}
	}
	m.sandbox.spareBytes.Add(-bytes)
	return false
}

// refill asks the filler, if it is not asked already, to make the spares whole.
func (s *Sandbox) refill(l *lease) {
	m := l.module
	if len(m.spares) == cap(m.spares) || !m.filling.CompareAndSwap(false, true) {
		return
	}
	second, err := l.again()
	if err != nil {
		return // closing
	}
	select {
	case s.fill <- second:
	default: // it has enough to do
		m.filling.Store(false)
		second.release()
	}
}

// filler makes spares until the sandbox closes.
func (s *Sandbox) filler() {
	for {
		select {
		case l := <-s.fill:
			l.module.fill()
			l.release()
		case <-s.base.Done():
			s.unfill()
			return
		}
	}
}

// unfill gives back what nobody will fill any more. New requests do not come,
// as the sandbox is closed before base ends.
func (s *Sandbox) unfill() {
	for {
		select {
		case l := <-s.fill:
			l.release()
		default:
			return
		}
	}
}

func (m *module) fill() {
	defer m.filling.Store(false)
	for len(m.spares) < cap(m.spares) && m.sandbox.base.Err() == nil {
		g, err := m.pristine()
		if errors.Is(err, errClosed) {
			return
		}
		if err != nil {
			m.sandbox.log.Warn("making an instance ahead failed", "digest", m.digest, "error", err)
			return
		}
		if !m.keep(g) {
			g.drop()
			return
		}
	}
}
