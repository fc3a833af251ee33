package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/guest"
	"github.com/weftrun/weft/cmd/weft/plugins"
	"github.com/weftrun/weft/cmd/weft/project"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/limit"
)

// DefaultFile is the file of cases in a project.
const DefaultFile = "cases.json"

// testOptions are the flags of `weft test`.
type testOptions struct {
	run      string
	wasm     string
	language string
	update   bool
	json     bool
	timeout  time.Duration
}

// New makes the command 'weft test'.
func New() *cobra.Command {
	var o testOptions
	cmd := &cobra.Command{
		Use:   "test [FILE]",
		Short: "Run a workflow with the inputs of a file, and compare the results",
		Long: `Run the cases of a file (default: cases.json in this folder). The command builds the
project in which the file lies, starts a server that keeps nothing, runs the workflow
with the input of each case, and compares result, error, stream and state with what the
case expects.

The file is a JSON object with "cases", each an object with

  name      of the case
  start     the fields of the start event
  session   cases with the same run in one session, one after the other
  answers   [{"type", "fields"}]: sent one by one when the run asks or waits for an event
  result    the expected result of the run, or
  error     {"code", "message"}: the expected failure; message is a part of the text
  stream    [{"type", "fields"}]: expected events, in this order; others may come between
  state     keys that the session's state must have at the end

Beside "cases" the object may have "workflow", and "plugins", a list of further modules.

A project in TypeScript or JavaScript may also have tests in files *.test.ts or *.test.js
(import { expect, session, test } from "weft/test"). They run in weft's engine, each in a
memory of its own, and may run the workflow on the same server. In Python tests are
functions test_... in files test_*.py (from weft.test import raises, session).

Exit codes: 0 all cases passed; 1 some did not, or nothing could be run; 2 the command
line is wrong.`,
		Example: `  weft test
  weft test greet/cases.json --run 'name'   # the cases whose name matches
  weft test --update                        # write down what came out
  weft test --json | jq '.cases[] | select(.passed | not)'`,
		Args: cli.Takes("[FILE]"),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := DefaultFile
			if len(args) > 0 {
				file = args[0]
			}
			if info, err := os.Stat(file); err == nil && info.IsDir() {
				file = filepath.Join(file, DefaultFile)
			}
			out := cmd.OutOrStdout()
			return testCases(cmd.Context(), o, file, &remote.Conn{Out: out, Errs: cmd.ErrOrStderr(), Screen: screen.Of(out), JSON: o.json})
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.run, "run", "", "only cases whose name matches the regular expression `PATTERN`, and earlier cases of their sessions")
	f.StringVar(&o.wasm, "plugin", "", "test the module `FILE` instead of building the project")
	project.LanguageFlag(cmd, &o.language)
	f.BoolVarP(&o.update, "update", "u", false, "write differing results, errors and states into the file, instead of failing")
	f.BoolVar(&o.json, "json", false, "print one JSON object: each case and its differences")
	f.DurationVar(&o.timeout, "timeout", 30*time.Second, "`TIME` that a case may take")
	return cmd
}

