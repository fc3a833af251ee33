package httpapi

import (
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/httpapi/object"
)

// knownFields refuses a body with an unknown field. Such a field is probably mistyped, or
// belongs in the event, as the event's schema shows.
func knownFields(body value, known []string, event string, schema abi.Raw) error {
	for name := range object.Members(body.raw) {
		key := string(name)
		if slices.Contains(known, key) {
			continue
		}
		hint := "the fields are " + strings.Join(known, ", ")
		if near := nearest(key, known); near != "" {
			hint = "did you mean '" + near + "'?"
		} else if properties := object.Lookup(schema, "properties"); properties != nil && object.Lookup(properties, key) != nil {
			hint = "it is a field of the event: put it into '" + event + "'"
		}
		return invalid("Unknown field '%s': %s", clip(key), hint)
	}
	return nil
}

// mostFar is the largest number of letters by which a mistyped name may differ.
const mostFar = 2

// nearest returns the known name that a mistyped name probably means, or "".
func nearest(name string, known []string) string {
	best, far := "", min(mostFar, len(name)/2)+1
	for _, k := range known {
		if d := letters(strings.ToLower(name), k); d < far {
			best, far = k, d
		}
	}
	return best
}

// letters counts the letters to insert, delete or replace between two names. Names of
// very different lengths are not compared.
func letters(a, b string) int {
	if len(a)-len(b) > mostFar || len(b)-len(a) > mostFar {
		return mostFar + 1
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			d := diagonal
			if a[i-1] != b[j-1] {
				d++
			}
			diagonal = row[j]
			row[j] = min(d, row[j]+1, row[j-1]+1)
		}
	}
	return row[len(b)]
}
