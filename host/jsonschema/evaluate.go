package jsonschema

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/weftrun/weft/host/pattern"
	"github.com/weftrun/weft/host/work"
)

const (
	maxProblems = 10 // that are listed of one value
	// maxNesting bounds schemas that apply others to the same value, and so
	// those that refer to themselves.
	maxNesting = 500
)

// The prices of checking an encoded value, in units of package work.
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

// Prices are the prices of a check of a [Tree], in units of package work.
type Prices struct {
	Look        uint64 // a schema looks at a value; a name is looked for
	Member      uint64 // a member is visited
	MemberBytes int    // likewise, 8 bytes of its name
	Surplus     uint64 // a member is refused
	Bound       uint64 // a number against a bound; 0: by the digits of both
}

// encoded are the prices of an encoded value.
var encoded = Prices{Look: lookUnits, MemberBytes: keyBytes}

// Problem is a part of a value that does not satisfy its schema.
type Problem struct {
	Path    []Step // from the value that was checked
	Keyword string // of the schema that is not satisfied; "false" for the schema false
	Schema  *Schema
	Value   Value
	Text    string // for people, with no path
	// Count breaks the Limit of minLength, maxItems and their like.
	Count, Limit int
}

// evaluation evaluates a schema on one value. It notes each problem. While quiet is set
// (inside anyOf, not, if), it only finds whether there is a problem.
type evaluation struct {
	path     path
	problems []Problem
	more     bool // there are more problems than are listed
	first    bool // the first problem ends the evaluation
	found    bool // the first problem has been found
	shallow  bool // members and items are left out
	prices   Prices
	meter    *work.Meter
	err      error  // of the meter, if it is not that its limit was reached
	nesting  int    // schemas being applied
	quiet    int    // > 0: only the verdict matters
	stop     string // why the evaluation cannot go on
	free     []*places
	key      []byte // that was made last
	keyed    int    // bytes of the encodings of what keys were made of, whole floats as integers
}

// wrong notes a problem of a value at the present path; it always answers false.
func (e *evaluation) wrong(s *Schema, v Value, keyword, format string, args ...any) bool {
	if e.quietly() {
		return false
	}
	if len(e.problems) == maxProblems {
		e.more = true
		return false
	}
	e.problems = append(e.problems, Problem{Path: slices.Clone(e.path), Keyword: keyword, Schema: s, Value: v, Text: fmt.Sprintf(format, args...)})
	e.found = e.first
	return false
}

// over reports whether the evaluation has ended early.
func (e *evaluation) over() bool { return e.stop != "" || e.more || e.found }

// charge charges work before it is done; false: the caller must not do the work.
func (e *evaluation) charge(units uint64) bool { return !e.found && e.went(e.meter.Spend(units)) }

// went notes an error of the meter; true: the evaluation continues.
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
func (e *evaluation) quietly() bool { return e.quiet > 0 || e.stop != "" || e.found }