func testCases(ctx context.Context, o testOptions, file string, r *remote.Conn) error {
	pattern, err := regexp.Compile(o.run)
	if err != nil {
		return cli.Usage("--run: %w", err)
	}
	units, err := unitTestsOf(o, file)
	if err != nil {
		return err
	}
	f, err := Read(file)
	if errors.Is(err, os.ErrNotExist) && len(units.files) > 0 {
		f, err = &caseFile{}, nil
	}
	if err != nil {
		return err
	}
	chosen := f.matching(pattern)
	if len(chosen) == 0 && len(units.files) == 0 {
		return fmt.Errorf("no case of %s matches %q", file, o.run)
	}
	name, module, err := moduleOf(ctx, o, file, r.Errs)
	if err != nil {
		return err
	}
	// --timeout ends a case, so no default time limit may end its run earlier.
	limits, err := o.limits()
	defer func() { _ = os.Remove(limits) }() // even if writing it failed halfway
	if err != nil {
		return err
	}
	flags := []string{"--source-lines", "--limits", limits, "--run-timeout", max(o.timeout, host.DefaultRunTimeout).String()}
	if cache := cli.UserCode(); cache != "" {
		flags = append(flags, "--cache", cache)
	}
	own, err := remote.StartOwn(ctx, ":memory:", r.Errs, flags...)
	if err != nil {
		return err
	}
	defer own.Stop()
	at, err := r.At(own.URL)
	if err != nil {
		return err
	}
	defer at.Close()
	workflow, err := f.upload(ctx, at, file, name, module)
	if err != nil {
		return err
	}
	report, err := playAll(ctx, at, o, f, chosen, workflow)
	if err == nil {
		err = units.play(ctx, at, o, pattern, workflow, report)
	}
	if err == nil && len(report.Cases) == 0 {
		err = fmt.Errorf("no case of %s and no test matches %q", file, o.run)
	}
	if err == nil && o.update && report.updated > 0 {
		err = f.write(file)
	}
	if err != nil {
		return r.Explain(err)
	}
	return report.end(r, file)
}

// matching lists the cases to run: the cases that match, and the cases before them in the
// same session, which make the state that they need.
func (f *caseFile) matching(pattern *regexp.Regexp) []int {
	needed := map[string]bool{}
	var chosen []int
	for i := len(f.Cases) - 1; i >= 0; i-- {
		c := &f.Cases[i]
		if !pattern.MatchString(c.Name) && !needed[c.Session] {
			continue
		}
		chosen = append([]int{i}, chosen...)
		if c.Session != "" {
			needed[c.Session] = true
		}
	}
	return chosen
}

// moduleOf builds the project in the file's folder, unless the command line names a
// module.
func moduleOf(ctx context.Context, o testOptions, file string, said io.Writer) (name, module string, err error) {
	if o.wasm != "" {
		return plugins.ExampleName(o.wasm), o.wasm, nil
	}
	p, err := project.Find(filepath.Dir(file), o.language)
	if err != nil {
		return "", "", err
	}
	if err := project.Compile(ctx, p, guest.Options{Said: said}); err != nil {
		return "", "", err
	}
	return p.Name, p.Output(), plugins.BuildFlow(ctx, p, p.Output())
}

// upload uploads the modules and returns the default workflow of the cases.
func (f *caseFile) upload(ctx context.Context, r *remote.Conn, file, name, module string) (string, error) {
	for _, other := range f.Plugins {
		if !filepath.IsAbs(other) {
			other = filepath.Join(filepath.Dir(file), other)
		}
		if err := plugins.UploadAll(ctx, r, []string{other}); err != nil {
			return "", err
		}
	}
	wasm, err := plugins.ReadModule(module)
	if err != nil {
		return "", err
	}
	doc, err := plugins.FlowBeside(module)
	if err != nil {
		return "", err
	}
	var info host.PluginInfo
	_, err = plugins.PutWithFlow(ctx, r, name, doc, func() (err error) {
		info, _, err = r.PutPlugin(ctx, name, wasm)
		return err
	})
	switch {
	case err != nil:
		return "", plugins.Refusal(module, err)
	case f.Workflow != "":
		return f.Workflow, nil
	case doc != nil:
		return name, nil
	}
	if info.Workflow == "" {
		return "", fmt.Errorf("%s is a part and defines no workflow: name one by \"workflow\" in %s, or test it within a plugin that has all steps", module, file)
	}
	return info.Workflow, nil
}

// limits writes a file of limits in which an invocation may hold a core for as long as a
// case may take.
func (o *testOptions) limits() (path string, err error) {
	f, err := os.CreateTemp("", "weft-limits-*.json")
	if err != nil {
		return "", fmt.Errorf("write the limits of the tests: %w", err)
	}
	most := min(max(o.timeout, limit.Default().WallTime), limit.Most().WallTime)
	_, err = fmt.Fprintf(f, `{"defaults": {"wall_time": %q}}`, most)
	if err = errors.Join(err, f.Close()); err != nil {
		return f.Name(), fmt.Errorf("write the limits of the tests: %w", err)
	}
	return f.Name(), nil
}

