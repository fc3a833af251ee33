package memory

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A snapshot in bytes is
//
//	magic, version  8 bytes
//	size            uvarint, in units of PageBytes
//	runs            uvarint, their number
//	of each run     uvarint pages of zeroes before it, uvarint pages in it
//	data            of all runs
//
// with pages of pageBytes. A run that is not the first has zeroes before it, and
// none is empty, so that a snapshot has one encoding.
const magic = "weftmem\x01"

// ErrEncoding is the error of [Decode] for what no snapshot was encoded to.
var ErrEncoding = errors.New("not a snapshot of a memory")

// Encode gives the snapshot in bytes, for [Decode].
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

// Decode makes the snapshot that was encoded, of a memory of at most max bytes.
// It copies what it needs, so it allocates about as much as the input has, and
// the input may be anything: what the snapshot says is right only if the input
// can be trusted, or if [Snapshot.Hash] gives what is expected.
//
// # Errors
//
// ErrEncoding, with what is wrong.
func Decode(in []byte, max uint64) (*Snapshot, error) {
	if len(in) < len(magic) || string(in[:len(magic)]) != magic {
		return nil, fmt.Errorf("%w: it does not begin as one of this version", ErrEncoding)
	}
	d := decoder{rest: in[len(magic):]}
	pages, number := d.number(min(max, MaxBytes)/PageBytes), d.number(uint64(len(in)/pageBytes))
	s := &Snapshot{size: int(pages * PageBytes), runs: make([]run, number)}
	left := uint64(s.size / pageBytes) // pages not yet spoken for
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
	bad  bool // a number was not there, too large, or not in its shortest form
}

// number reads one that is at most max; 0 if that fails.
func (d *decoder) number(max uint64) uint64 {
	v, n := binary.Uvarint(d.rest)
	if d.bad || n <= 0 || v > max || n > 1 && d.rest[n-1] == 0 {
		d.bad = true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}
