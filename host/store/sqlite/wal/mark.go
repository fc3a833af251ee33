package wal

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/weftrun/weft/host/store/sqlite/datadir"
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
	MarkName = "weft.mark"
	markSlot = 512
	// A slot has markMagic, the number of the write (8), id (16), state (1), number and
	// salts of the log (12), base (8), newest (8), and the CRC-32C of all these (4).
	markMagic = "weftmk01"
	markSize  = 8 + 8 + 16 + 1 + 12 + 8 + 8 + 4
)

// Mark is the content of a slot.
type Mark struct {
	Seq    uint64
	ID     [16]byte
	Clean  bool       // the store was closed, and the database file has everything
	Gen    Generation // of the log; zero: any, or none
	Base   uint64     // commits when this generation of the log began
	Newest uint64     // commits that are known to be durable
}

var markTable = crc32.MakeTable(crc32.Castagnoli)

func (m *Mark) encode() []byte {
	b := make([]byte, 0, markSlot)
	b = append(b, markMagic...)
	b = binary.BigEndian.AppendUint64(b, m.Seq)
	b = append(b, m.ID[:]...)
	state := byte(0)
	if m.Clean {
		state = 1
	}
	b = append(b, state)
	for _, word := range []uint32{m.Gen.number, m.Gen.salt1, m.Gen.salt2} {
		b = binary.BigEndian.AppendUint32(b, word)
	}
	b = binary.BigEndian.AppendUint64(b, m.Base)
	b = binary.BigEndian.AppendUint64(b, m.Newest)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b, markTable))
	return b[:markSlot]
}

func decodeMark(b []byte) (m Mark, ok bool) {
	if len(b) < markSize || string(b[:8]) != markMagic ||
		crc32.Checksum(b[:markSize-4], markTable) != binary.BigEndian.Uint32(b[markSize-4:]) {
		return m, false
	}
	m.Seq = binary.BigEndian.Uint64(b[8:])
	copy(m.ID[:], b[16:])
	m.Clean = b[32] == 1
	m.Gen = Generation{binary.BigEndian.Uint32(b[33:]), binary.BigEndian.Uint32(b[37:]), binary.BigEndian.Uint32(b[41:])}
	m.Base = binary.BigEndian.Uint64(b[45:])
	m.Newest = binary.BigEndian.Uint64(b[53:])
	return m, true
}

// ReadMark reads the newer whole slot, or nil if there is none.
func ReadMark(dir string) (*Mark, error) {
	b, err := os.ReadFile(filepath.Join(dir, MarkName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var found *Mark
	for at := 0; at+markSlot <= len(b); at += markSlot {
		if m, ok := decodeMark(b[at : at+markSlot]); ok && (found == nil || m.Seq > found.Seq) {
			found = &m
		}
	}
	return found, nil
}

// Marker writes the mark. Note may be called under any lock. Flush holds a lock over disk
// writes.
type Marker struct {
	dir string
	mu  sync.Mutex // guards now and written
	now Mark       // what the mark must say
	// written is what the mark on the disk says.
	written Mark

	io   sync.Mutex // held over a write; locked before mu
	file *os.File
}

// OpenMark opens the mark of a data directory, and writes the first content.
func OpenMark(dir string, first Mark) (*Marker, error) {
	f, err := os.OpenFile(filepath.Join(dir, MarkName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, datadir.Error(dir, err)
	}
	m := &Marker{dir: dir, now: first, file: f}
	if err := m.Flush(); err != nil {
		return nil, errors.Join(datadir.Error(dir, err), f.Close())
	}
	return m, datadir.Sync(dir)
}

// Note changes, in memory, what the mark must say.
func (m *Marker) Note(change func(*Mark)) {
	m.mu.Lock()
	change(&m.now)
	m.mu.Unlock()
}

// Flush writes the mark and syncs it, unless the disk has it already.
func (m *Marker) Flush() error {
	m.io.Lock()
	defer m.io.Unlock()
	m.mu.Lock()
	next := m.now
	next.Seq = m.written.Seq
	same := next == m.written && next.Seq != 0
	next.Seq = max(m.now.Seq, m.written.Seq) + 1
	m.mu.Unlock()
	if same {
		return nil
	}
	_, err := m.file.WriteAt(next.encode(), int64(next.Seq%2)*markSlot)
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

// Close closes the file. It does not write the mark.
func (m *Marker) Close() error { return m.file.Close() }
