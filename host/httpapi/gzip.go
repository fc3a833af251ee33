package httpapi

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// minGzip is the length in bytes from which an answer is worth compressing: a
// shorter one takes one packet in any case.
const minGzip = 1 << 10

// leastRecord is less than any record of a listing takes, in bytes.
const leastRecord = 256

// packers are the compressors that there are, made when they are first taken. Each
// has close to a megabyte of tables, so there are as many as cores: compressing is
// nothing but computing, and who waits for one would have waited for a core. None is
// held while a client is written to.
var packers = newPackers(runtime.GOMAXPROCS(0))

// newPackers makes a pool of n compressors; nil stands for one that is not made yet.
func newPackers(n int) chan *gzip.Writer {
	pool := make(chan *gzip.Writer, n)
	for range n {
		pool <- nil
	}
	return pool
}

// pack lends a compressor that writes to out, and writes the end.
func pack(out io.Writer, fill func(w io.Writer) error) error {
	w := <-packers
	if w == nil {
		// The level exists. The fastest one leaves a tenth of a typical listing.
		w, _ = gzip.NewWriterLevel(out, gzip.BestSpeed)
	} else {
		w.Reset(out)
	}
	defer func() {
		w.Reset(io.Discard) // the pool keeps no answer
		packers <- w
	}()
	if err := fill(w); err != nil {
		return err
	}
	return w.Close()
}

// packed gives the body to answer with: compressed, and the header says so, if the
// client takes that and it is worth it. done gives its memory back.
//
// What has an entity tag stays as it is: the tag is a strong one, and so that of
// one sequence of bytes.
func packed(c echo.Context, contentType string, body []byte) (out []byte, done func()) {
	h := c.Response().Header()
	if len(body) < minGzip || !packable(contentType) || h.Get("ETag") != "" {
		return body, func() {}
	}
	h.Add("Vary", "Accept-Encoding")
	if !takesGzip(c.Request()) {
		return body, func() {}
	}
	p := buffers.Get().(*[]byte)
	b := bytes.NewBuffer((*p)[:0])
	done = func() {
		if b.Cap() <= keepBuffer {
			*p = b.Bytes()[:0]
		}
		buffers.Put(p)
	}
	err := pack(b, func(w io.Writer) error {
		_, err := w.Write(body)
		return err
	})
	if err != nil || b.Len() >= len(body) { // a buffer takes all; noise does not shrink
		return body, done
	}
	h.Set("Content-Encoding", "gzip")
	return b.Bytes(), done
}

// packPage writes a page compressed: as a whole, as a compressor is not to wait for
// a client, but it is never there uncompressed as a whole.
func packPage(c echo.Context, runs []host.Run, more bool, q *host.RunQuery) error {
	var out bytes.Buffer
	err := pack(&out, func(w io.Writer) error {
		spill := func(b []byte) ([]byte, error) {
			if len(b) < flushSize {
				return b, nil
			}
			_, err := w.Write(b)
			return b[:0], err
		}
		return withBuffer(
			func(dst []byte) ([]byte, error) { return appendPage(dst, runs, more, q, spill) },
			func(rest []byte) error {
				_, err := w.Write(rest)
				return err
			})
	})
	if err != nil {
		return err
	}
	h := c.Response().Header()
	h.Add("Vary", "Accept-Encoding")
	h.Set("Content-Encoding", "gzip")
	h.Set("Content-Type", echo.MIMEApplicationJSON)
	h.Set("Content-Length", strconv.Itoa(out.Len()))
	extendDeadline(c)
	_, err = c.Response().Write(out.Bytes())
	return err
}

// packable reports whether bodies of a type are compressed. A stream of events is
// not: clients must be able to read each event when it is written.
func packable(contentType string) bool {
	switch t := mediaType(contentType); t {
	case echo.MIMEApplicationJSON, apiwire.TypeCBOR, "application/javascript", "image/svg+xml":
		return true
	case "text/event-stream":
		return false
	default:
		return strings.HasPrefix(t, "text/") || strings.HasSuffix(t, "+json")
	}
}

// takesGzip reports whether the client says that it reads gzip. What it says of gzip
// itself goes before what it says of all codings.
func takesGzip(r *http.Request) bool {
	any := false
	for _, header := range r.Header.Values("Accept-Encoding") {
		for entry := range strings.SplitSeq(header, ",") {
			coding, params, _ := strings.Cut(entry, ";")
			switch strings.ToLower(strings.TrimSpace(coding)) {
			case "gzip", "x-gzip":
				return !refused(params)
			case "*":
				any = !refused(params)
			}
		}
	}
	return any
}
