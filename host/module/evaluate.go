package module

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
	"unicode/utf8"

	"github.com/weftrun/weft/host/pattern"
	"github.com/weftrun/weft/host/work"
)

const (
	maxEvents = 10 // problems that an answer lists
	// maxNesting bounds schemas that apply others to the same value, and so
	// those that refer to themselves.
	maxNesting = 500
)

// The prices of checking a body, in units of package work.
const (
	decodeUnits = 60    // an item of the body; its bytes are decodeBytes for 8
	decodeBytes = 2     //
	skipUnits   = 9     // to go over an item
	memberUnits = 45    // to find a member of an object
	lookUnits   = 120   // a schema looks at a value, or for a name
	textBytes   = 48    // to count the characters of 8 bytes
	keyBytes    = 2     // to look for a name of 8 bytes
	nameUnits   = 8     // to compare with one of a list of names
	jsonBytes   = 64    // to encode 8 bytes for JSON
	hashUnits   = 60    // a part of a value that is compared as a whole
	hashBytes   = 8     // likewise, 8 bytes
	digestUnits = 2     // to hash a byte of an item that must be distinct
	boundUnits  = 300   // a whole number against a bound
	floatUnits  = 1_500 // another against a bound, and digitUnits for each binary digit
	digitUnits  = 8
)

// skipPiece is how many items are gone over between two looks at the meter.
const skipPiece = 1_000

// evaluation looks at one value with a schema. Loud, it notes what is wrong;
// quiet (inside anyOf, not, if), it only finds whether something is.
type evaluation struct {
	path     path
	problems []string
	more     bool // there are more problems than are listed
	meter    *work.Meter
	err      error  // of the meter, if it is not that its limit was reached
	nesting  int    // schemas being applied
	quiet    int    // > 0: only the verdict matters
	stop     string // why the evaluation cannot go on
	free     []*places
	key      []byte // that was made last
}

// wrong notes a problem at the present path; it always answers false.
func (e *evaluation) wrong(format string, args ...any) bool {
	if e.quiet > 0 || e.stop != "" {
		return false
	}
	if len(e.problems) == maxEvents {
		e.more = true
		return false
	}
	e.problems = append(e.problems, e.path.String()+": "+fmt.Sprintf(format, args...))
	return false
}

// over tells whether there is no use in going on.
func (e *evaluation) over() bool { return e.stop != "" || e.more }

// charge tells the meter of work that is to be done; false: it is not to be done.
func (e *evaluation) charge(units uint64) bool { return e.went(e.meter.Spend(units)) }

// went notes the error of the meter; true: there is none.
func (e *evaluation) went(err error) bool {
	if err != nil && e.stop == "" {
		e.stop = "is too costly to check with its schema"
		if over := (*work.Exceeded)(nil); !errors.As(err, &over) {
			e.err = err
		}
	}
	return e.stop == ""
}

// quietly reports whether nobody reads what is wrong.
func (e *evaluation) quietly() bool { return e.quiet > 0 || e.stop != "" }

// apply tells whether a value satisfies a schema.
func (e *evaluation) apply(s *schema, v cursor, out *seen) bool {
	if e.over() || !e.charge(lookUnits) {
		return false
	}
	if v.kind == kindObject && v.places == nil {
		v.places = e.takePlaces()
		defer e.givePlaces(v.places)
	}
	if s.always != nil {
		return *s.always || e.wrong("is not allowed")
	}
	if s.types != 0 && s.types&typesOf(v) == 0 {
		return e.wrong("must be %s, got %s", s.types, describe(v))
	}
	if e.nesting == maxNesting {
		e.stop = "has a schema that refers to itself without end"
		return false
	}
	e.nesting++
	defer func() { e.nesting-- }()
	if s.konst != nil && !s.konst.has(e, v) {
		return !e.quietly() && e.wrong("must be %s", show(s.konst.all[0]))
	}
	if s.enum != nil && !s.enum.has(e, v) {
		return !e.quietly() && e.wrong("must be one of %s", showAll(s.enum.all))
	}
	if s.unevaluatedProperties == nil && s.unevaluatedItems == nil {
		ok := e.typed(s, v, out)
		return e.combined(s, v, out) && ok && !e.over()
	}
	own := &seen{} // it does not see what its neighbours have evaluated
	ok := e.typed(s, v, own)
	ok = e.combined(s, v, own) && ok
	ok = e.unevaluated(s, v, own) && ok
	e.merge(out, own)
	return ok && !e.over()
}

