package resource

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// MethodRequest is the only method of the kind http.
const MethodRequest = "request"

// httpSettings are the settings of a resource of the kind http.
type httpSettings struct {
	base          string // URL; "": requests name full URLs
	rules         []rule
	networks      []netip.Prefix
	timeout       time.Duration // of a call, including redirects and body
	redirects     int
	requestBytes  int
	responseBytes int
	headerBytes   int // of an answer
}

// defaultHTTP returns the default settings.
func defaultHTTP() httpSettings {
	return httpSettings{timeout: 30 * time.Second, redirects: 5, requestBytes: 1 << 20, responseBytes: 1 << 20, headerBytes: 64 << 10}
}

// secret is a value that is added to outgoing requests.
type secret struct {
	name   string
	value  string
	header string // header that carries it, canonical; or
	query  string // query parameter that carries it
	prefix string // precedes it in the header
}

// httpKind makes HTTP requests for a resource. Any number of goroutines may use it.
type httpKind struct {
	settings  httpSettings
	secrets   []secret
	trusted   map[string]bool // origins that may receive the secrets
	blots     [][]byte        // texts that no answer may contain
	transport *http.Transport
	// single sends each request once, on a new connection. The other transport resends a
	// request if a kept connection turns out to be dead.
	single *http.Transport
}

func newHTTP(settings httpSettings, secrets []secret, trusted map[string]bool) *httpKind {
	k := &httpKind{settings: settings, secrets: secrets, trusted: trusted}
	for _, s := range secrets {
		k.blots = append(k.blots, s.forms()...)
	}
	dialer := &net.Dialer{Timeout: 10 * time.Second, ControlContext: k.control}
	k.transport = &http.Transport{
		Proxy:                  nil, // a proxy of the environment would hide the address from the dialer's check
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxIdleConnsPerHost:    8,
		MaxIdleConns:           64,
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: int64(settings.headerBytes),
		ForceAttemptHTTP2:      true,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
	}
	k.single = k.transport.Clone()
	k.single.DisableKeepAlives = true
	return k
}

func (k *httpKind) close() { k.transport.CloseIdleConnections() }

// control checks an address when it is dialed. Earlier checks of a resolved name would
// prove nothing.
func (k *httpKind) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return denied("the address %q cannot be checked", clip(address))
	}
	return checkAddress(at.Addr(), k.settings.networks)
}

// call implements kind.
func (k *httpKind) call(ctx context.Context, rules []rule, call host.ResourceCall) (abi.Raw, *abi.Error) {
	if call.Method != MethodRequest {
		return nil, final(abi.StatusNotFound, "a resource of the kind http has no method %q: use %q", clip(call.Method), MethodRequest)
	}
	if most := k.settings.requestBytes; len(call.Payload) > most+(maxHeaders*maxHeaderValue) {
		return nil, final(abi.StatusLimitExceeded, "the payload has %d bytes: a request has at most %d (request_bytes)", len(call.Payload), most)
	}
	q, err := decodeRequest(call.Payload)
	if err != nil {
		return nil, final(abi.StatusInvalidMessage, "%s", err)
	}
	if len(q.body) > k.settings.requestBytes {
		return nil, final(abi.StatusLimitExceeded, "the body has %d bytes, more than %d (request_bytes)", len(q.body), k.settings.requestBytes)
	}
	for _, s := range k.secrets {
		if _, own := q.header[s.header]; own && s.header != "" {
			return nil, denied("the header %s is a secret of the resource: leave it out", s.header)
		}
	}
	t, err := k.target(q)
	if err != nil {
		return nil, denied("%s", err)
	}
	limit := k.settings.timeout
	if q.timeout > 0 {
		limit = min(limit, q.timeout)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, final(abi.StatusTimeout, "no answer within %s", limit))
	defer cancel()
	raw, fail := k.follow(ctx, rules, q, t, &call)
	if fail != nil {
		fail.Message = string(k.blot([]byte(fail.Message)))
	}
	return raw, fail
}

