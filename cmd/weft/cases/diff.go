package cases

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"

	"github.com/weftrun/weft/cmd/weft/screen"
)

// mostDifferences is how many differences of a value are shown. More of them appear after
// the first ones are fixed.
const mostDifferences = 10

// different lists the differences between a JSON value and the expected value. whole
// requires equality; otherwise an object may have more keys than expected.
func different(path string, want, have json.RawMessage, whole bool) []string {
	d := differ{whole: whole}
	w, wantErr := decoded(want)
	h, haveErr := decoded(have)
	if wantErr != nil || haveErr != nil {
		return []string{fmt.Sprintf("%s: is not JSON", path)}
	}
	d.compare(path, w, h)
	if n := len(d.found); n > mostDifferences {
		d.found = append(d.found[:mostDifferences], fmt.Sprintf("and %d more", n-mostDifferences))
	}
	return d.found
}

// decoded reads JSON and keeps numbers as they are written; an empty text is null.
func decoded(text json.RawMessage) (v any, err error) {
	if len(text) == 0 {
		return nil, nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// differ collects differences.
type differ struct {
	whole bool
	found []string
}

func (d *differ) compare(path string, want, have any) {
	switch w := want.(type) {
	case map[string]any:
		if h, ok := have.(map[string]any); ok {
			d.objects(path, w, h)
			return
		}
	case []any:
		if h, ok := have.([]any); ok {
			d.lists(path, w, h)
			return
		}
	case json.Number:
		if h, ok := have.(json.Number); ok && sameNumber(string(w), string(h)) {
			return
		}
	default:
		if want == have {
			return
		}
	}
	d.add(path, shown(want), shown(have))
}

func (d *differ) add(path, want, have string) {
	d.found = append(d.found, fmt.Sprintf("%s:\n    want %s\n    have %s", path, want, have))
}

func (d *differ) objects(path string, want, have map[string]any) {
	for _, key := range slices.Sorted(maps.Keys(want)) {
		h, ok := have[key]
		if !ok {
			d.add(under(path, key), shown(want[key]), "nothing")
			continue
		}
		d.compare(under(path, key), want[key], h)
	}
	if !d.whole {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(have)) {
		if _, ok := want[key]; !ok {
			d.add(under(path, key), "nothing", shown(have[key]))
		}
	}
}

func (d *differ) lists(path string, want, have []any) {
	for i := range max(len(want), len(have)) {
		at := under(path, strconv.Itoa(i))
		switch {
		case i >= len(have):
			d.add(at, shown(want[i]), "nothing")
		case i >= len(want):
			d.add(at, "nothing", shown(have[i]))
		default:
			d.compare(at, want[i], have[i])
		}
	}
}

func under(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// shown returns a value as JSON in one line.
func shown(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return screen.PrintableJSON(string(bytes.TrimSpace(b.Bytes())))
}

// longestNumber is the length in characters up to which numbers are compared by value.
const longestNumber = 100

// sameNumber reports whether two numbers in JSON are equal: 3, 3.0 and 30e-1 are.
func sameNumber(a, b string) bool {
	if a == b {
		return true
	}
	if len(a) > longestNumber || len(b) > longestNumber {
		return false
	}
	x, okX := parsed(a)
	y, okY := parsed(b)
	return okX && okY && x.Cmp(y) == 0
}

// parsed reads a number that is not too long.
func parsed(text string) (*big.Float, bool) {
	f, _, err := big.ParseFloat(text, 10, 512, big.ToNearestEven)
	return f, err == nil
}
