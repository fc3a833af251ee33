package state

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
)

func TestReplace(t *testing.T) {
	tests := []struct {
		old, path, value string
		changes          []string
	}{
		{`{"a":1}`, "", `{"a":1}`, nil},
		{`{"a":1,"b":2}`, "", `{"a":1,"c":3}`, []string{`delete b`, `set c 3`}},
		{`{"a":{"b":{"c":1,"d":2}}}`, "", `{"a":{"b":{"c":1,"d":3}}}`, []string{`set a.b.d 3`}},
		{`{"a":{"b":{"c":1,"d":2}}}`, "a.b", `{"c":1,"d":3}`, []string{`set a.b.d 3`}},
		{`{"a":1}`, "a", `[1]`, []string{`set a [1]`}},
		{`{"a":[1]}`, "a", `{"0":1}`, []string{`set a {"0":1}`}},
		{`{"a":1}`, "a", `1.0`, []string{`set a 1.0`}},
		{`{"l":[1,2]}`, "l", `[1,2,3]`, []string{`set l.2 3`}},
		{`{"l":[1,2]}`, "l", `[1,2,3,4]`, []string{`set l.2 3`, `set l.3 4`}},
		{`{"l":[]}`, "l", `[1]`, []string{`set l.0 1`}},
		{`{"l":[1,2,3]}`, "l", `[1,2]`, []string{`delete l.2`}},
		{`{"l":[1,2,3]}`, "l", `[2,3]`, []string{`delete l.0`}},
		{`{"l":[1,2,3,4]}`, "l", `[1,4]`, []string{`delete l.1`, `delete l.1`}},
		{`{"l":[1,2,3,4]}`, "l", `[9,4]`, []string{`set l.0 9`, `delete l.1`, `delete l.1`}},
		{`{"l":[1,2]}`, "l", `[]`, []string{`delete l.0`, `delete l.0`}},
		{`{"l":[1,2,3]}`, "l", `[1,9,3]`, []string{`set l.1 9`}},
		{`{"l":[{"a":1,"b":2},{"a":3}]}`, "", `{"l":[{"a":1,"b":2},{"a":4}]}`, []string{`set l.1.a 4`}},
		{`{"l":[{"a":1},{"a":2}]}`, "l.-1", `{"a":9}`, []string{`set l.1.a 9`}},
		{`{}`, "a.b", `1`, []string{`set a {"b":1}`}},
	}
	for _, tt := range tests {
		t.Run(tt.old+tt.path+tt.value, func(t *testing.T) {
			root := fromJSON(t, tt.old)
			next, changes, err := Replace(root, mustPath(t, tt.path), fromJSON(t, tt.value))
			if err != nil {
				t.Fatal(err)
			}
			if got := toJSON(t, mustGet(t, next, tt.path)); got != tt.value {
				t.Errorf("got %s", got)
			}
			if got := showChanges(t, changes); fmt.Sprint(got) != fmt.Sprint(tt.changes) || changes == nil {
				t.Errorf("changes %q, want %q", got, tt.changes)
			}
			checkFold(t, root, changes, next)
		})
	}
}

func TestReplaceErrors(t *testing.T) {
	root := fromJSON(t, `{"n":1,"l":[1]}`)
	tests := []struct {
		path string
		v    *Node
		code abi.Status
	}{
		{"", fromJSON(t, `1`), abi.StatusFailedPrecondition},
		{"n", nil, abi.StatusInvalidMessage},
		{"n.x", Empty(), abi.StatusFailedPrecondition},
		{"l.1", Empty(), abi.StatusNotFound},
		{"x.$bytes", Empty(), abi.StatusInvalidMessage},
		{"n", fromJSON(t, strings.Repeat("[", 64)+strings.Repeat("]", 64)), abi.StatusLimitExceeded},
	}
	for _, tt := range tests {
		next, changes, err := Replace(root, mustPath(t, tt.path), tt.v)
		wantCode(t, err, tt.code)
		if next != root || changes != nil {
			t.Errorf("%q: a refused replacement left something", tt.path)
		}
	}
}

