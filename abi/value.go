package abi

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/weftrun/weft/abi/cbor"
)

// DecodeValue decodes a value to nil, bool, int64, uint64 (above math.MaxInt64 only),
// float64, string, []byte, []any and map[string]any. The result shares no memory with r.
// The error is a *[DataError].
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
	arg, next := cbor.Head(b, off)
	switch cbor.Major(b[off]) {
	case cbor.Uint:
		if arg > math.MaxInt64 {
			return arg, next
		}
		return int64(arg), next
	case cbor.Nint:
		return -1 - int64(arg), next
	case cbor.Bytes:
		end := next + int(arg)
		return append([]byte{}, b[next:end]...), end
	case cbor.Text:
		end := next + int(arg)
		return string(b[next:end]), end
	case cbor.Array:
		list := make([]any, arg)
		for i := range list {
			list[i], next = goValue(b, next)
		}
		return list, next
	case cbor.Map:
		m := make(map[string]any, arg)
		for range arg {
			size, key := cbor.Head(b, next)
			end := key + int(size)
			m[string(b[key:end])], next = goValue(b, end)
		}
		return m, next
	}
	switch b[off] {
	case cbor.False:
		return false, next
	case cbor.True:
		return true, next
	case cbor.Null:
		return nil, next
	}
	return cbor.Float(b[off], arg), next
}

// EncodeValue encodes nil, bool, int, int64, uint64, float64, string, []byte, [Raw], and
// slices ([]any, []string, []Raw) and string-keyed maps (map[string]any,
// map[string]string, map[string]Raw) of these, in Core Deterministic Encoding. A nil
// slice or map is encoded as empty, and a nil Raw as null. The error, a *[DataError],
// names the path of the invalid part.
func EncodeValue(v any) (Raw, error) {
	w := valueWriter{}
	if err := w.value(v, MaxValueDepth); err != nil {
		return nil, err
	}
	// The contained Raws count toward the limits of the whole, and may be in any order.
	r, err := Canonical(w.dst, MaxValueDepth)
	var fault *DataError
	if errors.As(err, &fault) {
		fault.Offset = -1 // the caller has no encoded bytes to count in
	}
	return r, err
}

// valueWriter writes Go values.
type valueWriter struct{ dst []byte }

func encodeError(format string, args ...any) *DataError {
	return &DataError{Offset: -1, Reason: fmt.Sprintf(format, args...)}
}

// value writes v. Up to room more containers may open in it.
func (w *valueWriter) value(v any, room int) *DataError {
	switch v := v.(type) {
	case nil:
		w.dst = append(w.dst, cbor.Null)
	case bool:
		w.dst = cbor.AppendBool(w.dst, v)
	case int:
		w.dst = cbor.AppendInt(w.dst, int64(v))
	case int64:
		w.dst = cbor.AppendInt(w.dst, v)
	case uint64:
		w.dst = cbor.AppendHead(w.dst, cbor.Uint, v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return encodeError("NaN and infinities are not allowed")
		}
		w.dst = cbor.AppendFloat(w.dst, v)
	case string:
		return w.text(v)
	case []byte:
		w.dst = append(cbor.AppendHead(w.dst, cbor.Bytes, uint64(len(v))), v...)
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

func (w *valueWriter) text(s string) *DataError {
	if !utf8.ValidString(s) {
		return encodeError("text is not valid UTF-8")
	}
	w.dst = cbor.AppendText(w.dst, s)
	return nil
}

// member adapts text to the signature that writeList and writeMap take.
func (w *valueWriter) member(s string, _ int) *DataError { return w.text(s) }

// raw writes an encoded value. It checks the value, so that the value cannot change the
// structure around it.
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
	w.dst = cbor.AppendHead(w.dst, cbor.Array, uint64(len(list)))
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
	w.dst = cbor.AppendHead(w.dst, cbor.Map, uint64(len(m)))
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
