// Package codec converts Go values to CBOR and back by plans. Reflection makes a plan
// once for each type. In a guest this happens while the module initializes, so plans are
// part of the image. A plan works on plain memory: encoding or decoding a struct, a list
// or a common map uses no reflection.
//
// Structs become maps with snake_case keys. These field tags control the encoding:
//
//	weft:"name,omitempty"  the key, and whether an empty value is left out
//	weft:"-"               not part of the data
//	default:"10"           used if the key is absent; numbers, text, bools
//	doc:"..."              description in the schema
//	min:"0" max:"9"        bounds in the schema
//	enum:"a,b"             the only valid texts, in the schema
//
// The package must not depend on steps, events or host calls.
package codec

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"unsafe"

	"github.com/weftrun/weft/sdk-guest/go/internal/cbor"
)

// Extra is an embedded field of a struct. It keeps the keys that the struct does not
// declare.
type Extra map[string]any

// Tuple, embedded in a struct, encodes the struct as a list of its fields in order
// instead of a map.
type Tuple struct{}

// Raw is one encoded item. It is written unchanged.
type Raw []byte

// Plan defines how values of one type are encoded and decoded. A Plan does not change
// after it is made, and may be shared.
type Plan struct {
	kind   kind
	typ    reflect.Type
	size   uintptr
	bits   uint8 // of a number
	elem   *Plan // of a pointer, list or map
	fields []field
	fixed  bool    // a struct that always writes all of its fields
	tuple  bool    // a struct that is a list of its fields
	extra  uintptr // offset of the Extra field, with hasExtra

	hasExtra, hasDefault bool
}

type field struct {
	name     string
	key      []byte // the encoded name
	offset   uintptr
	plan     *Plan
	omit     bool // leave out when empty
	fallback Raw  // the encoded default, or nil
	tag      reflect.StructTag
}

type kind uint8

const (
	kindBool kind = iota
	kindInt
	kindUint
	kindFloat
	kindText
	kindBytes
	kindAny
	kindRaw
	kindPointer
	kindList
	kindMap
	kindStruct
)

// Markers are the struct types that describe the struct in which they are embedded, and
// are not part of its data.
var Markers = map[reflect.Type]bool{}

var (
	plans     = map[reflect.Type]*Plan{}
	typeExtra = reflect.TypeOf(Extra{})
	typeRaw   = reflect.TypeOf(Raw{})
	typeTuple = reflect.TypeOf(Tuple{})
)

// Of returns the plan of a type, and makes the plan if necessary. It is not safe for
// concurrent use: guests have one thread.
func Of(t reflect.Type) (*Plan, error) {
	if p := plans[t]; p != nil {
		return p, nil
	}
	p := &Plan{typ: t, size: t.Size()}
	plans[t] = p // before the fields' plans: types may contain themselves
	if err := p.build(); err != nil {
		delete(plans, t)
		return nil, err
	}
	return p, nil
}

// Type returns the plan's type.
func (p *Plan) Type() reflect.Type { return p.typ }

// IsStruct reports whether values are maps with declared keys.
func (p *Plan) IsStruct() bool { return p.kind == kindStruct && !p.tuple }

func (p *Plan) build() error {
	t := p.typ
	switch t.Kind() {
	case reflect.Bool:
		p.kind = kindBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		p.kind, p.bits = kindInt, uint8(p.size*8)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		p.kind, p.bits = kindUint, uint8(p.size*8)
	case reflect.Float32, reflect.Float64:
		p.kind, p.bits = kindFloat, uint8(p.size*8)
	case reflect.String:
		p.kind = kindText
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return unsupported(t, "use any, or a struct")
		}
		p.kind = kindAny
	case reflect.Pointer:
		p.kind = kindPointer
		return p.buildElem()
	case reflect.Slice:
		switch {
		case t == typeRaw:
			p.kind = kindRaw
		case t.Elem().Kind() == reflect.Uint8:
			p.kind = kindBytes
		default:
			p.kind = kindList
			return p.buildElem()
		}
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return unsupported(t, "use string keys, the only ones that the data model has")
		}
		p.kind = kindMap
		return p.buildElem()
	case reflect.Struct:
		p.kind = kindStruct
		return p.buildStruct()
	default:
		return unsupported(t, "use a struct, list, map, text, number or bool")
	}
	return nil
}

// name returns a type's name for a message. (The type's String method would add another 3
// KB to a guest.)
func name(t reflect.Type) string {
	if n := t.Name(); n != "" {
		return "type " + n
	}
	return "a " + t.Kind().String()
}

func quote(s string) string { return "\"" + s + "\"" }

func unsupported(t reflect.Type, advice string) error {
	return errors.New(name(t) + " cannot be sent: " + advice)
}

func (p *Plan) buildElem() (err error) {
	p.elem, err = Of(p.typ.Elem())
	return err
}

