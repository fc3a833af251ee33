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

// keepBuffer bounds the buffers that are kept for the next answer, in bytes.
const keepBuffer = 64 << 10

// buffers holds *[]byte for answers under way.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// withBuffer lends an empty buffer to fill, which returns it grown, and hands
// what it holds to use.
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

// answer answers an object as JSON or, when the client prefers it, as CBOR.
func answer[T any](c echo.Context, status int, v *T) error {
	return withBuffer(
		func(dst []byte) ([]byte, error) { return apiwire.Append(dst, v) },
		func(b []byte) error { return sendJSON(c, status, b) })
}

// answerOr is answer, unless there is an error.
func answerOr[T any](c echo.Context, status int, v *T, err error) error {
	if err != nil {
		return err
	}
	return answer(c, status, v)
}

// answerGone answers that something was deleted, unless there is an error.
func answerGone(c echo.Context, err error) error {
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// sendJSON answers a JSON text, or the same as CBOR. What nests too deep to be
// transcoded (a result of full depth in its envelope) stays JSON.
func sendJSON(c echo.Context, status int, body []byte) error {
	if prefersCBOR(c.Request()) {
		if raw, err := abi.FromJSON(body); err == nil {
			return send(c, status, apiwire.TypeCBOR, raw)
		}
	}
	return send(c, status, echo.MIMEApplicationJSON, body)
}

// send writes a whole answer, compressed if that is wanted and worth it.
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

// boundAnswer has the time of an answer bounded from its header on, whatever writes
// it. So is that of what is left of the request's body, which net/http takes in
// before it answers.
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
	// Not every writer has deadlines (a test's recorder has none).
	_ = http.NewResponseController(c.Response()).SetWriteDeadline(time.Now().Add(answerTimeout))
}

// prefersCBOR reports whether the Accept header names CBOR before JSON and
// anything that includes it.
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

// refused reports a quality of 0 among a media range's parameters.
func refused(params string) bool {
	for p := range strings.SplitSeq(params, ";") {
		if q, ok := strings.CutPrefix(strings.ToLower(strings.TrimSpace(p)), "q="); ok {
			f, err := strconv.ParseFloat(q, 64)
			return err == nil && f == 0
		}
	}
	return false
}
