// Package forward hands requests from the node that a client has reached to the node that
// owns the sessions, and repeats them when that node goes.
//
// A request goes to the owner whole, once, over HTTP/2 with mutual TLS. The owner never
// forwards it again: it answers, or says that it is not the owner and has done nothing.
// When the owner goes during a request, the outcome may be unknown. A request is
// then repeated only if a repetition has the effect of one request.
//
// The package does not know how a request is answered, or how nodes agree on the owner.
package forward

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/cluster"
)

// Headers between nodes, and of answers.
const (
	headerPrefix = "Weft-Node-" // of requests: only nodes may send them
	headerClient = headerPrefix + "Client"
	headerSecure = headerPrefix + "Secure"
	headerEpoch  = headerPrefix + "Epoch"
	// headerMoved marks an answer of a node that does not own the sessions and has done
	// nothing, and one in place of an answer: its host was closed, or it has no lease
	// (movedLapsed).
	headerMoved = headerPrefix + "Moved"
	movedLapsed = "lapsed"
	// headerOutcome says "unknown" in an answer when the owner went and nobody knows whether
	// it has done what the request asked for.
	headerOutcome = "Weft-Outcome"
)

// Defaults and bounds.
const (
	DefaultTimeout = 10 * time.Second
	// keepBody is how much of a body a node keeps, to be able to send it again.
	keepBody = 8 << 20
	// readAnswer is how much of an answer a node reads before it writes anything of it.
	readAnswer = 1 << 20
	// keepBodies is how much a node keeps of all bodies.
	keepBodies = 256 << 20
	// answerTimeout is how long a client may take to read a part of an answer.
	answerTimeout = 2 * time.Minute
	// bodyTimeout is how long a client may take to send a body that is kept.
	bodyTimeout = time.Minute
	// between two attempts.
	retryLeast = 20 * time.Millisecond
	retryMost  = 250 * time.Millisecond
	// ownKeys begin the idempotency keys that a node gives to starts without one.
	ownKeys = "node-"
)

// Nodes knows the owner.
type Nodes interface {
	// Find waits for the owner, if its epoch is not the given one.
	Find(ctx context.Context, not uint64) (cluster.Target, error)
	// Lease waits until this node may answer from memory as the owner.
	Lease(ctx context.Context) error
	// Known reports whether a key is that of a node.
	Known(key []byte) bool
	// Ready says why this node cannot serve, or nil.
	Ready() error
	// Hurry makes the node look for changes.
	Hurry()
	// View returns all nodes.
	View() cluster.View
}

// Config configures a [Forwarder]. Nodes, Local and Certificate are required.
type Config struct {
	Nodes Nodes
	// Local answers a request by the host of this node. If there is none at the moment, it
	// calls [Absent] instead.
	Local       http.Handler
	Certificate tls.Certificate
	// Failed reports whether the host of this node has failed and will be closed: what it
	// answers then may not be true. nil: it never has.
	Failed func() bool
	// Timeout is how long a request waits for an owner that can be reached. Default
	// DefaultTimeout.
	Timeout time.Duration
	// Head sets the headers that every answer of a host to a request has. The forwarder calls
	// it for its own answers. nil: no headers.
	Head func(h http.Header, r *http.Request)
	Log  *slog.Logger
}

// Stats count requests that clients sent to this node and that others answered.
type Stats struct {
	Forwarded uint64 // answered by the owner
	Repeated  uint64 // attempts after the first one
	Refused   uint64 // no owner could be reached
	Unknown   uint64 // the outcome is unknown
}

// Forwarder answers the requests of clients and of other nodes.
type Forwarder struct {
	cfg   Config
	kept  atomic.Int64 // bytes of bodies
	stats struct{ forwarded, repeated, refused, unknown atomic.Uint64 }

	stopped context.Context // ends when the node no longer serves
	stop    context.CancelFunc

	mu    sync.Mutex // guards peers
	peers map[uint64]*peer
}

