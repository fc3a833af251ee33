package jsonschema

// seen records which members and items a schema, and the schemas that it applies to the
// same value, have evaluated: for unevaluatedProperties and unevaluatedItems. A nil seen
// records nothing.
type seen struct {
	allProperties bool
	properties    set // members by their places
	items         int // the first so many
	contained     set // items by their indices
}

// set is a set of small numbers.
type set []uint64

func (s *set) add(i int) {
	for len(*s) <= i/64 {
		*s = append(*s, 0)
	}
	(*s)[i/64] |= 1 << (i % 64)
}

func (s set) has(i int) bool { return i/64 < len(s) && s[i/64]>>(i%64)&1 != 0 }

func (s *set) merge(o set) {
	for len(*s) < len(o) {
		*s = append(*s, 0)
	}
	for i := range o {
		(*s)[i] |= o[i]
	}
}

func (s *seen) merge(other *seen) {
	if s == nil || other == nil {
		return
	}
	s.allProperties = s.allProperties || other.allProperties
	s.items = max(s.items, other.items)
	s.properties.merge(other.properties)
	s.contained.merge(other.contained)
}

// combined applies the schemas that look at the same value.
func (e *evaluation) combined(s *Schema, v Value, out *seen) bool {
	ok := true
	for _, list := range [][]*Schema{s.Refs, s.AllOf} {
		for _, part := range list {
			if ok = e.apply(part, v, out) && ok; !ok && (e.quiet > 0 || e.over()) {
				return false
			}
		}
	}
	if s.Not != nil && e.silently(s.Not, v, nil) {
		ok = e.wrong(s, v, "not", "must not be of the form that is excluded")
	}
	if s.AnyOf != nil {
		ok = e.any(s, v, out) && ok
	}
	if s.OneOf != nil {
		ok = e.one(s, v, out) && ok
	}
	if s.If != nil {
		branch := s.Else
		if e.attempt(s.If, v, out) {
			branch = s.Then
		}
		if branch != nil {
			ok = e.apply(branch, v, out) && ok
		}
	}
	return ok && e.stop == ""
}

// attempt applies a schema silently; what it has evaluated counts if it holds.
func (e *evaluation) attempt(s *Schema, v Value, out *seen) bool {
	if out == nil {
		return e.silently(s, v, nil)
	}
	tried := &seen{}
	if !e.silently(s, v, tried) {
		return false
	}
	e.merge(out, tried)
	return true
}

// merge adds what another schema has evaluated.
func (e *evaluation) merge(out, other *seen) {
	if out != nil && e.charge(lookUnits*uint64(1+len(other.properties)+len(other.contained))) {
		out.merge(other)
	}
}

func (e *evaluation) any(s *Schema, v Value, out *seen) bool {
	ok := false
	for _, alternative := range s.AnyOf {
		if e.attempt(alternative, v, out) {
			if ok = true; out == nil {
				return true
			}
		}
	}
	return ok || e.fitsNone(s, "anyOf", s.AnyOf, v)
}

func (e *evaluation) one(s *Schema, v Value, out *seen) bool {
	fits := -1
	for i, alternative := range s.OneOf {
		if !e.attempt(alternative, v, out) {
			continue
		}
		if fits >= 0 {
			return e.wrong(s, v, "oneOf", "fits two of its alternatives, %d and %d, where one is allowed", fits+1, i+1)
		}
		fits = i
	}
	return fits >= 0 || e.fitsNone(s, "oneOf", s.OneOf, v)
}

// fitsNone explains why a value fits none of the alternatives: if just one is
// of its type, by what is wrong with that.
func (e *evaluation) fitsNone(s *Schema, keyword string, alternatives []*Schema, v Value) bool {
	if e.quiet > 0 || e.over() {
		return false
	}
	var of Types
	var near []*Schema
	for _, alternative := range alternatives {
		if accepted := alternative.accepts(); accepted&typesOf(v) != 0 {
			near = append(near, alternative)
		} else {
			of |= accepted
		}
	}
	switch len(near) {
	case 0:
		return e.wrong(s, v, keyword, "must be %s, got %s", of, v.describe())
	case 1:
		e.apply(near[0], v, nil)
		return false
	}
	return e.wrong(s, v, keyword, "fits none of its %d alternatives", len(alternatives))
}

// accepts gives the types that a schema may take, as far as it is plain to see.
func (s *Schema) accepts() Types {
	for range maxNesting {
		switch {
		case s.Always != nil && !*s.Always:
			return 0
		case s.Types&typeNumber != 0:
			return s.Types | typeInteger
		case s.Types != 0:
			return s.Types
		case s.Const != nil:
			return typesOf(s.Const.all[0])
		case len(s.Refs) == 0:
			return 1<<len(typeNames) - 1
		}
		s = s.Refs[0]
	}
	return 1<<len(typeNames) - 1
}

// unevaluated applies the schemas of the members and items that no keyword has evaluated.
func (e *evaluation) unevaluated(s *Schema, v Value, out *seen) bool {
	ok := true
	if s.UnevaluatedProperties != nil && !out.allProperties {
		ok = e.unevaluatedMembers(s.UnevaluatedProperties, v, out)
		out.allProperties = true
	}
	if v.kind == kindList && s.UnevaluatedItems != nil {
		w, _ := e.walk(v)
		for i := 0; i < v.count() && !e.over() && e.charge(lookUnits); i++ {
			if !w.next(e) {
				return false
			}
			if i >= out.items && !out.contained.has(i) {
				ok = e.within(Step{Item: i + 1}, s.UnevaluatedItems, w.item) && ok
			}
		}
		out.items = v.count()
	}
	return ok
}

func (e *evaluation) unevaluatedMembers(s *Schema, v Value, out *seen) bool {
	if v.kind == kindBlob {
		o, ok := e.inJSON(v)
		if !ok {
			return false
		}
		defer e.givePlaces(o.places)
		v = o
	}
	if v.kind != kindObject {
		return true
	}
	w, ok := e.walk(v)
	for i := 0; ok && i < v.count() && e.charge(lookUnits) && w.next(e); i++ {
		if !out.properties.has(i) {
			ok = e.surplus(s, w.name, w.item) && ok
		}
	}
	return ok
}
