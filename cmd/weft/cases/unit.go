package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/guest"
	"github.com/weftrun/weft/cmd/weft/plugins"
	"github.com/weftrun/weft/cmd/weft/project"
	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/runs"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
	"github.com/weftrun/weft/host/position"
)

// unitTests are the tests in the *.test.ts, *.test.js and test_*.py files of a project. They
// run in the engine, as a workflow beside the project's own: each run of it is one test.
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
	h, err := (&player{r: r, timeout: o.timeout}).play(ctx, &testCase{}, name)
	switch {
	case err != nil:
		return err
	case h.err != nil:
		return fmt.Errorf("list the tests: %s: %s", h.err.Code, h.err.Message)
	}
	if err := json.Unmarshal(h.result, &names); err != nil {
		return fmt.Errorf("list the tests: %w", err)
	}
	for i, one := range names {
		if !pattern.MatchString(one) {
			continue
		}
		began := time.Now()
		run := testRun{r: r, timeout: o.timeout, tests: name, workflow: workflow}
		fault, err := run.play(ctx, i)
		if err != nil {
			return fmt.Errorf("test %q: %w", one, err)
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

// The events between a test and the command. They are those of the SDK's test.ts and test.py.
const (
	requestType = "TestRequestEvent"
	replyType   = "TestReplyEvent"
)

// request is what a test asks for: a run of the workflow, or that the run is given an
// answer.
type request struct {
	Session string          `json:"session"`
	Start   json.RawMessage `json:"start"`
	Answer  *wireEvent      `json:"answer"`
}

// reply is the run's question, or its end.
type reply struct {
	Ended    bool            `json:"ended"`
	Question *wireEvent      `json:"question,omitempty"`
	Result   json.RawMessage `json:"result,omitempty"`
	Code     string          `json:"code,omitempty"`
	Message  string          `json:"message,omitempty"`
}

// wireEvent is an event as the SDK's functions wire and fromWire have it: [type, fields].
type wireEvent Event

// MarshalJSON implements [json.Marshaler].
func (e *wireEvent) MarshalJSON() ([]byte, error) { return json.Marshal([]any{e.Type, e.Fields}) }

// UnmarshalJSON implements [json.Unmarshaler].
func (e *wireEvent) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&e.Type, &e.Fields})
}

// testRun is the run of one test. The test asks for runs of the workflow, one after the
// other, by events in its stream, and waits for replies.
type testRun struct {
	r               *remote.Conn
	timeout         time.Duration
	tests, workflow string // the workflow of the tests, and the workflow under test

	id     string // the test's handler
	stream *client.Stream
	events []host.StreamEvent // of the stream, not looked at yet
}

// play runs the test with a number, and returns what is wrong; "" if nothing is.
func (t *testRun) play(ctx context.Context, number int) (fault string, err error) {
	ctx, stop := context.WithTimeoutCause(ctx, t.timeout, errTooLate)
	defer stop()
	defer func() {
		if err != nil && errors.Is(context.Cause(ctx), errTooLate) {
			fault, err = fmt.Sprintf("the test has not ended within %s, which is the limit of --timeout", t.timeout), nil
		}
	}()
	rec, err := t.r.Start(ctx, client.StartRequest{Workflow: t.tests, Event: fmt.Appendf(nil, `{"test": %d}`, number)})
	if err != nil {
		return "", err
	}
	t.id = rec.HandlerID
	if t.stream, err = t.r.Events(ctx, t.id, position.FromRun, false); err != nil {
		return "", err
	}
	defer t.stream.Close()
	asked, err := t.request(ctx)
	for asked != nil && err == nil {
		asked, err = t.run(ctx, asked)
	}
	if err != nil {
		return "", err
	}
	if rec, err = t.r.Get(ctx, rec.RunID); err != nil {
		return "", err
	}
	if rec.Status != host.StatusCompleted {
		return fmt.Sprintf("the test failed with the code %s: %s", rec.ErrorCode, rec.Error), nil
	}
	text, err := runs.ResultOf(rec.Result)
	if err == nil {
		err = json.Unmarshal(text, &fault)
	}
	return fault, err
}

// request returns what the test asks for next; nil if the test has ended.
func (t *testRun) request(ctx context.Context) (*request, error) {
	for {
		for len(t.events) > 0 {
			e := t.events[0]
			if t.events = t.events[1:]; e.Type != requestType {
				continue
			}
			body, err := abi.ToJSON(e.Body)
			if err != nil {
				return nil, fmt.Errorf("read event %d: %w", e.Seq, err)
			}
			asked := &request{}
			return asked, json.Unmarshal(body, asked)
		}
		var err error
		switch t.events, err = t.stream.Next(ctx, settled); {
		case errors.Is(err, io.EOF):
			return nil, nil
		case err != nil:
			return nil, err
		}
	}
}

// run runs the workflow under test, and returns what the test asks for next. A test that
// has no answer to a question goes on without the run, which is cancelled.
func (t *testRun) run(ctx context.Context, asked *request) (next *request, err error) {
	if asked.Answer != nil {
		return nil, fmt.Errorf("the test answers with %s, and no run asks", asked.Answer.Type)
	}
	p := player{r: t.r, timeout: t.timeout, session: asked.Session}
	p.asked = func(ctx context.Context, question *Event) (*Event, error) {
		err := t.reply(ctx, reply{Question: (*wireEvent)(question)})
		if err == nil {
			next, err = t.request(ctx)
		}
		if err != nil || next == nil || next.Answer == nil {
			return nil, err
		}
		return (*Event)(next.Answer), nil
	}
	h, err := p.play(ctx, &testCase{Start: asked.Start}, t.workflow)
	var refusal *host.Error
	switch {
	case errors.As(err, &refusal): // of an answer
		h = &happened{err: &caseError{Code: string(refusal.Code), Message: err.Error()}}
	case err != nil || h.asked > 0:
		return next, err
	}
	end := reply{Ended: true, Result: h.result}
	if h.err != nil {
		end.Code, end.Message = h.err.Code, h.err.Message
	}
	if err := t.reply(ctx, end); err != nil {
		return nil, err
	}
	return t.request(ctx)
}

func (t *testRun) reply(ctx context.Context, with reply) error {
	fields, err := json.Marshal(with)
	if err == nil {
		_, err = t.r.Send(ctx, t.id, replyType, fields, "")
	}
	return err
}