// within applies a schema to a part of the value.
func (e *evaluation) within(at step, s *schema, v cursor) bool {
	e.path = append(e.path, at)
	nesting := e.nesting
	e.nesting = 0
	ok := e.apply(s, v, nil)
	e.nesting = nesting
	e.path = e.path[:len(e.path)-1]
	return ok
}

// silently applies a schema for its verdict alone.
func (e *evaluation) silently(s *schema, v cursor, out *seen) bool {
	e.quiet++
	ok := e.apply(s, v, out)
	e.quiet--
	return ok
}

func (e *evaluation) typed(s *schema, v cursor, out *seen) bool {
	switch v.kind {
	case kindText:
		return e.text(s, v.raw)
	case kindList:
		return e.array(s, v, out)
	case kindObject:
		return e.object(s, v, out)
	case kindBlob:
		if !s.looksInside() {
			return true
		}
		o, ok := e.inJSON(v)
		if !ok {
			return false
		}
		defer e.givePlaces(o.places)
		return e.object(s, o, out)
	case kindInt, kindUint, kindFloat:
		return e.number(s, v)
	}
	return true
}

// inJSON gives the object that a byte string is in JSON, with its places.
func (e *evaluation) inJSON(v cursor) (o cursor, ok bool) {
	if !e.charge(lookUnits + work.Bytes(len(v.raw), jsonBytes)) {
		return o, false
	}
	o = inJSON(v.raw)
	o.places = e.takePlaces()
	return o, true
}

// looksInside tells whether a schema says anything about an object's members.
func (s *schema) looksInside() bool {
	return s.minProperties != nil || s.maxProperties != nil || len(s.required) > 0 || s.properties != nil || s.patterns != nil ||
		s.additional != nil || s.propertyNames != nil || s.dependentRequired != nil || s.dependentSchemas != nil || s.unevaluatedProperties != nil
}

func (e *evaluation) text(s *schema, v []byte) bool {
	ok := true
	if s.minLength != nil || s.maxLength != nil {
		if !e.charge(work.Bytes(len(v), textBytes)) {
			return false
		}
		n := utf8.RuneCount(v)
		if s.minLength != nil && n < *s.minLength {
			ok = e.wrong("must have at least %d characters, has %d", *s.minLength, n)
		}
		if s.maxLength != nil && n > *s.maxLength {
			ok = e.wrong("must have at most %d characters, has %d", *s.maxLength, n)
		}
	}
	if s.pattern != nil && !e.matches(s.pattern, string(v)) {
		ok = !e.quietly() && e.wrong("must match the pattern %s", clip(s.pattern.String()))
	}
	return ok
}

// matches tells whether a text has a match of the pattern.
func (e *evaluation) matches(p *pattern.Pattern, v string) bool {
	ok, err := p.Match(e.meter, v)
	return e.went(err) && ok
}

func (e *evaluation) number(s *schema, v cursor) bool {
	if s.minimum == nil && s.maximum == nil && s.above == nil && s.below == nil && s.multipleOf == nil {
		return true
	}
	if !e.charge(numberUnits(s, v)) {
		return false
	}
	n := rational(v)
	ok := true
	if s.minimum != nil && n.Cmp(s.minimum) < 0 {
		ok = e.wrong("must be at least %s, got %s", showRat(s.minimum), show(v))
	}
	if s.maximum != nil && n.Cmp(s.maximum) > 0 {
		ok = e.wrong("must be at most %s, got %s", showRat(s.maximum), show(v))
	}
	if s.above != nil && n.Cmp(s.above) <= 0 {
		ok = e.wrong("must be more than %s, got %s", showRat(s.above), show(v))
	}
	if s.below != nil && n.Cmp(s.below) >= 0 {
		ok = e.wrong("must be less than %s, got %s", showRat(s.below), show(v))
	}
	if s.multipleOf != nil && !new(big.Rat).Quo(n, s.multipleOf).IsInt() {
		ok = e.wrong("must be a multiple of %s, got %s", showRat(s.multipleOf), show(v))
	}
	return ok
}

