//go:build unix

package module

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/jsonschema/draft2020"
	"github.com/weftrun/weft/host/work"
)

// schemas makes random schemas of all keywords, each applied to many parts of a body.
type schemas struct{ *rand.Rand }

func (r schemas) list(n int, of func(i int) string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = of(i)
	}
	return strings.Join(all, ",")
}

func (r schemas) name() string { return fmt.Sprintf(`"k%d"`, r.IntN(40)) }

func (r schemas) value(depth int) string {
	switch k := r.IntN(7); {
	case k == 0 && depth > 0:
		return "[" + r.list(r.IntN(6), func(int) string { return r.value(depth - 1) }) + "]"
	case k == 1 && depth > 0:
		return "{" + r.list(r.IntN(6), func(i int) string { return fmt.Sprintf(`"k%d":%s`, i, r.value(depth-1)) }) + "}"
	case k == 2:
		return strconv.Itoa(r.IntN(100))
	case k == 3:
		return strconv.FormatFloat(r.Float64()*1e3, 'g', -1, 64)
	case k == 4:
		return []string{"null", "true", "false"}[r.IntN(3)]
	}
	return `"` + strings.Repeat("aé", r.IntN(30)) + `"`
}

func (r schemas) schema(depth int) string {
	var keywords []string
	for range 1 + r.IntN(4) {
		keywords = append(keywords, r.keyword(depth))
	}
	seen, out := map[string]bool{}, keywords[:0]
	for _, k := range keywords {
		if name, _, _ := strings.Cut(k, ":"); !seen[name] {
			seen[name] = true
			out = append(out, k)
		}
	}
	return "{" + strings.Join(out, ",") + "}"
}

func (r schemas) keyword(depth int) string {
	n := strconv.Itoa(r.IntN(50))
	flat := []func() string{
		func() string { return `"minLength":` + n }, func() string { return `"maxLength":` + n }, func() string { return `"pattern":"(a|é)*b$"` },
		func() string { return `"minimum":` + n }, func() string { return `"exclusiveMaximum":1e30` }, func() string { return `"multipleOf":0.01` },
		func() string { return `"uniqueItems":true` }, func() string { return `"minItems":` + n }, func() string { return `"maxProperties":` + n },
		func() string { return `"type":["array","object","string","number","null","boolean"]` },
		func() string { return `"const":` + r.value(2) },
		func() string { return `"enum":[` + r.list(1+r.IntN(30), func(int) string { return r.value(1) }) + `]` },
		func() string { return `"required":[` + r.list(1, func(int) string { return r.name() }) + `]` },
		func() string { return `"dependentRequired":{` + r.name() + `:[` + r.name() + `]}` },
	}
	if depth == 0 {
		return flat[r.IntN(len(flat))]()
	}
	s := func() string { return r.schema(depth - 1) }
	deep := []func() string{
		func() string { return `"items":` + s() }, func() string { return `"prefixItems":[` + s() + `,` + s() + `]` }, func() string { return `"contains":` + s() },
		func() string { return `"properties":{` + r.name() + `:` + s() + `}` }, func() string { return `"additionalProperties":` + s() },
		func() string { return `"patternProperties":{"^k[0-9]*1$":` + s() + `}` }, func() string { return `"propertyNames":{"maxLength":` + n + `}` },
		func() string { return `"unevaluatedProperties":` + s() }, func() string { return `"unevaluatedItems":` + s() },
		func() string { return `"dependentSchemas":{` + r.name() + `:` + s() + `}` },
		func() string { return `"allOf":[` + s() + `,` + s() + `]` }, func() string { return `"anyOf":[` + s() + `,` + s() + `,{}]` },
		func() string { return `"oneOf":[` + s() + `,` + s() + `]` }, func() string { return `"not":` + s() },
		func() string { return `"if":` + s() },
	}
	return append(flat, deep...)[r.IntN(len(flat)+len(deep))]()
}

// Random checks are charged for what they take: the same each time, with looks in
// between, and never ten times less than a plain loop of that length would be.
func TestRandomChecksAreChargedForWhatTheyTake(t *testing.T) {
	suite.NotShort(t, "computes for long, by one goroutine")
	seed := rand.Uint64()
	if text := os.Getenv("WEFT_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("seed %d", seed)
	count := 60
	if os.Getenv("WEFT_SEEDS") != "" {
		count = 2_000
	}
	r := schemas{rand.New(rand.NewPCG(seed, 1))}
	dear := 0
	for range count {
		// Not all of the body is wrong at once: the check goes on.
		text := `{"properties":{"l":{"items":{"anyOf":[` + r.schema(3) + `,{}]}}}}`
		s, problems := draft2020.Compile(fromJSON(t, text))
		if len(problems) > 0 {
			t.Fatalf("%s: %q", text, problems)
		}
		body := fromJSON(t, `{"l":[`+r.list(300+r.IntN(3_000), func(int) string { return r.value(3) })+`]}`)
		longest := uint64(0)
		run := func(hook func(uint64) error) (uint64, time.Duration) {
			m := work.New(100_000_000, hook)
			began := processTime(t)
			if _, err := prepare(s, m, body, "event"); err != nil && host.CodeOf(err) != host.CodeInvalidArgument {
				t.Fatal(err)
			}
			return m.Spent(), processTime(t) - began
		}
		spent, took := run(func(units uint64) error { longest = max(longest, units); return nil })
		if longest > work.Piece {
			t.Errorf("%s: %d units between two looks", text, longest)
		}
		if spent > work.Look {
			dear++
		}
		again, least := run(nil)
		if again != spent {
			t.Errorf("%s takes %d units, then %d", text, spent, again)
		}
		least = min(least, took)
		// What a core gets done in a time is the machine's: the ratio is looked at in a soak
		// alone, and without the race detector.
		cheap := func() bool {
			return suite.Soak() && !raced && least > time.Millisecond && uint64(least.Nanoseconds())*3 > 10*spent
		}
		for range 20 { // the machine may be slow for a while
			if !cheap() {
				break
			}
			_, took := run(nil)
			least = min(least, took)
		}
		if cheap() {
			t.Errorf("%s takes %s of a core, for %d units", text, least, spent)
		}
	}
	if dear < count/10 {
		t.Errorf("%d of %d checks are dear", dear, count)
	}
}

// processTime is the time of a core that the process has had.
func processTime(tb testing.TB) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
