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
	"github.com/weftrun/weft/host/limit"
)

// Defaults of [Config].
const (
	DefaultHeartbeat = 25 * time.Second
	DefaultGrace     = 3 * time.Second
	DefaultMaxPlugin = 32 << 20 // bytes
)

// Defaults of the limits in [Config] for requests in progress.
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

// Config says what a [Server] serves and within which limits. Runs, Sessions, Plugins and
// Health are required; every other field's zero value is its default.
type Config struct {
	Runs     host.Runs
	Sessions host.Sessions
	Plugins  host.Plugins
	Health   host.Health
	// Access decides what requests may do. nil: requests need no key, and the routes of
	// tenants and keys answer 404.
	Access host.Access

	// Admission decides whether there is room for a start, before its body is read.
	// Default: Runs decides when the start is made.
	Admission host.Admission

	// Resources manages the resources that tenants have defined. nil: their routes answer
	// 404.
	Resources host.ResourceAdmin

	// Nodes lists the nodes of the cluster that the server belongs to. Default: none.
	Nodes func() []host.Node

	// Drain has the node of a name give the sessions up and not take them again, or takes that
	// back. Default: the server is not part of a cluster, and the routes answer 404.
	Drain func(ctx context.Context, name string, drained bool) error

	// Quotas refuses what exceeds the quotas of a tenant. Default: no quotas.
	Quotas Quotas

	// RunTimeout is the timeout of runs whose workflow sets none, as GET /workflows/NAME
	// shows it. Default: [host.DefaultRunTimeout]; below 0: no timeout.
	RunTimeout time.Duration

	// Metrics answers GET /metrics. Default: the route does not exist.
	Metrics http.Handler
	// Observe is called for every request that was answered: with the pattern of its
	// route ("" if there is none), its method, its status and how long it took.
	// May be nil.
	Observe func(route, method string, status int, took time.Duration)
	// Refused is called for every request that a limit of its tenant refused, if Observe
	// is not nil. May be nil.
	Refused func(tenant, limit string)
	// WrongKeys is how many wrong keys an address may send a minute. Beyond that, the
	// server refuses keys without looking them up, except keys known to be right.
	// Default: any number.
	WrongKeys int
	// WrongKey is called for every wrong key, and for every key that is refused without a
	// look-up. May be nil.
	WrongKey func(refused bool)
	// NoteWrongKey is called for the audit log: for the first wrong key of an address,
	// and for the first key that is refused without a look-up, at most ten times an hour.
	// others is the number of wrong keys since the previous call. May be nil.
	NoteWrongKey func(ctx context.Context, address string, refused bool, others int)

	// Tracer makes the spans of requests. Default: no spans.
	Tracer Tracer

	// Log receives failures that no answer reports, and every request at debug level.
	// Default: discarded.
	Log *slog.Logger
	// Addr is the host:port that the server listens on. Unless it is a wildcard, requests
	// may name the server by its host, besides the loopback names.
	Addr string
	// AllowedHosts are additional host names, without port, under which requests may name
	// the server.
	AllowedHosts []string
	// CORSOrigins are the foreign origins (scheme://host[:port]) whose pages
	// may use the API. Default: none, and no CORS headers.
	CORSOrigins []string
	// Heartbeat is the silence after which an event stream gets a comment.
	// Default: [DefaultHeartbeat].
	Heartbeat time.Duration
	// Grace is how long [Server.Shutdown] waits for clients that send or read slowly.
	// Default: [DefaultGrace].
	Grace time.Duration
	// MaxBody bounds a request body in bytes. Default: [limit.MaxRequestBytes].
	MaxBody int64
	// MaxPlugin bounds an uploaded plugin in bytes. Default: [DefaultMaxPlugin].
	MaxPlugin int64
	// MaxRequests and MaxStreams limit the requests and the event streams in progress,
	// and MaxRequestBytes the bytes of bodies that the server reads or works on. Requests
	// beyond a limit are refused with CodeOverloaded. If there are keys, a tenant may
	// hold as much of each limit as it leaves free. Defaults: [DefaultMaxRequests],
	// [DefaultMaxStreams], [DefaultMaxRequestBytes].
	MaxRequests     int
	MaxStreams      int
	MaxRequestBytes int64
	// CPU returns the CPU time of the process; refusals may use only a part of it. nil:
	// the process is assumed to have all cores.
	CPU func() time.Duration
	// MaxConnections limits the connections that are open at a time. The newest
	// connection may wait for another to end. Default: any number.
	MaxConnections int
	// TLS encrypts the connections. nil: they are plain text.
	TLS *tls.Config
	// Absent is called in place of a [Front]'s answer while the front has no server.
	// Default: the front answers with the reason.
	Absent func(w http.ResponseWriter, r *http.Request)
	// Around returns what answers requests from a listener: it passes those that it does
	// not answer to the API. nil: the API answers all.
	Around func(api http.Handler) http.Handler
	// Secret hides the numbers in cursors. Cursors remain valid after a restart if the
	// secret is the same. Default: a random secret.
	Secret []byte
	// Version is the server's version, for the Server header. Default: omitted.
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
		c.MaxBody = limit.MaxRequestBytes
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
	wrong  *abuse.WrongKeys // nil: wrong keys are not counted
	banner string           // the Server header
	// cursors encrypts the cursors of listings.
	cursors cipher.Block
	echo    *echo.Echo
	started time.Time
	least   map[string]host.Role // least role by method and route; set once, by routes
	http    *http.Server
	conns   *abuse.Connections
	// The requests, streams and bytes in progress; see shed.
	requests, streams, bodies *abuse.Load
	refusals                  *abuse.Refusals
	// patterns are the patterns of all routes.
	patterns map[string]bool
	// pages returns the description of the API, which is made once.
	pages func() openapi.Pages
	// ctx ends when Shutdown begins, or when a Front takes the server away. Its cause is
	// the reason. Waiting requests end with it.
	ctx  context.Context
	stop context.CancelCauseFunc
}

// untilShutdown derives the context of a request that may wait for a long time: it also
// ends when the server shuts down or is taken away, with the reason as its cause.
func (s *Server) untilShutdown(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}
