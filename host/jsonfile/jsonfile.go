// Package jsonfile reads JSON that people write, token by token, and gathers what
// is wrong with it, each problem with its line and column. It must not know what
// a file says.
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

// Error lists what is wrong with a file.
type Error struct {
	// Problems has one line for each, which begins with its place; at least one.
	Problems []string
}

// Error returns all problems, one a line if there are several.
func (e *Error) Error() string {
	if len(e.Problems) == 1 {
		return e.Problems[0]
	}
	return fmt.Sprintf("%d problems:\n  - %s", len(e.Problems), strings.Join(e.Problems, "\n  - "))
}

// maxProblems is how many problems of a file are reported.
const maxProblems = 50

// Reader reads the tokens of a text, and gathers problems. It is not safe for
// concurrent use.
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

// Token reads the next token and returns the offset at which it begins. Its
// error is io.EOF where the text ends before the token. Any other error says in
// which line and column the text is not JSON.
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

// More reports whether the object or list that is being read has another
// element.
func (r *Reader) More() bool { return r.dec.More() }

// Next returns the offset at which the next token begins.
func (r *Reader) Next() int64 {
	at := r.dec.InputOffset()
	for at < int64(len(r.text)) && strings.IndexByte(" \t\r\n,:", r.text[at]) >= 0 {
		at++
	}
	return at
}

// End returns the error of a text that ends where something has to follow.
func (r *Reader) End() error {
	return r.Fault(int64(len(r.text)), "the text ends in the middle")
}

// Fault returns an error that begins with the line and column of the offset.
func (r *Reader) Fault(at int64, format string, args ...any) error {
	return fmt.Errorf(r.place(at)+format, args...)
}

// place is the beginning of a problem's line.
func (r *Reader) place(at int64) string {
	before := r.text[:min(at, int64(len(r.text)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return fmt.Sprintf("line %d, column %d: ", line, column)
}

// Problem notes what is wrong at an offset. path is the names on the way to it,
// "" at the top. Of many problems the first ones are kept.
func (r *Reader) Problem(at int64, path, format string, args ...any) {
	if len(r.problems) == maxProblems {
		return
	}
	if path != "" {
		path += ": "
	}
	r.problems = append(r.problems, r.place(at)+path+fmt.Sprintf(format, args...))
}

// Count returns how many problems are kept.
func (r *Reader) Count() int { return len(r.problems) }

// Stop notes the error because of which the rest cannot be read, whatever the
// number of problems before it.
func (r *Reader) Stop(err error) { r.problems = append(r.problems, err.Error()) }

// Err returns an [*Error] with the problems; nil if there are none.
func (r *Reader) Err() error {
	if len(r.problems) == 0 {
		return nil
	}
	return &Error{Problems: r.problems}
}
