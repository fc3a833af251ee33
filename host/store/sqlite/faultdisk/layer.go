package faultdisk

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unsafe"

	"modernc.org/libc"
	code "modernc.org/sqlite/lib"
)

// name is SQLite's name for the layer.
const name = "faultdisk"

// layer is the VFS of the process. It is SQLite's own VFS, except that reads, writes,
// truncations, syncs and deletions in the directories of disks go through the disks.
// Everything else, above all locks and shared memory, is SQLite's own.
var layer struct {
	once sync.Once
	own  uintptr // SQLite's VFS; set once

	mu      sync.Mutex // guards the fields below; nothing waits under it
	disks   map[string]*Disk
	open    map[uintptr]*handle
	methods map[uintptr]uintptr // SQLite's own table of methods -> the layer's table
}

// handle is a file that SQLite has open.
type handle struct {
	own  *code.Tsqlite3_io_methods
	disk *Disk
	file *file
}

// install makes the layer SQLite's default VFS, for the rest of the process.
func install() {
	layer.once.Do(func() {
		layer.disks, layer.open, layer.methods = map[string]*Disk{}, map[uintptr]*handle{}, map[uintptr]uintptr{}
		tls := libc.NewTLS() // lives as long as the process
		layer.own = code.Xsqlite3_vfs_find(tls, 0)
		text, err := libc.CString(name)
		vfs := libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(code.Tsqlite3_vfs{})))
		if err != nil || vfs == 0 || layer.own == 0 {
			panic("faultdisk: there is no VFS to stand before")
		}
		v := at[code.Tsqlite3_vfs](vfs)
		*v = *at[code.Tsqlite3_vfs](layer.own)
		v.FpNext, v.FzName = 0, text
		v.FxOpen, v.FxDelete = pointer(vfsOpen), pointer(vfsDelete)
		if rc := code.Xsqlite3_vfs_register(tls, vfs, 1); rc != code.SQLITE_OK {
			panic("faultdisk: SQLite does not take the VFS")
		}
	})
}

// at returns the value at an address in SQLite's memory, which no garbage collector
// moves.
func at[T any](p uintptr) *T { return *(**T)(unsafe.Pointer(&p)) }

// pointer returns a function in the form of SQLite's tables. It must be a function of the
// package, because nothing keeps a closure alive.
func pointer[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

// function returns the function of an entry in such a table.
func function[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&p)) }

// diskOf returns the disk that a path is on, or nil.
func diskOf(path string) *Disk {
	layer.mu.Lock()
	defer layer.mu.Unlock()
	return layer.disks[filepath.Dir(path)]
}

func handleOf(p uintptr) *handle {
	layer.mu.Lock()
	defer layer.mu.Unlock()
	return layer.open[p]
}

func vfsOpen(tls *libc.TLS, _, zName, pFile uintptr, flags int32, pOutFlags uintptr) int32 {
	path := ""
	if zName != 0 {
		path = libc.GoString(zName)
	}
	d := diskOf(path)
	_, err := os.Stat(path)
	there := err == nil
	own := at[code.Tsqlite3_vfs](layer.own)
	rc := function[func(*libc.TLS, uintptr, uintptr, uintptr, int32, uintptr) int32](own.FxOpen)(tls, layer.own, zName, pFile, flags, pOutFlags)
	if rc != code.SQLITE_OK || d == nil {
		return rc
	}
	f, err := d.opened(path, there)
	if err != nil {
		return code.SQLITE_CANTOPEN
	}
	base := at[code.Tsqlite3_file](pFile)
	layer.mu.Lock()
	defer layer.mu.Unlock()
	layer.open[pFile] = &handle{own: at[code.Tsqlite3_io_methods](base.FpMethods), disk: d, file: f}
	base.FpMethods = methodsOver(tls, base.FpMethods)
	return code.SQLITE_OK
}

// methodsOver returns the layer's table of methods for SQLite's own table. layer.mu is
// held.
func methodsOver(tls *libc.TLS, own uintptr) uintptr {
	if p, ok := layer.methods[own]; ok {
		return p
	}
	p := libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(code.Tsqlite3_io_methods{})))
	if p == 0 {
		panic("faultdisk: out of memory")
	}
	m := at[code.Tsqlite3_io_methods](p)
	*m = *at[code.Tsqlite3_io_methods](own)
	m.FxClose, m.FxRead, m.FxWrite, m.FxTruncate, m.FxSync = pointer(fileClose), pointer(fileRead), pointer(fileWrite), pointer(fileTruncate), pointer(fileSync)
	layer.methods[own] = p
	return p
}

