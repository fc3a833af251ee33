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
func (e *evaluation) apply(s *schema, v any, out *seen) bool {
	if e.over() || !e.charge(lookUnits) {
		return false
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
func (e *evaluation) within(step any, s *schema, v any) bool {
	e.path = append(e.path, step)
	nesting := e.nesting
	e.nesting = 0
	ok := e.apply(s, v, nil)
	e.nesting = nesting
	e.path = e.path[:len(e.path)-1]
	return ok
}

// silently applies a schema for its verdict alone.
func (e *evaluation) silently(s *schema, v any, out *seen) bool {
	e.quiet++
	ok := e.apply(s, v, out)
	e.quiet--
	return ok
}

func (e *evaluation) typed(s *schema, v any, out *seen) bool {
	switch v := v.(type) {
	case text:
		return e.text(s, v)
	case []any:
		return e.array(s, v, out)
	case object:
		return e.object(s, v, out)
	case blob:
		if !s.looksInside() {
			return true
		}
		o, ok := e.inJSON(v)
		return ok && e.object(s, o, out)
	case int64, uint64, float64:
		return e.number(s, v)
	}
	return true
}

// inJSON gives the object that a byte string is in JSON.
func (e *evaluation) inJSON(v blob) (object, bool) {
	if !e.charge(lookUnits + work.Bytes(len(v), jsonBytes)) {
		return nil, false
	}
	return asObject(v)
}

// looksInside tells whether a schema says anything about an object's members.
func (s *schema) looksInside() bool {
	return s.minProperties != nil || s.maxProperties != nil || len(s.required) > 0 || s.properties != nil || s.patterns != nil ||
		s.additional != nil || s.propertyNames != nil || s.dependentRequired != nil || s.dependentSchemas != nil || s.unevaluatedProperties != nil
}

func (e *evaluation) text(s *schema, v text) bool {
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

func (e *evaluation) number(s *schema, v any) bool {
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
func numberUnits(s *schema, v any) uint64 {
	units, digits := uint64(boundUnits), 64
	if f, ok := v.(float64); ok {
		units = floatUnits
		_, exponent := math.Frexp(f)
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
func rational(v any) *big.Rat {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v)
	case uint64:
		return new(big.Rat).SetUint64(v)
	}
	n, _ := new(big.Rat).SetString(strconv.FormatFloat(v.(float64), 'g', -1, 64))
	return n
}

func (e *evaluation) object(s *schema, v object, out *seen) bool {
	ok := true
	if s.minProperties != nil && len(v) < *s.minProperties {
		ok = e.wrong("must have at least %d fields, has %d", *s.minProperties, len(v))
	}
	if s.maxProperties != nil && len(v) > *s.maxProperties {
		ok = e.wrong("must have at most %d fields, has %d", *s.maxProperties, len(v))
	}
	ok = e.require(s.required, v) && ok
	if s.properties != nil || s.patterns != nil || s.additional != nil || s.propertyNames != nil {
		for i := range v {
			if ok = e.member(s, &v[i], out) && ok; !ok && (e.quiet > 0 || e.over()) {
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
func (e *evaluation) has(v object, name string) bool {
	if !e.charge(lookUnits + work.Bytes(len(name), keyBytes*bits.Len(uint(len(v))))) {
		return false
	}
	_, there := v.get(name)
	return there
}

func (e *evaluation) require(names []string, v object) bool {
	ok := true
	for _, name := range names {
		if !e.has(v, name) {
			if e.stop != "" {
				return false
			}
			e.path = append(e.path, name)
			ok = e.wrong("is required")
			e.path = e.path[:len(e.path)-1]
		}
	}
	return ok
}

// member looks at one member of an object.
func (e *evaluation) member(s *schema, m *member, out *seen) bool {
	ok, evaluated := true, false
	if !e.charge(work.Bytes(len(m.key), keyBytes)) {
		return false
	}
	if property, there := s.properties[m.key]; there {
		ok, evaluated = e.within(m.key, property, m.value), true
	}
	for _, p := range s.patterns {
		if e.matches(p.pattern, m.key) {
			ok, evaluated = e.within(m.key, p.schema, m.value) && ok, true
		}
	}
	if !evaluated && s.additional != nil {
		ok, evaluated = e.surplus(s.additional, m), true
	}
	if evaluated && out != nil && e.charge(lookUnits) {
		out.property(m.key)
	}
	if s.propertyNames != nil && e.charge(work.Bytes(len(m.key), keyBytes)) && !e.silently(s.propertyNames, text(m.key), nil) && e.stop == "" {
		ok = e.wrong("has a field with a name that is not allowed: %s", show(text(m.key)))
	}
	return ok
}

// surplus looks at a member that nothing else has been said about.
func (e *evaluation) surplus(s *schema, m *member) bool {
	if s.always == nil || *s.always {
		return e.within(m.key, s, m.value)
	}
	e.path = append(e.path, m.key)
	e.wrong("is not a field of this type")
	e.path = e.path[:len(e.path)-1]
	return false
}

func (e *evaluation) array(s *schema, v []any, out *seen) bool {
	ok := true
	if s.minItems != nil && len(v) < *s.minItems {
		ok = e.wrong("must have at least %d items, has %d", *s.minItems, len(v))
	}
	if s.maxItems != nil && len(v) > *s.maxItems {
		ok = e.wrong("must have at most %d items, has %d", *s.maxItems, len(v))
	}
	if s.unique {
		ok = e.distinct(v) && ok
	}
	for i, item := range v {
		of := s.items
		if i < len(s.prefix) {
			of = s.prefix[i]
		}
		if of == nil {
			break
		}
		if ok = e.within(i, of, item) && ok; !ok && (e.quiet > 0 || e.over()) {
			return false
		}
	}
	if out != nil {
		out.items = max(out.items, min(len(s.prefix), len(v)))
		if s.items != nil {
			out.items = len(v)
		}
	}
	if s.contains != nil {
		ok = e.containing(s, v, out) && ok
	}
	return ok
}

// distinct finds equal items.
func (e *evaluation) distinct(v []any) bool {
	where := make(map[itemKey]int, len(v))
	var key []byte
	for i, item := range v {
		var ok bool
		if key, ok = e.appendKey(key[:0], item, math.MaxInt); !ok || !e.charge(lookUnits+digestUnits*uint64(len(key))) {
			return false
		}
		short := keyOf(key)
		if first, twice := where[short]; twice {
			return e.wrong("must have distinct items: %d and %d are equal", first, i)
		}
		where[short] = i
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

func (e *evaluation) containing(s *schema, v []any, out *seen) bool {
	n := 0
	for i, item := range v {
		if e.silently(s.contains, item, nil) {
			n++
			out.contain(i)
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
