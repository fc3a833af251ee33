package state

import (
	"bytes"
	"errors"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weftrun/weft/abi"
)

// The model is the slow and obvious state: plain Go values, copied whole
// before each batch.

var errModel = errors.New("refused")

func modelApply(root any, edits []abi.Edit) (any, []any, error) {
	root = modelCopy(root)
	var results []any
	for _, e := range edits {
		next, r, err := modelEdit(root, e)
		if err != nil {
			return nil, nil, err
		}
		if _, ok := next.(map[string]any); !ok || modelDepth(next) > abi.MaxValueDepth || modelReserved(next) {
			return nil, nil, errModel
		}
		root = next
		results = append(results, r)
	}
	return root, results, nil
}

func modelEdit(root any, e abi.Edit) (any, any, error) {
	var path []string
	if e.Path != "" {
		path = strings.Split(e.Path, ".")
	}
	var v any
	if e.Value != nil {
		var err error
		if v, err = abi.DecodeValue(e.Value); err != nil {
			return nil, nil, err
		}
	}
	old, err := modelGet(root, path)
	there := err == nil
	switch e.Op {
	case abi.OpClear:
		return map[string]any{}, nil, nil
	case abi.OpTest:
		if !there || !reflect.DeepEqual(old, v) {
			return nil, nil, errModel
		}
		return root, nil, nil
	case abi.OpDelete:
		if len(path) == 0 {
			return nil, nil, errModel
		}
		if !there {
			return root, false, nil
		}
		return modelDelete(root, path), true, nil
	}
	var result any
	switch e.Op {
	case abi.OpAppend:
		list, ok := old.([]any)
		if there && !ok {
			return nil, nil, errModel
		}
		v = append(slices.Clone(list), v)
		result = int64(len(list) + 1)
	case abi.OpIncrement:
		if !there {
			old = int64(0)
		}
		if v, err = modelAdd(old, v); err != nil {
			return nil, nil, err
		}
		result = v
	case abi.OpMerge:
		if _, ok := v.(map[string]any); !ok {
			return nil, nil, errModel
		}
		v = modelMerge(old, v)
	}
	root, err = modelSet(root, path, v)
	return root, result, err
}

func modelIndex(list []any, seg string) (int, error) {
	i, err := strconv.Atoi(seg)
	if err == nil && i < 0 {
		i += len(list)
	}
	if err != nil || i < 0 || i >= len(list) {
		return 0, errModel
	}
	return i, nil
}

func modelGet(v any, path []string) (any, error) {
	for _, seg := range path {
		switch c := v.(type) {
		case map[string]any:
			next, ok := c[seg]
			if !ok {
				return nil, errModel
			}
			v = next
		case []any:
			i, err := modelIndex(c, seg)
			if err != nil {
				return nil, err
			}
			v = c[i]
		default:
			return nil, errModel
		}
	}
	return v, nil
}

func modelSet(at any, path []string, v any) (any, error) {
	if len(path) == 0 {
		return v, nil
	}
	switch c := at.(type) {
	case map[string]any:
		next, ok := c[path[0]]
		if !ok {
			next = map[string]any{}
		}
		next, err := modelSet(next, path[1:], v)
		c[path[0]] = next
		return c, err
	case []any:
		i, err := modelIndex(c, path[0])
		if err != nil {
			return nil, err
		}
		c[i], err = modelSet(c[i], path[1:], v)
		return c, err
	}
	return nil, errModel
}

func modelDelete(at any, path []string) any {
	switch c := at.(type) {
	case map[string]any:
		if len(path) == 1 {
			delete(c, path[0])
		} else {
			c[path[0]] = modelDelete(c[path[0]], path[1:])
		}
		return c
	case []any:
		i, _ := modelIndex(c, path[0])
		if len(path) == 1 {
			return slices.Delete(c, i, i+1)
		}
		c[i] = modelDelete(c[i], path[1:])
		return c
	}
	return at
}

