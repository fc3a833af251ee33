// Package cases runs a workflow with the inputs of a file, and compares the results with
// the results that the file expects: 'weft test'.
//
// It does not depend on how a plugin is built: package project builds the module.
package cases

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/input"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/codes"
	"github.com/weftrun/weft/host/missing"
)

// caseFile is the file of `weft test`: the inputs of a workflow and the expected results.
type caseFile struct {
	Workflow string     `json:"workflow,omitempty"` // "": the plugin's workflow
	Plugins  []string   `json:"plugins,omitempty"`  // additional modules, relative to the file's folder
	Cases    []testCase `json:"cases"`
}

// testCase is one run of a workflow. Results that it does not name may have any value.
type testCase struct {
	Name     string          `json:"name"`
	Workflow string          `json:"workflow,omitempty"`
	Session  string          `json:"session,omitempty"` // cases with the same name run in one session; "": a session of its own
	Start    json.RawMessage `json:"start,omitempty"`   // the fields of the start event
	Answers  []Event         `json:"answers,omitempty"` // sent in this order, one for each question of the run
	// The expected results.
	Result json.RawMessage `json:"result,omitempty"` // all of it
	Error  *caseError      `json:"error,omitempty"`  // the run fails, or is refused
	Stream []Event         `json:"stream,omitempty"` // these events, in this order, among others
	State  json.RawMessage `json:"state,omitempty"`  // these keys, among others
}

// Event is an event to send or an expected event. Of an expected event, only the named
// fields are compared.
type Event struct {
	Type   string          `json:"type"`
	Fields json.RawMessage `json:"fields,omitempty"`
}

// caseError says how a run fails.
type caseError struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"` // a part of it
}

// maxCaseFile bounds the file, in bytes.
const maxCaseFile = 16 << 20

// Read reads and checks a file of cases.
func Read(file string) (*caseFile, error) {
	text, err := cli.ReadAtMost(file, maxCaseFile)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil, &noFile{file}
		}
		return nil, err
	}
	var f caseFile
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("%s%s: %s", file, lineOf(text, d, err), decodeFault(err))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s%s: unexpected text after the object with the cases", file, lineAt(text, d.InputOffset()))
	}
	return &f, f.check(file)
}

// noFile is the error of a file that does not exist.
type noFile struct{ file string }

func (e *noFile) Error() string {
	return e.file + " does not exist: it must hold the cases, as {\"cases\": [{\"name\": \"...\", \"start\": {}, \"result\": ...}]}"
}

func (e *noFile) Unwrap() error { return os.ErrNotExist }

// lineOf says in which line the decoder found an error.
func lineOf(text []byte, d *json.Decoder, err error) string {
	var syntax *json.SyntaxError
	var typed *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return lineAt(text, syntax.Offset)
	case errors.As(err, &typed):
		return lineAt(text, typed.Offset)
	}
	if field, ok := unknownField(err); ok { // the decoder reports it at the object's end
		key := regexp.MustCompile(regexp.QuoteMeta(strconv.Quote(field)) + `\s*:`)
		if at := key.FindIndex(text); at != nil {
			return lineAt(text, int64(at[0]))
		}
	}
	return lineAt(text, d.InputOffset())
}

// unknownField returns the key that an error reports as unknown.
func unknownField(err error) (field string, ok bool) {
	field, ok = strings.CutPrefix(err.Error(), `json: unknown field "`)
	return strings.TrimSuffix(field, `"`), ok
}

func lineAt(text []byte, offset int64) string {
	return fmt.Sprintf(":%d", 1+bytes.Count(text[:min(int(offset), len(text))], []byte("\n")))
}

// decodeFault describes what is wrong with the JSON.
func decodeFault(err error) string {
	var typed *json.UnmarshalTypeError
	if errors.As(err, &typed) {
		return fmt.Sprintf("%s cannot be a JSON %s", typed.Field, typed.Value)
	}
	if field, ok := unknownField(err); ok {
		return fmt.Sprintf("there is no %q: %s", field, cli.Meant(field, caseKeys(), "a case has "+strings.Join(keysOf(testCase{}), ", ")))
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return "the JSON is incomplete"
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}

// caseKeys lists all keys that a file may have.
func caseKeys() []string {
	return slices.Concat(keysOf(caseFile{}), keysOf(testCase{}), keysOf(Event{}), keysOf(caseError{}))
}

// keysOf lists the JSON keys of a struct.
func keysOf(v any) []string {
	var keys []string
	for field := range reflect.TypeOf(v).Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		keys = append(keys, key)
	}
	return keys
}

