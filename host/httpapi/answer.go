package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
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

// answerJSON answers what fill appends, as JSON or, when the client prefers
// it, as CBOR.
func (s *Server) answerJSON(c echo.Context, status int, fill func(dst []byte) ([]byte, error)) error {
	return withBuffer(fill, func(b []byte) error { return s.sendJSON(c, status, b) })
}

// sendJSON answers a JSON text, or the same as CBOR. What nests too deep to be
// transcoded (a result of full depth in its envelope) stays JSON.
func (s *Server) sendJSON(c echo.Context, status int, body []byte) error {
	if prefersCBOR(c.Request()) {
		if raw, err := abi.FromJSON(body); err == nil {
			return send(c, status, cborType, raw)
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
			case cborType:
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

// appendString appends a JSON string. As abi does, it escapes the characters
// at which clients of event streams split lines.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		if c := s[i]; c < utf8.RuneSelf {
			if c < ' ' || c == '"' || c == '\\' {
				dst = append(dst, s[start:i]...)
				switch c {
				case '"', '\\':
					dst = append(dst, '\\', c)
				case '\n':
					dst = append(dst, '\\', 'n')
				case '\r':
					dst = append(dst, '\\', 'r')
				case '\t':
					dst = append(dst, '\\', 't')
				default:
					dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
				}
				start = i + 1
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 || r == 0x85 || r == 0x2028 || r == 0x2029 {
			dst = append(dst, s[start:i]...)
			dst = append(dst, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
			start = i + size
		}
		i += size
	}
	return append(append(dst, s[start:]...), '"')
}

// appendStrings appends an array of JSON strings.
func appendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, s)
	}
	return append(dst, ']')
}

// stampLayout is how times are shown: microseconds and the offset of UTC.
const stampLayout = `2006-01-02T15:04:05.000000-07:00`

// appendStamp appends a time in Unix nanoseconds as a JSON string.
func appendStamp(dst []byte, nanos int64) []byte {
	dst = append(dst, '"')
	dst = time.Unix(0, nanos).UTC().AppendFormat(dst, stampLayout)
	return append(dst, '"')
}

// appendRaw appends an encoded value as JSON; nil is null.
func appendRaw(dst []byte, raw abi.Raw) ([]byte, error) {
	if raw == nil {
		return append(dst, "null"...), nil
	}
	out, err := abi.AppendJSON(dst, raw)
	if err != nil {
		return dst, &host.Error{Code: host.CodeInternal, Message: "internal error", Cause: err}
	}
	return out, nil
}