// numberUnits is what the bounds of a number cost: a float of a large exponent is a
// fraction of many digits.
func numberUnits(s *schema, v cursor) uint64 {
	units, digits := uint64(boundUnits), 64
	if v.kind == kindFloat {
		units = floatUnits
		_, exponent := math.Frexp(v.float())
		digits += max(exponent, -exponent)
	}
	for _, r := range []*big.Rat{s.minimum, s.maximum, s.above, s.below} {
		if r != nil {
			units += boundUnits + uint64(digits+r.Num().BitLen()+r.Denom().BitLen())
		}
	}
	if r := s.multipleOf; r != nil {
		units += boundUnits + uint64(digits+r.Num().BitLen()+r.Denom().BitLen())*digitUnits
	}
	return units
}

// rational reads a float as the shortest decimal that stands for it, as people
// write it: 0.1 is not more than 0.1.
func rational(v cursor) *big.Rat {
	switch v.kind {
	case kindInt:
		return new(big.Rat).SetInt64(int64(v.bits))
	case kindUint:
		return new(big.Rat).SetUint64(v.bits)
	}
	n, _ := new(big.Rat).SetString(strconv.FormatFloat(v.float(), 'g', -1, 64))
	return n
}

func (e *evaluation) object(s *schema, v cursor, out *seen) bool {
	ok := true
	if s.minProperties != nil && v.count() < *s.minProperties {
		ok = e.wrong("must have at least %d fields, has %d", *s.minProperties, v.count())
	}
	if s.maxProperties != nil && v.count() > *s.maxProperties {
		ok = e.wrong("must have at most %d fields, has %d", *s.maxProperties, v.count())
	}
	ok = e.require(s.required, v) && ok
	if s.properties != nil || s.patterns != nil || s.additional != nil || s.propertyNames != nil {
		of, all := e.members(v)
		if !all {
			return false
		}
		for i, m := range of.all {
			if ok = e.member(s, v.raw, i, m, out) && ok; !ok && (e.quiet > 0 || e.over()) {
				return false
			}
		}
	}
	for _, d := range s.dependentRequired {
		if e.has(v, d.name) {
			ok = e.require(d.then, v) && ok
		}
	}
	for _, d := range s.dependentSchemas {
		if e.has(v, d.name) {
			ok = e.apply(d.then, v, out) && ok
		}
	}
	return ok
}

// has tells whether an object has a member of a name.
func (e *evaluation) has(v cursor, name string) bool {
	of, all := e.members(v)
	if !all || !e.charge(lookUnits+work.Bytes(len(name), keyBytes*bits.Len(uint(v.count())))) {
		return false
	}
	_, there := of.find(v.raw, name)
	return there
}

func (e *evaluation) require(names []string, v cursor) bool {
	ok := true
	for _, name := range names {
		if !e.has(v, name) {
			if e.stop != "" {
				return false
			}
			e.path = append(e.path, step{name: []byte(name)})
			ok = e.wrong("is required")
			e.path = e.path[:len(e.path)-1]
		}
	}
	return ok
}

