package httpapi

import (
	"cmp"
	"context"
	"crypto/cipher"
	"crypto/rand"
	"crypto/tls"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/httpapi/abuse"
	"github.com/weftrun/weft/host/httpapi/openapi"
)

// Defaults of [Config].
const (
	DefaultHeartbeat = 25 * time.Second
	DefaultGrace     = 3 * time.Second
	DefaultMaxPlugin = 32 << 20 // bytes
)

// Defaults of the bounds in [Config] on requests under way.
const (
	DefaultMaxRequests     = 10_000
	DefaultMaxRequestBytes = 256 << 20
	DefaultMaxStreams      = 20_000
)

// Quotas refuses what exceeds the quotas of a tenant. Its methods may be called from
// any goroutine; their errors are [*host.Error]s.
type Quotas interface {
	// Request counts a request.
	Request(tenant string) error
	// Reader counts a reader of a stream until it leaves.
	Reader(tenant string) (leave func(), err error)
}

// Config says what a [Server] serves and within which bounds. Runs, Sessions, Plugins
// and Health are required; every other field's zero value is its default.
type Config struct {
	Runs     host.Runs
	Sessions host.Sessions
	Plugins  host.Plugins
	Health   host.Health
	// Access says who may do what. nil: requests need no key, and the routes of
	// tenants and keys answer 404.
	Access host.Access

	// Admission says whether there is room for a start, before its body is read.
	// Default: Runs decides when the start is made.
	Admission host.Admission

	// Resources manages what tenants have defined. nil: those routes answer 404.
	Resources host.ResourceAdmin

	// Quotas refuses what exceeds the quotas of a tenant. Default: there are none.
	Quotas Quotas

	// RunTimeout is the timeout of runs whose workflow sets none, as GET /workflows/NAME
	// shows it. Default: [host.DefaultRunTimeout]; below 0 there is none.
	RunTimeout time.Duration

	// Metrics answers GET /metrics. Default: the route does not exist.
	Metrics http.Handler
	// Observe is called for every request that was answered: with the pattern of its
	// route ("" if there is none), its method, its status and how long it took.
	// May be nil.
	Observe func(route, method string, status int, took time.Duration)
	// Refused is called for every request that a limit of its tenant refused, if
	// Observe is not nil. May be nil.
	Refused func(tenant, limit string)
	// WrongKeys is how many wrong keys an address may send a minute before keys that
	// are not known to be right are refused unseen. Default: any number.
	WrongKeys int
	// WrongKey is called for every wrong key, and for every key that is refused unseen.
	// May be nil.
	WrongKey func(refused bool)
	// NoteWrongKey is called for the audit log: for the first wrong key of an address, and
	// for the first key that is refused unseen, at most ten times an hour. others is the
	// number of wrong keys since the previous call. May be nil.
	NoteWrongKey func(ctx context.Context, address string, refused bool, others int)

	// Tracer makes the spans of requests. Default: there are none.
	Tracer Tracer

	// Log gets failures that no answer reports, and every request at debug level.
	// Default: discarded.
	Log *slog.Logger
	// Addr is the host:port that the server listens on. Unless it is a wildcard,
	// requests may name the server by its host, beside the loopback names.
	Addr string
	// AllowedHosts are further host names, without port, under which requests
	// may name the server.
	AllowedHosts []string
	// CORSOrigins are the foreign origins (scheme://host[:port]) whose pages
	// may use the API. Default: none, and no CORS headers.
	CORSOrigins []string
	// Heartbeat is the silence after which an event stream gets a comment.
	// Default: [DefaultHeartbeat].
	Heartbeat time.Duration
	// Grace is how long [Server.Shutdown] lets clients finish that send or read
	// slowly. Default: [DefaultGrace].
	Grace time.Duration
	// MaxBody bounds a request body in bytes. Default: [host.MaxRequestBytes].
	MaxBody int64
	// MaxPlugin bounds an uploaded plugin in bytes. Default: [DefaultMaxPlugin].
	MaxPlugin int64
	// MaxRequests and MaxStreams bound the requests and the event streams under way, and
	// MaxRequestBytes the bytes of bodies that are read or worked on; more is refused with
	// CodeOverloaded. If there are keys, a tenant may hold as much of each bound as it
	// leaves free. Defaults: [DefaultMaxRequests],
	// [DefaultMaxStreams], [DefaultMaxRequestBytes].
	MaxRequests     int
	MaxStreams      int
	MaxRequestBytes int64
	// CPU gives the time that the process has had on cores; refusals take at most a part
	// of it. nil: the process is assumed to have all cores.
	CPU func() time.Duration
	// MaxConnections bounds the connections that are open at a time, the newest of which
	// may wait for another to end. Default: any number.
	MaxConnections int
	// TLS encrypts the connections. nil: they are plain text.
	TLS *tls.Config
	// Secret hides the numbers in cursors. Cursors stay valid over a restart if the secret
	// is the same. Default: a random secret.
	Secret []byte
	// Version is the server's, for the Server header. Default: left out.
	Version string
}

// withDefaults fills in the zero fields.
func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Heartbeat <= 0 {
		c.Heartbeat = DefaultHeartbeat
	}
	if c.Grace <= 0 {
		c.Grace = DefaultGrace
	}
	if c.MaxBody <= 0 {
		c.MaxBody = host.MaxRequestBytes
	}
	c.MaxRequests = cmp.Or(c.MaxRequests, DefaultMaxRequests)
	c.MaxStreams = cmp.Or(c.MaxStreams, DefaultMaxStreams)
	c.MaxRequestBytes = cmp.Or(c.MaxRequestBytes, DefaultMaxRequestBytes)
	if len(c.Secret) == 0 {
		c.Secret = []byte(rand.Text())
	}
	if c.MaxPlugin <= 0 {
		c.MaxPlugin = DefaultMaxPlugin
	}
	return c
}

// banner is the Server header.
func (c Config) banner() string {
	if c.Version == "" {
		return "weft"
	}
	return "weft/" + c.Version
}

// Server serves the API. Its methods may be called from any goroutine.
type Server struct {
	cfg    Config
	guard  guard
	wrong  *abuse.WrongKeys // nil: they are not counted
	banner string           // the Server header
	// cursors seals those of listings.
	cursors cipher.Block
	echo    *echo.Echo
	least   map[string]host.Role // least role by method and route; set once, by routes
	http    *http.Server
	conns   *abuse.Connections
	// What is under way; see shed.
	requests, streams, bodies *abuse.Load
	refusals                  *abuse.Refusals
	// patterns are those of all routes.
	patterns map[string]bool
	// pages gives the description of the API, made once.
	pages func() openapi.Pages
	// ctx ends when Shutdown begins, or a Front takes the server away, with the
	// reason as its cause; waiting requests end with it.
	ctx  context.Context
	stop context.CancelCauseFunc
}

// untilShutdown derives the context of a request that may wait for long: it
// also ends when the server shuts down or is taken away, with the reason as its
// cause.
func (s *Server) untilShutdown(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
