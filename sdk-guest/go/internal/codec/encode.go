package codec

import (
	"errors"
	"reflect"
	"slices"
	"unsafe"

	"github.com/weftrun/weft/sdk-guest/go/internal/cbor"
)

// Encoder collects encoded items. The zero value is ready for use. It records the first
// fault, which Err returns; items written after the fault are meaningless.
type Encoder struct {
	B     []byte
	err   error
	depth int
}

// Err returns the first fault, or nil.
func (e *Encoder) Err() error { return e.err }

func (e *Encoder) fail(reason string) {
	if e.err == nil {
		e.err = errors.New(reason)
	}
}

// List writes the head of a list of n items.
func (e *Encoder) List(n int) { e.B = cbor.AppendHead(e.B, cbor.MajorArray, uint64(n)) }

// Map writes the head of a map of n entries.
func (e *Encoder) Map(n int) { e.B = cbor.AppendHead(e.B, cbor.MajorMap, uint64(n)) }

// Uint writes an integer.
func (e *Encoder) Uint(n uint64) { e.B = cbor.AppendHead(e.B, cbor.MajorUint, n) }

// Int writes an integer.
func (e *Encoder) Int(n int64) { e.B = cbor.AppendInt(e.B, n) }

// Text writes a text.
func (e *Encoder) Text(s string) { e.B = cbor.AppendText(e.B, s) }

// Bool writes a bool.
func (e *Encoder) Bool(v bool) { e.B = cbor.AppendBool(e.B, v) }

// Null writes null.
func (e *Encoder) Null() { e.B = append(e.B, cbor.Null) }

// Raw writes an encoded item.
func (e *Encoder) Raw(item []byte) { e.B = append(e.B, item...) }

// Float writes a float.
func (e *Encoder) Float(f float64) {
	if f-f != 0 {
		e.fail("a float is NaN or infinite: the data model has finite numbers only")
		return
	}
	e.B = cbor.AppendFloat(e.B, f)
}

// Encode writes the value of the plan's type at ptr.
func (p *Plan) Encode(e *Encoder, ptr unsafe.Pointer) {
	switch p.kind {
	case kindBool:
		e.Bool(*(*bool)(ptr))
	case kindInt:
		e.Int(loadInt(ptr, p.bits))
	case kindUint:
		e.Uint(loadUint(ptr, p.bits))
	case kindFloat:
		if p.bits == 32 {
			e.Float(float64(*(*float32)(ptr)))
		} else {
			e.Float(*(*float64)(ptr))
		}
	case kindText:
		e.Text(*(*string)(ptr))
	case kindBytes:
		e.B = cbor.AppendBytes(e.B, *(*[]byte)(ptr))
	case kindRaw:
		e.rawOrNull(*(*Raw)(ptr))
	case kindAny:
		e.Value(*(*any)(ptr))
	default:
		if !e.enter() {
			return
		}
		p.encodeParts(e, ptr)
		e.depth--
	}
}

func (e *Encoder) enter() bool {
	if e.depth >= cbor.MaxDepth {
		e.fail("values nest too deep: at most 64 levels can be sent (is there a cycle of pointers?)")
		return false
	}
	e.depth++
	return e.err == nil
}

func (e *Encoder) rawOrNull(r Raw) {
	if r == nil {
		e.Null()
		return
	}
	e.Raw(r)
}

func (p *Plan) encodeParts(e *Encoder, ptr unsafe.Pointer) {
	switch p.kind {
	case kindPointer:
		if target := *(*unsafe.Pointer)(ptr); target != nil {
			p.elem.Encode(e, target)
		} else {
			e.Null()
		}
	case kindList:
		s := (*slice)(ptr)
		e.List(s.len)
		for i := 0; i < s.len; i++ {
			p.elem.Encode(e, unsafe.Add(s.data, uintptr(i)*p.elem.size))
		}
	case kindMap:
		p.encodeMap(e, ptr)
	case kindStruct:
		if !p.tuple {
			p.EncodeStruct(e, ptr, nil)
			return
		}
		e.List(len(p.fields))
		for i := range p.fields {
			p.fields[i].plan.Encode(e, unsafe.Add(ptr, p.fields[i].offset))
		}
	}
}

// slice is the memory layout of any slice.
type slice struct {
	data     unsafe.Pointer
	len, cap int
}

func loadInt(ptr unsafe.Pointer, bits uint8) int64 {
	switch bits {
	case 8:
		return int64(*(*int8)(ptr))
	case 16:
		return int64(*(*int16)(ptr))
	case 32:
		return int64(*(*int32)(ptr))
	}
	return *(*int64)(ptr)
}

func loadUint(ptr unsafe.Pointer, bits uint8) uint64 {
	switch bits {
	case 8:
		return uint64(*(*uint8)(ptr))
	case 16:
		return uint64(*(*uint16)(ptr))
	case 32:
		return uint64(*(*uint32)(ptr))
	}
	return *(*uint64)(ptr)
}

// EncodeStruct writes a struct, with further entries between its own. It does not write a
// declared key twice.
func (p *Plan) EncodeStruct(e *Encoder, ptr unsafe.Pointer, rest map[string]Raw) {
	if p.hasExtra || len(rest) > 0 {
		p.encodeOpen(e, ptr, rest)
		return
	}
	n := len(p.fields)
	if !p.fixed {
		for i := range p.fields {
			if p.fields[i].left(ptr) {
				n--
			}
		}
	}
	e.Map(n)
	for i := range p.fields {
		f := &p.fields[i]
		if p.fixed || !f.left(ptr) {
			e.B = append(e.B, f.key...)
			f.plan.Encode(e, unsafe.Add(ptr, f.offset))
		}
	}
}

