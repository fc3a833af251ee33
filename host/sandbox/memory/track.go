package memory

// How a memory is tracked. The kernel holds pages write-protected, and lifts the
// protection of a page when it is first written. A page that is not protected
// counts as written, so none is unprotected and unnoticed.
//
//  1. Protected pages are equal to Linear.clean: they are protected only after
//     they were restored, and lose the protection before they change.
//  2. A reset asks which pages are not protected, compares those, and copies back
//     those that differ.
//  3. It leaves them unprotected. An invocation mostly writes the pages that the
//     one before wrote; protecting them each time would cost a fault for each,
//     more than comparing them, and interrupt the other processors.
//  4. Only when so many were compared in vain that protecting all would have been
//     cheaper, all are protected: one of two WebAssembly pages after some resets,
//     or never if there are few. A large memory is when it is filled.
//
// Linear.clean is nil when the first does not hold: at first, and after any
// failure. Then all pages are compared. So a kernel that does not tell costs
// time, not isolation; one that told wrong is found out by an audit now and then,
// which ends tracking.
const (
	// vainPages, and vainPerPage for each page that was changed, are how many
	// pages are compared in vain before all are protected. That costs 3 to 8 us,
	// and the next invocation 0.7 to 1.2 us for each page it writes; a page
	// compared costs 0.1 us.
	vainPages   = 128
	vainPerPage = 8
	// auditEvery is the number of resets of a memory for each that compares all
	// pages though it need not.
	auditEvery = 1024
)

// restore brings the first s.size bytes of the region back.
func (s *Snapshot) restore(l *Linear) {
	mem := l.region.base[:s.size]
	told := l.clean == s && l.pool.Tracks()
	var compared, copied int
	if told {
		compared, copied, told = s.restoreWritten(l, mem)
	}
	if !told {
		l.clean = nil
		compared, copied = s.size/pageBytes, s.restoreAll(mem)
	} else if l.scans++; l.scans%auditEvery == 0 {
		missed := s.restoreAll(mem)
		compared, copied = compared+s.size/pageBytes, copied+missed
		l.pool.missed.Add(int64(missed))
	}
	l.pool.compared.Add(int64(compared))
	l.pool.copied.Add(int64(copied))
	if l.waste += compared - copied; l.waste > vainPages+vainPerPage*copied {
		s.protect(l, mem)
	}
}

// restoreWritten restores the pages of mem that the kernel knows to be written.
// It gives false, and has maybe restored some, when the kernel does not tell.
func (s *Snapshot) restoreWritten(l *Linear, mem []byte) (compared, copied int, told bool) {
	next := 0
	for at := 0; at < len(mem); {
		parts, end, err := l.pool.track.scan(l.region.written, mem[at:])
		if err != nil {
			return 0, 0, false
		}
		for _, p := range parts {
			var c int
			c, next = s.restorePart(mem, at+p.from, at+p.to, next)
			copied += c
			compared += (p.to - p.from) / pageBytes
		}
		at += end
	}
	l.pool.scans.Add(1)
	return compared, copied, true
}

// restorePart restores mem[from:to]. No run before the one numbered next reaches
// into it; it gives the number for the next part.
func (s *Snapshot) restorePart(mem []byte, from, to, next int) (copied, after int) {
	for from < to {
		for next < len(s.runs) && s.runs[next].end() <= from {
			next++
		}
		if next == len(s.runs) || s.runs[next].offset >= to {
			return copied + clearPages(mem[from:to]), next
		}
		r := s.runs[next]
		if from < r.offset {
			copied += clearPages(mem[from:r.offset])
			from = r.offset
		}
		end := min(to, r.end())
		copied += copyPages(mem[from:end], r.data[from-r.offset:end-r.offset])
		from = end
	}
	return copied, next
}

// protect has the kernel note which pages of mem are written from now on. They
// are equal to the snapshot.
func (s *Snapshot) protect(l *Linear, mem []byte) {
	l.clean, l.waste = nil, 0
	if !l.pool.Tracks() || !l.region.mapped {
		return
	}
	t := l.pool.track
	if l.region.written == nil {
		written, err := t.register(l.region.base)
		if err != nil {
			return
		}
		l.region.written = written
	}
	l.region.guarded = true
	if t.protect(l.region.written, mem) != nil {
		return
	}
	l.pool.protects.Add(1)
	l.clean = s
}