func modelMerge(old, v any) any {
	o, okOld := old.(map[string]any)
	n, okNew := v.(map[string]any)
	if !okOld || !okNew {
		return v
	}
	for k, x := range n {
		if have, ok := o[k]; ok {
			o[k] = modelMerge(have, x)
		} else {
			o[k] = x
		}
	}
	return o
}

func modelAdd(a, b any) (any, error) {
	x, y := modelInt(a), modelInt(b)
	if x != nil && y != nil {
		sum := new(big.Int).Add(x, y)
		switch {
		case sum.IsInt64():
			return sum.Int64(), nil
		case sum.IsUint64():
			return sum.Uint64(), nil
		}
		return nil, errModel
	}
	f, okA := modelFloat(a)
	g, okB := modelFloat(b)
	if !okA || !okB || math.IsInf(f+g, 0) {
		return nil, errModel
	}
	return f + g, nil
}

func modelInt(v any) *big.Int {
	switch n := v.(type) {
	case int64:
		return big.NewInt(n)
	case uint64:
		return new(big.Int).SetUint64(n)
	}
	return nil
}

func modelFloat(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case uint64:
		return float64(n), true
	case float64:
		return n, true
	}
	return 0, false
}

func modelCopy(v any) any {
	switch c := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(c))
		for k, x := range c {
			out[k] = modelCopy(x)
		}
		return out
	case []any:
		out := make([]any, len(c))
		for i, x := range c {
			out[i] = modelCopy(x)
		}
		return out
	}
	return v
}

func modelDepth(v any) int {
	d := -1
	switch c := v.(type) {
	case map[string]any:
		for _, x := range c {
			d = max(d, modelDepth(x))
		}
		return max(d, 0) + 1
	case []any:
		for _, x := range c {
			d = max(d, modelDepth(x))
		}
		return max(d, 0) + 1
	}
	return 0
}

// modelReserved reports whether a map with the only key "$bytes" is in v.
func modelReserved(v any) bool {
	switch c := v.(type) {
	case map[string]any:
		if _, ok := c[bytesKey]; ok && len(c) == 1 {
			return true
		}
		for _, x := range c {
			if modelReserved(x) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(c, modelReserved)
	}
	return false
}

// TestApplyLikeModel runs batches on the tree and on the model.
func TestApplyLikeModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := genMap(3).Draw(t, "state")
		root := node(t, model)
		for range rapid.IntRange(1, 6).Draw(t, "batches") {
			edits := make([]abi.Edit, rapid.IntRange(1, 4).Draw(t, "edits"))
			for i := range edits {
				edits[i] = genEdit(t, model)
			}
			before := root.Encode()
			next, results, changes, err := Apply(root, edits, nil)
			want, wantResults, wantErr := modelApply(model, edits)
			if (err != nil) != (wantErr != nil) {
				t.Fatalf("edits %v\non %s: error %v, the model says %v", edits, before, err, wantErr)
			}
			if !bytes.Equal(root.Encode(), before) {
				t.Fatal("the old tree changed")
			}
			if err != nil {
				if next != root || results != nil || changes != nil {
					t.Fatal("a refused batch left something")
				}
				continue
			}
			if !bytes.Equal(next.Encode(), encode(t, want)) {
				t.Fatalf("edits %v\ngave %x\nwant %x", edits, next.Encode(), encode(t, want))
			}
			for i, r := range results {
				if !bytes.Equal(r, encode(t, wantResults[i])) {
					t.Fatalf("result %d of %v is %x, want %v", i, edits, r, wantResults[i])
				}
			}
			checkFold(t, root, changes, next)
			if Equal(root, next) && len(edits) == 1 && root != next {
				t.Fatalf("edit %v made an equal tree that is not the same", edits)
			}
			root, model = next, want
		}
	})
}

