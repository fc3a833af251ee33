package wefttest

import (
	"bytes"
	"errors"
	"strconv"
	"strings"

	"github.com/weftrun/weft/sdk-guest/go/internal/cbor"
	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

var errNotFound = errors.New("no value at this path")

// clone copies a value by encoding it, which also makes it plain data.
func clone(v any) (any, error) {
	b, err := codec.Append(nil, v)
	if err != nil {
		return nil, err
	}
	return decode(b)
}

func decode(b []byte) (any, error) {
	d := cbor.NewDecoder(b)
	v := d.Value()
	d.End()
	return v, d.Err()
}

// lookup gives the value at a path.
func lookup(v any, path string) (any, error) {
	for path != "" {
		var segment string
		segment, path, _ = strings.Cut(path, ".")
		switch node := v.(type) {
		case map[string]any:
			next, ok := node[segment]
			if !ok {
				return nil, errNotFound
			}
			v = next
		case []any:
			i, err := index(segment, len(node))
			if err != nil {
				return nil, err
			}
			v = node[i]
		default:
			return nil, errNotFound
		}
	}
	return v, nil
}

func index(segment string, n int) (int, error) {
	i, err := strconv.Atoi(segment)
	if i < 0 {
		i += n
	}
	if err != nil || i < 0 || i >= n {
		return 0, errNotFound
	}
	return i, nil
}

// update gives v with the value at a path replaced by what change makes of it;
// change is told whether it was there and may say to remove it.
func update(v any, path string, change func(old any, ok bool) (v any, keep bool, err error)) (any, error) {
	if path == "" {
		v, keep, err := change(v, true)
		if err == nil && !keep {
			err = errors.New("the whole state cannot be deleted: clear it")
		}
		return v, err
	}
	segment, rest, more := strings.Cut(path, ".")
	switch node := v.(type) {
	case nil:
		return update(map[string]any{}, path, change)
	case map[string]any:
		old, ok := node[segment]
		v, keep, err := step(old, ok, rest, more, change)
		if err != nil {
			return nil, err
		}
		if keep {
			node[segment] = v
		} else {
			delete(node, segment)
		}
		return node, nil
	case []any:
		i, err := index(segment, len(node))
		if err != nil {
			return nil, err
		}
		v, keep, err := step(node[i], true, rest, more, change)
		if err != nil {
			return nil, err
		}
		if !keep {
			return append(node[:i:i], node[i+1:]...), nil
		}
		node[i] = v
		return node, nil
	}
	return nil, errNotFound
}

func step(old any, ok bool, rest string, more bool, change func(any, bool) (any, bool, error)) (any, bool, error) {
	if !more {
		return change(old, ok)
	}
	v, err := update(old, rest, change)
	return v, true, err
}

// edit makes one edit of a batch on the state and gives the new state and the
// edit's result.
func edit(state any, initial any, op string, path string, value any) (any, any, error) {
	var result any
	switch op {
	case "clear":
		state, err := clone(initial)
		return state, nil, err
	case "test":
		old, err := lookup(state, path)
		if err != nil || !equal(old, value) {
			return nil, nil, errConflict
		}
		return state, nil, nil
	}
	state, err := update(state, path, func(old any, ok bool) (any, bool, error) {
		switch op {
		case "set":
			return value, true, nil
		case "delete":
			result = ok
			return nil, false, nil
		case "append":
			list, isList := old.([]any)
			if ok && !isList {
				return nil, false, errors.New("append to what is no list")
			}
			list = append(list, value)
			result = len(list)
			return list, true, nil
		case "increment":
			sum, err := add(old, value)
			result = sum
			return sum, true, err
		case "merge":
			merged, err := mergeMaps(old, value)
			return merged, true, err
		}
		return nil, false, errors.New("no such edit: " + op)
	})
	return state, result, err
}

var errConflict = errors.New("the tested value is another")

func equal(a, b any) bool {
	x, err1 := codec.Append(nil, a)
	y, err2 := codec.Append(nil, b)
	return err1 == nil && err2 == nil && bytes.Equal(x, y)
}

func add(old, by any) (any, error) {
	a, aInt := old.(int64)
	b, bInt := by.(int64)
	if (aInt || old == nil) && bInt {
		return a + b, nil
	}
	x, xFloat := old.(float64)
	y, yFloat := by.(float64)
	if aInt {
		x, xFloat = float64(a), true
	}
	if bInt {
		y, yFloat = float64(b), true
	}
	if (xFloat || old == nil) && yFloat {
		return x + y, nil
	}
	return nil, errors.New("increment of what is no number")
}

func mergeMaps(old, value any) (any, error) {
	from, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("merge takes a map")
	}
	to, ok := old.(map[string]any)
	if !ok {
		to = map[string]any{}
	}
	for key, v := range from {
		if _, isMap := v.(map[string]any); isMap {
			merged, err := mergeMaps(to[key], v)
			if err != nil {
				return nil, err
			}
			v = merged
		}
		to[key] = v
	}
	return to, nil
}
