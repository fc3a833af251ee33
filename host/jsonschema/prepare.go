package jsonschema

import (
	"errors"
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host/work"
)

// Prepare checks an encoded object, named after root, and returns the object without the
// fields that count as absent. A field counts as absent if the field is null, and the
// schema declares the field, does not require it and does not let the field be null. The
// problems and the error are those of [Schema.Evaluate].
func (s *Schema) Prepare(m *work.Meter, body abi.Raw, root string) (abi.Raw, []string, error) {
	e := &evaluation{path: path{{Name: root}}, meter: m, prices: encoded}
	v, err := View(m, body)
	switch {
	case errors.Is(err, ErrNotValue):
		return nil, []string{root + ": " + err.Error()}, nil
	case !e.went(err):
	case v.kind != kindObject:
		e.wrong(s, v, "type", "must be an object, got %s", v.describe())
	default:
		if body = e.withoutAbsent(s, body, v); e.went(m.Err()) {
			e.apply(s, onto(body), nil)
		}
	}
	problems, err := e.lines(root)
	return body, problems, err
}

// withoutAbsent leaves out the fields that count as absent. The result is of no use once
// the meter has ended.
func (e *evaluation) withoutAbsent(s *Schema, body abi.Raw, v Value) abi.Raw {
	v.places = &places{}
	fields, _ := e.members(v)
	var absent set
	left := v.count()
	for i, field := range fields.all {
		if v.raw[field.value] == abi.Null[0] && s.absent(e.meter, string(v.raw[field.key:field.value])) {
			absent.add(i)
			left--
		}
	}
	if left == v.count() {
		return body
	}
	out := cbor.AppendHead(make(abi.Raw, 0, len(v.raw)+5), cbor.Map, uint64(left))
	begin := uint32(0)
	for i, field := range fields.all {
		if !absent.has(i) {
			out = append(out, v.raw[begin:field.end]...)
		}
		begin = field.end
	}
	return out
}

// absent tells whether a field that is null counts as absent; that is of no use once the
// meter has ended.
func (s *Schema) absent(m *work.Meter, name string) bool {
	declared, required, nullable := false, false, true
	for depth := 0; s != nil && depth < maxNesting; depth++ {
		if m.Spend(lookUnits+nameUnits*uint64(len(s.Required))) != nil {
			return false
		}
		required = required || slices.Contains(s.Required, name)
		if p, ok := s.Properties[name]; ok {
			declared = true
			if nullable {
				problems, err := p.Evaluate(m, Value{}, "")
				nullable = problems == nil && err == nil
			}
		}
		if len(s.Refs) == 0 {
			break
		}
		s = s.Refs[0]
	}
	return declared && !required && !nullable
}
