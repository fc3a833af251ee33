package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
)

// A body has this much time to arrive, and more depending on its size.
const (
	bodyGrace   = 30 * time.Second
	bodyMinRate = 64 << 10 // bytes a second
)

// The server reads this much of a body that is too long, for this long. Most clients send
// everything before they read, and would otherwise see a broken connection instead of the
// answer.
const (
	drainBytes = 64 << 20
	drainTime  = 10 * time.Second
)

// firstRead limits the memory that is allocated before any of a body has arrived.
const firstRead = 256 << 10

// mediaType returns the type of a header value, in lower case without parameters. It
// returns an unreadable value unchanged.
func mediaType(header string) string {
	if header == "" {
		return ""
	}
	if t, _, err := mime.ParseMediaType(header); err == nil {
		return t
	}
	return strings.ToLower(header)
}

// readBody reads a request's body of at most limit bytes. The bytes belong to the caller.
//
// # Errors
//
// CodeTooLarge; CodeUnsupportedMediaType for an encoded body; CodeInvalidMessage if the
// body ends early or arrives too slowly; CodeOverloaded.
func readBody(c echo.Context, limit int64) ([]byte, error) {
	r := c.Request()
	if enc := r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, host.Errorf(host.CodeUnsupportedMediaType, "Content-Encoding %q is not accepted", clip(enc))
	}
	rc := http.NewResponseController(c.Response())
	if r.ContentLength > limit {
		// A client that sends Expect gets the answer without sending its body.
		if r.Header.Get("Expect") == "" {
			drain(rc, r.Body)
		}
		return nil, tooLarge(limit)
	}
	if r.ContentLength == 0 {
		return nil, nil
	}
	expect := limit
	if r.ContentLength > 0 {
		expect = r.ContentLength
	}
	// Some writers do not have deadlines (a test's recorder).
	_ = rc.SetReadDeadline(time.Now().Add(bodyGrace + time.Duration(expect/bodyMinRate)*time.Second))
	body, err := readAll(http.MaxBytesReader(c.Response().Writer, r.Body, limit), expect, placeOf(c).Grow)
	switch {
	case err == nil:
		// A deadline left behind would end the request's context later.
		_ = rc.SetReadDeadline(time.Time{})
	case host.CodeOf(err) == host.CodeTooLarge:
		drain(rc, r.Body)
	}
	return body, err
}

// drain reads the rest of a body that is refused because of its length.
func drain(rc *http.ResponseController, body io.Reader) {
	_ = rc.SetReadDeadline(time.Now().Add(drainTime))
	// The answer is about the length, even if the body has other faults.
	_, _ = io.CopyN(io.Discard, body, drainBytes)
}

// readAll reads to the end. It grows the buffer with what has arrived, so that announcing
// a long body costs nothing. It calls grow before each growth; grow may refuse.
func readAll(body io.Reader, expect int64, grow func(n int64) error) ([]byte, error) {
	first := min(expect, firstRead) + 1
	if err := grow(first); err != nil {
		return nil, err
	}
	buf := make([]byte, 0, first)
	for {
		n, err := body.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return nil, bodyError(err)
		}
		if len(buf) == cap(buf) {
			size := max(min(int64(cap(buf))*4, expect+1), int64(cap(buf))*2)
			if err := grow(size - int64(cap(buf))); err != nil {
				return nil, err
			}
			buf = append(make([]byte, 0, size), buf...)
		}
	}
}

func bodyError(err error) error {
	var long *http.MaxBytesError
	if errors.As(err, &long) {
		return tooLarge(long.Limit)
	}
	return &host.Error{Code: host.CodeInvalidMessage, Message: "The request body could not be read to its end", Cause: err}
}

func tooLarge(limit int64) error {
	return host.Errorf(host.CodeTooLarge, "The request body is longer than %d bytes", limit)
}

// readOnce reads a request's body, which must be an object, and the request's idempotency
// key, if it has one.
func (s *Server) readOnce(c echo.Context) (value, host.Once, error) {
	body, err := readBody(c, s.cfg.MaxBody)
	if err != nil {
		return value{}, host.Once{}, err
	}
	once, err := onceOf(c, body)
	if err != nil {
		return value{}, once, err
	}
	v, err := readObject(c, body)
	return v, once, err
}

func onceOf(c echo.Context, body []byte) (host.Once, error) {
	keys := c.Request().Header.Values(apiwire.HeaderOnce)
	if len(keys) == 0 {
		return host.Once{}, nil
	}
	key := keys[0]
	unfit := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(keys) > 1 || key == "" || len(key) > apiwire.MaxOnce || strings.ContainsFunc(key, unfit) {
		return host.Once{}, invalid("The header %s must be given once, with 1 to %d visible ASCII characters", apiwire.HeaderOnce, apiwire.MaxOnce)
	}
	return host.Once{Route: c.Request().Method + " " + c.Request().URL.EscapedPath(), Key: key, Hash: hashOf(body)}, nil
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
