package state

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weftrun/weft/abi"
)

// Path addresses a value as it was written: map keys and list indices by
// dots. The empty Path is the whole state. Make one with [ParsePath].
type Path []Segment

// Segment is one part of a path. In a map it is the key; in a list it must
// read as an integer, and counts from the end if negative. Which of the two it
// is, only the tree can say.
type Segment struct {
	text  string
	index int64
	isInt bool
}

// ParsePath reads a dotted path. "" is the whole state. A segment reads as an
// integer if it is one in decimal without sign + or leading zeros; "-0" is
// not one. Of a key that holds a dot the dot is written as \., and a backslash
// before a dot or another backslash as \\; any other backslash is itself. Empty
// segments, more than [abi.MaxPathSegments] of them, more than [abi.MaxPath] and
// malformed UTF-8 are refused with invalid_message. The result refers to s. The
// empty key has no path.
func ParsePath(s string) (Path, error) {
	if s == "" {
		return nil, nil
	}
	if len(s) > abi.MaxPath {
		return nil, fail(abi.StatusInvalidMessage, s, "a path of %d bytes, more than %d", len(s), abi.MaxPath)
	}
	if !utf8.ValidString(s) {
		return nil, fail(abi.StatusInvalidMessage, strings.ToValidUTF8(s, "\ufffd"), "the path is not UTF-8")
	}
	p := make(Path, 0, min(strings.Count(s, ".")+1, abi.MaxPathSegments))
	for rest, more := s, true; more; {
		var text string
		if text, rest, more = cutSegment(rest); text == "" {
			return nil, fail(abi.StatusInvalidMessage, s, "the path has an empty segment")
		}
		if len(p) == abi.MaxPathSegments {
			return nil, fail(abi.StatusInvalidMessage, s, "a path of more than %d segments", abi.MaxPathSegments)
		}
		p = append(p, newSegment(text))
	}
	return p, nil
}

// cutSegment takes the first segment off a path, without its escapes; more says that
// another one follows.
func cutSegment(s string) (text, rest string, more bool) {
	var plain []byte // of the segment so far, once it has had an escape
	from := 0
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '.':
			return string(plain) + s[from:i], s[i+1:], true
		case s[i] == '\\' && i+1 < len(s) && (s[i+1] == '.' || s[i+1] == '\\'):
			plain = append(append(plain, s[from:i]...), s[i+1])
			from = i + 2
			i++
		}
	}
	return string(plain) + s[from:], "", false
}

func newSegment(text string) Segment {
	i, err := strconv.ParseInt(text, 10, 64)
	// The comparison refuses +1, 01 and -0: one element has one spelling from
	// each end.
	return Segment{text: text, index: i, isInt: err == nil && strconv.FormatInt(i, 10) == text}
}

// String returns the key, or the index, without escapes.
func (s Segment) String() string { return s.text }

// in returns the position in a list of n elements.
func (s Segment) in(n int) (uint64, bool) {
	i := s.index
	if i < 0 {
		i += int64(n)
	}
	return uint64(i), s.isInt && i >= 0 && i < int64(n)
}

// String returns the path as [ParsePath] reads it.
func (p Path) String() string {
	var b strings.Builder
	for i, s := range p {
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(abi.EscapeKey(s.text))
	}
	return b.String()
}

// Get returns the value at p, and false if there is none. It costs O(log n) for
// each segment.
func Get(root *Node, p Path) (*Node, bool) {
	n := root
	for _, s := range p {
		switch {
		case n.IsMap():
			n = n.get(s.text)
		case n.IsList():
			i, ok := s.in(n.body.count)
			if !ok {
				return nil, false
			}
			n = n.child(Elem{List: true, Index: i})
		default:
			return nil, false
		}
	}
	return n, n != nil
}

// Overlaps reports whether a write at a may change what is at b or the other
// way round: whether one is at, above or below the other. It does not see the
// tree and is careful: a negative index may be any index from the front.
func Overlaps(a, b Path) bool {
	for i := range min(len(a), len(b)) {
		if !a[i].mayBe(b[i]) {
			return false
		}
	}
	return true
}

func (s Segment) mayBe(o Segment) bool {
	return s.text == o.text || s.isInt && o.isInt && (s.index < 0) != (o.index < 0)
}

// Touches returns the path that covers all that the edit may change, for
// [Overlaps]. It is the edit's own path, but a deletion by index shifts the
// elements after it and so touches the list.
func Touches(e abi.Edit) (Path, error) {
	p, err := ParsePath(e.Path)
	if err != nil {
		return nil, err
	}
	if e.Op == abi.OpDelete && len(p) > 0 && p[len(p)-1].isInt {
		p = p[:len(p)-1]
	}
	return p, nil
}

// spot is where a path leads in a tree.
type spot struct {
	at   []Elem // resolved, as far as the tree goes
	node *Node  // the value there
	rest Path   // what is missing: keys of maps that are not there; node is a map
}

// locate resolves p. It fails if the tree does not let the path exist: not
// found for an index out of range, failed_precondition for a segment below a
// scalar or a list's segment that is no integer.
func locate(root *Node, p Path) (spot, error) {
	s := spot{at: make([]Elem, 0, len(p)), node: root}
	for i, seg := range p {
		switch s.node.kind {
		case kindMap:
			v := s.node.get(seg.text)
			if v == nil {
				s.rest = p[i:]
				return s, nil
			}
			s.at, s.node = append(s.at, Elem{Key: strings.Clone(seg.text)}), v
		case kindList:
			n := s.node.body.count
			j, ok := seg.in(n)
			if !seg.isInt {
				return s, fail(abi.StatusFailedPrecondition, p[:i].String(), "%q is not an index of a list", clip(seg.text))
			}
			if !ok {
				return s, fail(abi.StatusNotFound, p[:i].String(), "index %d of a list of %d", seg.index, n)
			}
			e := Elem{List: true, Index: j}
			s.at, s.node = append(s.at, e), s.node.child(e)
		default:
			return s, fail(abi.StatusFailedPrecondition, p[:i].String(), "%s has nothing at %q", s.node.kind, clip(seg.text))
		}
	}
	return s, nil
}

// found reports whether the whole path is there.
func (s spot) found() bool { return len(s.rest) == 0 }

// put returns the change that writes v at the path, with the maps on the way.
func (s spot) put(v *Node) (Change, error) {
	if s.found() {
		return Change{Op: OpSet, Path: s.at, Value: v}, nil
	}
	for i, seg := range slices.Backward(s.rest[1:]) {
		if seg.text == bytesKey {
			return Change{}, errReadsAsBytes(showElems(s.at) + "." + s.rest[:i+1].String())
		}
		v = &Node{kind: kindMap, body: newLeaf([]string{strings.Clone(seg.text)}, []*Node{v})}
	}
	return Change{Op: OpSet, Path: append(s.at, Elem{Key: strings.Clone(s.rest[0].text)}), Value: v}, nil
}

func errReadsAsBytes(path string) error {
	return fail(abi.StatusInvalidMessage, strings.TrimPrefix(path, "."), "a map with the only key %q stands for a byte string", bytesKey)
}
