package resource

import (
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weftrun/weft/abi"
)

// request is a request of the method request, checked as far as possible without the
// policy.
type request struct {
	method  string
	url     string // full URL; "": see path
	path    string // relative to the resource's base_url
	query   url.Values
	header  http.Header
	body    []byte
	timeout time.Duration // 0: the resource's
	// success: an answer with an error status is an error.
	success bool
}

// Bounds of a request's headers.
const (
	maxHeaders     = 64
	maxHeaderName  = 128
	maxHeaderValue = 8 << 10
)

// ownHeaders are headers that the server sets itself, or that concern the transfer of a
// message and not its content.
var ownHeaders = []string{
	"Accept-Encoding", "Connection", "Content-Length", "Expect", "Host", "Idempotency-Key", "Keep-Alive",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

// decodeRequest reads a payload:
//
//	{method, url | path, query?, headers?, body?, timeout?, expect_success?}
func decodeRequest(payload abi.Raw) (*request, error) {
	v, err := abi.DecodeValue(payload)
	if err != nil {
		return nil, err
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the payload must be a map: {method, url or path, query?, headers?, body?, timeout?, expect_success?}")
	}
	q := &request{header: http.Header{}}
	for name, v := range m {
		if err := q.field(name, v); err != nil {
			return nil, err
		}
	}
	if q.method == "" {
		q.method = http.MethodGet
	}
	if (q.url == "") == (q.path == "") {
		return nil, fmt.Errorf("the payload needs either url, whole, or path, below the base_url of the resource")
	}
	return q, nil
}

func (q *request) field(name string, v any) error {
	wrong := func(want string) error { return fmt.Errorf("%s must be %s", name, want) }
	var ok bool
	switch name {
	case "method":
		if q.method, ok = v.(string); !ok || !isToken(q.method) || q.method != strings.ToUpper(q.method) {
			return wrong("a method such as GET, in upper case")
		}
	case "url":
		if q.url, ok = v.(string); !ok || q.url == "" {
			return wrong("a text")
		}
	case "path":
		if q.path, ok = v.(string); !ok || q.path == "" {
			return wrong("a text that is not empty")
		}
	case "query":
		return q.readQuery(v)
	case "headers":
		return q.readHeaders(v)
	case "body":
		switch b := v.(type) {
		case nil:
		case string:
			q.body = []byte(b)
			q.defaultType("text/plain; charset=utf-8")
		case []byte:
			q.body = b
			q.defaultType("application/octet-stream")
		default:
			return wrong("a text or bytes")
		}
	case "timeout":
		n, ok := v.(int64)
		if !ok || n <= 0 {
			return wrong("a number of nanoseconds above 0")
		}
		q.timeout = time.Duration(n)
	case "expect_success":
		if q.success, ok = v.(bool); !ok {
			return wrong("true or false")
		}
	default:
		return fmt.Errorf("the payload has the unknown name %q: use method, url, path, query, headers, body, timeout, expect_success", clip(name))
	}
	return nil
}

// defaultType sets the content type of a body that has no header for it.
func (q *request) defaultType(typ string) {
	if q.header.Get("Content-Type") == "" {
		q.header.Set("Content-Type", typ)
	}
}

// texts reads one text or a list of texts.
func texts(v any) ([]string, bool) {
	switch v := v.(type) {
	case string:
		return []string{v}, true
	case []any:
		out := make([]string, len(v))
		for i := range v {
			s, ok := v[i].(string)
			if !ok {
				return nil, false
			}
			out[i] = s
		}
		return out, true
	}
	return nil, false
}

func (q *request) readQuery(v any) error {
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("query must be a map of texts, or of lists of texts")
	}
	q.query = url.Values{}
	for name, v := range m {
		values, ok := texts(v)
		if !ok {
			return fmt.Errorf("query %q must be a text or a list of texts", clip(name))
		}
		q.query[name] = values
	}
	return nil
}

func (q *request) readHeaders(v any) error {
	m, ok := v.(map[string]any)
	if !ok {
		return fmt.Errorf("headers must be a map of texts, or of lists of texts")
	}
	n := 0
	for name, v := range m {
		values, ok := texts(v)
		if !ok {
			return fmt.Errorf("header %q must be a text or a list of texts", clip(name))
		}
		if !isToken(name) || len(name) > maxHeaderName {
			return fmt.Errorf("%q is not a name of a header", clip(name))
		}
		key := textproto.CanonicalMIMEHeaderKey(name)
		if slices.Contains(ownHeaders, key) || strings.HasPrefix(key, "Proxy-") {
			return fmt.Errorf("the header %s is set by the server: leave it out", key)
		}
		if _, twice := q.header[key]; twice && key != "Content-Type" {
			return fmt.Errorf("the header %s is given twice, in different case", key)
		}
		for _, value := range values {
			if len(value) > maxHeaderValue || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f || r == utf8.RuneError }) {
				return fmt.Errorf("the value of the header %s is longer than %d bytes or has control characters", key, maxHeaderValue)
			}
		}
		q.header[key] = values
		n += max(len(values), 1)
	}
	if n > maxHeaders {
		return fmt.Errorf("%d headers, more than %d", n, maxHeaders)
	}
	return nil
}

// isToken reports whether a text is a token in the sense of HTTP.
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// encodeAnswer returns the answer for the guest: {status, headers, body}. Names of
// headers are in lower case, each with a list of its values; the body is bytes.
func encodeAnswer(status int, header http.Header, body []byte) (abi.Raw, error) {
	headers := make(map[string]any, len(header))
	for name, values := range header {
		list := make([]any, len(values))
		for i, v := range values {
			list[i] = strings.ToValidUTF8(v, "\ufffd")
		}
		headers[strings.ToValidUTF8(strings.ToLower(name), "\ufffd")] = list
	}
	return abi.EncodeValue(map[string]any{"status": status, "headers": headers, "body": body})
}

// StatusError returns the error for an answer with an error status, for requests that
// expect success. The code depends on the status, the message contains the beginning of
// the body, and Retryable says whether a retry may help. Test kits return the same error.
func StatusError(status int, body []byte) *abi.Error { return statusError(status, body) }

// statusError returns the error for an answer with an error status. It is retryable for
// statuses after which a retry may help.
func statusError(status int, body []byte) *abi.Error {
	code := abi.StatusFailedPrecondition
	var retryable *bool
	switch {
	case status == http.StatusRequestTimeout, status == http.StatusTooEarly, status == http.StatusTooManyRequests, status >= 500:
		code = abi.StatusUnavailable
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		code = abi.StatusPermissionDenied
	case status == http.StatusNotFound, status == http.StatusGone:
		code = abi.StatusNotFound
	case status == http.StatusConflict, status == http.StatusPreconditionFailed:
		code = abi.StatusConflict
	}
	if code != abi.StatusUnavailable {
		no := false
		retryable = &no
	}
	message := fmt.Sprintf("the answer is %d %s", status, http.StatusText(status))
	if text := strings.TrimSpace(strings.ToValidUTF8(string(body[:min(len(body), 200)]), "")); text != "" {
		message += ": " + text
	}
	return &abi.Error{Code: code.Code(), Message: message, Retryable: retryable}
}
