package state

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
)

// edit reads "op path value" with a JSON value; "-" is the empty path.
func edit(tb testingTB, text string) abi.Edit {
	tb.Helper()
	op, rest, _ := strings.Cut(text, " ")
	path, value, hasValue := strings.Cut(rest, " ")
	e := abi.Edit{Op: abi.Op(op), Path: strings.TrimPrefix(path, "-")}
	if path != "-" {
		e.Path = path
	}
	if hasValue {
		e.Value = rawJSON(tb, value)
	}
	return e
}

const applyState = `{"n":1,"f":1.5,"s":"x","list":[1,2,3],"m":{"a":{"b":1},"z":null},"max":18446744073709551615,"min":-9223372036854775808,"big":1.7976931348623157e308}`

func TestApply(t *testing.T) {
	tests := []struct {
		edits   string // separated by ;
		path    string // what to look at afterwards
		want    string
		results string
		changes []string
	}{
		{`set n 2`, "n", `2`, `null`, []string{`set n 2`}},
		{`set new.deep.er 2`, "new", `{"deep":{"er":2}}`, `null`, []string{`set new {"deep":{"er":2}}`}},
		{`set m.a.c 2`, "m.a", `{"b":1,"c":2}`, `null`, []string{`set m.a.c 2`}},
		{`set list.1 9`, "list", `[1,9,3]`, `null`, []string{`set list.1 9`}},
		{`set list.-1 9`, "list", `[1,2,9]`, `null`, []string{`set list.2 9`}},
		{`set - {"a":1}`, "", `{"a":1}`, `null`, []string{`set  {"a":1}`}},
		{`set n 1`, "n", `1`, `null`, []string{}},
		{`set n 1.0`, "n", `1.0`, `null`, []string{`set n 1.0`}},
		{`set m {"a":{"b":1},"z":null}`, "m.a.b", `1`, `null`, []string{}},
		{`delete n`, "n", `absent`, `true`, []string{`delete n`}},
		{`delete list.0`, "list", `[2,3]`, `true`, []string{`delete list.0`}},
		{`delete list.-1`, "list", `[1,2]`, `true`, []string{`delete list.2`}},
		{`delete m.z`, "m", `{"a":{"b":1}}`, `true`, []string{`delete m.z`}},
		{`delete none`, "n", `1`, `false`, []string{}},
		{`delete list.3`, "list", `[1,2,3]`, `false`, []string{}},
		{`delete list.x`, "list", `[1,2,3]`, `false`, []string{}},
		{`delete n.x.y`, "n", `1`, `false`, []string{}},
		{`append list 4`, "list", `[1,2,3,4]`, `4`, []string{`set list.3 4`}},
		{`append new.list [1]`, "new", `{"list":[[1]]}`, `1`, []string{`set new {"list":[[1]]}`}},
		{`append l 1;append l 2;delete l.0;append l 3`, "l", `[2,3]`, `1,2,true,2`,
			[]string{`set l [1]`, `set l.1 2`, `delete l.0`, `set l.1 3`}},
		{`increment n 2`, "n", `3`, `3`, []string{`set n 3`}},
		{`increment n 0`, "n", `1`, `1`, []string{}},
		{`increment n -2`, "n", `-1`, `-1`, []string{`set n -1`}},
		{`increment n 0.5`, "n", `1.5`, `1.5`, []string{`set n 1.5`}},
		{`increment n 1.0`, "n", `2.0`, `2.0`, []string{`set n 2.0`}},
		{`increment f 1`, "f", `2.5`, `2.5`, []string{`set f 2.5`}},
		{`increment f 0.5`, "f", `2.0`, `2.0`, []string{`set f 2.0`}},
		{`increment new.n 1`, "new.n", `1`, `1`, []string{`set new {"n":1}`}},
		{`increment new 1.0`, "new", `1.0`, `1.0`, []string{`set new 1.0`}},
		{`increment max -1`, "max", `18446744073709551614`, `18446744073709551614`, []string{`set max 18446744073709551614`}},
		{`increment min 1`, "min", `-9223372036854775807`, `-9223372036854775807`, []string{`set min -9223372036854775807`}},
		{`increment min 18446744073709551615`, "min", `9223372036854775807`, `9223372036854775807`, []string{`set min 9223372036854775807`}},
		{`increment list.0 5`, "list", `[6,2,3]`, `6`, []string{`set list.0 6`}},
		{`merge m {"a":{"c":2},"y":1}`, "m", `{"a":{"b":1,"c":2},"y":1,"z":null}`, `null`, []string{`set m.a.c 2`, `set m.y 1`}},
		{`merge m {"a":{"b":1}}`, "m.a", `{"b":1}`, `null`, []string{}},
		{`merge m {"a":null}`, "m.a", `null`, `null`, []string{`set m.a null`}},
		{`merge - {"n":{"x":1}}`, "n", `{"x":1}`, `null`, []string{`set n {"x":1}`}},
		{`merge n {"x":1}`, "n", `{"x":1}`, `null`, []string{`set n {"x":1}`}},
		{`merge p.q {"x":1}`, "p", `{"q":{"x":1}}`, `null`, []string{`set p {"q":{"x":1}}`}},
		{`merge p {}`, "p", `{}`, `null`, []string{`set p {}`}},
		{`merge m {"list":[1]}`, "m.list", `[1]`, `null`, []string{`set m.list [1]`}},
		{`test n 1;set n 2`, "n", `2`, `null,null`, []string{`set n 2`}},
		{`test m {"a":{"b":1},"z":null}`, "n", `1`, `null`, []string{}},
		{`set x 1;clear`, "", `{"def":{"x":1}}`, `null,null`, []string{`set x 1`, `set  {"def":{"x":1}}`}},
		{`clear -`, "", `{"def":{"x":1}}`, `null`, []string{`set  {"def":{"x":1}}`}},
	}
	root := fromJSON(t, applyState)
	defaults := fromJSON(t, `{"def":{"x":1}}`)
	for _, tt := range tests {
		t.Run(tt.edits, func(t *testing.T) {
			var edits []abi.Edit
			for s := range strings.SplitSeq(tt.edits, ";") {
				edits = append(edits, edit(t, s))
			}
			next, results, changes, err := Apply(root, edits, defaults)
			if err != nil {
				t.Fatal(err)
			}
			n, _ := Get(next, mustPath(t, tt.path))
			if got := toJSON(t, n); got != tt.want {
				t.Errorf("at %q is %s, want %s", tt.path, got, tt.want)
			}
			var rs []string
			for _, r := range results {
				b, err := abi.ToJSON(r)
				if err != nil {
					t.Fatal(err)
				}
				rs = append(rs, string(b))
			}
			if got := strings.Join(rs, ","); got != tt.results {
				t.Errorf("results %s, want %s", got, tt.results)
			}
			if got := showChanges(t, changes); fmt.Sprint(got) != fmt.Sprint(tt.changes) || changes == nil {
				t.Errorf("changes %q, want %q", got, tt.changes)
			}
			if len(changes) == 0 && next != root {
				t.Error("another root without a change")
			}
			checkFold(t, root, changes, next)
		})
	}
	if got := toJSON(t, root); got != toJSON(t, fromJSON(t, applyState)) {
		t.Errorf("the old tree is now %s", got)
	}
}

