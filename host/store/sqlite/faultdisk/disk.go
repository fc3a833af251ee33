// Package faultdisk is a disk that fails when a test tells it to. It sits below SQLite,
// knows what has been synced and what has not, and can cut the power.
//
// It is linked into tests only. The package does not know what the files mean or who
// writes them. The test decides what must hold after a failure.
//
// # The model
//
// For each file there is the content that the disk has kept, and the changes since then,
// in order. The changes are the computer's cache, which reads see. A sync makes the disk
// keep all changes of the file. After a power cut the disk has some of the changes of
// each file: none, all, or the first ones, with the last of them torn at a sector; or any
// sectors of any of them, because disks write in any order. The name of a new file is
// kept with the file's first sync, because SQLite then syncs the directory too. A
// deletion is kept when the directory is synced. Before that the deleted file may come
// back.
//
// A failed sync keeps some of the changes, and the cache then treats all of them as
// clean, as Linux does. No later sync writes the rest. Only writing the changes again
// does.
//
// If another program writes to a file that SQLite has not changed since opening it, the
// program is assumed to have synced the file.
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
const ( // of the database and its log, but not of the shared memory
	Write    Op = "write"
	Sync     Op = "sync"
	Truncate Op = "truncate"
	Read     Op = "read" // of the database and its log, not of the shared memory
)

// Kind is the way an operation fails.
type Kind string

// The kinds of failure. After a PowerCut nothing reaches the disk any more.
const (
	none     Kind = ""
	IOError  Kind = "EIO"
	NoSpace  Kind = "ENOSPC"
	PowerCut Kind = "power cut"
	// Short is a write of which the system takes only a part, down to any byte, or a read
	// that ends too early: SQLite sees zeros for the rest, and no error.
	Short Kind = "short"
	// Zeros is a read that returns only zeros.
	Zeros Kind = "zeros"
)

// Fault is a future failure: that of the N-th operation of its kind from now on, where 1
// is the next one. If Lasting is set, all later operations of the kind fail too, until
// [Disk.Heal].
type Fault struct {
	Op      Op
	Kind    Kind
	N       int
	Lasting bool
}

// sector is the unit that a disk writes as a whole, in bytes.
const sector = 512

// Disk is a directory whose files are on a disk that fails. Its methods are safe for
// concurrent use, but Restore and Revive may only be called while SQLite has no file
// open.
type Disk struct {
	tb  testing.TB
	dir string

	mu      sync.Mutex // guards the fields below and the files; held over writes
	rng     *rand.Rand
	files   map[string]*file  // by path
	removed map[string][]byte // deleted ones that may come back
	fault   *Fault
	fired   bool
	cut     bool
}

// New puts the files of a directory on a disk that fails. SQLite must not have them open.
// Files in subdirectories are not included. rng makes all random choices.
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

// Fail arms a fault in place of the previous one.
func (d *Disk) Fail(f Fault) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault, d.fired = &f, false
}

// Heal disarms the fault, and reports whether it has happened.
func (d *Disk) Heal() (fired bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = nil
	return d.fired
}

// Cut cuts the power, like a fault of the kind PowerCut.
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

// Revive restores what a new process finds if a Cut was only the death of the old
// process: the cache is as it was.
func (d *Disk) Revive() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cut, d.fault = false, nil
}

// Restore restores what a new process finds when the power is back: the part of each file
// that the disk has kept.
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

// Evict makes the cache drop the pages that it treats as clean. After a failed sync,
// reads of these pages return what the disk has kept.
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

// put gives a file its content and marks its time as known.
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

// known is the modification time of files that only SQLite has changed. A file with
// another time was changed by somebody else.
var known = time.Unix(1_000_000_000, 0)

// do performs an operation, with its failure if it has one.
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

// read decides how a read ends. A power cut does not affect reads, because nobody is left
// to read.
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

// part returns how many of n bytes a short read or write transfers.
func (d *Disk) part(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.IntN(n)
}

// torn returns the part of a write that reaches the disk. mu is held.
func (d *Disk) torn(data []byte, offset int64) []byte {
	return data[:tornAt(d.rng, len(data), offset)]
}

// tornAt returns how many bytes of a write get through: up to the end of a sector.
func tornAt(rng *rand.Rand, n int, offset int64) int {
	end := (offset + int64(rng.IntN(n+1))) / sector * sector
	return int(max(0, end-offset))
}

// opened returns the file of a path. there says whether the file existed before it was
// opened.
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

// notice checks whether somebody other than SQLite has changed a file that SQLite is
// about to change for the first time. mu is held.
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

// synced records that the disk has kept a file's changes. With the first sync of a new
// file SQLite syncs the directory, so the disk has all names. mu is held.
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

// closed records that one user has closed the file.
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

// deleted records the deletion of a file. The deletion is permanent if the directory is
// synced.
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

// syncFailed decides which changes have been kept although the sync failed. mu is held.
func (d *Disk) syncFailed(f *file) {
	f.content, f.dirty = f.survived(d.rng), nil
}
