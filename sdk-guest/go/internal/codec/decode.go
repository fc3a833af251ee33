package codec

import (
	"errors"
	"reflect"
	"strconv"
	"unsafe"

	"github.com/weftrun/weft/sdk-guest/go/internal/cbor"
)

// Decode reads a value of the plan's type to ptr, whose memory must be zero.
// Text and bytes share the decoder's memory.
func (p *Plan) Decode(d *cbor.Decoder, ptr unsafe.Pointer) {
	switch p.kind {
	case kindBool:
		*(*bool)(ptr) = d.Bool()
	case kindInt:
		storeInt(ptr, p.bits, d.Int(minInt(p.bits), maxInt(p.bits)))
	case kindUint:
		storeInt(ptr, p.bits, int64(d.Uint(maxUint(p.bits))))
	case kindFloat:
		if p.bits == 32 {
			*(*float32)(ptr) = float32(d.Float())
		} else {
			*(*float64)(ptr) = d.Float()
		}
	case kindText:
		*(*string)(ptr) = d.Text()
	case kindBytes:
		*(*[]byte)(ptr) = d.Bytes()
	case kindRaw:
		*(*Raw)(ptr) = d.Raw()
	case kindAny:
		*(*any)(ptr) = d.Value()
	case kindPointer:
		if d.TryNull() {
			return
		}
		box := reflect.New(p.elem.typ).UnsafePointer()
		p.elem.Decode(d, box)
		*(*unsafe.Pointer)(ptr) = box
	default:
		if !d.Enter(d.Offset()) {
			return
		}
		p.decodeParts(d, ptr)
		d.Leave()
	}
}

func storeInt(ptr unsafe.Pointer, bits uint8, v int64) {
	switch bits {
	case 8:
		*(*int8)(ptr) = int8(v)
	case 16:
		*(*int16)(ptr) = int16(v)
	case 32:
		*(*int32)(ptr) = int32(v)
	default:
		*(*int64)(ptr) = v
	}
}

func (p *Plan) decodeParts(d *cbor.Decoder, ptr unsafe.Pointer) {
	switch p.kind {
	case kindList:
		p.decodeList(d, ptr)
	case kindMap:
		p.decodeMap(d, ptr)
	case kindStruct:
		if p.tuple {
			p.decodeTuple(d, ptr)
			return
		}
		p.DecodeStruct(d, ptr, nil)
	}
}

func (p *Plan) decodeTuple(d *cbor.Decoder, ptr unsafe.Pointer) {
	start := d.Offset()
	if n := d.Array(); n != len(p.fields) {
		d.Fail(start, "a list of "+strconv.Itoa(n)+" where one of "+strconv.Itoa(len(p.fields))+" is expected")
		return
	}
	for i := range p.fields {
		p.fields[i].plan.Decode(d, unsafe.Add(ptr, p.fields[i].offset))
		if d.Failed() {
			d.Within(p.fields[i].name)
			return
		}
	}
}

func (p *Plan) decodeList(d *cbor.Decoder, ptr unsafe.Pointer) {
	n := d.Array()
	s := slice{p.list(n), n, n}
	for i := 0; i < n && !d.Failed(); i++ {
		p.elem.Decode(d, unsafe.Add(s.data, uintptr(i)*p.elem.size))
		if d.Failed() {
			d.Within(strconv.Itoa(i))
		}
	}
	*(*slice)(ptr) = s
}

// list returns zeroed memory for n elements.
func (p *Plan) list(n int) unsafe.Pointer {
	if p.elem.kind == kindText {
		return unsafe.Pointer(unsafe.SliceData(make([]string, n)))
	}
	return reflect.MakeSlice(p.typ, n, n).UnsafePointer()
}

func (p *Plan) decodeMap(d *cbor.Decoder, ptr unsafe.Pointer) {
	switch {
	case p.elem.kind == kindAny:
		*(*map[string]any)(ptr) = decodeMapOf(d, (*cbor.Decoder).Value)
	case p.elem.kind == kindText:
		*(*map[string]string)(ptr) = decodeMapOf(d, (*cbor.Decoder).Text)
	case p.elem.typ.Kind() == reflect.Int:
		bits := p.elem.bits
		*(*map[string]int)(ptr) = decodeMapOf(d, func(d *cbor.Decoder) int { return int(d.Int(minInt(bits), maxInt(bits))) })
	case p.elem.typ.Kind() == reflect.Float64:
		*(*map[string]float64)(ptr) = decodeMapOf(d, (*cbor.Decoder).Float)
	default:
		p.decodeAnyMap(d, ptr)
	}
}