// TestGetLikeModel reads paths.
func TestGetLikeModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := genMap(3).Draw(t, "state")
		root := node(t, model)
		path := rapid.OneOf(genPath(), rapid.Custom(func(t *rapid.T) string { return pathIn(t, model) })).Draw(t, "path")
		p, err := ParsePath(path)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := Get(root, p)
		var segments []string
		if path != "" {
			segments = strings.Split(path, ".")
		}
		want, err := modelGet(model, segments)
		if ok != (err == nil) || ok && !bytes.Equal(got.Encode(), encode(t, want)) {
			t.Fatalf("%q gives %v, %v; want %v, %v", path, got, ok, want, err)
		}
	})
}

// TestReplaceFolds replaces values by others and by variants of themselves.
func TestReplaceFolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		model := genMap(3).Draw(t, "state")
		root := node(t, model)
		path := pathIn(t, model)
		var v *Node
		if rapid.Bool().Draw(t, "variant") {
			// The value at the path after some edits, from its bytes: shares nothing.
			edited, _, _, err := Apply(root, []abi.Edit{genEdit(t, model), genEdit(t, model)}, nil)
			if err != nil {
				edited = root
			}
			at, ok := Get(edited, mustPath(t, path))
			if !ok {
				return
			}
			var derr error
			if v, derr = Decode(at.Encode()); derr != nil {
				t.Fatal(derr)
			}
		} else {
			v = node(t, genValue(3).Draw(t, "value"))
		}
		next, changes, err := Replace(root, mustPath(t, path), v)
		want, _, _, setErr := Apply(root, []abi.Edit{{Op: abi.OpSet, Path: path, Value: v.Encode()}}, nil)
		if (err != nil) != (setErr != nil) {
			t.Fatalf("replace: %v, set: %v", err, setErr)
		}
		if err != nil {
			return
		}
		if !Equal(next, want) {
			t.Fatalf("replace gives %s, set %s", toJSON(t, next), toJSON(t, want))
		}
		if (next == root) != Equal(next, root) || (len(changes) == 0) != (next == root) {
			t.Fatal("changes where nothing changed, or none where something did")
		}
		checkFold(t, root, changes, next)
	})
}

func TestFillDefaultsFolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		root, defaults := genMap(3).Draw(t, "state"), genMap(3).Draw(t, "defaults")
		old := node(t, root)
		next, changes := FillDefaults(old, node(t, defaults))
		checkFold(t, old, changes, next)
		if again, more := FillDefaults(next, node(t, defaults)); again != next || len(more) > 0 {
			t.Fatal("filling twice is not filling once")
		}
		var fill func(have, def any) any
		fill = func(have, def any) any {
			h, ok1 := have.(map[string]any)
			d, ok2 := def.(map[string]any)
			if !ok1 || !ok2 {
				return have
			}
			for k, x := range d {
				if v, ok := h[k]; ok {
					h[k] = fill(v, x)
				} else {
					h[k] = x
				}
			}
			return h
		}
		if want := encode(t, fill(root, defaults)); !bytes.Equal(next.Encode(), want) {
			t.Fatalf("got %x, want %x", next.Encode(), want)
		}
	})
}

func TestMergePatchLikeRFC7396(t *testing.T) {
	var patch func(target, p any) any
	patch = func(target, p any) any {
		pm, ok := p.(map[string]any)
		if !ok {
			return p
		}
		tm, ok := target.(map[string]any)
		if !ok {
			tm = map[string]any{}
		}
		for k, v := range pm {
			if v == nil {
				delete(tm, k)
			} else {
				tm[k] = patch(tm[k], v)
			}
		}
		return tm
	}
	rapid.Check(t, func(t *rapid.T) {
		root, p := genMap(3).Draw(t, "state"), genMap(3).Draw(t, "patch")
		old := node(t, root)
		next, changes, err := MergePatch(old, nil, node(t, p))
		want := patch(root, p)
		if modelReserved(want) != (err != nil) {
			t.Fatalf("patch to %v: %v", want, err)
		}
		if err != nil {
			return
		}
		checkFold(t, old, changes, next)
		if !bytes.Equal(next.Encode(), encode(t, want)) {
			t.Fatalf("got %x, want %x", next.Encode(), encode(t, want))
		}
	})
}
