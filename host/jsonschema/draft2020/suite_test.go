package draft2020

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/abi"
	weft "github.com/weftrun/weft/host/jsonschema"
	"github.com/weftrun/weft/host/state"
)

// suiteFolder has the official tests of the draft.
const suiteFolder = "../../../testdata/jsonschema"

// suiteGroup is a schema of the official tests, with values.
type suiteGroup struct {
	Name   string `json:"description"`
	Schema json.RawMessage
	Tests  []suiteTest
}

type suiteTest struct {
	Name  string `json:"description"`
	Data  json.RawMessage
	Valid bool
}

// readSuite reads the official tests, by file, and compares each file with its checksum.
func readSuite(t *testing.T) map[string][]suiteGroup {
	folder := os.DirFS(suiteFolder)
	sums, err := fs.ReadFile(folder, "SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]suiteGroup{}
	for line := range strings.Lines(string(sums)) {
		want, name, _ := strings.Cut(strings.TrimSpace(line), "  ./")
		text, err := fs.ReadFile(folder, name)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s does not have the checksum of SHA256SUMS", name)
		}
		if path.Ext(name) != ".json" {
			continue
		}
		var groups []suiteGroup
		if err := json.Unmarshal(text, &groups); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		files[strings.TrimSuffix(name, ".json")] = groups
	}
	return files
}

// deviations are the groups of the official tests that weft refuses, or for which weft
// has different answers. A name without a colon stands for all groups of the file.
var deviations = []struct {
	reason string
	error  string // part of the error; "": no error, but at least one different answer
	groups []string
}{
	{"a schema stands alone: the server loads no other document", "cannot refer to another document", []string{
		"dynamicRef: $ref and $dynamicAnchor are independent of order - $defs first",
		"dynamicRef: $ref and $dynamicAnchor are independent of order - $ref first",
		"dynamicRef: $ref to $dynamicRef finds detached $dynamicAnchor",
		"dynamicRef: strict-tree schema, guards against misspelled properties",
		"dynamicRef: tests for implementation dynamic anchor and reference link",
		"optional/cross-draft",
		"refRemote: $ref to $ref finds detached $anchor",
		"refRemote: Location-independent identifier in remote ref",
		"refRemote: anchor within remote ref",
		"refRemote: fragment within remote ref",
		"refRemote: ref within remote ref",
		"refRemote: remote HTTP ref with different $id",
		"refRemote: remote HTTP ref with different URN $id",
		"refRemote: remote HTTP ref with nested absolute ref",
		"refRemote: remote ref",
		"refRemote: remote ref with ref to defs",
		"refRemote: retrieved nested refs resolve relative to their URI not $id",
		"refRemote: root ref in remote ref",
	}},
	{"a schema is one resource: no part has an identity of its own", "$id is only allowed at the top", []string{
		"anchor: Location-independent identifier with absolute URI",
		"anchor: Location-independent identifier with base URI change in subschema",
		"anchor: same $anchor with different base uri",
		"dynamicRef: $dynamicRef avoids the root of each schema, but scopes are still registered",
		"dynamicRef: $dynamicRef skips over intermediate resources - direct reference",
		"dynamicRef: A $dynamicRef resolves to the first $dynamicAnchor still in scope that is encountered when the schema is evaluated",
		"dynamicRef: A $dynamicRef that initially resolves to a schema with a matching $dynamicAnchor resolves to the first $dynamicAnchor in the dynamic scope",
		"dynamicRef: A $dynamicRef that initially resolves to a schema without a matching $dynamicAnchor behaves like a normal $ref to $anchor",
		"dynamicRef: A $dynamicRef with a non-matching $dynamicAnchor in the same schema resource behaves like a normal $ref to $anchor",
		"dynamicRef: A $dynamicRef with intermediate scopes that don't include a matching $dynamicAnchor does not affect dynamic scope resolution",
		"dynamicRef: A $dynamicRef without a matching $dynamicAnchor in the same schema resource behaves like a normal $ref to $anchor",
		"dynamicRef: A $dynamicRef without anchor in fragment behaves identical to $ref",
		"dynamicRef: An $anchor with the same name as a $dynamicAnchor is not used for dynamic scope resolution",
		"dynamicRef: after leaving a dynamic scope, it is not used by a $dynamicRef",
		"dynamicRef: multiple dynamic paths to the $dynamicRef keyword",
		"optional/dynamicRef: $dynamicRef skips over intermediate resources - pointer reference across resource boundary",
		"optional/id: $id inside an enum is not a real identifier",
		"optional/unknownKeyword: $id inside an unknown keyword is not a real identifier",
		"ref: $id must be resolved against nearest parent, not just immediate parent",
		"ref: Recursive references between schemas",
		"ref: URN ref with nested pointer ref",
		"ref: order of evaluation: $id and $anchor and $ref",
		"ref: order of evaluation: $id and $ref",
		"ref: order of evaluation: $id and $ref on nested schema",
		"ref: ref to else",
		"ref: ref to if",
		"ref: ref to then",
		"ref: ref with absolute-path-reference",
		"ref: refs with relative uris and defs",
		"ref: relative refs with absolute uris and defs",
		"refRemote: base URI change",
		"refRemote: base URI change - change folder",
		"refRemote: base URI change - change folder in subschema",
		"unevaluatedItems: unevaluatedItems with $dynamicRef",
		"unevaluatedProperties: unevaluatedProperties with $dynamicRef",
	}},
	{"other metaschemas and their vocabularies are not supported", "is not supported: leave it out", []string{
		"optional/format-assertion",
		"vocabulary",
	}},
	{"integers are those of event bodies, from -2^63 to 2^64-1", "integer outside", []string{
		"optional/bignum: integer",
		"optional/bignum: minimum integer comparison",
		"optional/bignum: number",
		"optional/bignum: string",
	}},
	{"patterns have the syntax of package regexp", "is not valid regex", []string{
		`optional/ecmascript-regex: ECMA 262 regex escapes control codes with \c and lower letter`,
		`optional/ecmascript-regex: ECMA 262 regex escapes control codes with \c and upper letter`,
	}},
	{`\s matches only white space of ASCII, and not \v, as in package regexp`, "", []string{
		`optional/ecmascript-regex: ECMA 262 \S matches everything but whitespace`,
		`optional/ecmascript-regex: ECMA 262 \s matches whitespace`,
	}},
	{"the keyword dependencies belongs to older drafts", "", []string{
		"optional/dependencies-compatibility: boolean subschemas",
		"optional/dependencies-compatibility: dependencies with escaped characters",
		"optional/dependencies-compatibility: multiple dependents required",
		"optional/dependencies-compatibility: schema dependencies with escaped characters",
		"optional/dependencies-compatibility: single dependency",
		"optional/dependencies-compatibility: single schema dependency",
	}},
}

