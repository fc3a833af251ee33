package state

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/weftrun/weft/abi"
)

var update = flag.Bool("update", false, "write the vectors of edits: testdata/edits.cbor")

// The edits of the vectors: each of the operations at each of the paths, in each of the
// states.
var (
	vectorStates = []string{
		`{}`, `{"a.b":{"c\\":1},"a":{"b":2}}`, `{"a":{"b":1},"l":[1,"two",{"x":null}],"n":7,"f":0.5,"t":"text","z":null,"big":9223372036854775807}`,
	}
	vectorPaths = []string{
		"", "a", "a.b", "a.b.c", "a.c", "new", "new.deep.er", "l", "l.0", "l.-1", "l.3", "l.-4", "l.x", "l.2.x", "l.9.y", "n", "n.x", "f", "t", "t.0", "z", "z.k", "big", `a\.b`, `a\.b.c\\`, `a\.b.c\`, `new.x\.y.z`,
	}
	vectorValues = map[abi.Op][]string{
		abi.OpSet: {`1`, `null`, `{"k":[1]}`}, abi.OpDelete: {""}, abi.OpAppend: {`"x"`}, abi.OpIncrement: {`1`, `0.5`, `-1.0`, `"1"`},
		abi.OpMerge: {`{"b":{"c":2},"n":null}`, `{}`, `3`}, abi.OpTest: {`1`, `7.0`, `null`},
	}
	vectorOps = []abi.Op{abi.OpSet, abi.OpDelete, abi.OpAppend, abi.OpIncrement, abi.OpMerge, abi.OpTest}
)

// vectors makes the list [state, op, path, value, result or null, code or null, state
// after it] of all edits.
func vectors(t *testing.T) []byte {
	t.Helper()
	var list []any
	for _, text := range vectorStates {
		for _, path := range vectorPaths {
			for _, op := range vectorOps {
				for _, value := range vectorValues[op] {
					list = append(list, vector(t, fromJSON(t, text), abi.Edit{Op: op, Path: path}, value))
				}
			}
		}
	}
	out, err := abi.EncodeValue(list)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func vector(t *testing.T, root *Node, e abi.Edit, value string) []any {
	t.Helper()
	if value != "" {
		e.Value = rawJSON(t, value)
	}
	after, results, _, err := Apply(root, []abi.Edit{e}, Empty())
	var refused *Error
	item := []any{root.Encode(), string(e.Op), e.Path, e.Value, nil, nil, root.Encode()}
	switch {
	case errors.As(err, &refused):
		item[5] = refused.Code
	case err != nil:
		t.Fatal(err)
	default:
		item[4], item[6] = results[0], after.Encode()
	}
	return item
}

// The vectors say what each edit does, for hosts in other languages: the one of the
// Rust SDK's native tests reads them.
func TestVectorsOfEdits(t *testing.T) {
	file := filepath.Join("..", "..", "testdata", "edits.cbor")
	want := vectors(t)
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(file); err != nil || !bytes.Equal(have, want) {
		t.Errorf("testdata/edits.cbor is not what edits do (%v): go test ./host/state -run Vectors -update", err)
	}
}
