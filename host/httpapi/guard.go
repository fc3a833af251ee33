package httpapi

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
)

// guard protects a server without keys from web pages. A page can make a browser send
// requests to loopback addresses, but it cannot forge the Host, Origin and Sec-Fetch-Site
// headers. A foreign Host means DNS rebinding; a foreign Origin or site means a
// cross-site request.
//
// A server with keys does not check the host, because a page cannot make a browser send a
// key that the page does not know. Only the rules for CORS apply then.
type guard struct {
	keyed   bool
	hosts   map[string]bool // names besides the loopback names, lower case
	origins map[string]bool // foreign origins that may use the API
}

func newGuard(cfg Config) guard {
	g := guard{keyed: cfg.Access != nil && !cfg.Access.Keyless(), hosts: map[string]bool{}, origins: map[string]bool{}}
	if name := hostName(cfg.Addr); name != "" {
		if ip, err := netip.ParseAddr(name); err != nil || !ip.IsUnspecified() {
			g.hosts[name] = true
		}
	}
	for _, name := range cfg.AllowedHosts {
		g.hosts[strings.ToLower(name)] = true
	}
	for _, origin := range cfg.CORSOrigins {
		// Every sandboxed page and every file has the origin "null".
		if origin != "null" && origin != "" {
			g.origins[strings.ToLower(origin)] = true
		}
	}
	return g
}

// check refuses a request that a web page may have forged. cors is the request's origin
// if it is a foreign origin that may use the API. Open paths reveal nothing worth
// protecting, and probes call them under any host name.
func (g *guard) check(r *http.Request, open bool) (cors string, err error) {
	open = open || g.keyed
	if !open && !g.knownHost(r.Host) {
		return "", forbidden("Host %q is not a name of this server", r.Host)
	}
	switch origins := r.Header.Values("Origin"); {
	case len(origins) == 0 || len(origins) == 1 && ownOrigin(r, origins[0]):
	case len(origins) == 1 && g.origins[strings.ToLower(origins[0])]:
		return origins[0], nil
	case !open:
		return "", forbidden("Origin %q may not use this server", origins[0])
	}
	if site := r.Header.Get("Sec-Fetch-Site"); !open && (site == "cross-site" || site == "same-site") {
		return "", forbidden("A %s request may not use this server", site)
	}
	return "", nil
}

func forbidden(format, arg string) error {
	return host.Errorf(host.CodePermissionDenied, format, clip(arg))
}

// knownHost reports whether a Host header names this server.
func (g *guard) knownHost(header string) bool {
	name := hostName(header)
	if name == "localhost" || g.hosts[name] {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback()
}

// hostName returns the name in a host[:port], in lower case, without brackets and the dot
// of the root.
func hostName(hostport string) string {
	name := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	return strings.TrimSuffix(strings.ToLower(name), ".")
}

// ownOrigin reports whether the origin is the one that the request was sent to.
func ownOrigin(r *http.Request, origin string) bool {
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return strings.EqualFold(origin, scheme+"://"+r.Host)
}

// protect applies the guard and answers preflights.
func (s *Server) protect(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		h := c.Response().Header()
		setHead(h, s.banner)
		cors, err := s.guard.check(r, isOpen(r))
		if err != nil {
			return err
		}
		allow(h, cors)
		if r.Method != http.MethodOptions {
			return next(c)
		}
		if cors != "" && r.Header.Get("Access-Control-Request-Method") != "" {
			return preflight(c)
		}
		return optionsNotAllowed(c)
	}
}

// setHead sets the headers of every answer.
func setHead(h http.Header, banner string) {
	h.Set("Vary", "Origin")
	h.Set("Server", banner)
	h.Set("X-Content-Type-Options", "nosniff")
}

// allow lets the page of an allowed origin read the answer. Without an origin it does nothing.
func allow(h http.Header, cors string) {
	if cors == "" {
		return
	}
	h.Set("Access-Control-Allow-Origin", cors)
	h.Set("Access-Control-Allow-Credentials", "true")
	h.Set("Access-Control-Expose-Headers", exposedHeaders)
}

// Head returns a function that sets the headers of an answer that no [Server] gives, such
// as a probe's while there is none: those that each answer of a server has, the request's
// id, and the permission of the page of an allowed origin to read the answer. Such an answer
// contains nothing that a guard would protect.
func (c Config) Head() func(h http.Header, r *http.Request) {
	c = c.withDefaults()
	g, banner := newGuard(c), c.banner()
	return func(h http.Header, r *http.Request) {
		setHead(h, banner)
		h.Set(headerRequestID, requestID(r))
		cors, _ := g.check(r, true) // of an open path, only the origin counts
		allow(h, cors)
	}
}

// exposedHeaders are the headers of an answer that the page of an allowed origin may
// read, in addition to the headers that browsers always show.
const exposedHeaders = "ETag, Location, Retry-After, Warning, Weft-Outcome, " + headerRequestID

// preflight tells a browser that the page of an allowed origin may send its request.
func preflight(c echo.Context) error {
	h := c.Response().Header()
	h.Set("Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers")
	h.Set("Access-Control-Allow-Methods", "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT")
	h.Set("Access-Control-Max-Age", "600")
	if asked := c.Request().Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
	}
	return send(c, http.StatusOK, "text/plain; charset=utf-8", []byte("OK"))
}

// optionsNotAllowed refuses OPTIONS outside CORS like any method that a route does not
// have. Otherwise the router would answer it.
func optionsNotAllowed(c echo.Context) error {
	if allow, ok := c.Get(echo.ContextKeyHeaderAllow).(string); ok && allow != "" {
		return echo.MethodNotAllowedHandler(c)
	}
	return echo.ErrNotFound
}

// canonicalPath refuses paths with empty segments, which the router would match with an
// empty parameter.
func canonicalPath(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		path := echo.GetPath(c.Request())
		if path != "/" && strings.HasSuffix(path, "/") || strings.Contains(path, "//") {
			return echo.ErrNotFound
		}
		return next(c)
	}
}