// TestReplaceOfLargeListIsSmall appends to, cuts and changes a list of
// 10,000 the way a step does: it reads the list and writes the new one.
func TestReplaceOfLargeListIsSmall(t *testing.T) {
	const n = 10_000
	vals := make([]*Node, n)
	for i := range vals {
		vals[i] = intNode(i + 1000)
	}
	list := func(v []*Node) *Node {
		n, err := Decode((&Node{kind: kindList, body: build(nil, v)}).Encode())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	changed := append([]*Node{}, vals...)
	changed[n/2] = emptyMap
	root, _, err := Replace(nil, mustPath(t, "l"), list(vals))
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string][]*Node{
		"append": append(vals[:n:n], intNode(7000)),
		"pop":    vals[:n-1],
		"shift":  vals[1:],
		"middle": append(vals[:n/2:n/2], vals[n/2+1:]...),
		"change": changed,
	} {
		next, changes, err := Replace(root, mustPath(t, "l"), list(v))
		if err != nil {
			t.Fatal(err)
		}
		if len(changes) != 1 {
			t.Errorf("%s: %d changes", name, len(changes))
		}
		if made := fresh(root, next); made > 9 {
			t.Errorf("%s made %d nodes and pages", name, made)
		}
		checkFold(t, root, changes, next)
	}
}

// TestFewChangesInLargeMap makes, changes and deletes keys of a map of 1,000
// by each of the operations that go into maps.
func TestFewChangesInLargeMap(t *testing.T) {
	root := largeState(t, 1000)
	value, _ := mustApply(t, root, edit(t, "set k1.field 4711"), edit(t, "delete k2"), edit(t, "set new 4711"))
	value, err := Decode(value.Encode())
	if err != nil {
		t.Fatal(err)
	}
	patch := fromJSON(t, `{"k1":{"field":4711},"k2":null,"new":4711}`)
	for name, op := range map[string]func() (*Node, []Change, error){
		"replace": func() (*Node, []Change, error) { return Replace(root, nil, value) },
		"patch":   func() (*Node, []Change, error) { return MergePatch(root, nil, patch) },
	} {
		next, changes, err := op()
		if err != nil {
			t.Fatal(err)
		}
		if got, want := fmt.Sprint(showChanges(t, changes)), `[delete k2 set k1.field 4711 set new 4711]`; len(changes) != 3 || !Equal(next, value) {
			t.Errorf("%s: %s, want in some order %s", name, got, want)
		}
		if made := fresh(root, next); made > 15 {
			t.Errorf("%s made %d nodes and pages", name, made)
		}
		checkFold(t, root, changes, next)
	}
}

