package forward

import (
	"context"
	"net/http"
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
	doubt  bool // the request may have been done before

	absent  bool // there was no host
	begun   bool // the status was written
	broken  bool // the lease lapsed after that
	held    bool // kept back: a host that is being closed ends the request
	lapsed  bool // kept back: the node has no lease
	dubious bool // kept back: the request may have been done before, which may be why it is refused
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
	if !w.absent {
		w.WriteHeader(http.StatusOK) // which the server writes if the host has written nothing
	}
}

func (w *guarded) outcome() outcome {
	switch {
	case w.absent:
		return notDone
	case w.held:
		return unknown
	case w.lapsed:
		return lapsed
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
	case w.begun || w.keptBack():
		return
	case status < 200:
		w.ResponseWriter.WriteHeader(status)
		return
	case status == http.StatusServiceUnavailable && w.isGone():
		w.held = true
	case w.doubt && doubtful(w.r, status):
		w.dubious = true
	case w.nodes.Lease(w.r.Context()) != nil:
		w.lapsed = true
	default:
		w.begun = true
		w.ResponseWriter.WriteHeader(status)
		return
	}
	clear(w.Header())
}

// keptBack reports whether nothing of the answer is written.
func (w *guarded) keptBack() bool { return w.held || w.lapsed || w.dubious }

// isGone reports whether the host has failed or is being closed, or another node is the
// owner.
func (w *guarded) isGone() bool {
	return w.tenure.Err() != nil || w.failed()
}

// Write implements http.ResponseWriter.
func (w *guarded) Write(p []byte) (int, error) {
	if !w.begun && !w.keptBack() {
		w.WriteHeader(http.StatusOK)
	} else if w.begun && w.nodes.Lease(w.r.Context()) != nil {
		w.broken = true
		return 0, http.ErrAbortHandler
	}
	if w.keptBack() {
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// FlushError implements the protocol of [http.ResponseController].
func (w *guarded) FlushError() error {
	if w.keptBack() {
		return nil
	}
	if !w.begun {
		w.WriteHeader(http.StatusOK)
		if w.keptBack() {
			return nil
		}
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Flush implements http.Flusher.
func (w *guarded) Flush() { _ = w.FlushError() }
