package script

import (
	"bytes"
	"strings"
	"testing"
)

// The mappings are those of a bundle of two files: a line of the SDK, then two segments of
// main.ts in one line, and one without a source.
func TestLineMap(t *testing.T) {
	source := `{"version":3,"sources":["../sdk/weft.ts","main.ts"],"mappings":"AAAA;ECCA,IAAIA,G;;AAED"}`
	got, err := LineMap([]byte(source), func(source string) (string, bool) {
		return strings.TrimPrefix(source, "../"), strings.HasPrefix(source, "../sdk/")
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []byte{1, 2, 1, 11}
	want = append(want, "sdk/weft.ts"...)
	want = append(want, 0, 7)
	want = append(want, "main.ts"...)
	want = append(want, 5,
		0, 0, 2, 0, 0, // 0:0 is sdk/weft.ts 0:0
		1, 2, 2, 2, 0, // 1:2 is main.ts 1:0
		0, 4, 0, 0, 8, // 1:6 is main.ts 1:4
		0, 3, 3, // 1:9 has no source
		2, 0, 4, 4, 1) // 3:0 is main.ts 3:3
	if !bytes.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// A broken source map is an error.
func TestLineMapBroken(t *testing.T) {
	for _, source := range []string{
		``, `{"version":2}`, `{"version":3,"sources":[],"mappings":"AAAA"}`,
		`{"version":3,"sources":["a"],"mappings":"AA"}`, `{"version":3,"sources":["a"],"mappings":"!"}`,
		`{"version":3,"sources":["a"],"mappings":"D"}`, `{"version":3,"sources":["a"],"mappings":"gggggggggggg"}`,
		`{"version":3,"sources":["a"],"mappings":"AAAAAA"}`,
	} {
		if got, err := LineMap([]byte(source), func(string) (string, bool) { return "", false }); err == nil {
			t.Errorf("%s gives %v", source, got)
		}
	}
}
