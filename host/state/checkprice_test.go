package state

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/work"
)

// checks makes schemas, states and edits by chance. Its keys and values are few, so
// that the schemas often say something about the states.
type checks struct{ *rand.Rand }

var checkKeys = []string{"a", "b", "cc", "list", "0", "a.b", "nested key"}

func (r checks) key() string { return checkKeys[r.IntN(len(checkKeys))] }

func (r checks) list(n int, of func() string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = of()
	}
	return strings.Join(all, ",")
}

// object makes n members, fewer if keys repeat.
func (r checks) object(n int, of func() string) string {
	var all, seen []string
	for range n {
		if key := r.key(); !slices.Contains(seen, key) {
			seen = append(seen, key)
			all = append(all, strconv.Quote(key)+":"+of())
		}
	}
	return "{" + strings.Join(all, ",") + "}"
}

func (r checks) scalar() string {
	all := []string{
		"null", "true", "false", "0", "1", "1.0", "-1", "-0.0", "2.5", "1e300", "-1e-300", "5e-324", "0.1", "9007199254740993", "9007199254740992.0",
		"9223372036854775808", "9223372036854775808.0", "-9223372036854775808", "18446744073709551615", "18446744073709551616.0", "65504.0",
		`""`, `"a"`, `"ab"`, `"é"`, `"aéb aéb aéb"`, `{"$bytes":""}`, `{"$bytes":"AAEC"}`, `{"$bytes":"YWI="}`,
	}
	if r.IntN(6) == 0 {
		return strconv.Quote(strings.Repeat("aé", r.IntN(40)))
	}
	return all[r.IntN(len(all))]
}

func (r checks) value(depth int) string {
	switch k := r.IntN(8); {
	case k < 3 && depth > 0:
		return r.object(r.IntN(5), func() string { return r.value(depth - 1) })
	case k < 5 && depth > 0:
		return "[" + r.list(r.IntN(5), func() string { return r.value(depth - 1) }) + "]"
	case k == 5 && depth > 0: // more than a page
		return "[" + r.list(30+r.IntN(40), r.scalar) + "]"
	}
	return r.scalar()
}

func (r checks) schema(depth int) string {
	if r.IntN(20) == 0 {
		return []string{"true", "false"}[min(1, r.IntN(4)/3)]
	}
	var all, seen []string
	for range r.IntN(5) {
		text := r.keyword(depth)
		if name, _, _ := strings.Cut(text, ":"); !slices.Contains(seen, name) {
			seen = append(seen, name)
			all = append(all, text)
		}
	}
	return "{" + strings.Join(all, ",") + "}"
}

func (r checks) keyword(depth int) string {
	number := func() string {
		return []string{"0", "1", "2.5", "-1.0", "0.1", "1e300", "9007199254740992", "9223372036854775808.0", "18446744073709551615"}[r.IntN(9)]
	}
	low, high := strconv.Itoa(r.IntN(2)), strconv.Itoa(r.IntN(60))
	types := []string{`"object"`, `"array"`, `"string"`, `"integer"`, `"number"`, `"null"`, `"boolean"`}
	flat := []string{
		`"type":[` + strings.Join(types[r.IntN(3):3+r.IntN(5)], ",") + `]`, `"type":` + types[r.IntN(len(types))],
		`"minimum":` + number(), `"maximum":` + number(), `"exclusiveMinimum":` + number(), `"exclusiveMaximum":` + number(),
		`"minLength":` + low, `"maxLength":` + high, `"minItems":` + low, `"maxItems":` + high, `"minProperties":` + low, `"maxProperties":` + high,
		`"pattern":` + []string{`"^a"`, `"(a|é)*b$"`, `"."`}[r.IntN(3)], `"title":"t"`,
		`"required":["` + r.key() + `"]`, `"required":["nested key","a","b"]`,
	}
	if depth == 0 || depth < 3 && r.IntN(3) == 0 { // high up, whatever is wrong ends the check
		if r.IntN(5) == 0 {
			return `"enum":[` + r.list(1+r.IntN(12), func() string { return r.value(1) }) + `]`
		}
		if r.IntN(12) == 0 {
			return `"const":` + r.value(2)
		}
		return flat[r.IntN(len(flat))]
	}
	sub := func() string { return r.schema(depth - 1) }
	switch r.IntN(4) {
	case 0:
		return `"additionalProperties":` + sub()
	case 1:
		return `"items":` + sub()
	}
	return `"properties":` + r.object(1+r.IntN(5), sub)
}