// New makes a forwarder.
func New(cfg Config) *Forwarder {
	if cfg.Timeout == 0 {
		cfg.Timeout = DefaultTimeout
	}
	if cfg.Failed == nil {
		cfg.Failed = func() bool { return false }
	}
	if cfg.Head == nil {
		cfg.Head = func(http.Header, *http.Request) {}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	f := &Forwarder{cfg: cfg, peers: map[uint64]*peer{}}
	f.stopped, f.stop = context.WithCancel(context.Background())
	return f
}

// Stop answers the requests that still wait for other nodes, and those that come, with an
// error that asks the client to try again.
func (f *Forwarder) Stop() { f.stop() }

// Stats returns counts.
func (f *Forwarder) Stats() Stats {
	return Stats{f.stats.forwarded.Load(), f.stats.repeated.Load(), f.stats.refused.Load(), f.stats.unknown.Load()}
}

// Reasons why a request gets no answer of a host.
var (
	errNoOwner = &host.Error{Code: host.CodeUnavailable,
		Message: "No node of the cluster takes requests at the moment; acknowledged data is kept, and runs continue", RetryAfter: time.Second}
	errStopped = &host.Error{Code: host.CodeUnavailable,
		Message: "This node is leaving the cluster: ask again, and another node answers", RetryAfter: time.Second}
	errUnknown = &host.Error{Code: host.CodeUnavailable,
		Message: "The node that worked on this request has gone, and the outcome is unknown: look whether the request took effect before you repeat it", RetryAfter: time.Second}
)

// ServeHTTP answers the request of a client.
func (f *Forwarder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name := range r.Header {
		if strings.HasPrefix(name, headerPrefix) {
			delete(r.Header, name)
		}
	}
	if isProbe(r) {
		f.probe(w, r)
		return
	}
	q := &request{f: f, w: w, r: r, again: repeatable(r)}
	defer q.release()
	if err := q.keep(); err != nil {
		f.refuse(w, r, &host.Error{Code: host.CodeInvalidMessage, Message: "The request body could not be read to its end"})
		return
	}
	if isStart(r) && r.Header.Get(apiwire.HeaderOnce) == "" && q.replayable() {
		// The host begins one run for a key, however often the request is sent.
		r.Header.Set(apiwire.HeaderOnce, ownKeys+rand.Text())
		q.again = true
	}
	q.answer()
}

// isProbe reports whether a request asks about this node.
func isProbe(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && (r.URL.Path == "/ready" || r.URL.Path == "/health")
}

// probe answers for this node. A node without an owner is healthy: a restart would not help.
func (f *Forwarder) probe(w http.ResponseWriter, r *http.Request) {
	if err := f.cfg.Nodes.Ready(); err != nil && r.URL.Path == "/ready" {
		body, _ := apiwire.Append(nil, &apiwire.Unhealthy{Status: "unhealthy", Detail: err.Error(), Code: host.CodeUnavailable}) // it holds no values
		f.write(w, r, http.StatusServiceUnavailable, body)
		return
	}
	body, _ := apiwire.Append(nil, &apiwire.Readiness{Status: "healthy"})
	f.write(w, r, http.StatusOK, body)
}

// isStart reports whether a request starts a run.
func isStart(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasPrefix(r.URL.Path, "/workflows/") &&
		(strings.HasSuffix(r.URL.Path, "/run") || strings.HasSuffix(r.URL.Path, "/run-nowait"))
}

// repeatable reports whether a request that may have been done may be sent again.
func repeatable(r *http.Request) bool {
	path := r.URL.Path
	if isSafe(r) || strings.HasPrefix(path, "/cluster/") && strings.HasSuffix(path, "/drain") {
		return true
	}
	switch r.Method {
	case http.MethodPut:
		return strings.HasPrefix(path, "/plugins/") || r.Header.Get("If-Match") != "" || keyed(r) && strings.HasPrefix(path, "/sessions/")
	case http.MethodPatch:
		return keyed(r) && strings.HasPrefix(path, "/sessions/") || r.Header.Get("If-Match") != ""
	case http.MethodPost:
		return keyed(r) && (isStart(r) || strings.HasPrefix(path, "/events/")) || strings.HasPrefix(path, "/handlers/") &&
			(strings.HasSuffix(path, "/cancel") || strings.HasSuffix(path, "/pause") || strings.HasSuffix(path, "/resume"))
	}
	return false
}

// isSafe reports whether a request changes nothing.
func isSafe(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
}

// keyed reports whether a client has given the request a key under which it counts once.
func keyed(r *http.Request) bool { return r.Header.Get(apiwire.HeaderOnce) != "" }

// doubtful reports whether the answer to a repetition of a request that changes something may
// be owed to the request itself, which was done before.
func doubtful(r *http.Request, status int) bool {
	switch status {
	case http.StatusNotFound, http.StatusConflict, http.StatusPreconditionFailed:
		return !keyed(r)
	}
	return false
}

// refuse answers with an error in the form of a host's errors.
func (f *Forwarder) refuse(w http.ResponseWriter, r *http.Request, why *host.Error) {
	body, _ := apiwire.Append(nil, &apiwire.Error{Detail: why.Message, Code: why.Code}) // it holds no values
	if why.RetryAfter > 0 {
		w.Header().Set("Retry-After", "1")
	}
	f.write(w, r, why.Code.HTTPStatus(), body)
}

// write writes a short answer. The client may be gone.
func (f *Forwarder) write(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	f.cfg.Head(h, r)
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTimeout))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(body)
	}
}

// errGone is the cause by which a request to an owner that has gone ends.
var errGone = errors.New("the owner has gone")
