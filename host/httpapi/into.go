package httpapi

import (
	"encoding/base64"
	"math"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/httpapi/object"
)

// maxMembers limits the fields of the objects of a request itself. The limits of package
// abi apply to events.
const maxMembers = 64

// shape says how to read an object into a struct.
type shape struct {
	fields []apiwire.Field
	names  []string
	open   bool // unknown fields are ignored; otherwise they are refused
}

var shapes sync.Map // reflect.Type of a struct: *shape

func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	body, closed := apiwire.Body(t)
	s := &shape{fields: apiwire.Fields(t), open: body && !closed}
	for _, f := range s.fields {
		s.names = append(s.names, f.Name)
	}
	shapes.Store(t, s)
	return s
}

func (s *shape) find(name []byte) *apiwire.Field {
	for i := range s.fields {
		if s.fields[i].Name == string(name) {
			return &s.fields[i]
		}
	}
	return nil
}

// into reads an object into a struct of package apiwire. A field stays unchanged if its
// value is null or absent, or counts as absent. Nested [apiwire.Value]s are not examined,
// except that they must be objects where the struct says so.
func (v value) into(dst any) error {
	to := reflect.ValueOf(dst).Elem()
	s := shapeOf(to.Type())
	if !v.object() {
		return invalid("'%s' must be an object", v.path)
	}
	if n, _ := cbor.Head(v.raw, 0); n > maxMembers {
		return invalid("The request has more than %d fields", maxMembers)
	}
	for name, raw := range object.Members(v.raw) {
		f := s.find(name)
		switch {
		case f != nil:
			if err := v.under(f.Name, raw).set(to.Field(f.Index), f.Options); err != nil {
				return err
			}
		case !s.open:
			// A misspelt setting would be noticed much later.
			return invalid("'%s' is not known: use %s", joinPath(v.path, clip(string(name))), strings.Join(s.names, ", "))
		}
	}
	return nil
}

// set reads a value into a field with the given options.
func (v value) set(to reflect.Value, options map[string]string) error {
	_, loose := options["loose"]
	if v.null() || loose && !v.given() {
		return nil
	}
	if _, either := options["json"]; either {
		to.SetBytes(v.raw) // readEvent checks the content
		return nil
	}
	var err error
	switch field := to.Addr().Interface().(type) {
	case *apiwire.Value:
		*field, err = v.objectValue()
	case **apiwire.Seconds:
		var d time.Duration
		d, err = v.seconds()
		span := apiwire.Seconds(d)
		*field = &span
	case *map[string]apiwire.Value:
		*field, err = v.byName()
	case *[]string:
		*field, err = v.names()
	case *[]byte:
		if text, bad := v.optionalText(); bad != nil {
			err = bad
		} else if *field, err = base64.StdEncoding.DecodeString(text); err != nil {
			err = invalid("'%s' cannot be read: it was not written by a server", v.path)
		}
	case *bool:
		if *field = v.raw[0] == cbor.True; !*field && v.raw[0] != cbor.False {
			err = invalid("'%s' must be true or false", v.path)
		}
	default:
		switch to.Kind() {
		case reflect.String:
			var text string
			text, err = v.optionalText()
			to.SetString(text)
		case reflect.Int, reflect.Uint64:
			n, _ := abi.DecodeValue(v.raw)
			at, ok := n.(int64)
			switch {
			case !ok || at < 1:
				err = invalid("'%s' must be a whole number from 1 on", v.path)
			case to.CanInt():
				to.SetInt(at)
			default:
				to.SetUint(uint64(at))
			}
		default:
			err = v.into(to.Addr().Interface())
		}
	}
	return err
}

// objectValue returns a value that must be an object. (JSON's {"$bytes": ...} is not an
// object.)
func (v value) objectValue() (apiwire.Value, error) {
	if !v.object() {
		return nil, invalid("'%s' must be an object", v.path)
	}
	raw, err := v.canonical()
	return apiwire.Value(raw), err
}

// names reads a list of names.
func (v value) names() ([]string, error) {
	decoded, err := v.decode()
	if err != nil {
		return nil, err
	}
	list, ok := decoded.([]any)
	if !ok {
		return nil, invalid("'%s' must be a list of names", v.path)
	}
	names := make([]string, len(list))
	for i, item := range list {
		if names[i], ok = item.(string); !ok {
			return nil, invalid("'%s.%d' must be a text", v.path, i)
		}
	}
	return names, nil
}

// byName reads an object of objects.
func (v value) byName() (map[string]apiwire.Value, error) {
	if !v.object() {
		return nil, invalid("'%s' must be an object", v.path)
	}
	out := map[string]apiwire.Value{}
	for name, raw := range object.Members(v.raw) {
		inner, err := v.under(clip(string(name)), raw).objectValue()
		if err != nil {
			return nil, err
		}
		out[string(name)] = inner
	}
	return out, nil
}

// decode decodes the whole value.
func (v value) decode() (any, error) {
	raw, err := v.canonical()
	if err != nil {
		return nil, err
	}
	return abi.DecodeValue(raw)
}

// seconds reads a duration of 0 or more.
func (v value) seconds() (time.Duration, error) {
	decoded, err := v.decode()
	if err != nil {
		return 0, err
	}
	bad := invalid("'%s' must be a number of seconds, at least 1e-9, or 0 for none", v.path)
	var seconds float64
	switch n := decoded.(type) {
	case int64:
		seconds = float64(n)
	case uint64:
		seconds = float64(n)
	case float64:
		seconds = n
	default:
		return 0, bad
	}
	nanos := math.Round(seconds * 1e9)
	if seconds < 0 || seconds > 0 && nanos < 1 || nanos >= math.MaxInt64 {
		return 0, bad
	}
	return time.Duration(nanos), nil
}
