// Package faultdisk is a disk that fails when a test tells it to: it stands below
// SQLite, knows what has been synced and what has not, and takes the power away.
//
// It is linked into tests only. It must not know what the files mean, nor who writes
// them: what holds after a failure is for the test to say.
//
// # The model
//
// Of each file there is what the disk has kept, and the changes since, in order: the
// computer's cache, which is what reads see. A sync makes the disk keep all changes of
// its file. When the power goes, the disk has of the changes of each file some: none,
// all, the first ones, or any, the last of them torn at a sector; or any sectors of any
// of them, as disks write them in the order that they like. A new file's name is
// kept with its first sync, and with it the directory, as SQLite does that; a deletion
// not before the directory is synced: until then the old file may be back.
//
// A sync that fails has some of the changes kept, and the cache takes all of them for
// clean, as Linux does: no later sync writes the rest. Only writing them again does.
//
// A program beside SQLite that writes to a file which SQLite has not changed since it
// opened it is taken to have synced it.
package faultdisk

import (
	"bytes"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Op is an operation that may fail.
type Op string

// The operations.
const (
	Write    Op = "write"
	Sync     Op = "sync"
	Truncate Op = "truncate"
	Read     Op = "read" // of the database and its log, not of the shared memory
)

// Kind is how it fails.
type Kind string

// The kinds of failure. After a PowerCut nothing reaches the disk any more.
const (
	none     Kind = ""
	IOError  Kind = "EIO"
	NoSpace  Kind = "ENOSPC"
	PowerCut Kind = "power cut"
	// Short is a write of which the system takes a part only, to any byte, or a read that
	// ends too early: SQLite sees zeros for the rest, and no error.
	Short Kind = "short"
	// Zeros is a read that gives zeros for all.
	Zeros Kind = "zeros"
)

// Fault is a failure to come: the N-th operation of its kind from now on, 1 being the
// next one. A Lasting one fails every later one too, until [Disk.Heal].
type Fault struct {
	Op      Op
	Kind    Kind
	N       int
	Lasting bool
}

// sector is what a disk writes as a whole, in bytes.
const sector = 512

// Disk is a directory whose files are on a disk that fails. Its methods may be
// called from any goroutine; Restore and Revive while SQLite has no file open.
type Disk struct {
	tb  testing.TB
	dir string

	mu      sync.Mutex // guards what follows, and the files; held over writes
	rng     *rand.Rand
	files   map[string]*file  // by path
	removed map[string][]byte // deleted ones that may come back
	fault   *Fault
	fired   bool
	cut     bool
}

// New makes the files below a directory, which SQLite has not open, those of a disk
// that fails. Files in deeper directories are not looked at. What it leaves to chance
// is up to rng.
func New(tb testing.TB, dir string, rng *rand.Rand) *Disk {
	tb.Helper()
	install()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		tb.Fatal(err)
	}
	d := &Disk{tb: tb, dir: dir, rng: rng, files: map[string]*file{}, removed: map[string][]byte{}}
	layer.mu.Lock()
	layer.disks[dir] = d
	layer.mu.Unlock()
	tb.Cleanup(func() {
		layer.mu.Lock()
		delete(layer.disks, dir)
		layer.mu.Unlock()
	})
	return d
}

// Fail arms a fault, in the place of the one before.
func (d *Disk) Fail(f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault, d.fired = &f, false
}

// Heal disarms the fault, and reports whether it came about.
func (d *Disk) Heal() (fired bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = nil
	return d.fired
}

// Cut takes the power away, as a fault of the kind PowerCut does.
func (d *Disk) Cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cut = true
}

func (d *Disk) isCut() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cut
}

// Revive is what a new process finds after a Cut that was only the old one's death:
// the cache is as it was.
func (d *Disk) Revive() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cut, d.fault = false, nil
}

// Restore is what is found when the power is back: of each file what the disk has
// kept.
func (d *Disk) Restore() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for path, f := range d.files {
		d.notice(f)
		old, had := d.removed[path]
		content, there := f.survived(d.rng), f.named || d.rng.IntN(2) == 0
		if !there && had && d.rng.IntN(2) == 0 {
			content, there = old, true
		}
		d.put(path, content, there)
		if f.content, f.dirty, f.named, f.known = content, nil, true, true; !there {
			delete(d.files, path)
		}
		delete(d.removed, path)
	}
	for path, old := range d.removed {
		d.put(path, old, d.rng.IntN(2) == 0)
	}
	clear(d.removed)
	d.cut, d.fault = false, nil
	d.dropShared()
}

