package cases

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"time"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/guest"
	"github.com/weftrun/weft/cmd/weft/plugins"
	"github.com/weftrun/weft/cmd/weft/project"
	"github.com/weftrun/weft/cmd/weft/remote"
)

// unitTests are the tests in the *.test.ts and *.test.js files of a project. They run in the
// engine, as a workflow beside the project's own: each run of it is one test.
type unitTests struct {
	project guest.Project
	files   []string // none: there are no tests
}

// unitTestsOf finds the tests of the project in which the file of cases lies.
func unitTestsOf(o testOptions, file string) (*unitTests, error) {
	if o.wasm != "" {
		return &unitTests{}, nil
	}
	p, err := project.Find(filepath.Dir(file), o.language)
	if err != nil {
		return &unitTests{}, nil //nolint:nilerr // moduleOf finds the project too, and says what is wrong
	}
	files, err := p.TestFiles()
	return &unitTests{project: p, files: files}, err
}

// play runs the tests whose name matches, and adds their results to the report.
func (u *unitTests) play(ctx context.Context, r *remote.Conn, o testOptions, pattern *regexp.Regexp, workflow string, report *testReport) error {
	if len(u.files) == 0 {
		return nil
	}
	name := u.project.Name + "-tests"
	wasm, err := u.project.BuildTests(u.files, name, guest.Options{Version: cli.Version, Said: r.Errs})
	if err != nil {
		return fmt.Errorf("the tests of %s: %w", u.project.Name, err)
	}
	if _, _, err := r.PutPlugin(ctx, name, wasm); err != nil {
		return plugins.Refusal(name, err)
	}
	var names []string
	run := func(start any, to any) (*happened, error) {
		fields, err := json.Marshal(start)
		if err != nil {
			return nil, err
		}
		p := player{r: r, timeout: o.timeout}
		h, err := p.play(ctx, &testCase{Start: fields}, name)
		if err == nil && h.err == nil {
			err = json.Unmarshal(h.result, to)
		}
		return h, err
	}
	h, err := run(struct{}{}, &names)
	if err == nil && h.err != nil {
		err = fmt.Errorf("list the tests: %s: %s", h.err.Code, h.err.Message)
	}
	if err != nil {
		return err
	}
	for i, one := range names {
		if !pattern.MatchString(one) {
			continue
		}
		began, fault := time.Now(), ""
		h, err := run(map[string]any{"workflow": workflow, "test": i}, &fault)
		if err != nil {
			return fmt.Errorf("test %q: %w", one, err)
		}
		if h.err != nil {
			fault = fmt.Sprintf("the test failed with the code %s: %s", h.err.Code, h.err.Message)
		}
		c := caseReport{Name: one, Took: time.Since(began).Seconds()}
		if fault != "" {
			c.Differences = []string{fault}
		}
		report.tests++
		report.add(r, c)
	}
	return nil
}
