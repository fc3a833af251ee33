package wefttest

import (
	"errors"
	"reflect"
	"testing"
)

func TestEdits(t *testing.T) {
	type m = map[string]any
	start := func() m { return m{"n": int64(1), "f": 0.5, "l": []any{"a", "b"}, "m": m{"x": nil}} }
	for _, test := range []struct {
		op, path string
		value    any
		result   any
		at       string // where to look afterwards
		want     any
	}{
		{"set", "m.y.z", true, nil, "m", m{"x": nil, "y": m{"z": true}}},
		{"set", "l.-1", "c", nil, "l", []any{"a", "c"}},
		{"set", "", m{"k": int64(0)}, nil, "", m{"k": int64(0)}},
		{"delete", "l.0", nil, true, "l", []any{"b"}},
		{"delete", "m.none", nil, false, "m", m{"x": nil}},
		{"append", "new.list", "x", 1, "new.list", []any{"x"}},
		{"append", "l", "c", 3, "l.2", "c"},
		{"increment", "n", int64(2), int64(3), "n", int64(3)},
		{"increment", "n", 0.5, 1.5, "n", 1.5},
		{"increment", "f", int64(1), 1.5, "f", 1.5},
		{"increment", "none", 2.5, 2.5, "none", 2.5},
		{"merge", "m", m{"x": m{"a": int64(1)}, "y": nil}, nil, "m", m{"x": m{"a": int64(1)}, "y": nil}},
		{"test", "l", []any{"a", "b"}, nil, "n", int64(1)},
		{"clear", "", nil, nil, "", m{"initial": true}},
	} {
		state, result, err := edit(start(), m{"initial": true}, test.op, test.path, test.value)
		if err != nil {
			t.Errorf("%s %q: %v", test.op, test.path, err)
			continue
		}
		got, err := lookup(state, test.at)
		if err != nil || !reflect.DeepEqual(got, test.want) || !reflect.DeepEqual(result, test.result) {
			t.Errorf("%s %q: %q is %v (%v), result %v", test.op, test.path, test.at, got, err, result)
		}
	}
	for _, test := range []struct {
		op, path string
		value    any
		want     error
	}{
		{"set", "l.2", "x", errNotFound},
		{"set", "n.x", "x", errNotFound},
		{"test", "n", 1.0, errConflict},
		{"test", "none", nil, errConflict},
		{"append", "n", "x", nil},
		{"increment", "l", int64(1), nil},
		{"merge", "m", "x", nil},
		{"delete", "", nil, nil},
		{"explode", "n", nil, nil},
	} {
		if _, _, err := edit(start(), nil, test.op, test.path, test.value); err == nil || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s %q: error %v, want %v", test.op, test.path, err, test.want)
		}
	}
}