func TestApplyErrors(t *testing.T) {
	deep := strings.Repeat("[", 63) + "1" + strings.Repeat("]", 63)
	tests := []struct {
		edit string
		code abi.Status
		path string
	}{
		{`set - 1`, abi.StatusFailedPrecondition, ""},
		{`set n`, abi.StatusInvalidMessage, "n"},
		{`set n..x 1`, abi.StatusInvalidMessage, "n..x"},
		{`set n.x 1`, abi.StatusFailedPrecondition, "n"},
		{`set m.z.x 1`, abi.StatusFailedPrecondition, "m.z"},
		{`set list.3 1`, abi.StatusNotFound, "list"},
		{`set list.-4 1`, abi.StatusNotFound, "list"},
		{`set list.9.x 1`, abi.StatusNotFound, "list"},
		{`set list.x 1`, abi.StatusFailedPrecondition, "list"},
		{`set a.b ` + deep, abi.StatusLimitExceeded, "a"},
		{`set m.a ` + deep, abi.StatusLimitExceeded, "m.a"},
		{`set $bytes.x 1;clear;set $bytes 1`, abi.StatusInvalidMessage, ""},
		{`set a.$bytes 1`, abi.StatusInvalidMessage, "a"},
		{`set a.$bytes.b 1`, abi.StatusInvalidMessage, "a"},
		{`set a.b.$bytes 1`, abi.StatusInvalidMessage, "a.b"},
		{`set m.a.$bytes 1;delete m.a.b`, abi.StatusInvalidMessage, "m.a"},
		{`delete -`, abi.StatusFailedPrecondition, ""},
		{`delete n 1`, abi.StatusInvalidMessage, "n"},
		{`append - 1`, abi.StatusFailedPrecondition, ""},
		{`append n 1`, abi.StatusFailedPrecondition, "n"},
		{`append m.z 1`, abi.StatusFailedPrecondition, "m.z"},
		{`append list`, abi.StatusInvalidMessage, "list"},
		{`append list.3 1`, abi.StatusNotFound, "list"},
		{`append x ` + deep, abi.StatusLimitExceeded, "x"},
		{`increment s 1`, abi.StatusFailedPrecondition, "s"},
		{`increment m.z 1`, abi.StatusFailedPrecondition, "m.z"},
		{`increment - 1`, abi.StatusFailedPrecondition, ""},
		{`increment n "1"`, abi.StatusFailedPrecondition, "n"},
		{`increment n`, abi.StatusInvalidMessage, "n"},
		{`increment max 1`, abi.StatusFailedPrecondition, "max"},
		{`increment min -1`, abi.StatusFailedPrecondition, "min"},
		{`increment big 1.7976931348623157e308`, abi.StatusFailedPrecondition, "big"},
		{`increment list.3 1`, abi.StatusNotFound, "list"},
		{`merge m 1`, abi.StatusInvalidMessage, "m"},
		{`merge m`, abi.StatusInvalidMessage, "m"},
		{`merge list.x {}`, abi.StatusFailedPrecondition, "list"},
		{`merge a {"b":` + deep + `}`, abi.StatusLimitExceeded, "a"},
		{`merge m {"b":` + deep + `}`, abi.StatusLimitExceeded, "m"},
		{`test n 2`, abi.StatusConflict, "n"},
		{`test n 1.0`, abi.StatusConflict, "n"},
		{`test none null`, abi.StatusConflict, "none"},
		{`test n`, abi.StatusInvalidMessage, "n"},
		{`clear n`, abi.StatusInvalidMessage, "n"},
		{`clear - 1`, abi.StatusInvalidMessage, ""},
		{`frob n 1`, abi.StatusInvalidMessage, "n"},
	}
	root := fromJSON(t, applyState)
	before := root.Encode()
	for _, tt := range tests {
		t.Run(tt.edit, func(t *testing.T) {
			edits := []abi.Edit{edit(t, "set other 1")}
			for s := range strings.SplitSeq(tt.edit, ";") {
				edits = append(edits, edit(t, s))
			}
			next, results, changes, err := Apply(root, edits, nil)
			e := coded(t, err, tt.code)
			if e.Path != tt.path {
				t.Errorf("path %q, want %q in %v", e.Path, tt.path, err)
			}
			if want := fmt.Sprintf("edit %d (%s)", len(edits)-1, edits[len(edits)-1].Op); !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not say %q", err, want)
			}
			if next != root || results != nil || changes != nil {
				t.Error("a refused batch left something")
			}
		})
	}
	if !bytes.Equal(root.Encode(), before) {
		t.Error("the tree changed")
	}
}

