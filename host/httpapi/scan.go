package httpapi

import (
	"bytes"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
)

// lookup finds a key in a canonical map; nil when it is not there.
func lookup(m abi.Raw, key string) abi.Raw {
	if len(m) == 0 || cbor.Major(m[0]) != cbor.Map {
		return nil
	}
	it := value{raw: m, cbor: true}.members()
	for name, v, ok := it.next(); ok; name, v, ok = it.next() {
		if string(name) == key {
			return v.raw
		}
	}
	return nil
}

// merge gives a canonical map with the pairs of both canonical maps but those
// under the key drop; where both have a key, over wins.
func merge(base, over abi.Raw, drop string) abi.Raw {
	pairs := make([]byte, 0, len(base)+len(over))
	n := uint64(0)
	take := func(p *pairCursor) {
		if string(p.name) != drop {
			pairs = append(pairs, p.pair...)
			n++
		}
		p.advance()
	}
	left, right := pairsOf(base), pairsOf(over)
	for left.ok || right.ok {
		switch order := left.compare(&right); {
		case order < 0:
			take(&left)
		case order > 0:
			take(&right)
		default:
			left.advance()
			take(&right)
		}
	}
	return append(cbor.AppendHead(make([]byte, 0, len(pairs)+9), cbor.Map, n), pairs...)
}

// pairCursor stands on a pair of a canonical map.
type pairCursor struct {
	m    members
	name []byte
	pair []byte // the encoded key and value
	ok   bool   // there is a pair
}

func pairsOf(m abi.Raw) pairCursor {
	p := pairCursor{m: value{raw: m, cbor: true}.members()}
	p.advance()
	return p
}

func (p *pairCursor) advance() {
	start := p.m.pos
	p.name, _, p.ok = p.m.next()
	p.pair = p.m.of.raw[start:p.m.pos]
}

// compare orders two cursors by their keys as canonical maps do: shorter keys
// first, then by bytes. A cursor at the end comes last.
func (p *pairCursor) compare(o *pairCursor) int {
	switch {
	case !p.ok:
		return 1
	case !o.ok:
		return -1
	case len(p.name) != len(o.name):
		return len(p.name) - len(o.name)
	default:
		return bytes.Compare(p.name, o.name)
	}
}

// jsonSpace is the white space of JSON.
const jsonSpace = " \t\r\n"

// skipSpace gives the offset of the first byte at or after pos that is no
// white space.
func skipSpace(b []byte, pos int) int {
	for pos < len(b) && (b[pos] == ' ' || b[pos] == '\t' || b[pos] == '\n' || b[pos] == '\r') {
		pos++
	}
	return pos
}

// jsonSkip gives the offset after the JSON value at pos, and pos itself if
// there is none. It finds the end of well-formed values and a place within
// broken ones, which the strict reader then refuses.
func jsonSkip(b []byte, pos int) int {
	if pos >= len(b) {
		return pos
	}
	switch b[pos] {
	case '"':
		return jsonSkipString(b, pos)
	case '{', '[':
		return jsonSkipNested(b, pos)
	}
	for pos < len(b) && bytes.IndexByte([]byte(",:]} \t\r\n\"{["), b[pos]) < 0 {
		pos++
	}
	return pos
}

func jsonSkipNested(b []byte, pos int) int {
	for depth := 0; pos < len(b); {
		switch b[pos] {
		case '"':
			pos = jsonSkipString(b, pos)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return pos + 1
			}
		}
		pos++
	}
	return pos
}

// jsonSkipString gives the offset after the string that begins at pos: of an
// unfinished one the end of the text.
func jsonSkipString(b []byte, pos int) int {
	for pos++; ; pos++ {
		n := bytes.IndexByte(b[pos:], '"')
		if n < 0 {
			return len(b)
		}
		start := pos
		pos += n
		escapes := 0
		for pos-1-escapes >= start && b[pos-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return pos + 1
		}
	}
}

// isPlain reports whether the content of a JSON string stands for itself and
// is ASCII.
func isPlain(content []byte) bool {
	for _, c := range content {
		if c < ' ' || c >= 0x80 || c == '\\' || c == '"' {
			return false
		}
	}
	return true
}