// target returns the URL of a request.
func (k *httpKind) target(q *request) (*target, error) {
	text := q.url
	if text == "" {
		if k.settings.base == "" {
			return nil, errors.New("the resource has no base_url: give the full url instead of path")
		}
		text = strings.TrimSuffix(k.settings.base, "/") + "/" + strings.TrimPrefix(q.path, "/")
	}
	if len(q.query) > 0 {
		if strings.Contains(text, "?") {
			return nil, errors.New("the URL has a query already: give all of it in query, or none")
		}
		text += "?" + q.query.Encode()
	}
	return checkURL(text)
}

// follow makes a request and follows its redirects.
func (k *httpKind) follow(ctx context.Context, rules []rule, q *request, t *target, call *host.ResourceCall) (abi.Raw, *abi.Error) {
	transport := k.transportOf(call)
	asked := t.origin()
	for hops := 0; ; hops++ {
		if fail := check(rules, q.method, t); fail != nil {
			if hops > 0 {
				fail.Message = "a redirect leads elsewhere: " + fail.Message
			}
			return nil, fail
		}
		res, err := roundTrip(transport, call, k.outgoing(ctx, q, t, call, t.origin() == asked && k.trusted[asked]))
		if err != nil {
			return nil, k.failure(ctx, t, err)
		}
		to := res.Header.Get("Location")
		if !redirects(res.StatusCode) || to == "" || k.settings.redirects == 0 {
			return k.answer(ctx, q, t, res)
		}
		_ = res.Body.Close() // nobody reads it
		if hops == k.settings.redirects {
			return nil, final(abi.StatusLimitExceeded, "%s is redirected more than %d times (redirects)", t.show(), k.settings.redirects)
		}
		if t, err = redirected(t, to); err != nil {
			return nil, denied("a redirect leads elsewhere: %s", err)
		}
		q = q.again(res.StatusCode)
		if t.origin() != asked {
			for _, name := range []string{"Authorization", "Cookie"} {
				q.header.Del(name)
			}
		}
	}
}

func (k *httpKind) transportOf(call *host.ResourceCall) *http.Transport {
	if call.Mode == host.ResourceFail {
		return k.single
	}
	return k.transport
}

