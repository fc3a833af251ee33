package abi

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/weftrun/weft/abi/cbor"
)

// FromJSON transcodes one JSON text (RFC 8259) to a value in Core Deterministic Encoding,
// without an intermediate data structure.
//
// An integer literal becomes an integer, a number with a fraction or an exponent a float;
// {"$bytes": "BASE64"} (standard alphabet, padded) becomes a byte string. FromJSON
// refuses the following, with the path and the offset in the JSON text: a duplicate key,
// a lone surrogate, invalid UTF-8, an integer outside -2^63..2^64-1, a number too large
// for a float, nesting beyond [MaxValueDepth], anything after the value, and anything
// that exceeds [DefaultLimits]. The error is a *[DataError].
func FromJSON(b []byte) (Raw, error) { return Limits{MaxDepth: MaxValueDepth}.FromJSON(b) }

// FromJSON is the function [FromJSON] with these limits.
func (l Limits) FromJSON(b []byte) (Raw, error) {
	lim := l.effective()
	r := jsonReader{src: b, lim: lim, left: lim.MaxElements}
	raw, err := r.whole()
	if err != nil {
		return nil, err
	}
	return raw, nil
}

// jsonReader checks a JSON text and writes it as CBOR in source order. The heads of
// arrays and maps are five bytes wide, because their length is known only at the end. The
// emitter then makes the result canonical.
type jsonReader struct {
	src  []byte
	pos  int
	lim  Limits
	left int // elements that may still follow
	out  []byte
	o    ordering
}

func (r *jsonReader) whole() (Raw, *DataError) {
	if len(r.src) > r.lim.MaxBytes {
		return nil, &DataError{Offset: r.lim.MaxBytes, Reason: fmt.Sprintf("longer than %d bytes", r.lim.MaxBytes)}
	}
	r.out = make([]byte, 0, len(r.src)+cbor.WideSize)
	if err := r.value(r.lim.MaxDepth); err != nil {
		return nil, err
	}
	if r.space(); r.pos < len(r.src) {
		return nil, r.fail("trailing data")
	}
	e := emitter{src: r.out, o: &r.o, dst: make([]byte, 0, len(r.out))}
	e.item(0)
	if len(e.dst) > r.lim.MaxBytes {
		return nil, &DataError{Offset: r.pos, Reason: fmt.Sprintf("longer than %d bytes in CBOR", r.lim.MaxBytes)}
	}
	return e.dst, nil
}

// fail returns an error at the position, or at the end of the text.
func (r *jsonReader) fail(reason string) *DataError {
	if r.pos >= len(r.src) {
		return truncated(len(r.src))
	}
	return &DataError{Offset: r.pos, Reason: reason}
}

// space skips white space.
func (r *jsonReader) space() {
	for r.pos < len(r.src) {
		switch r.src[r.pos] {
		case ' ', '\t', '\n', '\r':
			r.pos++
		default:
			return
		}
	}
}

// peek skips white space and returns the next byte, 0 at the end.
func (r *jsonReader) peek() byte {
	if r.space(); r.pos < len(r.src) {
		return r.src[r.pos]
	}
	return 0
}

// count counts n elements against the limits.
func (r *jsonReader) count(n int) *DataError {
	if r.left -= n; r.left < 0 {
		return r.fail(fmt.Sprintf("more than %d elements", r.lim.MaxElements))
	}
	return nil
}

// value reads a value. Up to room more containers may open in the value.
func (r *jsonReader) value(room int) *DataError {
	switch c := r.peek(); {
	case c == '{':
		return r.object(room)
	case c == '[':
		return r.array(room)
	case c == '"':
		return r.text()
	case c == '-' || c >= '0' && c <= '9':
		return r.number()
	case c == 't':
		return r.literal("true", cbor.True)
	case c == 'f':
		return r.literal("false", cbor.False)
	case c == 'n':
		return r.literal("null", cbor.Null)
	default:
		return r.fail("not a JSON value")
	}
}

func (r *jsonReader) literal(word string, item byte) *DataError {
	if !bytes.HasPrefix(r.src[r.pos:], []byte(word)) {
		return &DataError{Offset: r.pos, Reason: "not a JSON value"}
	}
	r.pos += len(word)
	r.out = append(r.out, item)
	return nil
}

func (r *jsonReader) array(room int) *DataError {
	if room <= 0 {
		return r.fail("nested too deep")
	}
	head := len(r.out)
	r.out = cbor.AppendWide(r.out, cbor.Array)
	r.pos++
	if r.peek() == ']' {
		r.pos++
		return nil
	}
	for n := 0; ; n++ {
		if err := r.count(1); err != nil {
			return err
		}
		if err := r.value(room - 1); err != nil {
			return err.under(strconv.Itoa(n))
		}
		switch r.peek() {
		case ',':
			r.pos++
		case ']':
			r.pos++
			cbor.PutWide(r.out, head, n+1)
			return nil
		default:
			return r.fail("expected , or ] in an array")
		}
	}
}

