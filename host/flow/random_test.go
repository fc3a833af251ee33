//go:build unix

package flow

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weftrun/weft/host/hosttest/suite"
	"github.com/weftrun/weft/host/work"
)

// expressions makes random expressions over the state of large.
type expressions struct {
	*rand.Rand
	loops int
}

func (r *expressions) of(choices ...func() string) string { return choices[r.IntN(len(choices))]() }

func (r *expressions) text(depth int) string {
	if depth == 0 {
		return r.of(func() string { return "session_state.text" }, func() string { return "session_state.as" }, func() string { return `'é'` }, func() string { return `session_state.expr` })
	}
	t := func() string { return r.text(depth - 1) }
	return r.of(t,
		func() string { return t() + " + " + t() },
		func() string { return "string(" + r.number(depth-1) + ")" },
		func() string { return "(" + r.truth(depth-1) + " ? " + t() + " : " + t() + ")" })
}

func (r *expressions) number(depth int) string {
	if depth == 0 {
		return r.of(func() string { return "7" }, func() string { return "size(session_state.many)" })
	}
	n := func() string { return r.number(depth - 1) }
	return r.of(n,
		func() string { return "size(" + r.text(depth-1) + ")" },
		func() string { return "size(" + r.list(depth-1) + ")" },
		func() string { return "(" + n() + " + " + n() + ")" },
		func() string { return "int('12')" })
}

func (r *expressions) list(depth int) string {
	if depth == 0 || r.loops >= 2 {
		return "session_state.list"
	}
	r.loops++
	defer func() { r.loops-- }()
	return r.of(func() string { return "session_state.list" },
		func() string { return "session_state.many.map(k, k)" },
		func() string {
			return r.list(depth-1) + ".filter(x" + strconv.Itoa(r.loops) + ", " + r.truth(depth-1) + ")"
		},
		func() string {
			return r.list(depth-1) + ".map(y" + strconv.Itoa(r.loops) + ", " + r.number(depth-1) + ")"
		},
		func() string { return "(" + r.list(depth-1) + " + " + r.list(depth-1) + ")" })
}

func (r *expressions) truth(depth int) string {
	if depth == 0 {
		return r.of(func() string { return "'key1' in session_state.many" }, func() string { return "has(session_state.many.key7)" })
	}
	t := func() string { return r.truth(depth - 1) }
	s := func() string { return r.text(depth - 1) }
	choices := []func() string{t,
		func() string { return "(" + t() + " && " + t() + ")" }, func() string { return "(" + t() + " || " + t() + ")" }, func() string { return "!(" + t() + ")" },
		func() string { return s() + " == " + s() }, func() string { return s() + " != " + s() }, func() string { return s() + " < " + s() },
		func() string { return "(" + s() + ").startsWith(" + s() + ")" }, func() string { return "(" + s() + ").endsWith(" + s() + ")" },
		func() string { return "(" + s() + ").contains(" + s() + ")" }, func() string { return "(" + s() + ").matches('(a?){50}b')" },
		func() string { return r.number(depth-1) + " in " + r.list(depth-1) }, func() string { return r.list(depth-1) + " == " + r.list(depth-1) },
		func() string { return "session_state.deep == session_state.same" }, func() string { return "session_state.many in [session_state.many]" },
	}
	if r.loops < 2 {
		choices = append(choices, func() string {
			r.loops++
			defer func() { r.loops-- }()
			return r.list(depth-1) + "." + []string{"all", "exists", "exists_one"}[r.IntN(3)] + "(z" + strconv.Itoa(r.loops) + ", " + r.truth(depth-1) + ")"
		})
	}
	return "(" + r.of(choices...) + ")"
}

// Random expressions are charged for what they take: the same each time, with looks in
// between, and never ten times less than a plain loop of that length would be.
func TestRandomExpressionsAreChargedForWhatTheyTake(t *testing.T) {
	suite.NotShort(t, "computes for long, by one goroutine")
	seed := rand.Uint64()
	if text := os.Getenv("WEFT_SEED"); text != "" {
		seed, _ = strconv.ParseUint(text, 10, 64)
	}
	t.Logf("seed %d", seed)
	count, most := 60, uint64(20_000_000)
	if suite.Soak() || os.Getenv("WEFT_SEEDS") != "" {
		count, most = 5_000, 60_000_000
	}
	r := &expressions{Rand: rand.New(rand.NewPCG(seed, 1))}
	vars := map[string]any{varState: large()}
	kinds, dear := map[string]bool{}, 0
	for range count {
		text := r.truth(4)
		e, err := compile(text, exprCondition)
		if err != nil {
			continue // nested too deep, or too long
		}
		longest := uint64(0)
		run := func(hook func(uint64) error) (uint64, time.Duration) {
			m := work.New(most, hook)
			began := processTime(t)
			_, _ = e.evaluate(m, vars) // what it comes to does not matter
			return m.Spent(), processTime(t) - began
		}
		spent, took := run(func(units uint64) error { longest = max(longest, units); return nil })
		if longest > work.Piece {
			t.Errorf("%s: %d units between two looks", text, longest)
		}
		again, least := run(nil)
		if again != spent {
			t.Errorf("%s takes %d units, then %d", text, spent, again)
		}
		least = min(least, took)
		// What a core gets done in a time is the machine's: the ratio is looked at in a soak
		// alone.
		cheap := func() bool {
			return suite.Soak() && least > time.Millisecond && uint64(least.Nanoseconds())*3 > 10*spent
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
		if spent > work.Look {
			dear++
			stop := errors.New("stop")
			m := work.New(0, func(uint64) error { return stop })
			if _, err := e.evaluate(m, vars); !errors.Is(err, stop) && m.Err() != nil {
				t.Errorf("%s, stopped: %v", text, err)
			}
		}
		for _, name := range []string{"size", "startsWith", "endsWith", "contains", "matches", "in", "map", "filter", "all", "exists", "string"} {
			kinds[name] = kinds[name] || strings.Contains(text, name)
		}
	}
	if dear == 0 || suite.Soak() && len(kinds) < 11 {
		t.Errorf("%d of %d expressions are dear: %v", dear, count, kinds)
	}
}

// processTime is the time of a core that the process has had: nothing else runs in it here,
// but the collector.
func processTime(tb testing.TB) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(fmt.Errorf("read the time: %w", err))
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