func decodeMapOf[V any](d *cbor.Decoder, one func(*cbor.Decoder) V) map[string]V {
	n := d.Map()
	m := make(map[string]V, n)
	for ; n > 0 && !d.Failed(); n-- {
		key := d.Text()
		m[key] = one(d)
		if d.Failed() {
			d.Within(key)
		}
	}
	return m
}

func (p *Plan) decodeAnyMap(d *cbor.Decoder, ptr unsafe.Pointer) {
	n := d.Map()
	m := reflect.MakeMapWithSize(p.typ, n)
	key := reflect.New(p.typ.Key()).Elem()
	for ; n > 0 && !d.Failed(); n-- {
		key.SetString(d.Text())
		box := reflect.New(p.elem.typ)
		p.elem.Decode(d, box.UnsafePointer())
		if d.Failed() {
			d.Within(key.String())
			return
		}
		m.SetMapIndex(key, box.Elem())
	}
	p.at(ptr).Set(m)
}

// DecodeStruct reads a map to the struct at ptr. Entries that the struct does not declare
// go to its Extra field if it has one, otherwise to rest if rest is not nil; otherwise
// they are dropped.
func (p *Plan) DecodeStruct(d *cbor.Decoder, ptr unsafe.Pointer, rest *map[string]Raw) {
	var seen uint64
	next := 0 // keys and fields usually have the same order
	for n := d.Map(); n > 0 && !d.Failed(); n-- {
		key := d.Text()
		i := p.find(key, next)
		if i < 0 {
			p.decodeUndeclared(d, ptr, key, rest)
			continue
		}
		next = i + 1
		f := &p.fields[i]
		if d.Peek() == cbor.Null && (f.omit || f.fallback != nil) && f.plan.kind != kindAny {
			d.TryNull() // null counts as absent
			continue
		}
		seen |= 1 << i
		f.plan.Decode(d, unsafe.Add(ptr, f.offset))
		if d.Failed() {
			d.Within(key)
		}
	}
	if p.hasDefault && !d.Failed() {
		p.setDefaults(ptr, seen)
	}
}

// find returns the index of a field, or -1. It tries the field at next first.
func (p *Plan) find(key string, next int) int {
	if next < len(p.fields) && p.fields[next].name == key {
		return next
	}
	for i := range p.fields {
		if p.fields[i].name == key {
			return i
		}
	}
	return -1
}

func (p *Plan) decodeUndeclared(d *cbor.Decoder, ptr unsafe.Pointer, key string, rest *map[string]Raw) {
	switch {
	case p.hasExtra:
		extra := (*Extra)(unsafe.Add(ptr, p.extra))
		if *extra == nil {
			*extra = Extra{}
		}
		(*extra)[key] = d.Value()
	case rest != nil:
		if *rest == nil {
			*rest = map[string]Raw{}
		}
		(*rest)[key] = d.Raw()
	default:
		d.Skip()
	}
}

// setDefaults fills in the fields that are not in seen.
func (p *Plan) setDefaults(ptr unsafe.Pointer, seen uint64) {
	for i := range p.fields {
		if f := &p.fields[i]; f.fallback != nil && seen&(1<<i) == 0 {
			f.plan.Decode(cbor.NewDecoder(f.fallback), unsafe.Add(ptr, f.offset))
		}
	}
}

// Unmarshal reads the one item in data to the value that target points to. It overwrites
// the previous value, even if it fails.
func Unmarshal(data []byte, target any) error {
	v := reflect.ValueOf(target)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return errors.New("cannot read to a value that is not a pointer: pass &v")
	}
	p, err := Of(v.Type().Elem())
	if err != nil {
		return err
	}
	v.Elem().SetZero()
	d := cbor.NewDecoder(data)
	p.Decode(d, v.UnsafePointer())
	d.End()
	return d.Err()
}

// Defaults sets the value at ptr to the defaults of the fields' tags, and to zero where
// there is no default, including nested structs.
func (p *Plan) Defaults(ptr unsafe.Pointer) {
	if p.kind != kindStruct {
		return
	}
	for i := range p.fields {
		p.fields[i].plan.Defaults(unsafe.Add(ptr, p.fields[i].offset))
	}
	p.setDefaults(ptr, 0)
}
