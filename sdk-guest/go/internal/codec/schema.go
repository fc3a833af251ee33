package codec

import (
	"errors"
	"strings"
)

// Schema returns the JSON Schema of the plan's type, as a value for Append. A struct's
// schema allows undeclared keys.
func (p *Plan) Schema() (map[string]any, error) {
	return p.schema(map[*Plan]bool{})
}

// schema describes a type. It leaves a recursive occurrence of a type open.
func (p *Plan) schema(open map[*Plan]bool) (map[string]any, error) {
	switch p.kind {
	case kindBool:
		return map[string]any{"type": "boolean"}, nil
	case kindInt:
		return map[string]any{"type": "integer"}, nil
	case kindUint:
		return map[string]any{"type": "integer", "minimum": 0}, nil
	case kindFloat:
		return map[string]any{"type": "number"}, nil
	case kindText:
		return map[string]any{"type": "string"}, nil
	case kindPointer:
		return p.elem.schema(open)
	case kindList:
		if p.elem.kind == kindPointer { // nil of such a type is null
			return map[string]any{"type": "array"}, nil
		}
		items, err := p.elem.schema(open)
		return map[string]any{"type": "array", "items": items}, err
	case kindMap:
		if p.elem.kind == kindPointer {
			return map[string]any{"type": "object"}, nil
		}
		values, err := p.elem.schema(open)
		return map[string]any{"type": "object", "additionalProperties": values}, err
	case kindStruct:
		if p.tuple { // schemas of the state have no keyword for the items of a tuple
			return map[string]any{"type": "array", "minItems": len(p.fields), "maxItems": len(p.fields)}, nil
		}
		if open[p] {
			return map[string]any{"type": "object"}, nil
		}
		open[p] = true
		defer delete(open, p)
		return p.structSchema(open)
	}
	return map[string]any{}, nil // bytes and any are not restricted
}

func (p *Plan) structSchema(open map[*Plan]bool) (map[string]any, error) {
	properties := map[string]any{}
	var required []any
	for i := range p.fields {
		f := &p.fields[i]
		s, err := f.schema(open)
		if err != nil {
			return nil, errors.New("field " + p.typ.Name() + "." + f.name + ": " + err.Error())
		}
		properties[f.name] = s
		if !f.omit && f.fallback == nil {
			required = append(required, f.name)
		}
	}
	s := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		s["required"] = required
	}
	return s, nil
}

func (f *field) schema(open map[*Plan]bool) (map[string]any, error) {
	s, err := f.plan.schema(open)
	if err != nil {
		return nil, err
	}
	if f.fallback != nil {
		s["default"] = f.fallback
	}
	if doc := f.tag.Get("doc"); doc != "" {
		s["description"] = doc
	}
	for tag, key := range map[string]string{"min": "minimum", "max": "maximum"} {
		text, ok := f.tag.Lookup(tag)
		if !ok {
			continue
		}
		if f.plan.kind != kindInt && f.plan.kind != kindUint && f.plan.kind != kindFloat {
			return nil, errors.New("only numbers take a min or a max by tag")
		}
		if s[key], err = f.plan.literal(text); err != nil {
			return nil, err
		}
	}
	if list, ok := f.tag.Lookup("enum"); ok {
		if f.plan.kind != kindText {
			return nil, errors.New("only text takes an enum by tag")
		}
		var values []any
		for _, v := range strings.Split(list, ",") {
			values = append(values, v)
		}
		s["enum"] = values
	}
	return s, nil
}
