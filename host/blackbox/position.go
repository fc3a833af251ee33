package blackbox

import "sync"

// Position keeps the newest acknowledged commit of a store in the box: exact after the
// end of the process, and unknown after that of the computer. It notes for itself what
// comes before [Box.Begin]. Its methods may be called from any goroutine.
type Position struct {
	dir string

	mu      sync.Mutex // guards what follows
	box     *Box       // nil before Begin and after Close
	store   [16]byte
	commits uint64
}

// NewPosition gives the position that the box of a directory keeps.
func NewPosition(dir string) *Position { return &Position{dir: dir} }

// Before gives what the process before had acknowledged of a store. known is false if
// the file is missing, the computer has started since, or the file belongs to another
// store.
func (p *Position) Before(store [16]byte) (commits uint64, known bool) {
	found, err := Read(p.dir)
	if err != nil || found.commits == 0 || found.store != store {
		return 0, false
	}
	boot, ok := bootID()
	return found.commits, ok && boot == found.boot
}

// Note says that a commit of a store is acknowledged. It costs no system call.
func (p *Position) Note(store [16]byte, commits uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.store, p.commits = store, commits
	if p.box != nil {
		p.box.store(atCommits, commits)
	}
}

// begin has the box keep the position from now on.
func (p *Position) begin(b *Box) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	b.store(atStore, get64(p.store[:8]))
	b.store(atStore+8, get64(p.store[8:]))
	b.store(atCommits, p.commits)
	p.box = b
}

// end has the box keep it no longer: the file goes.
func (p *Position) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.box = nil
}