// caseReport is the result of one case.
type caseReport struct {
	Name        string          `json:"name"`
	Passed      bool            `json:"passed"`
	Took        float64         `json:"seconds"`
	Differences []string        `json:"differences,omitempty"`
	Result      json.RawMessage `json:"result,omitempty"`
	Error       *caseError      `json:"error,omitempty"`
}

// testReport is the result of all cases.
type testReport struct {
	Cases   []caseReport `json:"cases"`
	Passed  int          `json:"passed"`
	Failed  int          `json:"failed"`
	updated int
	tests   int // how many of the cases are tests of files
}

// counted says how many of cases and tests there are, of n together.
func counted(n, tests int) string {
	switch {
	case tests == 0:
		return screen.Counted(uint64(n), "case")
	case n == tests:
		return screen.Counted(uint64(tests), "test")
	}
	return screen.Counted(uint64(n-tests), "case") + " and " + screen.Counted(uint64(tests), "test")
}

// playAll runs the cases and shows each result as the case ends.
func playAll(ctx context.Context, r *remote.Conn, o testOptions, f *caseFile, chosen []int, workflow string) (*testReport, error) {
	report := &testReport{}
	for _, i := range chosen {
		c := &f.Cases[i]
		began := time.Now()
		p := player{r: r, timeout: o.timeout, session: fmt.Sprintf("case-%d", i+1)}
		h, err := p.play(ctx, c, workflow)
		if err != nil {
			return nil, fmt.Errorf("case %q: %w", c.Name, err)
		}
		one := caseReport{Name: c.Name, Took: time.Since(began).Seconds(), Differences: c.differences(h), Result: h.result, Error: h.err}
		if o.update && len(one.Differences) > 0 && c.update(h) {
			report.updated++
			one.Differences = c.differences(h)
			if !r.JSON {
				r.Note("updated %s", screen.Printable(c.Name))
			}
		}
		report.add(r, one)
	}
	return report, nil
}

// update makes the results of the run the expected results, and reports whether they can
// be written to the file.
func (c *testCase) update(h *happened) bool {
	if h.asked > 0 {
		return false
	}
	c.Result, c.Error = h.result, nil
	if h.err != nil {
		c.Result, c.Error = nil, &caseError{Code: h.err.Code, Message: h.err.Message}
	}
	if len(absent(c.Stream, h.stream)) > 0 {
		c.Stream = h.stream
	}
	if c.State != nil && len(different("state", c.State, h.state, false)) > 0 {
		c.State = h.state
	}
	return true
}

// add counts a case and shows its result to people.
func (t *testReport) add(r *remote.Conn, c caseReport) {
	c.Passed = len(c.Differences) == 0
	verdict := "ok  "
	if c.Passed {
		t.Passed++
	} else {
		t.Failed++
		verdict = "FAIL"
	}
	t.Cases = append(t.Cases, c)
	if r.JSON {
		return
	}
	_, _ = fmt.Fprintf(r.Out, "%s  %s (%s)\n", verdict, screen.Printable(c.Name), screen.Span(time.Duration(c.Took*float64(time.Second))))
	for _, d := range c.Differences {
		_, _ = fmt.Fprintf(r.Out, "  %s\n", strings.ReplaceAll(d, "\n", "\n  "))
	}
}

// end prints the totals.
func (t *testReport) end(r *remote.Conn, file string) error {
	if r.JSON {
		if err := r.PrintValue(t); err != nil {
			return err
		}
	}
	if t.Failed > 0 {
		if t.tests > 0 {
			return fmt.Errorf("%d failed, of %s", t.Failed, counted(len(t.Cases), t.tests))
		}
		return fmt.Errorf("%d of %s in %s failed", t.Failed, counted(len(t.Cases), 0), file)
	}
	if r.JSON {
		return nil
	}
	return r.Print(counted(t.Passed, t.tests) + " passed\n")
}

// errTooLate is the cause for which a case is cancelled when its time is over.
var errTooLate = errors.New("too late")