// member looks at the member of an object at place i.
func (e *evaluation) member(s *schema, raw []byte, i int, m place, out *seen) bool {
	ok, evaluated := true, false
	key := raw[m.key:m.value]
	if !e.charge(work.Bytes(len(key), keyBytes)) {
		return false
	}
	value := m.at(raw)
	if property, there := s.properties[string(key)]; there {
		ok, evaluated = e.within(step{name: key}, property, value), true
	}
	for _, p := range s.patterns {
		if e.matches(p.pattern, string(key)) {
			ok, evaluated = e.within(step{name: key}, p.schema, value) && ok, true
		}
	}
	if !evaluated && s.additional != nil {
		ok, evaluated = e.surplus(s.additional, key, value), true
	}
	if evaluated && out != nil && e.charge(lookUnits) {
		out.properties.add(i)
	}
	if s.propertyNames != nil && e.charge(work.Bytes(len(key), keyBytes)) && !e.silently(s.propertyNames, cursor{kind: kindText, raw: key}, nil) && e.stop == "" {
		ok = e.wrong("has a field with a name that is not allowed: %s", clip(string(key)))
	}
	return ok
}

// surplus looks at a member that nothing else has been said about.
func (e *evaluation) surplus(s *schema, key []byte, value cursor) bool {
	if s.always == nil || *s.always {
		return e.within(step{name: key}, s, value)
	}
	e.path = append(e.path, step{name: key})
	e.wrong("is not a field of this type")
	e.path = e.path[:len(e.path)-1]
	return false
}

func (e *evaluation) array(s *schema, v cursor, out *seen) bool {
	ok, n := true, v.count()
	if s.minItems != nil && n < *s.minItems {
		ok = e.wrong("must have at least %d items, has %d", *s.minItems, n)
	}
	if s.maxItems != nil && n > *s.maxItems {
		ok = e.wrong("must have at most %d items, has %d", *s.maxItems, n)
	}
	if s.unique {
		ok = e.distinct(v) && ok
	}
	for i, off := 0, 0; i < n; i++ {
		of := s.items
		if i < len(s.prefix) {
			of = s.prefix[i]
		}
		if of == nil {
			break
		}
		item, next, read := e.read(v.raw, off)
		if off = next; !read {
			return false
		}
		if ok = e.within(step{item: i + 1}, of, item) && ok; !ok && (e.quiet > 0 || e.over()) {
			return false
		}
	}
	if out != nil {
		out.items = max(out.items, min(len(s.prefix), n))
		if s.items != nil {
			out.items = n
		}
	}
	if s.contains != nil {
		ok = e.containing(s, v, out) && ok
	}
	return ok
}

// distinct finds equal items.
func (e *evaluation) distinct(v cursor) bool {
	where := map[itemKey]uint32{}
	for i, off := 0, 0; i < v.count(); i++ {
		var ok bool
		if e.key, off, ok = e.appendNext(e.key[:0], v.raw, off, math.MaxInt); !ok || !e.charge(lookUnits+digestUnits*uint64(len(e.key))) {
			return false
		}
		short := keyOf(e.key)
		if first, twice := where[short]; twice {
			return e.wrong("must have distinct items: %d and %d are equal", first, i)
		}
		where[short] = uint32(i)
	}
	return true
}

// itemKey stands for an item among those that must be distinct: nobody finds two values
// of one hash.
type itemKey [16]byte

func keyOf(key []byte) itemKey {
	var short itemKey
	if len(key) < len(short) {
		short[copy(short[:], key)] = 0xff // the last byte that is not 0
		return short
	}
	sum := sha256.Sum256(key)
	copy(short[:], sum[:])
	return short
}

func (e *evaluation) containing(s *schema, v cursor, out *seen) bool {
	n := 0
	for i, off := 0, 0; i < v.count(); i++ {
		item, next, ok := e.read(v.raw, off)
		if off = next; !ok {
			return false
		}
		if e.silently(s.contains, item, nil) {
			if n++; out != nil {
				out.contained.add(i)
			}
		}
		if e.over() {
			return false
		}
	}
	least := 1
	if s.minContains != nil {
		least = *s.minContains
	}
	if n < least {
		return e.wrong("must have at least %d items of a certain form, has %d", least, n)
	}
	if s.maxContains != nil && n > *s.maxContains {
		return e.wrong("must have at most %d items of a certain form, has %d", *s.maxContains, n)
	}
	return true
}