// apply tells whether a value satisfies a schema.
func (e *evaluation) apply(s *Schema, v Value, out *seen) bool {
	if e.over() || !e.charge(e.prices.Look) {
		return false
	}
	if v.kind == kindObject && v.places == nil && v.tree == nil {
		v.places = e.takePlaces()
		defer e.givePlaces(v.places)
	}
	if s.Always != nil {
		return *s.Always || e.wrong(s, v, "false", "is not allowed")
	}
	if s.Types != 0 && s.Types&typesOf(v) == 0 {
		return !e.quietly() && e.wrong(s, v, "type", "must be %s, got %s", s.Types, v.describe())
	}
	if e.nesting == maxNesting {
		e.stop = "has a schema that refers to itself without end"
		return false
	}
	e.nesting++
	defer func() { e.nesting-- }()
	if s.Const != nil && !s.Const.has(e, v) {
		return !e.quietly() && e.wrong(s, v, "const", "must be %s", show(s.Const.all[0]))
	}
	if s.Enum != nil && !s.Enum.has(e, v) {
		return !e.quietly() && e.wrong(s, v, "enum", "must be one of %s", showAll(s.Enum.all))
	}
	if s.UnevaluatedProperties == nil && s.UnevaluatedItems == nil {
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
func (e *evaluation) within(at Step, s *Schema, v Value) bool {
	e.path = append(e.path, at)
	nesting := e.nesting
	e.nesting = 0
	ok := e.apply(s, v, nil)
	e.nesting = nesting
	e.path = e.path[:len(e.path)-1]
	return ok
}

// silently applies a schema for its verdict alone.
func (e *evaluation) silently(s *Schema, v Value, out *seen) bool {
	e.quiet++
	ok := e.apply(s, v, out)
	e.quiet--
	return ok
}

func (e *evaluation) typed(s *Schema, v Value, out *seen) bool {
	switch v.kind {
	case kindText, kindBytes:
		return e.text(s, v)
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

// inJSON returns the object that JSON has in the place of a byte string.
func (e *evaluation) inJSON(v Value) (o Value, ok bool) {
	if !e.charge(lookUnits + work.Bytes(len(v.raw), jsonBytes)) {
		return o, false
	}
	o = inJSON(v.raw)
	o.places = e.takePlaces()
	return o, true
}

// looksInside tells whether a schema says anything about an object's members.
func (s *Schema) looksInside() bool {
	return s.MinProperties != nil || s.MaxProperties != nil || len(s.Required) > 0 || s.Properties != nil || s.PatternProperties != nil ||
		s.Additional != nil || s.PropertyNames != nil || s.DependentRequired != nil || s.DependentSchemas != nil || s.UnevaluatedProperties != nil
}

func (e *evaluation) text(s *Schema, v Value) bool {
	ok, text := true, v.Text()
	if v.kind == kindBytes && s.Pattern != nil {
		ok = e.wrong(s, v, "pattern", "a byte string matches no pattern")
	}
	if s.MinLength != nil || s.MaxLength != nil {
		n, unit := len(text), "bytes"
		if v.kind == kindText {
			if !e.charge(work.Bytes(len(text), textBytes)) {
				return false
			}
			n, unit = utf8.RuneCountInString(text), "characters"
		}
		ok = e.counts(s, v, "Length", unit, n, s.MinLength, s.MaxLength) && ok
	}
	if s.Pattern != nil && v.kind == kindText && !e.matches(s.Pattern, text) {
		ok = !e.quietly() && e.wrong(s, v, "pattern", "must match the pattern %s", clip(s.Pattern.String()))
	}
	return ok
}

// counts holds a count to its bounds.
func (e *evaluation) counts(s *Schema, v Value, what, unit string, n int, least, most *int) bool {
	ok := true
	if least != nil && n < *least {
		ok = e.count(s, v, "min"+what, "must have at least %d %s, has %d", unit, n, *least)
	}
	if most != nil && n > *most {
		ok = e.count(s, v, "max"+what, "must have at most %d %s, has %d", unit, n, *most)
	}
	return ok
}

func (e *evaluation) count(s *Schema, v Value, keyword, format, unit string, n, limit int) bool {
	had := len(e.problems)
	if e.wrong(s, v, keyword, format, limit, unit, n); len(e.problems) > had {
		e.problems[had].Count, e.problems[had].Limit = n, limit
	}
	return false
}

// matches tells whether a text has a match of the pattern.
func (e *evaluation) matches(p *pattern.Pattern, v string) bool {
	if e.found {
		return false
	}
	ok, err := p.Match(e.meter, v)
	return e.went(err) && ok
}

func (e *evaluation) number(s *Schema, v Value) bool {
	if len(s.Bounds) == 0 && s.MultipleOf == nil {
		return true
	}
	if !e.charge(e.numberUnits(s, v)) {
		return false
	}
	ok := true
	for _, b := range s.Bounds {
		var holds bool
		var must string
		switch order := compare(v, b.Limit); b.Keyword {
		case "minimum":
			holds, must = order >= 0, "at least"
		case "maximum":
			holds, must = order <= 0, "at most"
		case "exclusiveMinimum":
			holds, must = order > 0, "more than"
		default:
			holds, must = order < 0, "less than"
		}
		if !holds {
			ok = !e.quietly() && e.wrong(s, v, b.Keyword, "must be %s %s, got %s", must, show(b.Limit), show(v))
		}
	}
	if s.MultipleOf != nil && !new(big.Rat).Quo(rational(v), s.MultipleOf).IsInt() {
		ok = e.wrong(s, v, "multipleOf", "must be a multiple of %s, got %s", showRat(s.MultipleOf), show(v))
	}
	return ok
}

// compare compares numbers exactly, also an integer with a float.
func compare(a, b Value) int {
	switch {
	case a.kind == kindFloat && b.kind == kindFloat:
		return cmp.Compare(a.float(), b.float())
	case a.kind == kindInt && b.kind == kindInt:
		return cmp.Compare(int64(a.bits), int64(b.bits))
	}
	return a.big().Cmp(b.big())
}

func (c Value) big() *big.Float {
	switch c.kind {
	case kindInt:
		return new(big.Float).SetInt64(int64(c.bits))
	case kindUint:
		return new(big.Float).SetUint64(c.bits)
	}
	return big.NewFloat(c.float())
}

// numberUnits is what the bounds of a number cost: a float of a large exponent is a
// fraction of many digits.
func (e *evaluation) numberUnits(s *Schema, v Value) uint64 {
	units, digits := uint64(boundUnits), 64
	if v.kind == kindFloat {
		units = floatUnits
		_, exponent := math.Frexp(v.float())
		digits += max(exponent, -exponent)
	}
	if e.prices.Bound > 0 {
		units = e.prices.Bound * uint64(len(s.Bounds))
	} else {
		for _, b := range s.Bounds {
			units += boundUnits + uint64(digits+b.Digits)
		}
	}
	if r := s.MultipleOf; r != nil {
		units += boundUnits + uint64(digits+r.Num().BitLen()+r.Denom().BitLen())*digitUnits
	}
	return units
}

// rational reads a float as the shortest decimal that stands for it, as people
// write it: 0.1 is not more than 0.1.
func rational(v Value) *big.Rat {
	switch v.kind {
	case kindInt:
		return new(big.Rat).SetInt64(int64(v.bits))
	case kindUint:
		return new(big.Rat).SetUint64(v.bits)
	}
	n, _ := new(big.Rat).SetString(strconv.FormatFloat(v.float(), 'g', -1, 64))
	return n
}

func (e *evaluation) object(s *Schema, v Value, out *seen) bool {
	ok := e.counts(s, v, "Properties", "fields", v.count(), s.MinProperties, s.MaxProperties)
	if e.shallow {
		return ok
	}
	ok = e.require(s, s.Required, v) && ok
	if len(s.Properties) > 0 || s.PatternProperties != nil || s.Additional != nil || s.PropertyNames != nil {
		w, all := e.walk(v)
		if !all {
			return false
		}
		for i := 0; w.next(e); i++ {
			if ok = e.member(s, v, i, &w, out) && ok; !ok && (e.quiet > 0 || e.over()) {
				return false
			}
		}
	}
	for _, d := range s.DependentRequired {
		if e.has(v, d.Name) {
			ok = e.require(s, d.Then, v) && ok
		}
	}
	for _, d := range s.DependentSchemas {
		if e.has(v, d.Name) {
			ok = e.apply(d.Then, v, out) && ok
		}
	}
	return ok
}

// has tells whether an object has a member of a name.
func (e *evaluation) has(v Value, name string) bool {
	if v.tree != nil {
		return e.charge(e.prices.Look) && v.tree.Has(name)
	}
	of, all := e.members(v)
	if !all || !e.charge(lookUnits+work.Bytes(len(name), keyBytes*bits.Len(uint(v.count())))) {
		return false
	}
	_, there := of.find(v.raw, name)
	return there
}

func (e *evaluation) require(s *Schema, names []string, v Value) bool {
	ok := true
	for _, name := range names {
		if !e.has(v, name) {
			if e.stop != "" {
				return false
			}
			e.path = append(e.path, Step{Name: name})
			ok = e.wrong(s, v, "required", "is required")
			e.path = e.path[:len(e.path)-1]
		}
	}
	return ok
}

// member looks at the member of an object on which a walk stands, the one at place i.
func (e *evaluation) member(s *Schema, v Value, i int, w *walk, out *seen) bool {
	ok, evaluated := true, false
	if !e.charge(e.prices.Member + work.Bytes(len(w.name), e.prices.MemberBytes)) {
		return false
	}
	if property, there := s.Properties[w.name]; there {
		ok, evaluated = e.within(Step{Name: w.name}, property, w.item), true
	}
	for _, p := range s.PatternProperties {
		if e.matches(p.Pattern, w.name) {
			ok, evaluated = e.within(Step{Name: w.name}, p.Schema, w.item) && ok, true
		}
	}
	if !evaluated && s.Additional != nil {
		ok, evaluated = e.surplus(s.Additional, w.name, w.item), true
	}
	if evaluated && out != nil && e.charge(lookUnits) {
		out.properties.add(i)
	}
	if s.PropertyNames != nil && e.charge(work.Bytes(len(w.name), keyBytes)) && !e.silently(s.PropertyNames, Value{kind: kindText, raw: bytesOf(w.name)}, nil) && e.stop == "" {
		ok = e.wrong(s, v, "propertyNames", "has a field with a name that is not allowed: %s", clip(w.name))
	}
	return ok
}

// surplus looks at a member that nothing else has been said about.
func (e *evaluation) surplus(s *Schema, name string, value Value) bool {
	if s.Always == nil || *s.Always {
		return e.within(Step{Name: name}, s, value)
	}
	if e.charge(e.prices.Surplus) {
		e.path = append(e.path, Step{Name: name})
		e.wrong(s, value, "false", "is not a field of this type")
		e.path = e.path[:len(e.path)-1]
	}
	return false
}

func (e *evaluation) array(s *Schema, v Value, out *seen) bool {
	n := v.count()
	ok := e.counts(s, v, "Items", "items", n, s.MinItems, s.MaxItems)
	if e.shallow {
		return ok
	}
	if s.UniqueItems {
		ok = e.distinct(s, v) && ok
	}
	if first := min(n, len(s.PrefixItems)); first > 0 || s.Items != nil {
		w, _ := e.walk(v)
		for i := 0; i < n && (i < first || s.Items != nil); i++ {
			of := s.Items
			if i < first {
				of = s.PrefixItems[i]
			}
			if !w.next(e) {
				return false
			}
			if ok = e.within(Step{Item: i + 1}, of, w.item) && ok; !ok && (e.quiet > 0 || e.over()) {
				return false
			}
		}
	}
	if out != nil {
		out.items = max(out.items, min(len(s.PrefixItems), n))
		if s.Items != nil {
			out.items = n
		}
	}
	if s.Contains != nil {
		ok = e.containing(s, v, out) && ok
	}
	return ok
}

// distinct finds equal items.
func (e *evaluation) distinct(s *Schema, v Value) bool {
	where := map[itemKey]uint32{}
	w, _ := e.walk(v)
	for i := range v.count() {
		var ok bool
		if e.key, ok = w.appendKey(e, e.key[:0]); !ok || !e.charge(lookUnits+digestUnits*uint64(len(e.key))) {
			return false
		}
		short := keyOf(e.key)
		if first, twice := where[short]; twice {
			return e.wrong(s, v, "uniqueItems", "must have distinct items: %d and %d are equal", first, i)
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

func (e *evaluation) containing(s *Schema, v Value, out *seen) bool {
	n := 0
	w, _ := e.walk(v)
	for i := range v.count() {
		if !w.next(e) {
			return false
		}
		if e.silently(s.Contains, w.item, nil) {
			if n++; out != nil {
				out.contained.add(i)
			}
		}
		if e.over() {
			return false
		}
	}
	least := s.MinContains
	if least == nil {
		one := 1
		least = &one
	}
	const unit = "items of a certain form"
	return e.counts(s, v, "Contains", unit, n, least, nil) && e.counts(s, v, "Contains", unit, n, nil, s.MaxContains)
}
