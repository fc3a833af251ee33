package state

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host/work"
)

// Check checks the tree after changes, along their paths only: what they wrote,
// and of each container above what may depend on it. Nil changes (not empty
// ones) check the whole. The changes are those that made root from a tree
// that satisfies the schema; if it did not, breaches elsewhere stay unseen.
//
// The error is a [*SchemaError] for the first breach.
func (s *Schema) Check(root *Node, changes []Change) error {
	err := s.CheckOn(work.New(maxCheck, nil), root, changes)
	if over := (*work.Exceeded)(nil); errors.As(err, &over) {
		return &SchemaError{"", "it takes too long to check it with the schema"}
	}
	return err
}

// maxCheck bounds a check without a meter: seconds.
const maxCheck = 1 << 34

// CheckOn is Check on a meter. The error may be the meter's.
func (s *Schema) CheckOn(m *work.Meter, root *Node, changes []Change) error {
	if s == nil {
		return nil
	}
	c := checker{seen: make(map[visit]bool), meter: m}
	err := c.changes(s, orEmpty(root), changes)
	if ended := m.Err(); ended != nil {
		return ended
	}
	return err
}

func (c *checker) changes(s *Schema, root *Node, changes []Change) error {
	if changes == nil {
		return c.value(s, root, nil)
	}
	whole := moved(changes)
	for i, ch := range changes {
		if err := c.change(s, root, ch, whole[i]); err != nil {
			return err
		}
	}
	return nil
}

// moved says for each change how much of its path still leads to the same place
// in the tree after all of them: a deletion from a list moves the elements of
// that list that earlier changes wrote. The result is the number of elements
// down to the outermost such list; it is then checked as a whole.
func moved(changes []Change) []int {
	lengths := make([]int, len(changes))
	shifted := make(map[string]bool) // lists, by encoded path
	var key []byte
	for i, c := range slices.Backward(changes) {
		lengths[i] = len(c.Path)
		n := len(c.Path) - 1
		deletes := c.Op == OpDelete && n >= 0 && c.Path[n].List
		if len(shifted) == 0 && !deletes {
			continue
		}
		key = key[:0]
		for j, e := range c.Path {
			if e.List && shifted[string(key)] {
				lengths[i] = j
				break
			}
			if deletes && j == n {
				shifted[string(key)] = true
			}
			if e.List {
				key = cbor.AppendHead(key, cbor.Uint, e.Index)
			} else {
				key = cbor.AppendText(key, e.Key)
			}
		}
	}
	return lengths
}

// checker remembers what it has seen, so that many changes to one place check
// it once. (A value below one that was seen may be checked again: by the depth
// limit, that is bounded.)
type checker struct {
	seen  map[visit]bool
	meter *work.Meter // its error ends the check
}

type visit struct {
	node   *Node
	schema *Schema
	whole  bool // with all below
}

// first reports whether the visit is the first of its kind.
func (c *checker) first(v visit) bool {
	if c.seen[v] {
		return false
	}
	c.seen[v] = true
	return true
}

// change checks what a change touched. The first depth elements of its path
// are good.
func (c *checker) change(s *Schema, root *Node, ch Change, depth int) error {
	n := root
	var at *trail
	for i, e := range ch.Path[:depth] {
		if s == nil {
			return nil
		}
		if err := c.meter.Spend(lookUnits); err != nil {
			return err
		}
		if c.first(visit{n, s, false}) {
			if reason := c.own(s, n); reason != "" {
				return &SchemaError{at.String(), reason}
			}
		}
		if ch.Op == OpDelete && i == len(ch.Path)-1 && e.List {
			return nil // the others have moved, but none is new
		}
		child := n.child(e)
		if child == nil {
			// Gone, by this change or a later one.
			if n.IsMap() && !e.List && s.requires(e.Key) {
				return missing(at, e.Key)
			}
			return nil
		}
		s, n, at = s.child(e), child, at.to(e)
	}
	if !c.first(visit{n, s, true}) {
		return nil
	}
	return c.value(s, n, at)
}

// child returns the schema of a container's entry; nil accepts everything.
func (s *Schema) child(e Elem) *Schema {
	if e.List {
		return s.elements
	}
	if p, ok := s.properties[e.Key]; ok {
		return p
	}
	return s.additional
}

// value checks n and everything below.
func (c *checker) value(s *Schema, n *Node, at *trail) error {
	if s == nil {
		return nil
	}
	if reason := c.own(s, n); reason != "" {
		return &SchemaError{at.String(), reason}
	}
	switch n.kind {
	case kindMap:
		return c.entries(s, n, at)
	case kindList:
		if s.elements == nil {
			return nil
		}
		i := 0
		for _, v := range n.body.all() {
			if err := c.value(s.elements, v, at.index(i)); err != nil {
				return err
			}
			i++
		}
	}
	return nil
}

