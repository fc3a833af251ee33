package abi

import (
	"encoding/base64"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/weftrun/weft/abi/cbor"
)

// ToJSON is [AppendJSON] with a new slice.
func ToJSON(r Raw) ([]byte, error) {
	return AppendJSON(make([]byte, 0, len(r)+len(r)/4+16), r)
}

// AppendJSON appends a value as JSON without white space, with keys in the order of the
// canonical encoding. Integers appear as integers, floats always as floats (1.0), and
// byte strings as {"$bytes": "BASE64"}. <, > and & are not escaped; U+0085, U+2028 and
// U+2029 are, so that no client splits a line at them. [FromJSON] restores the value. The
// error, a *[DataError], is that of [Canonical]; dst is then returned unchanged.
func AppendJSON(dst []byte, r Raw) ([]byte, error) {
	return defaultsWith(MaxValueDepth).AppendJSON(dst, r)
}

// AppendJSON is the function [AppendJSON] with these limits.
func (l Limits) AppendJSON(dst []byte, r Raw) ([]byte, error) {
	r, err := l.Canonical(r)
	if err != nil {
		return dst, err
	}
	w := jsonWriter{src: r, dst: dst}
	w.item(0)
	return w.dst, nil
}

// jsonWriter writes checked, canonical CBOR as JSON.
type jsonWriter struct {
	src Raw
	dst []byte
}

// item writes the item at off and returns the offset after it.
func (w *jsonWriter) item(off int) int {
	arg, next := cbor.Head(w.src, off)
	switch cbor.Major(w.src[off]) {
	case cbor.Uint:
		w.dst = strconv.AppendUint(w.dst, arg, 10)
	case cbor.Nint:
		w.dst = strconv.AppendInt(w.dst, -1-int64(arg), 10)
	case cbor.Bytes:
		end := next + int(arg)
		w.dst = append(w.dst, `{"`+bytesKey+`":"`...)
		w.dst = base64.StdEncoding.AppendEncode(w.dst, w.src[next:end])
		w.dst = append(w.dst, `"}`...)
		return end
	case cbor.Text:
		end := next + int(arg)
		w.dst = appendQuoted(w.dst, w.src[next:end])
		return end
	case cbor.Array:
		w.dst = append(w.dst, '[')
		for i := range arg {
			if i > 0 {
				w.dst = append(w.dst, ',')
			}
			next = w.item(next)
		}
		w.dst = append(w.dst, ']')
	case cbor.Map:
		w.dst = append(w.dst, '{')
		for i := range arg {
			if i > 0 {
				w.dst = append(w.dst, ',')
			}
			next = w.item(next)
			w.dst = append(w.dst, ':')
			next = w.item(next)
		}
		w.dst = append(w.dst, '}')
	default:
		w.other(w.src[off], arg)
	}
	return next
}

// other writes a simple value or a float.
func (w *jsonWriter) other(initial byte, arg uint64) {
	switch initial {
	case cbor.False:
		w.dst = append(w.dst, "false"...)
	case cbor.True:
		w.dst = append(w.dst, "true"...)
	case cbor.Null:
		w.dst = append(w.dst, "null"...)
	default:
		w.dst = appendJSONFloat(w.dst, cbor.Float(initial, arg))
	}
}

// appendJSONFloat appends a finite float that a reader recognizes as a float: with a
// point or an exponent.
func appendJSONFloat(dst []byte, f float64) []byte {
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	for _, c := range dst[start:] {
		if c == '.' || c == 'e' {
			return dst
		}
	}
	return append(dst, ".0"...)
}

const hexDigits = "0123456789abcdef"

// appendQuoted appends valid UTF-8 as a JSON string.
func appendQuoted(dst, s []byte) []byte {
	dst = append(dst, '"')
	start := 0 // start of the bytes to copy unchanged
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		size, r := 1, rune(c)
		if c >= utf8.RuneSelf {
			if r, size = utf8.DecodeRune(s[i:]); r != 0x85 && r != 0x2028 && r != 0x2029 {
				i += size
				continue
			}
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscape(dst, r)
		i += size
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// appendEscape appends the escape sequence of a character below 0x10000.
func appendEscape(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\b':
		return append(dst, `\b`...)
	case '\f':
		return append(dst, `\f`...)
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	default:
		return append(dst, '\\', 'u', hexDigits[r>>12&15], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
	}
}
