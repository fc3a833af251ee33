package state

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"pgregory.net/rapid"

	"github.com/weftrun/weft/abi"
)

// Generators.

func genKey() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"a", "b", "c", "list", "0", "1", "-1", bytesKey}),
		rapid.StringMatching(`[a-z]{1,3}`),
	)
}

func genScalar() *rapid.Generator[any] {
	return rapid.OneOf(
		rapid.Map(rapid.Int64Range(-3, 300), func(i int64) any { return i }),
		rapid.Map(rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, -1}), func(i int64) any { return i }),
		rapid.Just(any(uint64(math.MaxUint64))),
		rapid.Map(rapid.SampledFrom([]float64{0, 1, -1.5, 1e300, math.MaxFloat64, 65504, 0.1, 5.960464477539063e-8, 16777217}), func(f float64) any { return f }),
		rapid.Map(rapid.StringN(0, 30, -1), func(s string) any { return s }),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 30), func(b []byte) any { return b }),
		rapid.SampledFrom([]any{nil, true, false}),
	)
}

func genValue(depth int) *rapid.Generator[any] {
	if depth == 0 {
		return genScalar()
	}
	return rapid.Custom(func(t *rapid.T) any {
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			return genMap(depth-1).Draw(t, "map")
		case 1:
			return rapid.SliceOfN(genValue(depth-1), 0, 5).Draw(t, "list")
		case 2: // more than a page of small things
			n := rapid.IntRange(30, 80).Draw(t, "n")
			list := make([]any, n)
			for i := range list {
				list[i] = int64(i)
			}
			return list
		}
		return genScalar().Draw(t, "scalar")
	})
}

func genMap(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		m := rapid.MapOfN(genKey(), genValue(depth), 0, 5).Draw(t, "map")
		if _, ok := m[bytesKey]; ok && len(m) == 1 {
			return map[string]any{}
		}
		return m
	})
}

func genPath() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(genKey(), 0, 4), func(s []string) string { return strings.Join(s, ".") })
}

// pathIn draws a path that leads somewhere in v more often than chance would,
// sometimes one segment further.
func pathIn(t *rapid.T, v any) string {
	var path []string
	for range rapid.IntRange(0, 4).Draw(t, "len") {
		switch c := v.(type) {
		case map[string]any:
			k := genKey().Draw(t, "key")
			if keys := slices.Sorted(maps.Keys(c)); len(keys) > 0 && rapid.Bool().Draw(t, "there") {
				k = rapid.SampledFrom(keys).Draw(t, "key")
			}
			path, v = append(path, k), c[k]
		case []any:
			i := rapid.IntRange(-len(c)-1, len(c)).Draw(t, "index")
			path = append(path, strconv.Itoa(i))
			if i < 0 {
				i += len(c)
			}
			v = nil
			if i >= 0 && i < len(c) {
				v = c[i]
			}
		default:
			return strings.Join(append(path, genKey().Draw(t, "key")), ".")
		}
	}
	return strings.Join(path, ".")
}

func genEdit(t *rapid.T, root any) abi.Edit {
	e := abi.Edit{Op: rapid.SampledFrom([]abi.Op{
		abi.OpSet, abi.OpSet, abi.OpDelete, abi.OpDelete, abi.OpAppend, abi.OpIncrement, abi.OpMerge, abi.OpTest, abi.OpClear,
	}).Draw(t, "op")}
	if e.Op == abi.OpClear && rapid.IntRange(0, 3).Draw(t, "clear") > 0 {
		e.Op = abi.OpMerge
	}
	if e.Op == abi.OpClear {
		return e
	}
	e.Path = pathIn(t, root)
	switch e.Op {
	case abi.OpDelete:
	case abi.OpMerge:
		e.Value = encode(t, genMap(2).Draw(t, "value"))
	case abi.OpIncrement:
		e.Value = encode(t, genScalar().Draw(t, "value"))
	case abi.OpTest:
		v, err := modelGet(root, strings.FieldsFunc(e.Path, func(r rune) bool { return r == '.' }))
		if err != nil || rapid.IntRange(0, 3).Draw(t, "wrong") == 0 {
			v = genValue(1).Draw(t, "value")
		}
		e.Value = encode(t, v)
	default:
		e.Value = encode(t, genValue(2).Draw(t, "value"))
	}
	return e
}

func encode(t *rapid.T, v any) abi.Raw {
	r, err := abi.EncodeValue(v)
	if err != nil {
		t.Fatalf("encode %v: %v", v, err)
	}
	return r
}

func node(t *rapid.T, v any) *Node {
	n, err := Decode(encode(t, v))
	if err != nil {
		t.Fatalf("decode %v: %v", v, err)
	}
	return n
}
