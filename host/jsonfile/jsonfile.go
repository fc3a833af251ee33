// Package jsonfile reads JSON that people write, token by token, and collects the
// problems, each with its line and column. It must not depend on the meaning of a file.
package jsonfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Error lists the problems of a file.
type Error struct {
	// Problems has one line for each problem, which begins with its position. There is at
	// least one.
	Problems []string
}

// Error returns all problems, one a line if there are several.
func (e *Error) Error() string {
	if len(e.Problems) == 1 {
		return e.Problems[0]
	}
	return fmt.Sprintf("%d problems:\n  - %s", len(e.Problems), strings.Join(e.Problems, "\n  - "))
}

// maxProblems bounds the reported problems of a file.
const maxProblems = 50

// Reader reads the tokens of a text, and collects problems. It is not safe for concurrent
// use.
type Reader struct {
	text     []byte
	dec      *json.Decoder
	problems []string
}

// NewReader makes a reader of the text, which it keeps. Numbers are
// [json.Number].
func NewReader(text []byte) *Reader {
	r := &Reader{text: text, dec: json.NewDecoder(bytes.NewReader(text))}
	r.dec.UseNumber()
	return r
}

// Token reads the next token and returns the offset at which it begins. The error is
// io.EOF if the text ends before the token. Any other error gives the line and column at
// which the text is not valid JSON.
func (r *Reader) Token() (tok json.Token, at int64, err error) {
	at = r.Next()
	tok, err = r.dec.Token()
	if err == nil || errors.Is(err, io.EOF) && at == int64(len(r.text)) {
		return tok, at, err
	}
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		at = max(syntax.Offset-1, 0)
		return nil, at, r.Fault(at, "no JSON: %w", err)
	}
	return nil, at, r.End()
}

// More reports whether the present object or list has another element.
func (r *Reader) More() bool { return r.dec.More() }

// Next returns the offset at which the next token begins.
func (r *Reader) Next() int64 {
	at := r.dec.InputOffset()
	for at < int64(len(r.text)) && strings.IndexByte(" \t\r\n,:", r.text[at]) >= 0 {
		at++
	}
	return at
}

// End returns the error for a text that ends too early.
func (r *Reader) End() error {
	return r.Fault(int64(len(r.text)), "the text ends in the middle")
}

// Fault returns an error that begins with the line and column of the offset.
func (r *Reader) Fault(at int64, format string, args ...any) error {
	return fmt.Errorf(r.place(at)+format, args...)
}

// place returns the beginning of a problem's line.
func (r *Reader) place(at int64) string {
	before := r.text[:min(at, int64(len(r.text)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("line %d, column %d: ", line, column)
}

// Problem records a problem at an offset. path is the path of names to it, "" at the top.
// Only the first problems are kept.
func (r *Reader) Problem(at int64, path, format string, args ...any) {
	if len(r.problems) == maxProblems {
		return
	}
	if path != "" {
		path += ": "
	}
	r.problems = append(r.problems, r.place(at)+path+fmt.Sprintf(format, args...))
}

// Count returns the number of kept problems.
func (r *Reader) Count() int { return len(r.problems) }

// Stop records the error that prevents reading the rest, whatever the number of problems
// before it.
func (r *Reader) Stop(err error) { r.problems = append(r.problems, err.Error()) }

// Err returns an [*Error] with the problems, or nil if there are none.
func (r *Reader) Err() error {
	if len(r.problems) == 0 {
		return nil
	}
	return &Error{Problems: r.problems}
}
