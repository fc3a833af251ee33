package abi

import (
	"encoding/hex"

	"github.com/weftrun/weft/abi/cbor"
)

// Diag formats one item in diagnostic notation (RFC 8949, section 8) on a single line,
// for people and for comparisons in tests: {"a": 1, "b": [h'00ff', 2.0]}. It also accepts
// whole messages. An item that is not well-formed becomes a comment with the reason and
// the bytes.
func Diag(r Raw) string {
	s := newScanner(r, DefaultLimits.effective())
	if err := s.whole(); err != nil {
		return "/ " + err.Error() + " / h'" + hex.EncodeToString(r[:min(len(r), 256)]) + "'"
	}
	w := diagWriter{jsonWriter{src: r, dst: make([]byte, 0, 2*len(r))}}
	w.item(0)
	return string(w.dst)
}

// diagWriter differs from JSON in the byte strings and the spaces.
type diagWriter struct{ jsonWriter }

// item writes the checked item at off and returns the offset after it.
func (w *diagWriter) item(off int) int {
	major := cbor.Major(w.src[off])
	if major != cbor.Bytes && major != cbor.Array && major != cbor.Map {
		return w.jsonWriter.item(off)
	}
	arg, next := cbor.Head(w.src, off)
	switch major {
	case cbor.Bytes:
		end := next + int(arg)
		w.dst = append(w.dst, "h'"...)
		w.dst = hex.AppendEncode(w.dst, w.src[next:end])
		w.dst = append(w.dst, '\'')
		return end
	case cbor.Array:
		w.dst = append(w.dst, '[')
		for i := range arg {
			w.separate(i)
			next = w.item(next)
		}
		w.dst = append(w.dst, ']')
	default:
		w.dst = append(w.dst, '{')
		for i := range arg {
			w.separate(i)
			next = w.item(next)
			w.dst = append(w.dst, ": "...)
			next = w.item(next)
		}
		w.dst = append(w.dst, '}')
	}
	return next
}

// separate writes what goes before element i.
func (w *diagWriter) separate(i uint64) {
	if i > 0 {
		w.dst = append(w.dst, ", "...)
	}
}
