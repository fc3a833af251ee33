package state

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host/jsonschema"
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
	c := checker{seen: make(map[visit]bool), meter: m, eval: jsonschema.NewChecker(m, prices)}
	err := c.changes(s.root, orEmpty(root), changes)
	if ended := m.Err(); ended != nil {
		return ended
	}
	return err
}

// prices are those of a check of a state.
var prices = jsonschema.Prices{Look: lookUnits, Member: lookUnits, MemberBytes: copyBytes, Surplus: lookUnits, Bound: boundUnits}

func (c *checker) changes(s *jsonschema.Schema, root *Node, changes []Change) error {
	if changes == nil {
		return c.value(s, root, nil, false)
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
	eval  *jsonschema.Checker
}

type visit struct {
	node   *Node
	schema *jsonschema.Schema
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
func (c *checker) change(s *jsonschema.Schema, root *Node, ch Change, depth int) error {
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
			if err := c.value(s, n, at, true); err != nil {
				return err
			}
		}
		if ch.Op == OpDelete && i == len(ch.Path)-1 && e.List {
			return nil // the others have moved, but none is new
		}
		below := n.child(e)
		if below == nil {
			// Gone, by this change or a later one.
			if _, ok := slices.BinarySearch(s.Required, e.Key); ok && n.IsMap() && !e.List {
				return &SchemaError{at.to(e).String(), required}
			}
			return nil
		}
		s, n, at = child(s, e), below, at.to(e)
	}
	if !c.first(visit{n, s, true}) {
		return nil
	}
	return c.value(s, n, at, false)
}

// child returns the schema of a container's entry; nil accepts everything.
func child(s *jsonschema.Schema, e Elem) *jsonschema.Schema {
	if e.List {
		return s.Items
	}
	if p, ok := s.Properties[e.Key]; ok {
		return p
	}
	return s.Additional
}

// value checks n and everything below. A shallow check is one of n itself, without its
// entries and which of them are required.
func (c *checker) value(s *jsonschema.Schema, n *Node, at *trail, shallow bool) error {
	if s == nil {
		return nil
	}
	p := c.eval.Check(s, n.Value(), shallow)
	if p == nil {
		return nil
	}
	for _, step := range p.Path {
		if step.Item > 0 {
			at = at.index(step.Item - 1)
		} else {
			at = at.key(step.Name)
		}
	}
	return &SchemaError{at.String(), reason(p)}
}

const required = "it is required"

// reason says what is wrong with a value. The words are part of what a guest gets, so
// they stay as they are.
func reason(p *jsonschema.Problem) string {
	n, _ := p.Value.Tree().(*Node)
	units := [...]string{kindText: "characters", kindBytes: "bytes", kindList: "elements", kindMap: "keys"}
	switch p.Keyword {
	case "false":
		return "nothing is allowed here"
	case "type":
		return fmt.Sprintf("%s is not of the type %s", n.kind, strings.Join(p.Schema.Types.Names(), " or "))
	case "const":
		return "it is not the one value allowed"
	case "enum":
		return "it is not one of the values allowed"
	case "required":
		return required
	case "minLength", "minItems", "minProperties":
		return fmt.Sprintf("%d %s, fewer than %d", p.Count, units[n.kind], p.Limit)
	case "maxLength", "maxItems", "maxProperties":
		return fmt.Sprintf("%d %s, more than %d", p.Count, units[n.kind], p.Limit)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		return "it breaks its " + p.Keyword
	case "pattern":
		if n.kind == kindText {
			return fmt.Sprintf("it does not match the pattern %q", clip(p.Schema.Pattern.String()))
		}
	}
	return p.Text // such as that of a byte string, which matches no pattern
}

// Value returns the node as a value that schemas are evaluated on.
func (n *Node) Value() jsonschema.Value {
	switch n.kind {
	case kindList:
		return jsonschema.List(n, n.Len())
	case kindMap:
		return jsonschema.Object(n, n.Len())
	}
	return jsonschema.Scalar(n, n.enc)
}

// Has reports whether the node is a map with a key.
func (n *Node) Has(key string) bool { return n.get(key) != nil }

// Walk goes over the entries of a list or map, in the order of the encoding.
func (n *Node) Walk() jsonschema.Walk { return newCursor(n.body) }

// Next returns the next entry; false at the end.
func (c *cursor) Next() (string, jsonschema.Value, bool) {
	key, n := c.next()
	if n == nil {
		return "", jsonschema.Value{}, false
	}
	return key, n.Value(), true
}
