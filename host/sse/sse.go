// Package sse reads the lines of server-sent events. It must not depend on what the
// events contain.
package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// lineBuffer is the length up to which a line is read without a copy, in bytes.
const lineBuffer = 16 << 10

// ErrTooLong is returned for a line longer than the reader's limit.
var ErrTooLong = errors.New("a line is too long")

// Reader reads the lines of a stream. It is not safe for concurrent use.
type Reader struct {
	lines *bufio.Reader
	most  int
}

// NewReader makes a reader of lines of at most most bytes.
func NewReader(r io.Reader, most int) *Reader {
	return &Reader{lines: bufio.NewReaderSize(r, lineBuffer), most: most}
}

// Field reads a line: the name of a field and its value, which are valid until the next
// call. The name is nil at the end of an event, and empty for a comment.
//
// # Errors
//
// io.EOF after the last line, [ErrTooLong], and errors of the stream. io.ErrUnexpectedEOF
// comes with a field if the stream ends within its line.
func (r *Reader) Field() (name, value []byte, err error) {
	line, err := r.line()
	if len(line) == 0 {
		return nil, nil, err
	}
	name, value, _ = bytes.Cut(line, []byte(":"))
	return name, bytes.TrimPrefix(value, []byte(" ")), err
}

// line reads a line without its end.
func (r *Reader) line() ([]byte, error) {
	var long []byte
	for {
		part, err := r.lines.ReadSlice('\n')
		if long != nil || errors.Is(err, bufio.ErrBufferFull) {
			long = append(long, part...)
			part = long
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(long) <= r.most:
			continue
		case len(part) > r.most:
			return nil, ErrTooLong
		case errors.Is(err, io.EOF) && len(part) > 0:
			err = io.ErrUnexpectedEOF
		case err != nil && !errors.Is(err, io.EOF):
			part = nil
		}
		return bytes.TrimRight(part, "\r\n"), err
	}
}