func vfsDelete(tls *libc.TLS, _, zName uintptr, syncDir int32) int32 {
	path := libc.GoString(zName)
	d := diskOf(path)
	if d != nil && d.isCut() {
		return code.SQLITE_IOERR_DELETE
	}
	own := at[code.Tsqlite3_vfs](layer.own)
	rc := function[func(*libc.TLS, uintptr, uintptr, int32) int32](own.FxDelete)(tls, layer.own, zName, syncDir)
	if rc == code.SQLITE_OK && d != nil {
		d.deleted(path, syncDir != 0)
	}
	return rc
}

func fileClose(tls *libc.TLS, pFile uintptr) int32 {
	h := handleOf(pFile)
	layer.mu.Lock()
	delete(layer.open, pFile)
	layer.mu.Unlock()
	rc := function[func(*libc.TLS, uintptr) int32](h.own.FxClose)(tls, pFile)
	h.disk.closed(h.file)
	return rc
}

func fileRead(tls *libc.TLS, pFile, buf uintptr, n int32, offset int64) int32 {
	h := handleOf(pFile)
	kind := h.disk.read()
	if kind == IOError {
		return code.SQLITE_IOERR_CORRUPTFS // SQLite's code for EIO
	}
	rc := function[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](h.own.FxRead)(tls, pFile, buf, n, offset)
	if rc != code.SQLITE_OK || kind == none {
		return rc
	}
	from := 0
	if kind == Short {
		from = h.disk.part(int(n))
	}
	clear(unsafe.Slice(at[byte](buf), n)[from:])
	if kind == Short {
		return code.SQLITE_IOERR_SHORT_READ
	}
	return code.SQLITE_OK
}

func fileWrite(tls *libc.TLS, pFile, buf uintptr, n int32, offset int64) int32 {
	h := handleOf(pFile)
	data := unsafe.Slice(at[byte](buf), n)
	return h.disk.do(Write, h.file, func(kind Kind) int32 {
		rc := int32(code.SQLITE_OK)
		if kind != none {
			rc = code.SQLITE_IOERR_WRITE
			if kind == NoSpace {
				rc = code.SQLITE_FULL
			}
			if kind == Short {
				rc = code.SQLITE_FULL // SQLite's code for a full disk
				data = data[:h.disk.rng.IntN(len(data))]
			} else {
				data = h.disk.torn(data, offset)
			}
		}
		if len(data) > 0 {
			write := function[func(*libc.TLS, uintptr, uintptr, int32, int64) int32](h.own.FxWrite)
			if own := write(tls, pFile, buf, int32(len(data)), offset); own != code.SQLITE_OK {
				return own
			}
			h.file.wrote(offset, data)
		}
		return rc
	})
}

func fileTruncate(tls *libc.TLS, pFile uintptr, size int64) int32 {
	h := handleOf(pFile)
	return h.disk.do(Truncate, h.file, func(kind Kind) int32 {
		if kind != none {
			return code.SQLITE_IOERR_TRUNCATE
		}
		rc := function[func(*libc.TLS, uintptr, int64) int32](h.own.FxTruncate)(tls, pFile, size)
		if rc == code.SQLITE_OK {
			h.file.truncated(size)
		}
		return rc
	})
}

// fileSync does not sync: Disk keeps track of what the disk has.
func fileSync(_ *libc.TLS, pFile uintptr, _ int32) int32 {
	h := handleOf(pFile)
	return h.disk.do(Sync, h.file, func(kind Kind) int32 {
		switch kind {
		case none:
			h.disk.synced(h.file)
			return code.SQLITE_OK
		case PowerCut: // Restore decides what is lost
		default:
			h.disk.syncFailed(h.file)
		}
		return code.SQLITE_IOERR_FSYNC
	})
}

// isShared reports whether a file is the shared memory of connections, which is lost with
// the power.
func isShared(path string) bool { return strings.HasSuffix(path, "-shm") }
