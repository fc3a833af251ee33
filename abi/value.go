package abi

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"
)

// DecodeValue decodes a value to nil, bool, int64, uint64 (above
// math.MaxInt64 only), float64, string, []byte, []any and map[string]any.
// Nothing in the result refers to r. The error is a *[DataError].
func DecodeValue(r Raw) (any, error) {
	r, err := Canonical(r, MaxValueDepth)
	if err != nil {
		return nil, err
	}
	v, _ := goValue(r, 0)
	return v, nil
}

// goValue decodes the checked item at off and returns the offset after it.
func goValue(b []byte, off int) (any, int) {
	major := majorOf(b[off])
	if major == majorOther {
		return goOther(b, off)
	}
	arg, next := readArg(b, off)
	switch major {
	case majorUint:
		if arg > math.MaxInt64 {
			return arg, next
		}
		return int64(arg), next
	case majorNint:
		return -1 - int64(arg), next
	case majorBytes:
		end := next + int(arg)
		return append([]byte{}, b[next:end]...), end
	case majorText:
		end := next + int(arg)
		return string(b[next:end]), end
	case majorArray:
		list := make([]any, arg)
		for i := range list {
			list[i], next = goValue(b, next)
		}
		return list, next
	default:
		m := make(map[string]any, arg)
		for range arg {
			size, key := readArg(b, next)
			end := key + int(size)
			m[string(b[key:end])], next = goValue(b, end)
		}
		return m, next
	}
}

func goOther(b []byte, off int) (any, int) {
	switch b[off] {
	case byteFalse:
		return false, off + 1
	case byteTrue:
		return true, off + 1
	case byteNull:
		return nil, off + 1
	default:
		f, next := readFloat(b, off)
		return f, next
	}
}

// EncodeValue encodes nil, bool, int, int64, uint64, float64, string, []byte,
// [Raw], and slices ([]any, []string, []Raw) and string-keyed maps
// (map[string]any, map[string]string, map[string]Raw) of these, in Core
// Deterministic Encoding. A nil slice or map is an empty one; a nil Raw is
// null. The error, a *[DataError], names the path of what cannot be a value.
func EncodeValue(v any) (Raw, error) {
	w := valueWriter{}
	if err := w.value(v, MaxValueDepth); err != nil {
		return nil, err
	}
	// The Raws within count for the limits of the whole, and may be in any
	// order.
	r, err := Canonical(w.dst, MaxValueDepth)
	var fault *DataError
	if errors.As(err, &fault) {
		fault.Offset = -1 // the caller has no bytes that it could count in
	}
	return r, err
}

// valueWriter writes Go values.
type valueWriter struct{ dst []byte }

func encodeError(format string, args ...any) *DataError {
	return &DataError{Offset: -1, Reason: fmt.Sprintf(format, args...)}
}

// value writes v, in which room more containers may open.
func (w *valueWriter) value(v any, room int) *DataError {
	switch v := v.(type) {
	case nil:
		w.dst = append(w.dst, byteNull)
	case bool:
		w.dst = appendBool(w.dst, v)
	case int:
		w.dst = appendInt(w.dst, int64(v))
	case int64:
		w.dst = appendInt(w.dst, v)
	case uint64:
		w.dst = appendHead(w.dst, majorUint, v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return encodeError("NaN and infinities are not allowed")
		}
		w.dst = appendFloat(w.dst, v)
	case string:
		return w.text(v)
	case []byte:
		w.dst = append(appendHead(w.dst, majorBytes, uint64(len(v))), v...)
	case Raw:
		return w.raw(v, room)
	case []any:
		return writeList(w, v, room, w.value)
	case []string:
		return writeList(w, v, room, w.member)
	case []Raw:
		return writeList(w, v, room, w.raw)
	case map[string]any:
		return writeMap(w, v, room, w.value)
	case map[string]string:
		return writeMap(w, v, room, w.member)
	case map[string]Raw:
		return writeMap(w, v, room, w.raw)
	default:
		return encodeError("a %T is not a value", v)
	}
	return nil
}

func appendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, byteTrue)
	}
	return append(dst, byteFalse)
}

func (w *valueWriter) text(s string) *DataError {
	if !utf8.ValidString(s) {
		return encodeError("text is not valid UTF-8")
	}
	w.dst = appendText(w.dst, s)
	return nil
}

// member is text in the shape that writeList and writeMap take.
func (w *valueWriter) member(s string, _ int) *DataError { return w.text(s) }

// raw writes an encoded value. It is checked here, so that it cannot change
// the structure around it.
func (w *valueWriter) raw(r Raw, room int) *DataError {
	if r == nil {
		r = Null
	}
	s := newScanner(r, DefaultLimits.effective())
	next, err := s.item(0, room)
	if err == nil && next != len(r) {
		err = &DataError{Reason: "trailing data"}
	}
	if err != nil {
		err.Offset = -1
		return err
	}
	w.dst = append(w.dst, r...)
	return nil
}

func writeList[T any](w *valueWriter, list []T, room int, item func(T, int) *DataError) *DataError {
	if room <= 0 {
		return encodeError("nested too deep")
	}
	w.dst = appendHead(w.dst, majorArray, uint64(len(list)))
	for i, v := range list {
		if err := item(v, room-1); err != nil {
			return err.under(strconv.Itoa(i))
		}
	}
	return nil
}

func writeMap[T any](w *valueWriter, m map[string]T, room int, item func(T, int) *DataError) *DataError {
	if room <= 0 {
		return encodeError("nested too deep")
	}
	w.dst = appendHead(w.dst, majorMap, uint64(len(m)))
	for _, key := range sortedKeys(m) {
		if err := w.text(key); err != nil {
			return err.under(segmentOf([]byte(key)))
		}
		if err := item(m[key], room-1); err != nil {
			return err.under(segmentOf([]byte(key)))
		}
	}
	return nil
}

// sortedKeys returns the keys in canonical order.
func sortedKeys[T any](m map[string]T) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int {
		if c := cmp.Compare(len(a), len(b)); c != 0 {
			return c
		}
		return cmp.Compare(a, b)
	})
	return keys
}
