// Package object reads and merges objects that are kept as canonical CBOR, without decoding
// the values in them.
//
// Its functions expect valid canonical CBOR, as package abi makes and checks it.
package object

import (
	"bytes"
	"iter"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
)

// Members iterates over the pairs of an object in their order. Names and values share the
// bytes of the object.
func Members(object abi.Raw) iter.Seq2[[]byte, abi.Raw] {
	return func(yield func([]byte, abi.Raw) bool) {
		m := membersOf(object)
		for name, v, ok := m.next(); ok; name, v, ok = m.next() {
			if !yield(name, v) {
				return
			}
		}
	}
}

// members iterates over the pairs of an object in their order.
type members struct {
	of   abi.Raw
	pos  int
	left int // remaining pairs
}

func membersOf(m abi.Raw) members {
	n, pos := cbor.Head(m, 0)
	return members{of: m, pos: pos, left: int(n)}
}

// next returns the next pair; ok is false at the end.
func (m *members) next() (name []byte, v abi.Raw, ok bool) {
	if m.left == 0 {
		return nil, nil, false
	}
	m.left--
	n, start := cbor.Head(m.of, m.pos)
	at := start + int(n)
	m.pos = cbor.Skip(m.of, at)
	return m.of[start:at], m.of[at:m.pos], true
}

// Lookup returns the value of a key in an object; nil if the object does not have the key,
// or if m is not an object.
func Lookup(m abi.Raw, key string) abi.Raw {
	if len(m) == 0 || cbor.Major(m[0]) != cbor.Map {
		return nil
	}
	for name, v := range Members(m) {
		if string(name) == key {
			return v
		}
	}
	return nil
}

// Merge returns an object with the pairs of both objects, except the pair with the key drop.
// If both objects have a key, the value of over wins.
func Merge(base, over abi.Raw, drop string) abi.Raw {
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

// pairCursor points to a pair of an object.
type pairCursor struct {
	m    members
	name []byte
	pair []byte // the encoded key and value
	ok   bool   // there is a pair at this position
}

func pairsOf(m abi.Raw) pairCursor {
	p := pairCursor{m: membersOf(m)}
	p.advance()
	return p
}

func (p *pairCursor) advance() {
	start := p.m.pos
	p.name, _, p.ok = p.m.next()
	p.pair = p.m.of[start:p.m.pos]
}

// compare orders two cursors by their keys as objects do: shorter keys first, then
// by bytes. A cursor at the end is last.
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
