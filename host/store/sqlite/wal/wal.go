// Package wal reads SQLite's write-ahead logs without SQLite, and keeps the mark: what a
// database and its log must hold.
package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// The write-ahead log in SQLite's file format is a head of 32 bytes, followed by frames
// with a head of 24 bytes and a page. A frame is valid if it has the salts of the log's
// head and its checksum continues those of all frames before it. A commit is a frame that
// says how many pages the database then has.
const (
	logHead    = 32
	frameHead  = 24
	logMagic   = 0x377f0682 // the lowest bit gives the byte order of checksums
	logVersion = 3007000
	maxPage    = 65536
	minPage    = 512
)

// Generation identifies one filling of the log: the time from its restart to the next. It
// has a number and two salts, the first of which counts up too. The zero generation is
// none.
type Generation struct{ number, salt1, salt2 uint32 }

// Follows reports whether g can be the generation after before. SQLite chooses the second
// salt at random.
func (g Generation) Follows(before Generation) bool {
	return g.number == before.number+1 && g.salt1 == before.salt1+1
}

// Log describes the contents of a log.
type Log struct {
	There bool       // it has a valid head
	Gen   Generation // of the log, if there is set
	size  int64      // of the file, in bytes
	// frames and commits count what is complete, and end is where that ends. Bytes behind
	// end are incomplete or belong to an earlier generation.
	Frames, Commits uint64
	end             int64
	// behind counts frames behind end with the salts of this generation. A torn frame
	// lies before them.
	Behind uint64
}

// ReadHead reads the generation of a log; ok is false if the log has no valid head.
func ReadHead(r io.ReaderAt) (head [logHead]byte, gen Generation, ok bool, err error) {
	if _, err := r.ReadAt(head[:], 0); err != nil {
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return head, gen, false, err
	}
	word := func(at int) uint32 { return binary.BigEndian.Uint32(head[at:]) }
	if word(0)&^1 != logMagic || word(4) != logVersion {
		return head, gen, false, nil
	}
	gen = Generation{word(12), word(16), word(20)}
	c1, c2 := logSum(head[:24], word(0), 0, 0)
	return head, gen, c1 == word(24) && c2 == word(28), nil
}

// logSum is SQLite's checksum of a log, over a multiple of 8 bytes.
func logSum(data []byte, magic, c1, c2 uint32) (uint32, uint32) {
	if magic&1 == 1 {
		for ; len(data) >= 8; data = data[8:] {
			c1 += binary.BigEndian.Uint32(data) + c2
			c2 += binary.BigEndian.Uint32(data[4:]) + c1
		}
		return c1, c2
	}
	for ; len(data) >= 8; data = data[8:] {
		c1 += binary.LittleEndian.Uint32(data) + c2
		c2 += binary.LittleEndian.Uint32(data[4:]) + c1
	}
	return c1, c2
}

// ReadLog reads a log without SQLite, which would move it into the database or delete it.
// A missing file counts as a log without a head.
func ReadLog(path string) (l Log, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return l, err
	}
	l.size = info.Size()
	head, gen, ok, err := ReadHead(f)
	if err != nil || !ok {
		return l, err
	}
	l.There, l.Gen, l.end = true, gen, logHead
	page := int64(binary.BigEndian.Uint32(head[8:]))
	if page < minPage || page > maxPage || page&(page-1) != 0 {
		return l, nil
	}
	return l, l.walk(f, head, page)
}

func (l *Log) walk(f io.ReaderAt, head [logHead]byte, page int64) error {
	magic := binary.BigEndian.Uint32(head[0:])
	c1, c2 := binary.BigEndian.Uint32(head[24:]), binary.BigEndian.Uint32(head[28:])
	buf := make([]byte, frameHead+page)
	var frames uint64 // since the last commit
	whole := true
	for at := int64(logHead); ; at += frameHead + page {
		if _, err := f.ReadAt(buf, at); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading the log at byte %d: %w", at, err)
		}
		if string(buf[8:16]) != string(head[16:24]) {
			if whole = false; l.Behind == 0 { // a frame of an earlier generation: nothing of this one follows
				return nil
			}
			continue
		}
		if whole {
			c1, c2 = logSum(buf[:8], magic, c1, c2)
			c1, c2 = logSum(buf[frameHead:], magic, c1, c2)
			whole = c1 == binary.BigEndian.Uint32(buf[16:]) && c2 == binary.BigEndian.Uint32(buf[20:])
		}
		if !whole {
			l.Behind++
			continue
		}
		if frames++; binary.BigEndian.Uint32(buf[4:]) != 0 {
			l.Frames, l.Commits, l.end = l.Frames+frames, l.Commits+1, at+frameHead+page
			frames = 0
		}
	}
}
