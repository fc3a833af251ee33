package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/httpapi/abuse"
)

// Front listens for a [Server] that can be replaced: the listener and idle connections
// outlive the server. While it has no server, it answers every request with the reason,
// including /health and /ready. Its methods may be called from any goroutine, but Put and
// Take from one goroutine at a time.
type Front struct {
	head   func(h http.Header, r *http.Request)
	absent func(http.ResponseWriter, *http.Request) // nil: refuse
	http   *http.Server
	grace  time.Duration
	conns  *abuse.Connections

	mu  sync.Mutex // guards the fields below; held only briefly
	now *behind    // nil: there is no server
	why *host.Error
}

// behind is a Server with the requests that it has not answered yet.
type behind struct {
	server   *Server
	requests sync.WaitGroup
}

// NewFront makes a front without a server; it does not listen yet. Of the
// configuration it takes the log, the version, the grace, CORSOrigins, MaxConnections, TLS,
// Around and Absent.
func NewFront(cfg Config) *Front {
	cfg = cfg.withDefaults()
	f := &Front{head: cfg.Head(), absent: cfg.Absent, grace: cfg.Grace, why: errShutdown}
	f.http = newHTTP(cfg.around(f), cfg.Log, cfg.TLS)
	f.conns = abuse.Bind(f.http, cfg.MaxConnections)
	return f
}

// around returns the handler behind a listener.
func (c *Config) around(api http.Handler) http.Handler {
	if c.Around == nil {
		return api
	}
	return c.Around(api)
}

// newHTTP is an HTTP server with the bounds of this package.
func newHTTP(h http.Handler, log *slog.Logger, encrypt *tls.Config) *http.Server {
	return &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		TLSConfig:         encrypt,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
}

// Put makes the server answer requests from now on. The server must not listen by itself.
func (f *Front) Put(s *Server) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = &behind{server: s}
}

// Take takes the server away. New requests are answered with why, and so are requests
// that wait for a run; streams end after a whole event. Take returns when all requests of
// the server have been answered, or with ctx's error when ctx ends; the remaining
// requests continue.
func (f *Front) Take(ctx context.Context, why *host.Error) error {
	f.mu.Lock()
	b := f.now
	f.now, f.why = nil, why
	f.mu.Unlock()
	if b == nil {
		return nil
	}
	b.server.stop(why)
	out := make(chan struct{})
	go func() {
		b.requests.Wait()
		close(out)
	}()
	select {
	case <-out:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// enter counts a request of the server, or returns the reason why there is no server.
func (f *Front) enter() (*behind, *host.Error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now != nil {
		f.now.requests.Add(1) // before Take can wait for it
	}
	return f.now, f.why
}

// ServeHTTP implements http.Handler.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, why := f.enter()
	if b == nil && f.absent != nil {
		f.absent(w, r)
		return
	}
	if b == nil {
		f.refuse(w, r, why)
		return
	}
	defer b.requests.Done()
	b.server.echo.ServeHTTP(w, r)
}

// refuse answers a request while there is no server, in the form of a server's errors.
// The answer contains nothing that a guard would protect.
func (f *Front) refuse(w http.ResponseWriter, r *http.Request, why *host.Error) {
	body, _ := apiwire.Append(nil, &apiwire.Error{Detail: why.Message, Code: why.Code}) // it holds no values
	if r.URL.Path == "/health" || r.URL.Path == "/ready" {
		body, _ = apiwire.Append(nil, &apiwire.Unhealthy{Status: unhealthy, Detail: why.Message, Code: why.Code})
	}
	h := w.Header()
	f.head(h, r)
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	setRetryAfter(h, why)
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(drainTime)) // to read the rest of the body
	_ = rc.SetWriteDeadline(time.Now().Add(answerTimeout))
	w.WriteHeader(why.Code.HTTPStatus())
	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // the client may be gone
	}
}

// setRetryAfter says when a client should try again: after the error's time if it has
// one, or after a second for CodeUnavailable.
func setRetryAfter(h http.Header, e *host.Error) {
	after := e.RetryAfter
	if after <= 0 && e.Code == host.CodeUnavailable {
		after = time.Second
	}
	if after > 0 {
		seconds := (after + time.Second - 1) / time.Second
		h.Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
}

// Serve answers requests from the listener as [Server.Serve] does.
func (f *Front) Serve(l net.Listener) error { return serveHTTP(f.http, f.conns.Listener(l)) }

// CloseConnections makes each connection end with its next answer.
func (f *Front) CloseConnections() { f.http.SetKeepAlivesEnabled(false) }

// Shutdown stops listening and takes the server away; see [Server.Shutdown].
func (f *Front) Shutdown(ctx context.Context) error {
	f.mu.Lock()
	b := f.now
	f.now, f.why = nil, errShutdown
	f.mu.Unlock()
	if b != nil {
		b.server.stop(errShutdown)
	}
	return shutdownHTTP(ctx, f.http, f.grace)
}

// serveHTTP answers requests from the listener. net/http recognizes an encrypted
// connection by its type, so nothing may wrap what the TLS listener accepts.
func serveHTTP(s *http.Server, l net.Listener) error {
	if s.TLSConfig != nil {
		l = tls.NewListener(l, s.TLSConfig)
	}
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// shutdownHTTP waits for slow clients for the grace, then closes their connections. If
// ctx ends first, it closes them at once and returns ctx's error.
func shutdownHTTP(ctx context.Context, s *http.Server, grace time.Duration) error {
	within, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	err := s.Shutdown(within)
	if err == nil {
		return nil
	}
	_ = s.Close() // the errors of closed connections do not matter
	if within.Err() != nil {
		return ctx.Err()
	}
	return err
}