// object reads an object. An object that represents a byte string does not count as a
// container, so it may open even where no container may.
func (r *jsonReader) object(room int) *DataError {
	if room < 0 {
		return r.fail("nested too deep")
	}
	start, head := r.pos, len(r.out)
	r.out = cbor.AppendWide(r.out, cbor.Map)
	slot, base := r.o.begin()
	n := 0
	r.pos++
	if r.peek() != '}' {
		for more := true; more; n++ {
			err := r.member(room - 1)
			if err != nil {
				return err
			}
			switch r.peek() {
			case ',':
				r.pos++
			case '}':
				more = false
			default:
				return r.fail("expected , or } in an object")
			}
		}
	}
	r.pos++
	if n == 1 {
		only := r.o.open[base]
		if string(r.out[only.key:only.value]) == bytesKey {
			r.o.open, r.o.maps = r.o.open[:base], r.o.maps[:slot]
			return r.byteString(start, head, int(only.value))
		}
	}
	if room == 0 {
		return &DataError{Offset: start, Reason: "nested too deep"}
	}
	cbor.PutWide(r.out, head, n)
	return r.o.end(r.out, slot, base, len(r.out))
}

// member reads a key, a colon and a value.
func (r *jsonReader) member(room int) *DataError {
	if err := r.count(2); err != nil {
		return err
	}
	if r.peek() != '"' {
		return r.fail("expected a key")
	}
	origin, item := r.pos, len(r.out)
	if err := r.text(); err != nil {
		return err
	}
	_, key := cbor.Head(r.out, item)
	value := len(r.out)
	r.o.add(key, value, origin)
	if r.peek() != ':' {
		return r.fail("expected : after a key").under(segmentOf(r.out[key:value]))
	}
	r.pos++
	if err := r.value(room); err != nil {
		return err.under(segmentOf(r.out[key:value]))
	}
	return nil
}

// byteString replaces the map at head by the byte string that the map represents. The
// map's only value is at value.
func (r *jsonReader) byteString(start, head, value int) *DataError {
	malformed := &DataError{Offset: start, Reason: `"$bytes" must hold a string of standard, padded base64`}
	if cbor.Major(r.out[value]) != cbor.Text {
		return malformed
	}
	_, text := cbor.Head(r.out, value)
	encoded := r.out[text:]
	if bytes.ContainsAny(encoded, "\r\n") { // the decoder would skip these
		return malformed
	}
	decoded := make([]byte, base64.StdEncoding.DecodedLen(len(encoded)))
	n, err := base64.StdEncoding.Strict().Decode(decoded, encoded)
	if err != nil {
		return malformed
	}
	r.out = append(cbor.AppendHead(r.out[:head], cbor.Bytes, uint64(n)), decoded[:n]...)
	return nil
}

// number reads a number.
func (r *jsonReader) number() *DataError {
	start := r.pos
	if r.src[r.pos] == '-' {
		r.pos++
	}
	first := r.pos
	if err := r.digits(); err != nil {
		return err
	}
	if r.src[first] == '0' && r.pos-first > 1 {
		return &DataError{Offset: start, Reason: "number with a leading zero"}
	}
	whole := r.pos
	if r.pos < len(r.src) && r.src[r.pos] == '.' {
		r.pos++
		if err := r.digits(); err != nil {
			return err
		}
	}
	if r.pos < len(r.src) && r.src[r.pos]|0x20 == 'e' {
		r.pos++
		if r.pos < len(r.src) && (r.src[r.pos] == '+' || r.src[r.pos] == '-') {
			r.pos++
		}
		if err := r.digits(); err != nil {
			return err
		}
	}
	if r.pos == whole {
		return r.integer(start, first)
	}
	return r.float(start)
}

// digits skips one or more digits.
func (r *jsonReader) digits() *DataError {
	start := r.pos
	for r.pos < len(r.src) && r.src[r.pos]-'0' <= 9 {
		r.pos++
	}
	if r.pos == start {
		return r.fail("expected a digit")
	}
	return nil
}

