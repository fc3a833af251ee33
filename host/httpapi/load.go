package httpapi

import (
	"bytes"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host"
)

// Defaults of the bounds of [Config] on what is under way.
const (
	DefaultMaxRequests     = 10_000
	DefaultMaxRequestBytes = 256 << 20
	DefaultMaxStreams      = 20_000
)

// overloadPause is when a client may ask again that was refused.
const overloadPause = time.Second

// load bounds something that requests take for as long as they are under way. A
// tenant may have as much as it leaves free: half if it is alone, a third if there
// are two such. So one that asks for all that there is leaves room for others.
type load struct {
	what string // for messages
	most int64

	mu      sync.Mutex // guards what follows
	taken   int64
	tenants map[string]int64
}

func newLoad(what string, most int64) *load {
	return &load{what: what, most: most, tenants: map[string]int64{}}
}

// take takes n for a tenant; alone says that there are no others to leave any to.
// The error is CodeOverloaded.
func (l *load) take(tenant string, n int64, alone bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	left := l.most - l.taken
	if n > left || !alone && l.tenants[tenant]+n > left {
		return &host.Error{Code: host.CodeOverloaded, RetryAfter: overloadPause,
			Message: "The server has too much to do (" + l.what + "): the request had no effect"}
	}
	l.taken += n
	l.tenants[tenant] += n
	return nil
}

func (l *load) give(tenant string, n int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.taken -= n
	if l.tenants[tenant] -= n; l.tenants[tenant] == 0 {
		delete(l.tenants, tenant)
	}
}

// place is what a request holds of the server's loads; its goroutine uses it.
type place struct {
	s      *Server
	tenant string
	alone  bool
	bytes  int64
}

// placeKey is where a request's place is kept.
const placeKey = "weft.place"

// grow takes memory for n bytes of the request's body, until its end.
func (p *place) grow(n int64) error {
	if p == nil {
		return nil
	}
	most, held := p.s.bodies.most, p.bytes
	if !p.alone { // see load
		most -= held
	}
	if n > most-held {
		return host.Errorf(host.CodeTooLarge, "The request body takes more memory than the server gives to one (max-request-bytes %d): send less, or in parts", p.s.bodies.most)
	}
	if err := p.s.bodies.take(p.tenant, n, p.alone); err != nil {
		return err
	}
	p.bytes += n
	return nil
}

// shrink gives back what grow has taken.
func (p *place) shrink(n int64) {
	if p != nil {
		p.bytes -= n
		p.s.bodies.give(p.tenant, n)
	}
}

// weighed is the length from which on a body counts with what is made of it: of less
// there is never much at a time.
const weighed = 64 << 10

// transcoding is the memory, in bytes, that a body takes while it is transcoded, beside
// itself: copies with wide heads, and the order of each map.
func transcoding(raw []byte, isCBOR bool) int64 {
	const head, order = 5, 16
	n := int64(len(raw))
	if n < weighed {
		return 0
	}
	lists, maps := bytes.Count(raw, []byte{'['}), bytes.Count(raw, []byte{'{'})
	if isCBOR {
		lists, maps = 0, 0
		for _, b := range raw { // within texts, too: a few too many
			if cbor.Major(b) == cbor.Map {
				maps++
			}
		}
	}
	return 2*n + int64(maps)*(order+head) + int64(lists)*head
}

// keeping is the memory, in bytes, of the nodes of a state that an encoded value becomes.
func keeping(raw abi.Raw) (n int64) {
	const node = 80
	if len(raw) < weighed {
		return 0
	}
	for off := 0; off < len(raw); n += node {
		arg, next := cbor.Head(raw, off)
		if major := cbor.Major(raw[off]); major == cbor.Text || major == cbor.Bytes {
			next += int(arg)
		}
		off = next
	}
	return n
}

// shed refuses requests that the server has no room for, before anything is read of
// them. What is open to all is answered always, so that probes are.
func (s *Server) shed(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if isOpen(c.Request()) {
			return next(c)
		}
		p := &place{s: s, tenant: tenantOf(c), alone: s.keyless()}
		l := s.requests
		if routeOf(c.Request().Method, c.Path()) == "GET /events/:id" {
			l = s.streams
		}
		if err := l.take(p.tenant, 1, p.alone); err != nil {
			return err
		}
		defer func() {
			l.give(p.tenant, 1)
			s.bodies.give(p.tenant, p.bytes)
		}()
		c.Set(placeKey, p)
		return next(c)
	}
}

// placeOf gives a request's place; nil: it has none.
func placeOf(c echo.Context) *place {
	p, _ := c.Get(placeKey).(*place)
	return p
}
