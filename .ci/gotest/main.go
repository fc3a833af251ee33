// Command gotest runs "go test -json" with its arguments and says what people want to
// know of the run: a line for each package when the package ends, the output of what
// failed, and at the end why tests were skipped, the seconds of each package, and the
// slowest tests by name. It exits with the status of go test.
//
//	go run .ci/gotest/main.go [-slowest N] [-log FILE] [go test's flags and packages]
//
// -log FILE keeps the events of go test, which name each test and its seconds.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// event is a line of go test -json; see "go doc test2json".
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Elapsed    float64 // seconds
	Output     string
}

// key names a test within a run; test is empty for the package itself.
type key struct{ pkg, test string }

// timed is how long something took, in seconds.
type timed struct {
	name    string
	seconds float64
	note    string
}

// report collects what a run of go test says.
type report struct {
	out      io.Writer
	slowest  int
	output   map[key][]string // of tests and packages that have not passed
	packages []timed
	tests    []timed
	skipped  map[string][]string // tests by reason
	passed   int
	failed   []key
}

func main() {
	slowest, log, args := 10, "", os.Args[1:]
	for len(args) >= 2 && (args[0] == "-slowest" || args[0] == "-log") {
		if args[0] == "-log" {
			log = args[1]
		} else if n, err := strconv.Atoi(args[1]); err == nil {
			slowest = n
		}
		args = args[2:]
	}
	code, err := run(slowest, log, args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		code = 1
	}
	os.Exit(code)
}

// run runs go test and prints its report. The code is that of go test.
func run(slowest int, log string, args []string) (code int, err error) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	var events io.Reader = stdout
	if log != "" {
		f, err := os.Create(log)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		events = io.TeeReader(stdout, f)
	}
	// An interrupt reaches go test too, which ends its tests: the report is of what ran.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	r := &report{out: os.Stdout, slowest: slowest, output: map[key][]string{}, skipped: map[string][]string{}}
	if err := r.read(events); err != nil {
		return 0, err
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		code = max(exit.ExitCode(), 1)
	case err != nil:
		return 0, err
	}
	r.print(time.Since(began), cmd.ProcessState)
	return code, nil
}

// read takes the events to the end.
func (r *report) read(from io.Reader) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				fmt.Fprintf(r.out, "%s", line) // a line of the go command itself
			} else {
				r.take(e)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// take takes an event.
func (r *report) take(e event) {
	k := key{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "output":
		if e.Test == "" && strings.HasPrefix(e.Output, "ok  \t") {
			fmt.Fprint(r.out, e.Output) // "ok PACKAGE SECONDS", as go test prints the line
			return
		}
		r.output[k] = append(r.output[k], e.Output)
	case "pass", "skip", "fail":
		r.end(k, e)
	}
}

// end notes the end of a test or a package.
func (r *report) end(k key, e event) {
	output := r.output[k]
	delete(r.output, k)
	name := strings.TrimPrefix(strings.TrimPrefix(k.pkg, "github.com/weftrun/weft"), "/")
	switch {
	case e.Action == "fail":
		if k.test == "" {
			r.unended(k.pkg)
		}
		r.failed = append(r.failed, k)
		fmt.Fprintf(r.out, "%s", strings.Join(output, ""))
	case k.test != "" && e.Action == "skip":
		reason := skipReason(output)
		r.skipped[reason] = append(r.skipped[reason], name+"."+k.test)
	case k.test != "":
		r.passed++
	}
	switch {
	case k.test == "":
		r.packages = append(r.packages, timed{cmp.Or(name, "."), e.Elapsed, e.Action})
	case !strings.Contains(k.test, "/"):
		r.tests = append(r.tests, timed{name + "." + k.test, e.Elapsed, e.Action})
	}
}

// unended shows the tests of a package that has failed while they ran, such as in a
// hang. What the runtime says of all goroutines is in the output of one of them.
func (r *report) unended(pkg string) {
	for k, output := range r.output {
		if k.pkg == pkg && k.test != "" {
			r.failed = append(r.failed, k)
			fmt.Fprintf(r.out, "%s has not ended:\n%s", k.test, strings.Join(output, ""))
			delete(r.output, k)
		}
	}
}

// skipReason finds what a skipped test has said in its output:
// "    file_test.go:12: the reason".
func skipReason(output []string) string {
	for _, line := range slices.Backward(output) {
		if _, said, ok := strings.Cut(strings.TrimSpace(line), "_test.go:"); ok {
			if _, said, ok = strings.Cut(said, ": "); ok {
				return said
			}
		}
	}
	return "no reason given"
}

// print prints what the run was.
func (r *report) print(took time.Duration, state *os.ProcessState) {
	say := func(format string, args ...any) { fmt.Fprintf(r.out, format+"\n", args...) }
	slow := func(a, b timed) int { return cmp.Compare(b.seconds, a.seconds) }
	say("")
	if len(r.skipped) > 0 {
		say("skipped:")
		reasons := make([]string, 0, len(r.skipped))
		for reason := range r.skipped {
			reasons = append(reasons, reason)
		}
		slices.Sort(reasons)
		for _, reason := range reasons {
			say("  %s (%d): %s", reason, len(r.skipped[reason]), some(r.skipped[reason]))
		}
	}
	slices.SortFunc(r.packages, slow)
	say("seconds of each package, which run beside each other:")
	for _, p := range r.packages {
		if p.seconds >= 0.05 || p.note == "fail" {
			say("  %8.1f  %s%s", p.seconds, p.name, map[bool]string{true: "  FAILED"}[p.note == "fail"])
		}
	}
	slices.SortFunc(r.tests, slow)
	say("the slowest tests:")
	for _, t := range r.tests[:min(r.slowest, len(r.tests))] {
		say("  %8.1f  %s", t.seconds, t.name)
	}
	for _, k := range r.failed {
		if k.test != "" {
			say("FAILED: %s %s", k.pkg, k.test)
		}
	}
	say("took %.0f s, and %.0f s of CPU time, compiling included", took.Seconds(), cpu(state).Seconds())
	failed := 0
	for _, k := range r.failed {
		if k.test != "" {
			failed++
		}
	}
	skipped := 0
	for _, tests := range r.skipped {
		skipped += len(tests)
	}
	say("%d passed, %d failed, %d skipped", r.passed, failed, skipped)
}

// some lists the first of the names.
func some(names []string) string {
	const most = 3
	slices.Sort(names)
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", ..."
	}
	return strings.Join(names, ", ")
}

// cpu is what the go command and all its programs took.
func cpu(state *os.ProcessState) time.Duration {
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return state.UserTime() + state.SystemTime()
}
