package memory

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The encoding of a snapshot is
//
//	magic, version  8 bytes
//	size            uvarint, in units of PageBytes
//	runs            uvarint, their number
//	of each run     uvarint pages of zeroes before it, uvarint pages in it
//	data            of all runs
//
// with pages of pageBytes. Every run except the first has zeroes before it, and no run is
// empty, so a snapshot has exactly one encoding.
const magic = "weftmem\x01"

// ErrEncoding is the error of [Decode] for bytes that do not encode a snapshot.
var ErrEncoding = errors.New("not a snapshot of a memory")

// Encode returns the encoding of the snapshot, for [Decode].
func (s *Snapshot) Encode() []byte {
	out := make([]byte, 0, len(magic)+2*binary.MaxVarintLen64+len(s.runs)*6+len(s.data))
	out = append(out, magic...)
	out = binary.AppendUvarint(out, uint64(s.size/PageBytes))
	out = binary.AppendUvarint(out, uint64(len(s.runs)))
	at := 0
	for _, r := range s.runs {
		out = binary.AppendUvarint(out, uint64((r.offset-at)/pageBytes))
		out = binary.AppendUvarint(out, uint64(len(r.data)/pageBytes))
		at = r.end()
	}
	return append(out, s.data...)
}

// Decode returns the snapshot encoded in in, of a memory of at most max bytes. The
// snapshot shares no memory with in, and Decode allocates about as many bytes as in has.
// The input may be hostile: the contents are right only if the input is trusted, or if
// [Snapshot.Hash] returns the expected hash.
//
// # Errors
//
// ErrEncoding, with the reason.
func Decode(in []byte, max uint64) (*Snapshot, error) {
	if len(in) < len(magic) || string(in[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: it does not begin as one of this version", ErrEncoding)
	}
	d := decoder{rest: in[len(magic):]}
	pages, number := d.number(min(max, MaxBytes)/PageBytes), d.number(uint64(len(in)/pageBytes))
	s := &Snapshot{size: int(pages * PageBytes), runs: make([]run, number)}
	left := uint64(s.size / pageBytes) // pages not yet covered
	total, at := 0, 0
	lengths := make([]int, number)
	for i := range s.runs {
		gap := d.number(left)
		length := d.number(left - gap)
		if d.bad || length == 0 || gap == 0 && i > 0 {
			return nil, fmt.Errorf("%w: run %d of %d does not fit", ErrEncoding, i, number)
		}
		left -= gap + length
		s.runs[i].offset = at + int(gap)*pageBytes
		lengths[i] = int(length) * pageBytes
		at = s.runs[i].offset + lengths[i]
		total += lengths[i]
	}
	if d.bad || len(d.rest) != total {
		return nil, fmt.Errorf("%w: %d bytes of data for %d", ErrEncoding, len(d.rest), total)
	}
	s.data = append(make([]byte, 0, total), d.rest...)
	rest := s.data
	for i, length := range lengths {
		s.runs[i].data, rest = rest[:length:length], rest[length:]
	}
	return s, nil
}

// decoder reads numbers.
type decoder struct {
	rest []byte
	bad  bool // a number was missing, too large, or not in its shortest form
}

// number reads a number that is at most max. It returns 0 on failure.
func (d *decoder) number(max uint64) uint64 {
	v, n := binary.Uvarint(d.rest)
	if d.bad || n <= 0 || v > max || n > 1 && d.rest[n-1] == 0 {
		d.bad = true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}
