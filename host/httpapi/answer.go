package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/apiwire"
)

// answerTimeout is how long a client may take to read one answer, or one batch
// of a stream, before its connection is closed.
const answerTimeout = 2 * time.Minute

// keepBuffer is the largest buffer that is kept for the next answer, in bytes.
const keepBuffer = 64 << 10

// buffers holds *[]byte for answers in progress.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// withBuffer lends an empty buffer to fill, which returns the extended buffer, and passes
// its content to use.
func withBuffer(fill func(dst []byte) ([]byte, error), use func(b []byte) error) error {
	p := buffers.Get().(*[]byte)
	b, err := fill((*p)[:0])
	if err == nil {
		err = use(b)
	}
	if cap(b) <= keepBuffer {
		*p = b
	}
	buffers.Put(p)
	return err
}

// answer sends an object as JSON or, if the client prefers it, as CBOR.
func answer[T any](c echo.Context, status int, v *T) error {
	return withBuffer(
		func(dst []byte) ([]byte, error) { return apiwire.Append(dst, v) },
		func(b []byte) error { return sendJSON(c, status, b) })
}

// answerOr is answer, unless err is not nil.
func answerOr[T any](c echo.Context, status int, v *T, err error) error {
	if err != nil {
		return err
	}
	return answer(c, status, v)
}

// answerGone answers that something was deleted, unless err is not nil.
func answerGone(c echo.Context, err error) error {
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// sendJSON sends a JSON text, or the same value as CBOR. A value that nests too deep to
// be transcoded (a result of full depth in its envelope) stays JSON.
func sendJSON(c echo.Context, status int, body []byte) error {
	if prefersCBOR(c.Request()) {
		if raw, err := abi.FromJSON(body); err == nil {
			return send(c, status, apiwire.TypeCBOR, raw)
		}
	}
	return send(c, status, echo.MIMEApplicationJSON, body)
}

// send writes a whole answer, compressed if the client accepts it and it saves bytes.
func send(c echo.Context, status int, contentType string, body []byte) error {
	body, done := packed(c, contentType, body)
	defer done()
	extendDeadline(c)
	h := c.Response().Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.Response().WriteHeader(status)
	_, err := c.Response().Write(body)
	return err
}

// boundAnswer limits the time for an answer, whoever writes it. The time begins with the
// header. It also limits the time to read the rest of the request's body, which net/http
// does before it answers.
func boundAnswer(c echo.Context) {
	c.Response().Before(func() {
		extendDeadline(c)
		if c.Request().ContentLength != 0 {
			_ = http.NewResponseController(c.Response()).SetReadDeadline(time.Now().Add(drainTime))
		}
	})
}

// extendDeadline gives the client time to read what is written next.
func extendDeadline(c echo.Context) {
	// Some writers do not have deadlines (a test's recorder).
	_ = http.NewResponseController(c.Response()).SetWriteDeadline(time.Now().Add(answerTimeout))
}

// prefersCBOR reports whether the Accept header names CBOR before JSON and before
// anything that includes JSON.
func prefersCBOR(r *http.Request) bool {
	for _, header := range r.Header.Values("Accept") {
		for entry := range strings.SplitSeq(header, ",") {
			kind, params, _ := strings.Cut(entry, ";")
			switch strings.ToLower(strings.TrimSpace(kind)) {
			case apiwire.TypeCBOR:
				return !refused(params)
			case "application/json", "application/*", "*/*":
				return false
			}
		}
	}
	return false
}

// refused reports whether a media range has the quality 0 among its parameters.
func refused(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		if q, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(p)), "q="); ok {
			f, err := strconv.ParseFloat(q, 64)
			return err == nil && f == 0
		}
	}
	return false
}