func (c *checker) entries(s *Schema, n *Node, at *trail) error {
	for _, key := range s.required {
		if c.meter.Spend(lookUnits) != nil {
			return missing(at, key)
		}
		if n.get(key) == nil {
			return missing(at, key)
		}
	}
	if s.additional == nil && len(s.properties) == 0 {
		return nil
	}
	for key, v := range n.body.all() {
		if err := c.meter.Spend(lookUnits + work.Bytes(len(key), copyBytes)); err != nil {
			return err
		}
		e := Elem{Key: key}
		if sub := s.child(e); sub != nil {
			if err := c.value(sub, v, at.to(e)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Schema) requires(key string) bool {
	_, ok := slices.BinarySearch(s.required, key)
	return ok
}

func missing(at *trail, key string) error {
	return &SchemaError{at.key(key).String(), "it is required"}
}

// own checks what the schema says of n itself, without its entries and
// which of them are required. It returns what is wrong, or "".
func (c *checker) own(s *Schema, n *Node) string {
	switch {
	case c.meter.Spend(lookUnits) != nil:
		return ended
	case s.never:
		return "nothing is allowed here"
	case s.types != 0 && !s.types.has(n):
		return fmt.Sprintf("%s is not of the type %s", n.kind, s.types)
	case s.constant != nil && !s.constant.has(c.meter, n):
		return "it is not the one value allowed"
	case s.enum != nil && !s.enum.has(c.meter, n):
		return "it is not one of the values allowed"
	}
	switch n.kind {
	case kindInt, kindFloat:
		if c.meter.Spend(boundUnits*uint64(len(s.bounds))) != nil {
			return ended
		}
		return s.ownNumber(n)
	case kindText, kindBytes:
		return c.ownText(s, n)
	case kindList:
		return s.items.check(n.Len(), "elements")
	case kindMap:
		return s.props.check(n.Len(), "keys")
	}
	return ""
}

func (s *Schema) ownNumber(n *Node) string {
	x, _ := n.number()
	for _, b := range s.bounds {
		var ok bool
		switch cmp := x.cmp(b.limit); b.keyword {
		case "minimum":
			ok = cmp >= 0
		case "maximum":
			ok = cmp <= 0
		case "exclusiveMinimum":
			ok = cmp > 0
		default:
			ok = cmp < 0
		}
		if !ok {
			return "it breaks its " + b.keyword
		}
	}
	return ""
}

func (c *checker) ownText(s *Schema, n *Node) string {
	text := n.text()
	if n.kind == kindBytes {
		if s.pattern != nil {
			return "a byte string matches no pattern"
		}
		return s.length.check(len(text), "bytes")
	}
	if s.length != (span{}) {
		if c.meter.Spend(work.Bytes(len(text), textBytes)) != nil {
			return ended
		}
		if reason := s.length.check(utf8.RuneCountInString(text), "characters"); reason != "" {
			return reason
		}
	}
	if s.pattern == nil {
		return ""
	}
	switch ok, err := s.pattern.Match(c.meter, text); {
	case err != nil:
		return ended
	case !ok:
		return fmt.Sprintf("it does not match the pattern %q", clip(s.pattern.String()))
	}
	return ""
}

// ended is the reason of a check that the meter ended; CheckOn gives the meter's error.
const ended = "the check has ended"

func (s span) check(n int, what string) string {
	switch {
	case uint64(n) < s.min:
		return fmt.Sprintf("%d %s, fewer than %d", n, what, s.min)
	case s.hasMax && uint64(n) > s.max:
		return fmt.Sprintf("%d %s, more than %d", n, what, s.max)
	}
	return ""
}

func (t typeSet) has(n *Node) bool {
	if t&(1<<n.kind) != 0 {
		return true
	}
	if n.kind != kindFloat || t&(1<<kindInt) == 0 {
		return false
	}
	x, _ := n.number()
	return x.whole()
}

// String names the types for an error message.
func (t typeSet) String() string {
	var s string
	for _, name := range []string{"null", "boolean", "number", "integer", "string", "array", "object"} {
		if bits := typeNames[name]; t&bits == bits {
			t &^= bits // number covers integer
			if s != "" {
				s += " or "
			}
			s += name
		}
	}
	return s
}

// values is a set of values under the equality of JSON Schema, where numbers
// are equal if their values are.
type values struct {
	set     map[string]bool // by appendByValue
	longest int             // of the keys of set
}

func newValues(all []*Node) *values {
	v := &values{set: make(map[string]bool, len(all))}
	for _, n := range all {
		key := string(appendByValue(nil, nil, n))
		v.set[key] = true
		v.longest = max(v.longest, len(key))
	}
	return v
}

func (v *values) has(m *work.Meter, n *Node) bool {
	// A number takes at most three times the bytes of its shortest equal (1.0
	// is f9 3c00), so whatever is longer need not be looked at.
	if n.Bytes() > 3*v.longest {
		return false
	}
	return v.set[string(appendByValue(m, nil, n))]
}

// appendByValue is AppendTo with whole floats as integers, as far as these go.
func appendByValue(m *work.Meter, dst []byte, n *Node) []byte {
	if m.Spend(hashUnits+work.Bytes(len(n.enc), hashBytes)) != nil {
		return dst
	}
	switch n.kind {
	case kindFloat:
		if x, _ := n.number(); x.whole() && x.float >= -(1<<63) && x.float < 1<<64 {
			x = number{neg: x.float < 0, mag: uint64(math.Abs(x.float))}
			return x.appendInt(dst)
		}
	case kindList:
		dst = cbor.AppendHead(dst, cbor.Array, uint64(n.Len()))
		for _, v := range n.body.all() {
			dst = appendByValue(m, dst, v)
		}
		return dst
	case kindMap:
		dst = cbor.AppendHead(dst, cbor.Map, uint64(n.Len()))
		for k, v := range n.body.all() {
			dst = appendByValue(m, cbor.AppendText(dst, k), v)
		}
		return dst
	}
	return append(dst, n.enc...)
}