// encodeOpen writes a struct that has more keys than it declares.
func (p *Plan) encodeOpen(e *Encoder, ptr unsafe.Pointer, rest map[string]Raw) {
	var extra Extra
	if p.hasExtra {
		extra = *(*Extra)(unsafe.Add(ptr, p.extra))
	}
	keys := make([]string, 0, len(p.fields)+len(extra)+len(rest))
	for i := range p.fields {
		if !p.fields[i].left(ptr) {
			keys = append(keys, p.fields[i].name)
		}
	}
	for key := range extra {
		if p.find(key, 0) < 0 {
			keys = append(keys, key)
		}
	}
	for key := range rest {
		if _, twice := extra[key]; !twice && p.find(key, 0) < 0 {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, cbor.CompareKeys)
	e.Map(len(keys))
	for _, key := range keys {
		e.Text(key)
		if i := p.find(key, 0); i >= 0 {
			p.fields[i].plan.Encode(e, unsafe.Add(ptr, p.fields[i].offset))
		} else if v, ok := extra[key]; ok {
			e.Value(v)
		} else {
			e.Raw(rest[key])
		}
	}
}

// left reports whether a field of the struct at ptr is left out.
func (f *field) left(ptr unsafe.Pointer) bool {
	return f.omit && f.plan.empty(unsafe.Add(ptr, f.offset))
}

func (p *Plan) empty(ptr unsafe.Pointer) bool {
	switch p.kind {
	case kindBool:
		return !*(*bool)(ptr)
	case kindInt, kindUint:
		return loadUint(ptr, p.bits) == 0
	case kindFloat:
		return p.bits == 32 && *(*float32)(ptr) == 0 || p.bits == 64 && *(*float64)(ptr) == 0
	case kindText:
		return *(*string)(ptr) == ""
	case kindBytes, kindRaw, kindList:
		return (*slice)(ptr).len == 0
	case kindAny:
		return *(*any)(ptr) == nil
	case kindPointer:
		return *(*unsafe.Pointer)(ptr) == nil
	case kindMap:
		return len(*(*map[string]any)(ptr)) == 0 // the count has the same position in every map
	}
	return false
}

// encodeMap writes a map in key order. It reads the common maps, with plain elements,
// without reflection.
func (p *Plan) encodeMap(e *Encoder, ptr unsafe.Pointer) {
	switch {
	case p.elem.kind == kindAny:
		encodeMapOf(e, *(*map[string]any)(ptr), (*Encoder).Value)
	case p.elem.kind == kindText:
		encodeMapOf(e, *(*map[string]string)(ptr), (*Encoder).Text)
	case p.elem.typ.Kind() == reflect.Int:
		encodeMapOf(e, *(*map[string]int)(ptr), func(e *Encoder, v int) { e.Int(int64(v)) })
	case p.elem.typ.Kind() == reflect.Float64:
		encodeMapOf(e, *(*map[string]float64)(ptr), (*Encoder).Float)
	default:
		p.encodeAnyMap(e, p.at(ptr))
	}
}

func encodeMapOf[V any](e *Encoder, m map[string]V, one func(*Encoder, V)) {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, cbor.CompareKeys)
	e.Map(len(keys))
	for _, key := range keys {
		e.Text(key)
		one(e, m[key])
	}
}

func (p *Plan) encodeAnyMap(e *Encoder, m reflect.Value) {
	keys := make([]string, 0, m.Len())
	for it := m.MapRange(); it.Next(); {
		keys = append(keys, it.Key().String())
	}
	slices.SortFunc(keys, cbor.CompareKeys)
	e.Map(len(keys))
	mapKey := reflect.New(p.typ.Key()).Elem()
	box := reflect.New(p.elem.typ)
	for _, key := range keys {
		e.Text(key)
		mapKey.SetString(key)
		box.Elem().Set(m.MapIndex(mapKey))
		p.elem.Encode(e, box.UnsafePointer())
	}
}

// Value writes a value of any type that has a plan.
func (e *Encoder) Value(v any) {
	switch v := v.(type) {
	case nil:
		e.Null()
	case bool:
		e.Bool(v)
	case int:
		e.Int(int64(v))
	case int64:
		e.Int(v)
	case uint64:
		e.Uint(v)
	case float64:
		e.Float(v)
	case string:
		e.Text(v)
	case Raw:
		e.rawOrNull(v)
	case []any:
		if !e.enter() {
			return
		}
		e.List(len(v))
		for _, item := range v {
			e.Value(item)
		}
		e.depth--
	case map[string]any:
		if !e.enter() {
			return
		}
		encodeMapOf(e, v, (*Encoder).Value)
		e.depth--
	default:
		p, err := Of(reflect.TypeOf(v))
		if err != nil {
			e.fail(err.Error())
			return
		}
		p.Encode(e, p.Box(v))
	}
}

// Append appends the encoding of a value to b.
func Append(b []byte, v any) ([]byte, error) {
	e := Encoder{B: b}
	e.Value(v)
	if e.err != nil {
		return b, e.err
	}
	return e.B, nil
}
