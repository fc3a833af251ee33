package sqlite

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// The mark is a file beside the database and its log. It says what these two must hold. A
// start that finds less knows that a file is missing or old. The mark has two slots that
// are written in turn and synced, so a torn write leaves the other slot whole.
//
// The mark is written when the store opens, before the first commit of a new generation
// of the log is acknowledged, every few seconds while there are commits, and when the
// store is closed. So it may be behind by the commits of some seconds, but never by a
// generation.
const (
	markName = "weft.mark"
	markSlot = 512
	// A slot has markMagic, the number of the write (8), id (16), state (1), number and
	// salts of the log (12), base (8), newest (8), and the CRC-32C of all these (4).
	markMagic = "weftmk01"
	markSize  = 8 + 8 + 16 + 1 + 12 + 8 + 8 + 4
)

// mark is the content of a slot.
type mark struct {
	seq    uint64
	id     [16]byte
	clean  bool       // the store was closed, and the database file has everything
	gen    generation // of the log; zero: any, or none
	base   uint64     // commits when this generation of the log began
	newest uint64     // commits that are known to be durable
}

var markTable = crc32.MakeTable(crc32.Castagnoli)

func (m *mark) encode() []byte {
	b := make([]byte, 0, markSlot)
	b = append(b, markMagic...)
	b = binary.BigEndian.AppendUint64(b, m.seq)
	b = append(b, m.id[:]...)
	state := byte(0)
	if m.clean {
		state = 1
	}
	b = append(b, state)
	for _, word := range []uint32{m.gen.number, m.gen.salt1, m.gen.salt2} {
		b = binary.BigEndian.AppendUint32(b, word)
	}
	b = binary.BigEndian.AppendUint64(b, m.base)
	b = binary.BigEndian.AppendUint64(b, m.newest)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, markTable))
	return b[:markSlot]
}

func decodeMark(b []byte) (m mark, ok bool) {
	if len(b) < markSize || string(b[:8]) != markMagic ||
		crc32.Checksum(b[:markSize-4], markTable) != binary.BigEndian.Uint32(b[markSize-4:]) {
		return m, false
	}
	m.seq = binary.BigEndian.Uint64(b[8:])
	copy(m.id[:], b[16:])
	m.clean = b[32] == 1
	m.gen = generation{binary.BigEndian.Uint32(b[33:]), binary.BigEndian.Uint32(b[37:]), binary.BigEndian.Uint32(b[41:])}
	m.base = binary.BigEndian.Uint64(b[45:])
	m.newest = binary.BigEndian.Uint64(b[53:])
	return m, true
}

// readMark reads the newer whole slot; nil: there is none.
func readMark(dir string) (*mark, error) {
	b, err := os.ReadFile(filepath.Join(dir, markName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found *mark
	for at := 0; at+markSlot <= len(b); at += markSlot {
		if m, ok := decodeMark(b[at : at+markSlot]); ok && (found == nil || m.seq > found.seq) {
			found = &m
		}
	}
	return found, nil
}

// marker writes the mark. note may be called under any lock. flush holds a lock over disk
// writes.
type marker struct {
	dir string
	mu  sync.Mutex // guards now and written
	now mark       // what the mark must say
	// written is what the mark on the disk says.
	written mark

	io   sync.Mutex // held over a write; locked before mu
	file *os.File
}

func openMarker(dir string, first mark) (*marker, error) {
	f, err := os.OpenFile(filepath.Join(dir, markName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, dirError(dir, err)
	}
	m := &marker{dir: dir, now: first, file: f}
	if err := m.flush(); err != nil {
		return nil, errors.Join(dirError(dir, err), f.Close())
	}
	return m, syncDir(dir)
}

// note changes, in memory, what the mark must say.
func (m *marker) note(change func(*mark)) {
	m.mu.Lock()
	change(&m.now)
	m.mu.Unlock()
}

// flush writes the mark and syncs it, unless the disk has it already.
func (m *marker) flush() error {
	m.io.Lock()
	defer m.io.Unlock()
	m.mu.Lock()
	next := m.now
	next.seq = m.written.seq
	same := next == m.written && next.seq != 0
	next.seq = max(m.now.seq, m.written.seq) + 1
	m.mu.Unlock()
	if same {
		return nil
	}
	_, err := m.file.WriteAt(next.encode(), int64(next.seq%2)*markSlot)
	if err == nil {
		err = m.file.Sync()
	}
	if err != nil {
		return err
	}
	m.mu.Lock()
	m.written = next
	m.mu.Unlock()
	return nil
}

func (m *marker) close() error { return m.file.Close() }
