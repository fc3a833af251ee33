package blackbox

import "sync"

// Position records the newest acknowledged commit of a store in the box: exact after the
// process has ended, and unknown after a reboot. Commits before [Box.Begin] are kept in
// memory until then. Its methods may be called from any goroutine.
type Position struct {
	dir string

	mu      sync.Mutex // guards the fields below
	box     *Box       // nil before Begin and after Close
	store   [16]byte
	commits uint64
}

// NewPosition returns the position kept in the box of a directory.
func NewPosition(dir string) *Position { return &Position{dir: dir} }

// Before returns the newest commit of a store that the previous process acknowledged.
// known is false if the file is missing, the computer was restarted since, or the file
// belongs to a different store.
func (p *Position) Before(store [16]byte) (commits uint64, known bool) {
	found, err := Read(p.dir)
	if err != nil || found.commits == 0 || found.store != store {
		return 0, false
	}
	boot, ok := bootID()
	return found.commits, ok && boot == found.boot
}

// Note records that a commit of a store is acknowledged. It costs no system call.
func (p *Position) Note(store [16]byte, commits uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.store, p.commits = store, commits
	if p.box != nil {
		p.box.store(atCommits, commits)
	}
}

// begin makes the box record the position from now on.
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

// end stops recording the position, because the file is about to be closed.
func (p *Position) end() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.box = nil
}
