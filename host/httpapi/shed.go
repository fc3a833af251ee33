package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/httpapi/abuse"
)

// refusedBody is how much of the body of a refused start is read, in bytes. leastRetry is
// the least Retry-After of its answer.
const (
	refusedBody = 64 << 10
	leastRetry  = time.Second
)

// enterSlowly returns what a request with a key may do, unless its address has sent too
// many wrong keys.
func (s *Server) enterSlowly(r *http.Request, key, tenant string) (host.Grant, error) {
	from := abuse.AddressOf(r)
	if wait, first := s.wrong.Wait(from, key); wait > 0 {
		if first {
			s.cfg.Log.Warn("too many wrong keys from an address: others are not looked up for a while", "address", from.String())
		}
		s.wrongKey(r.Context(), from, true, first)
		return host.Grant{}, &host.Error{Code: host.CodeLimitExceeded, RetryAfter: wait,
			Message: "Too many wrong API keys have come from this address: try again later"}
	}
	grant, err := s.cfg.Access.Enter(key, tenant)
	wrong := host.CodeOf(err) == host.CodeUnauthenticated
	if first := s.wrong.Seen(from, key, wrong); wrong && key != "" {
		s.wrongKey(r.Context(), from, false, first)
	}
	return grant, err
}

// wrongKey reports a wrong key; first says that it is the first of its kind from its
// address.
func (s *Server) wrongKey(ctx context.Context, from netip.Prefix, refused, first bool) {
	if s.cfg.WrongKey != nil {
		s.cfg.WrongKey(refused)
	}
	if s.cfg.NoteWrongKey == nil || s.wrong == nil {
		return
	}
	if note, others := s.wrong.Note(first); note {
		s.cfg.NoteWrongKey(ctx, from.String(), refused, others)
	}
}

// admit counts a request, or refuses it.
func (s *Server) admit(tenant string) error {
	if s.cfg.Quotas == nil {
		return nil
	}
	return s.cfg.Quotas.Request(tenant)
}

// reader counts a reader of a stream, or refuses it.
func (s *Server) reader(tenant string) (leave func(), err error) {
	if s.cfg.Quotas == nil {
		return func() {}, nil
	}
	return s.cfg.Quotas.Reader(tenant)
}

// placeKey is the key of a request's place in its context.
const placeKey = "weft.place"

// shed refuses requests that the server has no room for, before it reads them. Open
// routes are never refused, so that probes always get an answer.
func (s *Server) shed(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if isOpen(c.Request()) {
			return next(c)
		}
		tenant, alone := tenantOf(c), s.keyless()
		p := s.bodies.Place(tenant, alone)
		l := s.requests
		if routeOf(c.Request().Method, c.Path()) == "GET /events/:id" {
			l = s.streams
		}
		if err := l.Take(tenant, 1, alone); err != nil {
			return err
		}
		defer func() {
			l.Give(tenant, 1)
			p.Release()
		}()
		c.Set(placeKey, p)
		return next(c)
	}
}

// placeOf returns a request's place, nil if it has none.
func placeOf(c echo.Context) *abuse.Place {
	p, _ := c.Get(placeKey).(*abuse.Place)
	return p
}

// Refusing a start is cheap. The server refuses it by its path, key and tenant, and reads
// no more than refusedBody of its body. Refusals that would use more than a tenth of the
// process's cores are held back until their turn. So clients that retry immediately,
// whatever Retry-After says, cannot take the cores from accepted runs. The time for which
// a client is held back is subtracted from its Retry-After.

// askStart asks whether there is room for a start, before its body is read. The caller
// calls release when the start has been made or refused. release is nil if Runs decides
// about starts.
func (s *Server) askStart(c echo.Context, workflow string, wait bool) (release func(), err error) {
	if s.cfg.Admission == nil {
		return nil, nil
	}
	once, err := onceOf(c, nil)
	if err != nil {
		return nil, err
	}
	r := c.Request()
	release, err = s.cfg.Admission.AskStart(r.Context(), host.StartAsk{
		Tenant: tenantOf(c), Workflow: workflow, Wait: wait, Once: once, Bytes: r.ContentLength, RequestID: idOf(c),
	})
	var e *host.Error
	if errors.As(err, &e) && e.Code == host.CodeOverloaded {
		s.refuse(c, e)
	}
	return release, err
}

// idOf returns the id of a request.
func idOf(c echo.Context) string {
	id, _ := c.Get(requestIDKey).(string)
	return id
}

// refuse prepares the answer to a refused start: it does not read the rest of the body,
// and holds the answer back while there are many refusals.
func (s *Server) refuse(c echo.Context, e *host.Error) {
	r := c.Request()
	left := r.ContentLength > refusedBody
	if r.ContentLength < 0 {
		_ = http.NewResponseController(c.Response()).SetReadDeadline(time.Now().Add(drainTime))
		n, err := io.CopyN(io.Discard, r.Body, refusedBody+1)
		left = n > refusedBody || err != nil && !errors.Is(err, io.EOF)
	}
	held, ok := time.Duration(0), false
	if !left {
		held, ok = s.refusals.Hold(r.Context(), e.RetryAfter)
	}
	if !ok {
		c.Response().Header().Set("Connection", "close")
	}
	e.RetryAfter = max(e.RetryAfter-held, leastRetry)
}
