// Package client is the Go client of the HTTP API. The command line uses it to talk to a
// server. It uses the host's types where the API has all their fields, and also keeps the
// JSON that the server sent.
//
// It does not depend on how the server works, and its only state is its connections.
// Every call is one request; only an event stream reconnects by itself.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/limit"
)

// maxAnswer bounds an answer that is read whole, in bytes.
const maxAnswer = 256 << 20

// Defaults of [Options].
const (
	DefaultIdle       = 90 * time.Second // more than three heartbeats of the server
	DefaultRetries    = 5
	DefaultRetryDelay = 200 * time.Millisecond
)

// Options change how a [Client] works. The zero value works.
type Options struct {
	// HTTP sends the requests. It should have no Timeout, because runs and streams take
	// as long as they like. Default: a client with connections of its own.
	HTTP *http.Client
	// Key is sent with every request, as a bearer token. Default: none.
	Key string
	// Tenant is the tenant in which the server's own key acts. Default: the server's.
	Tenant string
	// Idle is how long a stream's connection may be silent before it counts as lost.
	// Default: [DefaultIdle].
	Idle time.Duration
	// Retries is how many times in a row a stream reconnects without receiving an event
	// before it gives up; a negative number means never reconnecting. Default:
	// [DefaultRetries].
	Retries int
	// RetryDelay is how long a stream waits before it reconnects; it doubles
	// with every retry in a row, up to 5 s. Default: [DefaultRetryDelay].
	RetryDelay time.Duration
}

// Client talks to one server. Its methods may be called from any goroutine.
//
// # Errors
//
// An error that the server answers is returned as a [*host.Error] with its code, message
// and problems. If the server cannot be reached, the code is CodeUnavailable and the
// message says what to do. If ctx ends first, its error is returned.
type Client struct {
	base string
	opts Options
}

// New creates a client of the server at a base URL like http://127.0.0.1:8080; the scheme
// http may be omitted. New does not connect.
func New(baseURL string, opts Options) (*Client, error) {
	if !strings.Contains(baseURL, "://") {
		baseURL = "http://" + baseURL
	}
	u, err := url.Parse(baseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.Fragment != "" {
		return nil, host.Errorf(host.CodeInvalidArgument, "%q is not a server's address; it looks like http://127.0.0.1:8080", baseURL)
	}
	if opts.HTTP == nil {
		opts.HTTP = &http.Client{Transport: newTransport()}
	}
	if opts.Idle <= 0 {
		opts.Idle = DefaultIdle
	}
	if opts.Retries == 0 {
		opts.Retries = DefaultRetries
	}
	if opts.RetryDelay <= 0 {
		opts.RetryDelay = DefaultRetryDelay
	}
	return &Client{base: strings.TrimRight(u.String(), "/"), opts: opts}, nil
}

func newTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	return t
}

// Close closes idle connections. Calls in progress continue.
func (c *Client) Close() { c.opts.HTTP.CloseIdleConnections() }

// Health returns nil if the server's store works.
func (c *Client) Health(ctx context.Context) error {
	_, err := c.want(ctx, http.StatusOK, request{method: http.MethodGet, path: "/health"})
	return err
}

// Ready returns nil if the server also accepts work.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.want(ctx, http.StatusOK, request{method: http.MethodGet, path: "/ready"})
	return err
}

// request is one request of the API.
type request struct {
	method      string
	path        string // escaped
	query       url.Values
	contentType string
	body        []byte
	header      map[string]string
}

// answer is an answer that was read whole.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// send sends a request; the caller closes the answer's body.
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	target := c.base + r.path
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	var body io.Reader
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, target, body)
	if err != nil {
		return nil, &host.Error{Code: host.CodeInvalidArgument, Message: err.Error(), Cause: err}
	}
	if r.contentType != "" {
		req.Header.Set("Content-Type", r.contentType)
	}
	if c.opts.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.opts.Key)
	}
	if c.opts.Tenant != "" {
		req.Header.Set(apiwire.HeaderTenant, c.opts.Tenant)
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
	}
	resp, err := c.opts.HTTP.Do(req)
	if err != nil {
		return nil, c.unreachable(ctx, err)
	}
	return resp, nil
}

