//go:build unix

package module

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weftrun/weft/host/work"
)

var update = flag.Bool("update", false, "write what checks of bodies cost: testdata/checks.txt")

// A check of a body takes the units that it has always taken and finds what it has
// always found.
func TestChecksCostWhatTheyDid(t *testing.T) {
	var got bytes.Buffer
	record := func(name, schema, body string) {
		m := work.New(20_000_000, nil)
		given, err := prepare(mustCompile(t, schema), m, fromJSON(t, body), "event")
		fmt.Fprintf(&got, "%s: %d %d %v\n", name, m.Spent(), len(given), err)
	}
	dear := dearSchemas()
	for _, name := range slices.Sorted(maps.Keys(dear)) {
		record(name, dear[name].schema, dear[name].body)
	}
	for seed := range uint64(800) {
		r := schemas{rand.New(rand.NewPCG(seed, 3))}
		item := func(int) string { return r.value(3) }
		record(fmt.Sprint(seed), `{"properties":{"l":{"items":`+r.schema(3)+`},"k1":`+r.schema(2)+`},"additionalProperties":`+r.schema(2)+`}`,
			`{"l":[`+r.list(r.IntN(20), item)+`],"k1":`+item(0)+`,"k2":null,"k3":`+item(0)+`}`)
	}
	file := filepath.Join("testdata", "checks.txt")
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, have := strings.Split(string(recorded), "\n"), strings.Split(got.String(), "\n")
	for i := range max(len(want), len(have)) {
		if i >= len(want) || i >= len(have) || want[i] != have[i] {
			t.Fatalf("line %d:\n got %s\nwant %s", i+1, have[min(i, len(have)-1)], want[min(i, len(want)-1)])
		}
	}
}