func redirects(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// redirected returns the URL of a Location header.
func redirected(from *target, to string) (*target, error) {
	if strings.ContainsFunc(to, func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\\' }) {
		return nil, fmt.Errorf("the URL %q has a space, a control character or a backslash", clip(to))
	}
	to, _, _ = strings.Cut(to, "#")
	ref, err := url.Parse(to)
	if err != nil {
		return nil, fmt.Errorf("%q is not a URL", clip(to))
	}
	if !ref.IsAbs() {
		to = from.url.ResolveReference(ref).String()
	}
	next, err := checkURL(to)
	if err == nil && from.url.Scheme == "https" && next.url.Scheme == "http" {
		return nil, errors.New("from https to http")
	}
	return next, err
}

// again returns the request after a redirect.
func (q *request) again(status int) *request {
	next := *q
	next.header = q.header.Clone()
	safe := q.method == http.MethodGet || q.method == http.MethodHead
	if status == http.StatusSeeOther && !safe || (status == http.StatusMovedPermanently || status == http.StatusFound) && q.method == http.MethodPost {
		next.method, next.body = http.MethodGet, nil
		next.header.Del("Content-Type")
	}
	return &next
}

// outgoing returns the HTTP request to send. Secrets go only to the requested origin.
func (k *httpKind) outgoing(ctx context.Context, q *request, t *target, call *host.ResourceCall, withSecrets bool) *http.Request {
	u := *t.url
	req := &http.Request{Method: q.method, URL: &u, Host: u.Host, Header: q.header.Clone(), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if len(q.body) > 0 {
		body := q.body
		req.ContentLength = int64(len(body))
		req.Body = io.NopCloser(bytes.NewReader(body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "weft")
	}
	req.Header.Set("Idempotency-Key", call.Key)
	if call.Trace != nil { // replaces a value that the guest may have set
		req.Header.Set("Traceparent", call.Trace.Parent)
		req.Header.Del("Tracestate")
		if call.Trace.State != "" {
			req.Header.Set("Tracestate", call.Trace.State)
		}
	}
	if withSecrets {
		for _, s := range k.secrets {
			if s.header != "" {
				req.Header.Set(s.header, s.prefix+s.value)
				continue
			}
			if u.RawQuery != "" {
				u.RawQuery += "&"
			}
			u.RawQuery += url.QueryEscape(s.query) + "=" + url.QueryEscape(s.value)
		}
	}
	return req.WithContext(ctx)
}

// answer reads an answer, within the limit on its size.
func (k *httpKind) answer(ctx context.Context, q *request, t *target, res *http.Response) (abi.Raw, *abi.Error) {
	defer func() { _ = res.Body.Close() }() // reading reports every failure that matters
	most := k.settings.responseBytes
	long := func() *abi.Error {
		return final(abi.StatusLimitExceeded, "the answer of %s has more than %d bytes (response_bytes)", t.show(), most)
	}
	if res.ContentLength > int64(most) && q.method != http.MethodHead {
		return nil, long()
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, int64(most)+1))
	if err != nil {
		return nil, k.failure(ctx, t, err)
	}
	if len(body) > most {
		return nil, long()
	}
	body = k.blot(body)
	if q.success && (res.StatusCode < 200 || res.StatusCode > 299) {
		return nil, statusError(res.StatusCode, body)
	}
	for name, values := range res.Header {
		for i := range values {
			values[i] = string(k.blot([]byte(values[i])))
		}
		res.Header[name] = values
	}
	raw, err := encodeAnswer(res.StatusCode, res.Header, body)
	if err != nil {
		return nil, final(abi.StatusInvalidMessage, "the answer of %s cannot be encoded: %s", t.show(), err)
	}
	return raw, nil
}

// blot blots out echoed secrets.
func (k *httpKind) blot(b []byte) []byte {
	for _, form := range k.blots {
		if bytes.Contains(b, form) {
			b = bytes.ReplaceAll(b, form, []byte("[secret]"))
		}
	}
	return b
}

// failure explains why there is no answer.
func (k *httpKind) failure(ctx context.Context, t *target, err error) *abi.Error {
	var refused *abi.Error
	if errors.As(err, &refused) {
		return refused
	}
	if cause := (*abi.Error)(nil); errors.As(context.Cause(ctx), &cause) {
		return &abi.Error{Code: cause.Code, Message: t.show() + ": " + cause.Message}
	}
	fail := &abi.Error{Code: abi.StatusUnavailable.Code()}
	var name *net.DNSError
	var authority x509.UnknownAuthorityError
	var wrongHost x509.HostnameError
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		fail.Message = fmt.Sprintf("the name %s is not known", t.host)
	case errors.As(err, &name):
		fail.Message = fmt.Sprintf("the name %s cannot be looked up at the moment", t.host)
	case errors.As(err, &authority), errors.As(err, &wrongHost), errors.As(err, &invalid):
		return denied("the certificate of %s is not trusted: %s", t.host, clip(err.Error()))
	case errors.Is(err, syscall.ECONNREFUSED):
		fail.Message = fmt.Sprintf("%s refuses the connection", t.origin())
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		fail.Message = fmt.Sprintf("%s ended the connection before it answered", t.origin())
	case strings.Contains(err.Error(), "server response headers exceeded"):
		return final(abi.StatusLimitExceeded, "the headers of the answer of %s have more than %d bytes (header_bytes)", t.show(), k.settings.headerBytes)
	default:
		fail.Message = fmt.Sprintf("the answer of %s cannot be read: %s", t.origin(), clip(strings.ToValidUTF8(err.Error(), "")))
	}
	return fail
}