// do sends a request and reads the answer, whatever its status.
func (c *Client) do(ctx context.Context, r request) (answer, error) {
	resp, err := c.send(ctx, r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return answer{}, c.unreachable(ctx, err)
	}
	if len(body) > maxAnswer {
		return answer{}, host.Errorf(host.CodeTooLarge, "The server's answer is longer than %d bytes", maxAnswer)
	}
	return answer{resp.StatusCode, resp.Header, body}, nil
}

// want is do for requests that succeed with exactly one status.
func (c *Client) want(ctx context.Context, status int, r request) (answer, error) {
	a, err := c.do(ctx, r)
	if err == nil && a.status != status {
		err = a.failure()
	}
	return a, err
}

// getJSON reads a JSON answer into v.
func (c *Client) getJSON(ctx context.Context, path string, query url.Values, v any) error {
	a, err := c.want(ctx, http.StatusOK, request{method: http.MethodGet, path: path, query: query})
	if err != nil {
		return err
	}
	return a.decode(v)
}

// decode reads the answer's JSON into v.
func (a *answer) decode(v any) error {
	if err := json.Unmarshal(a.body, v); err != nil {
		return &host.Error{Code: host.CodeInvalidMessage, Message: "The server's answer is not understood: " + err.Error(), Cause: err}
	}
	return nil
}

// failure returns the error that the answer represents.
func (a *answer) failure() *host.Error {
	var body struct {
		apiwire.Error
		Detail json.RawMessage `json:"detail"` // other servers have more than a text here
	}
	e := &host.Error{Code: codeOf(a.status)}
	if json.Unmarshal(a.body, &body) == nil && len(body.Detail) > 0 {
		if json.Unmarshal(body.Detail, &e.Message) != nil {
			e.Message = string(body.Detail)
		}
		for i := range body.Problems {
			e.Problems = append(e.Problems, host.Problem{})
			apiwire.Fill(&e.Problems[i], &body.Problems[i])
		}
		if body.Limit != nil {
			e.Breach = &limit.Breach{Size: a.status == http.StatusRequestEntityTooLarge}
			apiwire.Fill(e.Breach, body.Limit)
		}
		if body.Nearest != nil {
			e.Nearest = &host.Nearest{}
			apiwire.Fill(e.Nearest, body.Nearest)
		}
		if body.Code != "" {
			e.Code = body.Code
		}
	}
	if e.Message == "" {
		e.Message = fmt.Sprintf("The server answered %d %s", a.status, http.StatusText(a.status))
		if text := strings.TrimSpace(string(a.body[:min(len(a.body), 200)])); text != "" {
			e.Message += ": " + strings.ToValidUTF8(text, "?")
		}
	}
	if seconds, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil && seconds > 0 {
		e.RetryAfter = time.Duration(seconds) * time.Second
	}
	return e
}

// codeOf guesses the code for a status, for answers that do not come from the API.
func codeOf(status int) host.Code {
	for _, code := range []host.Code{
		host.CodeInvalidArgument, host.CodeUnauthenticated, host.CodePermissionDenied, host.CodeNotFound,
		host.CodeMethodNotAllowed, host.CodeConflict, host.CodeGone, host.CodePreconditionFailed, host.CodeTooLarge,
		host.CodeUnsupportedMediaType, host.CodeSchemaViolation, host.CodeLimitExceeded, host.CodeUnavailable, host.CodeOverloaded,
	} {
		if code.HTTPStatus() == status {
			return code
		}
	}
	return host.CodeInternal
}

// unreachable explains why a request got no answer.
func (c *Client) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := &host.Error{Code: host.CodeUnavailable, Cause: err}
	var dns *net.DNSError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		e.Message = fmt.Sprintf("No server is listening at %s. Start one with \"weft serve\", or name another address", c.base)
	case errors.As(err, &dns):
		e.Message = fmt.Sprintf("The server %s cannot be found: the name %q is not known", c.base, dns.Name)
	default:
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		e.Message = fmt.Sprintf("The connection to %s failed: %v", c.base, err)
	}
	return e
}