func TestApplyMalformedValue(t *testing.T) {
	_, _, _, err := Apply(nil, []abi.Edit{{Op: abi.OpSet, Path: "a", Value: abi.Raw{0xff}}}, nil)
	wantCode(t, err, abi.StatusInvalidMessage)
	_, _, _, err = Apply(nil, []abi.Edit{{Op: abi.Op(strings.Repeat("x", 9000)), Path: strings.Repeat("p", 4000)}}, nil)
	if e := coded(t, err, abi.StatusInvalidMessage); len(e.Error()) > 2000 {
		t.Errorf("an error of %d bytes", len(e.Error()))
	}
	_, _, _, err = Apply(nil, []abi.Edit{{Op: abi.OpClear}}, fromJSON(t, `[]`))
	wantCode(t, err, abi.StatusFailedPrecondition)
}

func TestApplyOnNothing(t *testing.T) {
	next, results, changes, err := Apply(nil, nil, nil)
	if err != nil || next != Empty() || len(results) != 0 || changes == nil || len(changes) != 0 {
		t.Errorf("%v, %v, %v, %v", next, results, changes, err)
	}
	next, changes = mustApply(t, nil, edit(t, "append log 1"))
	if got := toJSON(t, next); got != `{"log":[1]}` || len(changes) != 1 {
		t.Error(got, changes)
	}
}

func TestDepthLimit(t *testing.T) {
	path := strings.Repeat("a.", 63) + "a"
	root, _ := mustApply(t, nil, set(path, abi.Raw{1}))
	if root.Depth() != abi.MaxValueDepth {
		t.Errorf("64 segments are %d deep", root.Depth())
	}
	_, _, _, err := Apply(root, []abi.Edit{set(path, abi.EmptyMap)}, nil)
	wantCode(t, err, abi.StatusLimitExceeded)
	_, _, err = Replace(root, mustPath(t, path), emptyMap)
	wantCode(t, err, abi.StatusLimitExceeded)
}