// groupsOfStates is how many groups have only keywords of state schemas.
const groupsOfStates = 106

// The evaluator passes the official tests of the draft, except for the deviations, with
// both kinds of values: encoded bodies, and nodes of states. The folder has no tests of
// optional formats, because a format is an annotation.
func TestOfficialSuite(t *testing.T) {
	expected, used := map[string]string{}, map[string]bool{}
	for _, d := range deviations {
		for _, group := range d.groups {
			expected[group] = d.error
		}
	}
	ofStates := 0
	for file, groups := range readSuite(t) {
		for _, g := range groups {
			name := file
			want, deviates := expected[name]
			if !deviates {
				name += ": " + g.Name
				want, deviates = expected[name]
			}
			used[name] = true
			differences, ofState, err := g.check()
			if ofState {
				ofStates++
			}
			switch {
			case err != nil:
				if !deviates || want == "" || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: %s: %v", file, g.Name, err)
				}
			case want != "":
				t.Errorf("%s: %s: accepted, want an error with %q", file, g.Name, want)
			case deviates != (len(differences) > 0):
				t.Errorf("%s: %s: a deviation is expected: %v, got %q", file, g.Name, deviates, differences)
			}
		}
	}
	for group := range expected {
		if !used[group] {
			t.Errorf("the tests have no group %s", group)
		}
	}
	if ofStates != groupsOfStates {
		t.Errorf("%d groups have only keywords of state schemas, want %d", ofStates, groupsOfStates)
	}
}

// check compares the verdicts on the values of a group with those of the tests: of the
// schema on each kind of value, and of a state schema if the keywords allow one. The
// error says why the schema or a value is refused.
func (g suiteGroup) check() (differences []string, ofState bool, err error) {
	text := g.Schema
	if slices.Contains([]string{"true", "false"}, string(text)) {
		text = fmt.Appendf(nil, `{"allOf":[%s]}`, text) // schemas of events are objects
	}
	raw, err := abi.FromJSON(text)
	if err != nil {
		return nil, false, err
	}
	s, problems := Compile(raw)
	if problems != nil {
		return nil, false, fmt.Errorf("%q", problems)
	}
	ofStates, err := state.CompileSchema(raw)
	ofState = err == nil
	for _, tt := range g.Tests {
		body, err := abi.FromJSON(tt.Data)
		if err != nil {
			return nil, ofState, err
		}
		encoded, err := weft.View(nil, body)
		if err != nil {
			return nil, ofState, err
		}
		node, err := state.Decode(body)
		if err != nil {
			return nil, ofState, err
		}
		verdict := func(kind string, valid bool) {
			if valid != tt.Valid {
				differences = append(differences, fmt.Sprintf("%s, %s: %v", tt.Name, kind, valid))
			}
		}
		found, err := s.Evaluate(nil, encoded, "v")
		verdict("encoded", found == nil && err == nil)
		verdict("node", weft.NewChecker(nil, weft.Prices{}).Check(s, node.Value(), false) == nil)
		if ofState {
			verdict("state", ofStates.Check(node, nil) == nil)
		}
	}
	return differences, ofState, nil
}