// check refuses cases that cannot be run.
func (f *caseFile) check(file string) error {
	if len(f.Cases) == 0 {
		return fmt.Errorf("%s has no cases", file)
	}
	names := map[string]bool{}
	for i := range f.Cases {
		c := &f.Cases[i]
		switch {
		case c.Name == "":
			return fmt.Errorf("%s: case %d has no name", file, i+1)
		case names[c.Name]:
			return fmt.Errorf("%s: two cases have the name %q", file, c.Name)
		case c.Result != nil && c.Error != nil:
			return fmt.Errorf("%s: case %q expects both a result and an error", file, c.Name)
		case c.Start != nil && input.KindOf(string(c.Start)) != "object":
			return fmt.Errorf("%s: the start of case %q is not an object, with the fields of the start event", file, c.Name)
		}
		names[c.Name] = true
		for _, e := range slices.Concat(c.Answers, c.Stream) {
			if e.Type == "" {
				return fmt.Errorf("%s: an event of case %q has no type", file, c.Name)
			}
		}
	}
	return nil
}

// write writes the cases back, indented.
func (f *caseFile) write(file string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(f); err != nil {
		return err
	}
	return cli.ReplaceFile(file, b.Bytes())
}

// happened has the results of a case.
type happened struct {
	result json.RawMessage // nil: no result
	err    *caseError      // nil: the run completed
	stream []Event
	state  json.RawMessage
	asked  int // questions without an answer
}

// differences lists the differences between the results and the expected results of the
// case.
func (c *testCase) differences(h *happened) []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	switch {
	case h.asked > 0:
		add("the run asks, but the case has no answers left: it needs %d", len(c.Answers)+h.asked)
	case c.Error == nil && h.err != nil:
		add("error: the run failed with the code %s: %s%s", h.err.Code, h.err.Message, cure(h.err.Code, h.err.Message))
	case c.Error != nil && h.err == nil:
		add("error: the run should have failed%s, but completed with %s", withCode(c.Error.Code), h.result)
	case c.Error != nil:
		if c.Error.Code != "" && c.Error.Code != h.err.Code {
			add("error.code:\n    want %s\n    have %s (%s)", c.Error.Code, h.err.Code, h.err.Message)
		}
		if !strings.Contains(h.err.Message, c.Error.Message) {
			add("error.message:\n    want a text with %q\n    have %q", c.Error.Message, h.err.Message)
		}
	case c.Result != nil:
		all = append(all, different("result", c.Result, h.result, true)...)
	}
	all = append(all, absent(c.Stream, h.stream)...)
	if c.State != nil {
		all = append(all, different("state", c.State, h.state, false)...)
	}
	return all
}

func withCode(code string) string {
	if code == "" {
		return ""
	}
	return " with the code " + code
}

// absent returns the expected events that did not occur, in their order.
func absent(want, have []Event) []string {
	at := 0
	for i, w := range want {
		found := false
		for ; at < len(have) && !found; at++ {
			found = have[at].Type == w.Type && (w.Fields == nil || len(different("", w.Fields, have[at].Fields, false)) == 0)
		}
		if found {
			continue
		}
		text := fmt.Sprintf("stream: event %d, %s, did not occur%s; the stream was", i+1, w.Text(), after(i))
		for _, h := range have {
			text += "\n    " + h.Text()
		}
		if len(have) == 0 {
			text += " empty"
		}
		return []string{text}
	}
	return nil
}

func after(i int) string {
	if i == 0 {
		return ""
	}
	return fmt.Sprintf(" after event %d", i)
}

// Text returns the event in one line.
func (e Event) Text() string {
	if e.Fields == nil {
		return e.Type
	}
	return e.Type + " " + screen.Compact(e.Fields)
}

// refused returns the error of a case whose start the API refused.
func refused(err error) *caseError {
	return &caseError{Code: string(host.CodeOf(err)), Message: host.MessageOf(err)}
}

// cure returns an extra line for the error of a run: what to use instead of a function
// that plugins do not have, or what to do about one of weft's error codes.
func cure(code, message string) string {
	if instead := missing.Hint(message); instead != "" {
		return "\n    " + instead
	}
	for _, e := range codes.Explain(code) {
		if e.Where == codes.InRun && e.Do != "" {
			return "\n    " + e.Do
		}
	}
	return ""
}
