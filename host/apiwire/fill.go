package apiwire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"time"
)

// Fill copies a struct of package host into a struct of this package, or back. It copies
// the fields that have the same name; their types may differ in how they are shown.
// Slices, maps and pointers of different types are copied; everything else is shared.
//
// Fill panics if a field of this package has no source and is not tagged fill:"-".
func Fill[D, S any](dst *D, src *S) {
	copyOf(reflect.TypeFor[D](), reflect.TypeFor[S]())(reflect.ValueOf(dst).Elem(), reflect.ValueOf(src).Elem())
}

// FillAll applies [Fill] to each element of a list.
func FillAll[D, S any](list []S) []D {
	out := make([]D, len(list))
	for i := range list {
		Fill(&out[i], &list[i])
	}
	return out
}

// copier copies a value of one type into a value of another.
type copier func(dst, src reflect.Value)

type pair struct{ dst, src reflect.Type }

var copiers sync.Map // pair of structs: copier

var (
	ownPackage = reflect.TypeFor[Time]().PkgPath()
	goTime     = reflect.TypeFor[time.Time]()
	rawJSON    = reflect.TypeFor[json.RawMessage]()
)

func copyOf(dst, src reflect.Type) copier {
	if c, ok := copiers.Load(pair{dst, src}); ok {
		return c.(copier)
	}
	type step struct {
		to, from []int
		copy     copier
	}
	var steps []step
	for _, f := range reflect.VisibleFields(dst) {
		if f.Anonymous || !f.IsExported() || f.Tag.Get("fill") == "-" || throughPointer(dst, f.Index) {
			continue
		}
		from, ok := src.FieldByName(f.Name)
		switch {
		case ok && from.Tag.Get("fill") != "-" && !throughPointer(src, from.Index):
			steps = append(steps, step{f.Index, from.Index, copierOf(f.Type, from.Type)})
		case !ok && dst.PkgPath() == ownPackage:
			panic(fmt.Sprintf("apiwire: %s.%s has no source in %s", dst, f.Name, src))
		}
	}
	c := copier(func(dst, src reflect.Value) {
		for i := range steps {
			s := &steps[i]
			s.copy(dst.FieldByIndex(s.to), src.FieldByIndex(s.from))
		}
	})
	copiers.Store(pair{dst, src}, c)
	return c
}

// throughPointer reports whether a field belongs to an embedded pointer.
func throughPointer(t reflect.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		if t = t.Field(i).Type; t.Kind() == reflect.Pointer {
			return true
		}
	}
	return false
}

func copierOf(dst, src reflect.Type) copier {
	to, from := dst.Kind(), src.Kind()
	switch {
	case dst == src:
		return reflect.Value.Set
	case src == goTime && to == reflect.Int64:
		return func(d, s reflect.Value) { d.SetInt(s.Interface().(time.Time).UnixNano()) }
	case dst == goTime && from == reflect.Int64:
		return func(d, s reflect.Value) { d.Set(reflect.ValueOf(time.Unix(0, s.Int()).UTC())) }
	case to == reflect.String && from == reflect.String:
		return func(d, s reflect.Value) { d.SetString(s.String()) }
	case to == reflect.Int64 && from == reflect.Int64:
		return func(d, s reflect.Value) { d.SetInt(s.Int()) }
	case to == reflect.Bool && from == reflect.Uint64:
		return func(d, s reflect.Value) { d.SetBool(s.Uint() != 0) }
	case isBytes(dst) && isBytes(src):
		return func(d, s reflect.Value) { d.SetBytes(s.Bytes()) }
	case dst == rawJSON && from == reflect.String:
		return func(d, s reflect.Value) { d.SetBytes([]byte(s.String())) }
	case to == reflect.String && src == rawJSON:
		return func(d, s reflect.Value) { d.SetString(string(s.Bytes())) }
	case to == reflect.Struct && from == reflect.Struct:
		return copyOf(dst, src)
	case to == from && (to == reflect.Pointer || to == reflect.Slice || to == reflect.Map):
		return copierOfMany(dst, copierOf(dst.Elem(), src.Elem()))
	default:
		panic(fmt.Sprintf("apiwire: %s cannot be copied from %s", dst, src))
	}
}

// copierOfMany copies what a pointer, a slice or a map holds; nil stays nil.
func copierOfMany(dst reflect.Type, elem copier) copier {
	return func(d, s reflect.Value) {
		if s.IsNil() {
			d.SetZero()
			return
		}
		switch dst.Kind() {
		case reflect.Pointer:
			d.Set(reflect.New(dst.Elem()))
			elem(d.Elem(), s.Elem())
		case reflect.Slice:
			d.Set(reflect.MakeSlice(dst, s.Len(), s.Len()))
			for i := range s.Len() {
				elem(d.Index(i), s.Index(i))
			}
		case reflect.Map:
			d.Set(reflect.MakeMapWithSize(dst, s.Len()))
			for it := s.MapRange(); it.Next(); {
				one := reflect.New(dst.Elem()).Elem()
				elem(one, it.Value())
				d.SetMapIndex(it.Key(), one)
			}
		}
	}
}

func isBytes(t reflect.Type) bool {
	return t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8
}