// Evict has the cache forget what it takes for clean: after a sync that failed, reads
// of it see what the disk has kept.
func (d *Disk) Evict() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for path, f := range d.files {
		d.notice(f)
		f.known = true
		now := file{content: bytes.Clone(f.content)}
		d.put(path, now.apply(f.dirty), true)
	}
}

func (d *Disk) dropShared() {
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		d.tb.Fatal(err)
	}
	for _, e := range entries {
		if isShared(e.Name()) {
			d.put(filepath.Join(d.dir, e.Name()), nil, false)
		}
	}
}

// put makes a file what it is to be, and marks it as known.
func (d *Disk) put(path string, content []byte, there bool) {
	var err error
	if there {
		if err = os.WriteFile(path, content, 0o600); err == nil {
			err = os.Chtimes(path, known, known)
		}
	} else if err = os.Remove(path); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		d.tb.Fatal(err)
	}
}

// known is when files were changed of which the disk knows: what has another time
// was changed by somebody beside SQLite.
var known = time.Unix(1_000_000_000, 0)

// do carries out an operation, with the failure that it is to have.
func (d *Disk) do(op Op, f *file, carryOut func(Kind) int32) int32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notice(f)
	if d.cut {
		return failedOf(op)
	}
	kind := none
	if f := d.fault; f != nil && f.Op == op {
		if f.N--; f.N == 0 || f.N < 0 && f.Lasting {
			kind, d.fired = f.Kind, true
			d.cut = kind == PowerCut
		}
	}
	return carryOut(kind)
}

// read decides how a read fares. Reads do not see that the power is gone: nobody is there
// to make them.
func (d *Disk) read() Kind {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.fault
	if f == nil || f.Op != Read {
		return none
	}
	if f.N--; f.N == 0 || f.N < 0 && f.Lasting {
		d.fired = true
		return f.Kind
	}
	return none
}

// part is how much of n bytes a short read or write comes to.
func (d *Disk) part(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.IntN(n)
}

// torn is the beginning of a write that does not come to its end. Called with mu held.
func (d *Disk) torn(data []byte, offset int64) []byte {
	return data[:tornAt(d.rng, len(data), offset)]
}

// tornAt is how much of a write gets through: up to a sector's end.
func tornAt(rng *rand.Rand, n int, offset int64) int {
	end := (offset + int64(rng.IntN(n+1))) / sector * sector
	return int(max(0, end-offset))
}

// opened gives the file that a path names. there says whether it was there before it
// was opened.
func (d *Disk) opened(path string, there bool) (*file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[path]
	if f == nil {
		f = &file{path: path, named: there}
		if there {
			content, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			f.content = content
		}
		d.files[path] = f
	}
	f.users++
	return f, nil
}

// notice looks whether somebody beside SQLite has changed a file that SQLite is about to
// change for the first time. Called with mu held.
func (d *Disk) notice(f *file) {
	if !f.known {
		return
	}
	f.known = false
	info, err := os.Stat(f.path)
	if err != nil || info.ModTime().Equal(known) {
		return
	}
	content, err := os.ReadFile(f.path)
	if err != nil {
		d.tb.Error(err)
		return
	}
	f.content, f.dirty = content, nil
	d.dirSynced()
}

// synced notes that the disk has kept a file's changes. With the first sync of a new
// file SQLite syncs the directory: the disk has all names. Called with mu held.
func (d *Disk) synced(f *file) {
	f.content, f.dirty = f.apply(f.dirty), nil
	if !f.named {
		d.dirSynced()
	}
}

func (d *Disk) dirSynced() {
	clear(d.removed)
	for _, f := range d.files {
		f.named = true
	}
}

// closed notes that one who had the file open has not any more.
func (d *Disk) closed(f *file) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f.users--; f.users > 0 || d.files[f.path] != f {
		return
	}
	d.notice(f)
	switch err := os.Chtimes(f.path, known, known); {
	case err == nil:
		f.known = true
	case !errors.Is(err, fs.ErrNotExist):
		d.tb.Error(err)
	}
}

// deleted notes that a file was deleted; for good if its directory is synced.
func (d *Disk) deleted(path string, synced bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.files[path]
	delete(d.files, path)
	if f != nil && f.named {
		d.removed[path] = f.content
	}
	if synced {
		d.dirSynced()
	}
}

// syncFailed decides what of the changes has been kept nevertheless. Called with mu
// held.
func (d *Disk) syncFailed(f *file) {
	f.content, f.dirty = f.survived(d.rng), nil
}