func (p *Plan) buildStruct() error {
	if err := p.addFields(p.typ, 0); err != nil {
		return err
	}
	if p.tuple && (p.hasExtra || len(p.fields) < p.typ.NumField()-1) {
		return errors.New(name(p.typ) + " is a tuple: let it have plain fields only")
	}
	if len(p.fields) > 64 {
		return errors.New(name(p.typ) + " has more than 64 fields: group some of them in a struct")
	}
	if len(p.fields) == 0 && !p.hasExtra && p.typ.NumField() > 0 && p.typ.PkgPath() == "time" {
		return unsupported(p.typ, "use a number of seconds, or text")
	}
	p.fixed = !p.hasExtra
	for i, f := range p.fields {
		if p.find(f.name, 0) < i {
			return errors.New(name(p.typ) + " has two fields " + quote(f.name) + ": name one with a tag, `weft:\"other\"`")
		}
		p.fixed = p.fixed && !f.omit
		p.hasDefault = p.hasDefault || f.fallback != nil
	}
	return nil
}

// addFields adds the fields of t, which is at an offset in the plan's type.
func (p *Plan) addFields(t reflect.Type, offset uintptr) error {
	for i := 0; i < t.NumField(); i++ {
		sf := t.Field(i)
		key, options, _ := strings.Cut(sf.Tag.Get("weft"), ",")
		embedded := sf.Anonymous && sf.Type.Kind() == reflect.Struct && key == ""
		switch {
		case key == "-" || Markers[sf.Type] && sf.Anonymous:
			continue
		case sf.Anonymous && sf.Type == typeTuple:
			p.tuple = true
			continue
		case sf.Anonymous && sf.Type == typeExtra:
			p.hasExtra, p.extra = true, offset+sf.Offset
			continue
		case embedded:
			if err := p.addFields(sf.Type, offset+sf.Offset); err != nil {
				return err
			}
			continue
		case !sf.IsExported():
			continue
		}
		f, err := newField(sf, key, options)
		if err != nil {
			return errors.New("field " + t.Name() + "." + sf.Name + ": " + err.Error())
		}
		f.offset += offset
		p.insert(f)
	}
	return nil
}

// insert adds a field at its position in the order of keys, or at the end of a tuple.
func (p *Plan) insert(f field) {
	p.fields = append(p.fields, f)
	if p.tuple {
		return
	}
	for i := len(p.fields) - 1; i > 0 && cbor.CompareKeys(f.name, p.fields[i-1].name) < 0; i-- {
		p.fields[i], p.fields[i-1] = p.fields[i-1], f
	}
}

func newField(sf reflect.StructField, key, options string) (field, error) {
	if key == "" {
		key = SnakeCase(sf.Name)
	}
	plan, err := Of(sf.Type)
	if err != nil {
		return field{}, err
	}
	f := field{name: key, key: cbor.AppendText(nil, key), offset: sf.Offset, plan: plan, tag: sf.Tag}
	f.omit = sf.Type.Kind() == reflect.Pointer
	switch options {
	case "":
	case "omitempty":
		f.omit = true
	default:
		return f, errors.New("unknown tag option " + quote(options) + ": only omitempty is known")
	}
	if text, ok := sf.Tag.Lookup("default"); ok {
		if f.fallback, err = plan.literal(text); err != nil {
			return f, err
		}
	}
	return f, nil
}

// SnakeCase turns a Go name into a key: UserID becomes user_id.
func SnakeCase(name string) string {
	b := make([]byte, 0, len(name)+4)
	for i := 0; i < len(name); i++ {
		c := name[i]
		if isUpper(c) {
			after := i > 0 && !isUpper(name[i-1]) && name[i-1] != '_'
			before := i > 0 && isUpper(name[i-1]) && i+1 < len(name) && name[i+1] >= 'a' && name[i+1] <= 'z'
			if after || before {
				b = append(b, '_')
			}
			c += 'a' - 'A'
		}
		b = append(b, c)
	}
	return string(b)
}

func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }

// at returns the addressable value of the plan's type at ptr.
func (p *Plan) at(ptr unsafe.Pointer) reflect.Value {
	holder := reflect.New(reflect.PointerTo(p.typ))
	*(*unsafe.Pointer)(holder.UnsafePointer()) = ptr
	return holder.Elem().Elem()
}

// Box copies a value of the plan's type to new memory.
func (p *Plan) Box(v any) unsafe.Pointer {
	box := reflect.New(p.typ)
	box.Elem().Set(reflect.ValueOf(v))
	return box.UnsafePointer()
}

// New allocates a value of the plan's type. The returned function makes an interface of
// the value once it is filled.
func (p *Plan) New() (unsafe.Pointer, func() any) {
	box := reflect.New(p.typ)
	return box.UnsafePointer(), func() any { return box.Elem().Interface() }
}

func minInt(bits uint8) int64   { return math.MinInt64 >> (64 - bits) }
func maxInt(bits uint8) int64   { return math.MaxInt64 >> (64 - bits) }
func maxUint(bits uint8) uint64 { return math.MaxUint64 >> (64 - bits) }
