package jsonschema

import (
	"slices"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host/work"
)

// WithoutAbsent returns an encoded object without the fields that count as absent, and
// the value of the result; nil if there are none. A field counts as absent if the field
// is null, and the schema declares the field, does not require it and does not let the
// field be null. The error is the meter's.
func (s *Schema) WithoutAbsent(m *work.Meter, v Value) (abi.Raw, Value, error) {
	e := &evaluation{meter: m, prices: encoded}
	v.places = &places{}
	fields, _ := e.members(v)
	var absent set
	left := v.count()
	for i, field := range fields.all {
		if v.raw[field.value] == abi.Null[0] && s.absent(m, string(v.raw[field.key:field.value])) {
			absent.add(i)
			left--
		}
	}
	if m.Err() != nil || left == v.count() {
		return nil, v, m.Err()
	}
	out := cbor.AppendHead(make(abi.Raw, 0, len(v.raw)+5), cbor.Map, uint64(left))
	begin := uint32(0)
	for i, field := range fields.all {
		if !absent.has(i) {
			out = append(out, v.raw[begin:field.end]...)
		}
		begin = field.end
	}
	return out, onto(out), nil
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