// TestUntouchedKeepTheirNodes is what the isolation of edits rests on.
func TestUntouchedKeepTheirNodes(t *testing.T) {
	root := fromJSON(t, `{"a":{"x":[1000,{"k":2000}]},"b":{"y":{"z":[]}},"n":0}`)
	for _, text := range []string{
		`set b.y.z [1]`, `delete b.y`, `append b.list 1`, `increment n 1`, `merge b {"y":{"w":1}}`,
		`set - {"a":{"x":[1000,{"k":2000}]},"b":1}`,
	} {
		e := edit(t, text)
		next, _ := mustApply(t, root, e)
		same := mustGet(t, root, "a") == mustGet(t, next, "a")
		if want := e.Path != ""; same != want {
			t.Errorf("%s: a is the same: %v", text, same)
		}
		if mustGet(t, root, "n") == mustGet(t, next, "b") {
			t.Errorf("%s: b did not change", text)
		}
	}
	replaced, _, err := Replace(root, nil, fromJSON(t, `{"a":{"x":[1000,{"k":2000}]},"b":1}`))
	if err != nil {
		t.Fatal(err)
	}
	if mustGet(t, root, "a") != mustGet(t, replaced, "a") {
		t.Error("replace made what it could keep")
	}
}

// TestCostFollowsWhatIsTouched counts the nodes and pages that an edit makes.
func TestCostFollowsWhatIsTouched(t *testing.T) {
	for _, n := range []int{10, 1000, 100_000} {
		root := largeState(t, n)
		last := fmt.Sprintf("k%d", n-1)
		tests := []string{
			"set " + last + ".field 4711",
			"set m" + last + " 4711",
			"append list 4711",
			fmt.Sprintf("set list.%d 4711", n/2),
			fmt.Sprintf("delete list.%d", n/2),
			"delete " + last,
			"increment " + last + ".count 4711",
			`merge ` + last + ` {"field":4711,"more":{"x":4711}}`,
		}
		// Two trees of at most four pages, the nodes on the way, the values.
		const limit = 2*4 + 5
		for _, text := range tests {
			next, _, changes, err := Apply(root, []abi.Edit{edit(t, text)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if made := fresh(root, next); made > limit {
				t.Errorf("n=%d: %s made %d nodes and pages, want at most %d", n, text, made, limit)
			}
			if b := EncodeChanges(changes); len(b) > 80 {
				t.Errorf("n=%d: %s is a record of %d bytes", n, text, len(b))
			}
		}
	}
}

// largeState has n maps, n more keys apart from them and a list of n.
func largeState(tb testing.TB, n int) *Node {
	tb.Helper()
	m := map[string]any{"n": 0}
	list := make([]any, n)
	for i := range n {
		m[fmt.Sprintf("k%d", i)] = map[string]any{"field": i, "count": i}
		list[i] = i
	}
	m["list"] = list
	r, err := abi.EncodeValue(m)
	if err != nil {
		tb.Fatal(err)
	}
	root, err := Decode(r)
	if err != nil {
		tb.Fatal(err)
	}
	return root
}

// TestHostileBatchesStaySmall builds batches whose record would be far
// greater than what they change and what they were asked with.
func TestHostileBatchesStaySmall(t *testing.T) {
	long := strings.Repeat("k", 4000)
	tests := []struct {
		name     string
		root     string
		defaults string
		edits    []string
	}{
		{"clear again and again", `{}`, `{"d":"` + strings.Repeat("x", 10_000) + `"}`, []string{"set x 1", "clear"}},
		{"deep below a long key", `{"` + long + `":{"a":{}}}`, `{}`, []string{"increment " + long + ".a.b 1", "increment " + long + ".a.c 1"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var edits []abi.Edit
			for range 500 {
				for _, s := range tt.edits {
					edits = append(edits, edit(t, s))
				}
			}
			root := fromJSON(t, tt.root)
			next, _, changes, err := Apply(root, edits, fromJSON(t, tt.defaults))
			if err != nil {
				t.Fatal(err)
			}
			if n := len(EncodeChanges(changes)); n > 2*next.Bytes()+slack {
				t.Errorf("a record of %d bytes for a state of %d", n, next.Bytes())
			}
			checkFold(t, root, changes, next)
		})
	}
}

func TestErrorText(t *testing.T) {
	e := &Error{Code: "not_found", Path: "a.b", Message: "gone"}
	if e.Error() != "not_found: a.b: gone" {
		t.Error(e)
	}
	e.Path = ""
	if e.Error() != "not_found: gone" || e.Unwrap() != nil {
		t.Error(e)
	}
	s := &SchemaError{Path: "a", Reason: "no"}
	var as *Error
	if s.Error() != "schema_violation: a: no" || !errors.As(s, &as) || abi.StatusOf(as.Code) != abi.StatusSchemaViolation {
		t.Error(s)
	}
	if got := clip("x" + strings.Repeat("ä", 200)); len(got) != maxShown+2 || !strings.HasSuffix(got, "ä...") {
		t.Errorf("%q", got)
	}
}
