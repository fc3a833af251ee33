package state

import (
	"iter"
	"slices"
	"sort"
	"strings"

	"github.com/weftrun/weft/abi/cbor"
)

// fanout is how many entries or kids a page holds at most.
const fanout = 32

// page is a page of a persistent B+ tree. Pages are never changed once they
// are reachable from a Node.
//
// A leaf has vals, an inner page has kids. In a map, keys holds the key of each
// entry, or the first key of each kid; in a list keys is nil (it is empty but
// not nil in an empty map). Invariants: only a root is empty, all leaves are
// equally deep, and two neighbouring kids of a page hold more than fanout
// together. So pages are half full on average and the height is O(log n),
// although no single page has a minimum.
type page struct {
	count int   // entries below
	size  int   // encoded bytes of the entries below, keys included
	depth uint8 // of the deepest value below
	keys  []string
	vals  []*Node
	kids  []*page
}

// entry is what splice puts in. The key is not used in lists.
type entry struct {
	key string
	val *Node
}

// compareKeys is the order of keys in Core Deterministic Encoding: the length
// is in the head that comes first.
func compareKeys(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// newLeaf makes a leaf that owns its arguments. Keys is nil for a list.
func newLeaf(keys []string, vals []*Node) *page {
	p := &page{count: len(vals), keys: keys, vals: vals}
	for _, k := range keys {
		p.size += cbor.Size(uint64(len(k))) + len(k)
	}
	for _, v := range vals {
		p.size += v.Bytes()
		p.depth = max(p.depth, uint8(v.Depth()))
	}
	return p
}

// newInner makes an inner page that owns kids, of which there is at least one.
func newInner(kids []*page) *page {
	p := &page{kids: kids}
	if kids[0].keys != nil {
		p.keys = make([]string, len(kids))
	}
	for i, k := range kids {
		p.count += k.count
		p.size += k.size
		p.depth = max(p.depth, k.depth)
		if p.keys != nil {
			p.keys[i] = k.keys[0]
		}
	}
	return p
}

// build makes a tree of entries in order. It copies its arguments; keys is nil
// for a list.
func build(keys []string, vals []*Node) *page {
	leaves := make([]*page, 0, len(vals)/fanout+1)
	for i := 0; i < len(vals); i += fanout {
		end := min(i+fanout, len(vals))
		var ks []string
		if keys != nil {
			ks = slices.Clone(keys[i:end])
		}
		leaves = append(leaves, newLeaf(ks, slices.Clone(vals[i:end])))
	}
	if len(leaves) == 0 {
		return newLeaf(keys, nil)
	}
	return stack(leaves)
}

// stack puts inner pages on pages of one level until one is left.
func stack(level []*page) *page {
	for len(level) > 1 {
		up := make([]*page, 0, len(level)/fanout+1)
		for kids := range slices.Chunk(level, fanout) {
			up = append(up, newInner(slices.Clone(kids)))
		}
		level = up
	}
	return level[0]
}

// at returns the entry at position i, which must be in range.
func (p *page) at(i int) (string, *Node) {
	for p.kids != nil {
		k := 0
		for i >= p.kids[k].count {
			i -= p.kids[k].count
			k++
		}
		p = p.kids[k]
	}
	if p.keys == nil {
		return "", p.vals[i]
	}
	return p.keys[i], p.vals[i]
}

// find returns the position of key in a map, or else the position at which it
// is to be inserted, and its value or nil.
func (p *page) find(key string) (int, *Node) {
	before := 0
	for p.kids != nil {
		// The last kid that begins at or before key; none does if key is the
		// least of all.
		k := max(0, sort.Search(len(p.keys), func(i int) bool { return compareKeys(p.keys[i], key) > 0 })-1)
		for _, kid := range p.kids[:k] {
			before += kid.count
		}
		p = p.kids[k]
	}
	i, found := slices.BinarySearchFunc(p.keys, key, compareKeys)
	if !found {
		return before + i, nil
	}
	return before + i, p.vals[i]
}

// all yields the entries in order, with empty keys for a list.
func (p *page) all() iter.Seq2[string, *Node] {
	return func(yield func(string, *Node) bool) { p.each(yield) }
}

func (p *page) each(yield func(string, *Node) bool) bool {
	for _, kid := range p.kids {
		if !kid.each(yield) {
			return false
		}
	}
	for i, v := range p.vals {
		key := ""
		if p.keys != nil {
			key = p.keys[i]
		}
		if !yield(key, v) {
			return false
		}
	}
	return true
}

// edit returns the tree in which ins (if not nil) takes the place of the del
// (0 or 1) entries at position i.
func (p *page) edit(i, del int, ins *entry) *page {
	a, b := p.splice(i, del, ins)
	switch {
	case a == nil: // the last entry went
		empty := &page{}
		if p.keys != nil {
			empty.keys = []string{}
		}
		return empty
	case b != nil:
		return newInner([]*page{a, b})
	}
	for len(a.kids) == 1 {
		a = a.kids[0]
	}
	return a
}

// splice is edit below the root: it returns the pages that take p's place,
// none, one or two.
func (p *page) splice(i, del int, ins *entry) (a, b *page) {
	if p.kids == nil {
		return p.spliceLeaf(i, del, ins)
	}
	// An insertion between two kids goes to the left one, so that an append
	// goes to the last.
	k := 0
	for i > p.kids[k].count || i == p.kids[k].count && del > 0 {
		i -= p.kids[k].count
		k++
	}
	a, b = p.kids[k].splice(i, del, ins)
	kids := make([]*page, 0, len(p.kids)+1)
	kids = append(kids, p.kids[:k]...)
	if a != nil {
		kids = append(kids, a)
	}
	if b != nil {
		kids = append(kids, b)
	}
	kids = append(kids, p.kids[k+1:]...)
	if del == 0 || ins == nil {
		kids = joinSmall(kids, max(k-1, 0), k+2)
	}
	switch {
	case len(kids) == 0:
		return nil, nil
	case len(kids) <= fanout:
		return newInner(kids), nil
	}
	at := len(kids) / 2
	return newInner(slices.Clone(kids[:at])), newInner(slices.Clone(kids[at:]))
}

func (p *page) spliceLeaf(i, del int, ins *entry) (a, b *page) {
	n := len(p.vals) - del
	if ins != nil {
		n++
	}
	if n == 0 {
		return nil, nil
	}
	vals := make([]*Node, 0, n)
	vals = append(vals, p.vals[:i]...)
	if ins != nil {
		vals = append(vals, ins.val)
	}
	vals = append(vals, p.vals[i+del:]...)
	var keys []string
	if p.keys != nil {
		keys = make([]string, 0, n)
		keys = append(keys, p.keys[:i]...)
		if ins != nil {
			keys = append(keys, ins.key)
		}
		keys = append(keys, p.keys[i+del:]...)
	}
	if n <= fanout {
		return newLeaf(keys, vals), nil
	}
	at := n / 2
	if keys == nil {
		return newLeaf(nil, slices.Clone(vals[:at])), newLeaf(nil, slices.Clone(vals[at:]))
	}
	return newLeaf(slices.Clone(keys[:at]), slices.Clone(vals[:at])),
		newLeaf(slices.Clone(keys[at:]), slices.Clone(vals[at:]))
}

// joinSmall restores the invariant between kids[from] and kids[to]: neighbours
// that fit in one page are joined. It changes and returns kids. (It also gives
// a list that is appended to full pages: the half that a split leaves behind
// joins the one before.)
func joinSmall(kids []*page, from, to int) []*page {
	for i := from; i < to && i+1 < len(kids); {
		l, r := kids[i], kids[i+1]
		if len(l.vals)+len(l.kids)+len(r.vals)+len(r.kids) > fanout {
			i++
			continue
		}
		if l.kids != nil {
			// The two kids that meet where l and r are joined are new neighbours.
			joint := len(l.kids)
			kids[i] = newInner(joinSmall(slices.Concat(l.kids, r.kids), joint-1, joint))
		} else {
			kids[i] = newLeaf(slices.Concat(l.keys, r.keys), slices.Concat(l.vals, r.vals))
		}
		kids = slices.Delete(kids, i+1, i+2)
		to--
	}
	return kids
}

// cursor walks the entries of a tree in order, for walks of two trees at once.
type cursor struct {
	stack []frame
}

type frame struct {
	p    *page
	next int
}

func newCursor(p *page) *cursor { return &cursor{stack: []frame{{p: p}}} }

// next returns the next entry; the value is nil at the end.
func (c *cursor) next() (string, *Node) {
	for len(c.stack) > 0 {
		top := &c.stack[len(c.stack)-1]
		i := top.next
		top.next++
		switch {
		case i < len(top.p.kids):
			c.stack = append(c.stack, frame{p: top.p.kids[i]})
		case i < len(top.p.vals):
			if top.p.keys == nil {
				return "", top.p.vals[i]
			}
			return top.p.keys[i], top.p.vals[i]
		default:
			c.stack = c.stack[:len(c.stack)-1]
		}
	}
	return "", nil
}