// integer writes the literal src[start:pos], whose digits begin at first.
func (r *jsonReader) integer(start, first int) *DataError {
	var v uint64
	for _, c := range r.src[first:r.pos] {
		d := uint64(c - '0')
		if v > (math.MaxUint64-d)/10 {
			return &DataError{Offset: start, Reason: "integer outside -2^63..2^64-1"}
		}
		v = v*10 + d
	}
	switch {
	case first == start || v == 0:
		r.out = cbor.AppendHead(r.out, cbor.Uint, v)
	case v <= 1<<63:
		r.out = cbor.AppendHead(r.out, cbor.Nint, v-1)
	default:
		return &DataError{Offset: start, Reason: "integer outside -2^63..2^64-1"}
	}
	return nil
}

// float writes the literal src[start:pos].
func (r *jsonReader) float(start int) *DataError {
	f, err := strconv.ParseFloat(string(r.src[start:r.pos]), 64)
	if err != nil { // the syntax has been checked
		return &DataError{Offset: start, Reason: "number too large for a float"}
	}
	r.out = cbor.AppendFloat(r.out, f)
	return nil
}

// text reads a string.
func (r *jsonReader) text() *DataError {
	start := r.pos
	r.pos++
	plain := r.plain()
	if r.pos < len(r.src) && r.src[r.pos] == '"' { // nothing escaped
		r.pos++
		r.out = append(cbor.AppendHead(r.out, cbor.Text, uint64(len(plain))), plain...)
		return r.checkText(start, plain)
	}
	head := len(r.out)
	r.out = append(cbor.AppendWide(r.out, cbor.Text), plain...)
	for r.pos < len(r.src) {
		switch c := r.src[r.pos]; {
		case c == '"':
			r.pos++
			content := r.out[head+cbor.WideSize:]
			cbor.PutWide(r.out, head, len(content))
			return r.checkText(start, content)
		case c == '\\':
			if err := r.escape(); err != nil {
				return err
			}
		case c < ' ':
			return r.fail("control character in a string")
		default:
			r.out = append(r.out, r.plain()...)
		}
	}
	return r.fail("")
}

// plain skips and returns the bytes up to a quote, backslash or control character.
func (r *jsonReader) plain() []byte {
	start := r.pos
	for r.pos < len(r.src) {
		if c := r.src[r.pos]; c == '"' || c == '\\' || c < ' ' {
			break
		}
		r.pos++
	}
	return r.src[start:r.pos]
}

// checkText checks the content of the string that began at start. Escapes cannot complete
// a broken UTF-8 sequence, because they are whole code points.
func (r *jsonReader) checkText(start int, content []byte) *DataError {
	if len(content) > r.lim.MaxText {
		return &DataError{Offset: start, Reason: fmt.Sprintf("string longer than %d bytes", r.lim.MaxText)}
	}
	if !utf8.Valid(content) {
		return &DataError{Offset: start, Reason: "string is not valid UTF-8"}
	}
	return nil
}

// escape reads an escape sequence.
func (r *jsonReader) escape() *DataError {
	start := r.pos
	r.pos++
	if r.pos >= len(r.src) {
		return r.fail("")
	}
	c := r.src[r.pos]
	r.pos++
	switch c {
	case '"', '\\', '/':
	case 'b':
		c = '\b'
	case 'f':
		c = '\f'
	case 'n':
		c = '\n'
	case 'r':
		c = '\r'
	case 't':
		c = '\t'
	case 'u':
		return r.unicode(start)
	default:
		return &DataError{Offset: start, Reason: "unknown escape in a string"}
	}
	r.out = append(r.out, c)
	return nil
}

// unicode reads the rest of a \u escape, with the second half of a surrogate pair. The
// escape began at start.
func (r *jsonReader) unicode(start int) *DataError {
	c, err := r.hex4()
	if err != nil {
		return err
	}
	if c >= 0xd800 && c < 0xe000 {
		lone := &DataError{Offset: start, Reason: "lone surrogate in a string"}
		if c >= 0xdc00 || !bytes.HasPrefix(r.src[r.pos:], []byte(`\u`)) {
			return lone
		}
		r.pos += 2
		low, err := r.hex4()
		if err != nil {
			return err
		}
		if low < 0xdc00 || low >= 0xe000 {
			return lone
		}
		c = (c-0xd800)<<10 + (low - 0xdc00) + 0x10000
	}
	r.out = utf8.AppendRune(r.out, c)
	return nil
}

// hex4 reads four hexadecimal digits.
func (r *jsonReader) hex4() (rune, *DataError) {
	var v rune
	for range 4 {
		if r.pos >= len(r.src) {
			return 0, r.fail("")
		}
		c := r.src[r.pos]
		switch {
		case c >= '0' && c <= '9':
			v = v<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			v = v<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, r.fail("expected four hexadecimal digits")
		}
		r.pos++
	}
	return v, nil
}
