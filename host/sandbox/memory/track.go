package memory

// How a memory is tracked. The kernel write-protects pages, and removes the protection of
// a page when the page is first written. A page without protection counts as written, so
// no write goes unnoticed.
//
//  1. Protected pages are equal to Linear.clean: they are protected only after they were
//     restored, and lose the protection before they change.
//  2. A reset asks which pages are not protected, compares those pages, and restores
//     those that differ.
//  3. The reset leaves these pages unprotected. An invocation mostly writes the same
//     pages as the previous one. Protecting them each time would cost a fault for each
//     page, which is more than comparing them, and would interrupt the other processors.
//  4. Only when so many pages were compared without a change that protecting all pages
//     would have been cheaper, all pages are protected. For a memory of two
//     WebAssembly pages this happens after some resets, or never if few pages are
//     written. A large memory is protected when it is filled.
//
// Linear.clean is nil when rule 1 does not hold: at first, and after any failure. Then
// all pages are compared. A kernel that does not report written pages therefore costs
// time, not isolation. A kernel that reports them wrongly is found out by an occasional
// audit, which ends tracking.
const (
	// vainPages, and vainPerPage for each changed page, are how many pages are compared
	// without finding a change before all are protected. Protecting costs 3 to 8 us, and
	// the next invocation pays 0.7 to 1.2 us for each page it writes. Comparing a page
	// costs 0.1 us.
	vainPages   = 128
	vainPerPage = 8
	// auditEvery: every auditEvery-th reset of a memory compares all pages, as an audit.
	auditEvery = 1024
)

// restore restores the first s.size bytes of the region.
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

// restoreWritten restores the pages of mem that the kernel reports as written. It returns
// false if the kernel does not report; some pages may then be restored already.
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

// restorePart restores mem[from:to]. No run before the run numbered next reaches into
// that part. restorePart returns the number of the run at which the next part begins.
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

// protect asks the kernel to record which pages of mem are written from now on. The pages
// equal the snapshot.
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