// edits makes some that fit a state, from paths that lead somewhere in it.
func (r checks) edits(tb testing.TB, root *Node) []abi.Edit {
	var all []abi.Edit
	for range 1 + r.IntN(6) {
		var path []string
		for n := root; n.Len() > 0 && (n == root || r.IntN(3) > 0); {
			key, child := n.body.at(r.IntN(n.Len()))
			if n.IsList() {
				key = strconv.Itoa(r.IntN(n.Len()))
			}
			path, n = append(path, strings.ReplaceAll(key, ".", `\.`)), child
		}
		if r.IntN(4) == 0 {
			path = append(path, strings.ReplaceAll(r.key(), ".", `\.`))
		}
		e := abi.Edit{Op: []abi.Op{abi.OpSet, abi.OpSet, abi.OpDelete, abi.OpAppend, abi.OpMerge}[r.IntN(5)], Path: strings.Join(path, ".")}
		switch e.Op {
		case abi.OpDelete:
		case abi.OpMerge:
			e.Value = rawJSON(tb, r.object(3, func() string { return r.value(1) }))
		default:
			e.Value = rawJSON(tb, r.value(2))
		}
		all = append(all, e)
	}
	return all
}

// recordedChecks checks states by chance with schemas by chance, as a whole and after
// edits, and says of each what it took and found.
func recordedChecks(t *testing.T, count int) []byte {
	var out bytes.Buffer
	for seed := range uint64(count) {
		r := checks{rand.New(rand.NewPCG(seed, 7))}
		object := func() string { return r.object(2+r.IntN(4), func() string { return r.value(3) }) }
		text := r.schema(4)
		s, err := CompileSchema(rawJSON(t, text))
		if err != nil {
			t.Fatalf("seed %d: %s: %v", seed, text, err)
		}
		root := fromJSON(t, object())
		fmt.Fprint(&out, seed, checked(s, root, nil))
		for range 3 {
			if next, _, changes, err := Apply(root, r.edits(t, root), nil); err == nil {
				fmt.Fprint(&out, checked(s, next, changes))
				root = next
			}
		}
		fmt.Fprintln(&out)
	}
	return out.Bytes()
}

// checked says what a check takes and finds, and with how many of its units it ends.
func checked(s *Schema, root *Node, changes []Change) string {
	m := work.New(0, nil)
	found := s.CheckOn(m, root, changes)
	text := fmt.Sprintf(" | %d", m.Spent())
	if found != nil {
		text += " " + found.Error()
	}
	if spent := m.Spent(); spent > 1 {
		var over *work.Exceeded
		if err := s.CheckOn(work.New(spent-1, nil), root, changes); !errors.As(err, &over) {
			text += fmt.Sprintf(" (does not end: %v)", err)
		}
	}
	return text
}

// A check takes the units that it has always taken and finds what it has always found:
// an attempt that began with another version of the host is replayed with both.
func TestChecksCostWhatTheyDid(t *testing.T) {
	file := filepath.Join("testdata", "checks.txt")
	got := recordedChecks(t, 1_200)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, lines := strings.Split(string(recorded), "\n"), strings.Split(string(got), "\n")
	for i := range max(len(want), len(lines)) {
		if i >= len(want) || i >= len(lines) || want[i] != lines[i] {
			t.Fatalf("line %d:\n got %s\nwant %s", i+1, lines[min(i, len(lines)-1)], want[min(i, len(want)-1)])
		}
	}
}
