package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/weftrun/weft/host"
)

// DebugConfig says what a [Debug] serves, and to whom.
type DebugConfig struct {
	// Addr is the host:port that it listens on; see [Config].
	Addr string
	// AllowedHosts are further host names under which requests may name it.
	AllowedHosts []string
	// Key is the key that every request must send as a bearer token. "": requests need no
	// key, and the address must be reachable from this machine only.
	Key string
	// Metrics answers GET /metrics. Default: the route does not exist.
	Metrics http.Handler
	// TLS encrypts the connections. nil: they are plain text.
	TLS *tls.Config
	// Log receives the errors of connections, at debug level. Default: discarded.
	Log *slog.Logger
}

// debugTimeout is how long an answer may take: ?seconds= sets how long profiles and
// traces are recorded.
const debugTimeout = 10 * time.Minute

// Debug serves profiles of the process under /debug/pprof/, and its metrics, on an
// address of its own. It reveals the memory of the process, so it is separate from
// tenants and their keys. Its methods may be called from any goroutine.
type Debug struct {
	guard guard
	key   [sha256.Size]byte // hash of the key; see keyed
	keyed bool
	mux   *http.ServeMux
	http  *http.Server
}

// NewDebug makes a debug server; it does not listen yet.
func NewDebug(cfg DebugConfig) *Debug {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	d := &Debug{
		guard: newGuard(Config{Addr: cfg.Addr, AllowedHosts: cfg.AllowedHosts}),
		key:   sha256.Sum256([]byte(cfg.Key)), keyed: cfg.Key != "", mux: http.NewServeMux(),
	}
	d.guard.keyed = d.keyed
	d.mux.HandleFunc("GET /debug/pprof/", pprof.Index) // and the named profiles
	d.mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	d.mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	d.mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	d.mux.HandleFunc("POST /debug/pprof/symbol", pprof.Symbol)
	d.mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	if cfg.Metrics != nil {
		d.mux.Handle("GET /metrics", cfg.Metrics)
	}
	d.http = newHTTP(d, cfg.Log, cfg.TLS)
	d.http.ReadTimeout = headerTimeout // no request has a body that must be read
	d.http.WriteTimeout = debugTimeout
	return d
}

// ServeHTTP implements http.Handler.
func (d *Debug) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set(headerRequestID, requestID(r))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if _, err := d.guard.check(r, false); err != nil {
		http.Error(w, host.MessageOf(err), host.CodeOf(err).HTTPStatus())
		return
	}
	if !d.lets(bearer(r)) {
		h.Set("WWW-Authenticate", "Bearer")
		http.Error(w, "This address asks for the key of --debug-key-file", http.StatusUnauthorized)
		return
	}
	d.mux.ServeHTTP(w, r)
}

// lets compares a key in constant time.
func (d *Debug) lets(key string) bool {
	given := sha256.Sum256([]byte(key))
	return !d.keyed || subtle.ConstantTimeCompare(given[:], d.key[:]) == 1
}

// Serve answers requests from the listener as [Server.Serve] does.
func (d *Debug) Serve(l net.Listener) error { return serveHTTP(d.http, l) }

// Shutdown closes all connections at once: a client can only lose a profile.
func (d *Debug) Shutdown(ctx context.Context) error {
	return shutdownHTTP(ctx, d.http, time.Millisecond)
}
