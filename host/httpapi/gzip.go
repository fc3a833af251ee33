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

// minGzip is the length in bytes from which compressing an answer saves time: a shorter
// answer takes one packet in any case.
const minGzip = 1 << 10

// leastRecord is a lower bound for the length of a record in a listing, in bytes.
const leastRecord = 256

// packers are the compressors, which are made at their first use. Each has close to a
// megabyte of tables. There is one for each core, because compressing only uses the CPU:
// more compressors would wait for a core instead. No compressor is held while the server
// writes to a client.
var packers = newPackers(runtime.GOMAXPROCS(0))

// newPackers creates a pool of n compressors; nil stands for a compressor that is not
// made yet.
func newPackers(n int) chan *gzip.Writer {
	pool := make(chan *gzip.Writer, n)
	for range n {
		pool <- nil
	}
	return pool
}

// pack lends fill a compressor that writes to out, and finishes the compressed text.
func pack(out io.Writer, fill func(w io.Writer) error) error {
	w := <-packers
	if w == nil {
		// The level is valid. The fastest level reduces a typical listing to a tenth.
		w, _ = gzip.NewWriterLevel(out, gzip.BestSpeed)
	} else {
		w.Reset(out)
	}
	defer func() {
		w.Reset(io.Discard) // the compressor must not keep the answer
		packers <- w
	}()
	if err := fill(w); err != nil {
		return err
	}
	return w.Close()
}

// packed returns the body to send. The body is compressed, and the header says so, if the
// client accepts gzip and compression saves bytes. done releases the memory of the body.
//
// A body with an entity tag is not compressed: the tag is strong, so it stands for one
// sequence of bytes.
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
	if err != nil || b.Len() >= len(body) { // a buffer returns no error; random data does not shrink
		return body, done
	}
	h.Set("Content-Encoding", "gzip")
	return b.Bytes(), done
}

// packPage writes a compressed page. The whole compressed page is in memory, because a
// compressor must not wait for a client, but never the whole page uncompressed.
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

// packable reports whether bodies of a type are compressed. A stream of events is not:
// clients must be able to read each event when it is written.
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

// takesGzip reports whether the client accepts gzip. A quality for gzip takes precedence
// over a quality for all codings.
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