// TestRecordsStaySmall: whatever two values differ in, the record is at most
// a small multiple of the new one.
func TestRecordsStaySmall(t *testing.T) {
	many := func(format string, n int) string {
		s := make([]string, n)
		for i := range s {
			s[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(s, ",")
	}
	long := strings.Repeat("k", 100_000)
	nest := func(s string) string {
		return strings.Repeat(`{"a":`, 60) + s + strings.Repeat("}", 60)
	}
	tests := []struct{ name, old, value string }{
		{"emptied map", `{` + many(`"k%d":1`, 10_000) + `}`, `{}`},
		{"emptied list", `{"l":[` + many(`%d`, 10_000) + `]}`, `{"l":[]}`},
		{"below a long key", `{"` + long + `":{}}`, `{"` + long + `":{` + many(`"%d":1`, 1000) + `}}`},
		{"deep down", nest(`[` + many(`%d`, 5000) + `]`), nest(`[` + many(`-%d.5`, 5000) + `]`)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			old, v := fromJSON(t, tt.old), fromJSON(t, tt.value)
			next, changes, err := Replace(old, nil, v)
			if err != nil {
				t.Fatal(err)
			}
			elems := 0
			for _, c := range changes {
				elems += len(c.Path)
			}
			if size := len(EncodeChanges(changes)) + 32*elems; size > 2*next.Bytes()+slack+100 {
				t.Errorf("%d changes of %d bytes for a value of %d", len(changes), size, next.Bytes())
			}
			checkFold(t, old, changes, next)
			merged, changes, err := MergePatch(old, nil, v)
			if err != nil {
				t.Fatal(err)
			}
			checkFold(t, old, changes, merged)
			if size := len(EncodeChanges(changes)); size > 2*merged.Bytes()+slack+100 {
				t.Errorf("%d changes of %d bytes for a merged value of %d", len(changes), size, merged.Bytes())
			}
		})
	}
}

func TestFillDefaults(t *testing.T) {
	tests := []struct {
		old, defaults, want string
		changes             []string
	}{
		{`{}`, `{"a":1,"m":{"x":[1]}}`, `{"a":1,"m":{"x":[1]}}`, []string{`set a 1`, `set m {"x":[1]}`}},
		{`{"a":null,"m":{"y":1}}`, `{"a":1,"m":{"x":2}}`, `{"a":null,"m":{"x":2,"y":1}}`, []string{`set m.x 2`}},
		{`{"a":1,"m":3}`, `{"a":2,"m":{"x":2}}`, `{"a":1,"m":3}`, nil},
		{`{"l":[]}`, `{"l":[1]}`, `{"l":[]}`, nil},
	}
	for _, tt := range tests {
		old := fromJSON(t, tt.old)
		next, changes := FillDefaults(old, fromJSON(t, tt.defaults))
		if got := toJSON(t, next); got != tt.want {
			t.Errorf("%s with %s gives %s", tt.old, tt.defaults, got)
		}
		if got := showChanges(t, changes); fmt.Sprint(got) != fmt.Sprint(tt.changes) || changes == nil {
			t.Errorf("%s with %s: changes %q", tt.old, tt.defaults, got)
		}
		checkFold(t, old, changes, next)
	}
	if next, changes := FillDefaults(nil, nil); next != Empty() || changes == nil || len(changes) > 0 {
		t.Error("no defaults fill something")
	}
}

func TestMergePatch(t *testing.T) {
	tests := []struct {
		old, patch, want string
		changes          []string
	}{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`, []string{`set a "c"`}},
		{`{"a":"b","b":"c"}`, `{"a":null,"x":null}`, `{"b":"c"}`, []string{`delete a`}},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`, []string{`set a.b "d"`}},
		{`{"a":[{"b":"c"}]}`, `{"a":[null]}`, `{"a":[null]}`, []string{`set a [null]`}},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`, []string{`set a {"bb":{}}`}},
		{`{"a":1}`, `{"a":1}`, `{"a":1}`, nil},
	}
	for _, tt := range tests {
		old := fromJSON(t, tt.old)
		next, changes, err := MergePatch(old, nil, fromJSON(t, tt.patch))
		if err != nil {
			t.Fatal(err)
		}
		if got := toJSON(t, next); got != tt.want {
			t.Errorf("%s with %s gives %s", tt.old, tt.patch, got)
		}
		if got := showChanges(t, changes); fmt.Sprint(got) != fmt.Sprint(tt.changes) || changes == nil {
			t.Errorf("%s with %s: changes %q", tt.old, tt.patch, got)
		}
		checkFold(t, old, changes, next)
	}
	for _, tt := range [][4]string{
		{`{"a":{"b":[{"c":1,"d":2}]}}`, "a.b.-1", `{"c":null,"e":3}`, `{"a":{"b":[{"d":2,"e":3}]}}`},
		{`{"a":1}`, "a", `{"b":null}`, `{"a":{}}`}, // what is no map gives way, as of RFC 7396
		{`{}`, "a.b", `{"c":{"d":null,"e":1}}`, `{"a":{"b":{"c":{"e":1}}}}`},
		{`{"a":{"b":1}}`, "a", `{}`, `{"a":{"b":1}}`},
	} {
		old := fromJSON(t, tt[0])
		p, err := ParsePath(tt[1])
		if err != nil {
			t.Fatal(err)
		}
		next, changes, err := MergePatch(old, p, fromJSON(t, tt[2]))
		if err != nil || toJSON(t, next) != tt[3] {
			t.Errorf("%s with %s at %s gives %s, %v", tt[0], tt[2], tt[1], toJSON(t, next), err)
		}
		checkFold(t, old, changes, next)
	}
	_, _, err := MergePatch(fromJSON(t, `{"a":[]}`), Path{newSegment("a"), newSegment("0")}, fromJSON(t, `{}`))
	wantCode(t, err, abi.StatusNotFound)
	_, _, err = MergePatch(Empty(), nil, fromJSON(t, `[]`))
	wantCode(t, err, abi.StatusInvalidMessage)
	for _, patch := range []string{`{"$bytes":1,"a":null}`, `{"m":{"$bytes":1,"a":null}}`, `{"m":{"n":{"$bytes":1,"a":null}}}`} {
		_, _, err = MergePatch(Empty(), nil, fromJSON(t, patch))
		wantCode(t, err, abi.StatusInvalidMessage)
	}
	deep := strings.Repeat(`{"a":`, 63) + `{}` + strings.Repeat(`}`, 63)
	if next, _, err := MergePatch(nil, nil, fromJSON(t, deep)); err != nil || next.Depth() != abi.MaxValueDepth {
		t.Errorf("a patch as deep as a state: %v", err)
	}
}
