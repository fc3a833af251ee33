// Time is a workflow for tests of what a guest sees of the world: its clock,
// chance, the environment and files, as Go and TinyGo show them.
package main

import (
	crand "crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// StartEvent names the case.
type StartEvent struct {
	weft.Start
	Case string
}

type context = weft.Context[weft.Untyped]

// report is what a case saw, one observation an entry.
type report []string

func (r *report) add(what string, value any) { *r = append(*r, what+" "+fmt.Sprint(value)) }

// cases are the cases that every compiler has; goroutines.go adds to them.
var cases = map[string]func(ctx *context, r *report) error{
	"clock":  clock,
	"sleep":  sleep,
	"ages":   ages,
	"order":  order,
	"chance": chance,
	"world":  world,
	"files":  files,
	"print":  printed,
	"exit":   func(*context, *report) error { os.Exit(3); return nil },
}

// What init saw: the image is made at clock 0, and with a random stream of its
// own.
var (
	bootTime   = time.Now()
	bootChance = chanceBytes()
	table      = numbers(64)
)

func clock(ctx *context, r *report) error {
	r.add("boot", bootTime.UnixNano())
	r.add("wall", time.Now().UnixNano())
	r.add("since boot", int64(time.Since(bootTime)))
	began := time.Now()
	spin(10_000)
	r.add("computing took", int64(time.Since(began)))
	r.add("host", ctx.Now().UnixNano())
	r.add("zone", time.Now().Location().String())
	return nil
}

// sleep sleeps for some times, and says how far both clocks moved.
func sleep(ctx *context, r *report) error {
	for _, d := range []time.Duration{0, -1, 1, time.Microsecond, 20 * time.Millisecond, 90 * time.Minute, 30 * 24 * time.Hour} {
		began := time.Now()
		wall := began.UnixNano()
		time.Sleep(d)
		r.add(strconv.FormatInt(int64(d), 10), int64(time.Since(began)))
		r.add("wall", time.Now().UnixNano()-wall)
	}
	r.add("host", ctx.Now().UnixNano())
	return nil
}

// ages sleeps for longer than the clock can tell, twice.
func ages(_ *context, r *report) error {
	for range 2 {
		time.Sleep(math.MaxInt64)
		r.add("wall", time.Now().UnixNano())
	}
	return nil
}

// order shows in which order a map that init made, and a new one, are walked.
func order(_ *context, r *report) error {
	r.add("of init", walk(table))
	r.add("new", walk(numbers(64)))
	r.add("again", walk(table))
	return nil
}

func numbers(n int) map[int]bool {
	m := map[int]bool{}
	for i := range n {
		m[i] = true
	}
	return m
}

func walk(m map[int]bool) string {
	var b strings.Builder
	for k := range m {
		b.WriteString(strconv.Itoa(k) + ",")
	}
	return b.String()
}

// chance shows every source of it.
func chance(ctx *context, r *report) error {
	r.add("init", bootChance)
	r.add("crypto/rand", chanceBytes())
	r.add("math/rand", rand.Uint64())
	r.add("seeded", rand.New(rand.NewPCG(1, 2)).Uint64())
	b, err := ctx.Random(8)
	r.add("host", hex.EncodeToString(b))
	return err
}

func chanceBytes() string {
	var b [8]byte
	if _, err := crand.Read(b[:]); err != nil {
		return err.Error()
	}
	return hex.EncodeToString(b[:])
}

// world shows what there is besides files.
func world(_ *context, r *report) error {
	r.add("args", len(os.Args))
	r.add("environ", len(os.Environ()))
	r.add("HOME", strconv.Quote(os.Getenv("HOME")))
	var b [1]byte
	n, err := os.Stdin.Read(b[:])
	r.add("stdin", fmt.Sprint(n, " ", errors.Is(err, io.EOF)))
	return nil
}

// files tries to reach a file in every way; each must fail.
func files(_ *context, r *report) error {
	for name, try := range map[string]func() error{
		"read":   func() error { _, err := os.ReadFile("/etc/passwd"); return err },
		"write":  func() error { return os.WriteFile("/tmp/x", []byte("x"), 0o600) },
		"stat":   func() error { _, err := os.Stat("/"); return err },
		"mkdir":  func() error { return os.Mkdir("x", 0o700) },
		"remove": func() error { return os.Remove("/etc/passwd") },
		"rename": func() error { return os.Rename("/etc/passwd", "/etc/shadow") },
		"list":   func() error { _, err := os.ReadDir("."); return err },
	} {
		if err := try(); err == nil {
			return errors.New(name + " succeeded")
		}
		r.add(name, "failed")
	}
	sort.Strings(*r)
	return nil
}

func printed(_ *context, r *report) error {
	n, err := fmt.Fprintln(os.Stdout, "to stdout")
	r.add("stdout", fmt.Sprint(n, " ", err))
	n, err = fmt.Fprintln(os.Stderr, "to stderr")
	r.add("stderr", fmt.Sprint(n, " ", err))
	return nil
}

var sink uint64 // keeps the compiler from dropping the loop

func spin(rounds int) {
	x := sink | 1
	for range rounds {
		x = x*6364136223846793005 + 1442695040888963407
	}
	sink = x
}

func run(ctx *context, ev StartEvent) (weft.Stop, error) {
	do := cases[ev.Case]
	if do == nil {
		return weft.Stop{}, weft.Errorf("no_case", "there is no case %q", ev.Case)
	}
	var r report
	err := do(ctx, &r)
	return weft.Result([]string(r)), err
}

func init() {
	weft.Define("time", weft.Step("run", run))
}

func main() {}
