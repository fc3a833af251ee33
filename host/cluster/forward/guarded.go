package forward

import (
	"context"
	"errors"
	"net/http"

	"github.com/weftrun/weft/host"
)

// guarded is the answer of the host of this node. Before anything of it is written, and
// before each further part, the node must be the owner: what the host has read from its
// memory may be old otherwise.
type guarded struct {
	http.ResponseWriter
	r      *http.Request
	nodes  Nodes
	tenure context.Context
	failed func() bool
	// withhold keeps back an answer by which a host that is being closed ends a request, as
	// the request is then sent to the next owner.
	withhold bool
	repeated bool
	// inner says that another node has sent the request.
	inner bool

	absent  bool // there was no host
	begun   bool // the status was written
	held    bool // the answer is kept back
	refused bool // an error was written instead of the answer
	broken  bool
}

type guardedKey struct{}

// Absent is called in place of a host when there is none at this node.
func Absent(_ http.ResponseWriter, r *http.Request) {
	if g, ok := r.Context().Value(guardedKey{}).(*guarded); ok {
		g.absent = true
	}
}

// serve has a request answered by the host of this node.
func (f *Forwarder) serve(w *guarded, r *http.Request) {
	f.cfg.Local.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), guardedKey{}, w)))
}

func (w *guarded) outcome() outcome {
	switch {
	case w.absent:
		return notDone
	case w.held:
		return unknown
	case w.broken:
		return cut
	}
	return answered
}

// Unwrap implements the protocol of [http.ResponseController].
func (w *guarded) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *guarded) WriteHeader(status int) {
	switch {
	case w.begun || w.held || w.refused:
		return
	case status < 200:
		w.ResponseWriter.WriteHeader(status)
		return
	case status == http.StatusServiceUnavailable && w.isGone():
		if w.withhold {
			w.held = true
			clear(w.Header())
			return
		}
		if w.inner {
			w.Header().Set(headerMoved, "1")
		}
		w.Header().Set(headerOutcome, "unknown")
	case w.repeated && doubtful(w.r, status):
		w.refuse(errUnknown, true)
		return
	default:
		if err := w.nodes.Lease(w.r.Context()); err != nil {
			if w.withhold {
				w.held = true
				clear(w.Header())
				return
			}
			if changes(w.r) {
				w.refuse(errUnknown, true) // the host may have done it
				return
			}
			known := errNoOwner
			_ = errors.As(err, &known)
			w.refuse(known, false)
			return
		}
	}
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

// changes reports whether a request may change something.
func changes(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

// refuse writes an error instead of the answer.
func (w *guarded) refuse(why *host.Error, unknown bool) {
	w.refused = true
	clear(w.Header())
	if w.inner {
		w.Header().Set(headerMoved, "1") // the other node may send the request again
	}
	if unknown {
		w.Header().Set(headerOutcome, "unknown")
	}
	refuse(w.ResponseWriter, w.r, why)
}

// isGone reports whether the host has failed or is being closed, or another node is the
// owner.
func (w *guarded) isGone() bool {
	return w.tenure.Err() != nil || w.failed()
}

// Write implements http.ResponseWriter.
func (w *guarded) Write(p []byte) (int, error) {
	if !w.begun && !w.held && !w.refused {
		w.WriteHeader(http.StatusOK)
	} else if w.begun && w.nodes.Lease(w.r.Context()) != nil {
		w.broken = true
		return 0, http.ErrAbortHandler
	}
	if w.held || w.refused {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// FlushError implements the protocol of [http.ResponseController].
func (w *guarded) FlushError() error {
	if w.held || w.refused {
		return nil
	}
	if !w.begun {
		w.WriteHeader(http.StatusOK)
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush implements http.Flusher.
func (w *guarded) Flush() { _ = w.FlushError() }
