package httpapi

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
)

// heartbeat is the comment that keeps a silent stream open.
const heartbeat = ": heartbeat\n\n"

// streamOptions are the parameters of GET /events/{id}.
type streamOptions struct {
	after     int64 // see host.Runs
	sse       bool  // else NDJSON
	internal  bool
	qualified bool
}

// parseStream reads them. lastEventID is the header that clients of
// server-sent events send when they reconnect: it wins if it is a number.
func parseStream(q url.Values, lastEventID string) (streamOptions, error) {
	o := streamOptions{
		after:     host.StreamFromNow,
		sse:       isTrue(q, "sse", true),
		internal:  isTrue(q, "include_internal", false),
		qualified: isTrue(q, "include_qualified_name", true),
	}
	if q.Has("after_sequence") {
		text := q.Get("after_sequence")
		n, ok := parseSequence(text)
		switch {
		case ok:
			o.after = n
		case !strings.EqualFold(text, "now"):
			return o, invalid("Invalid after_sequence: '%s'", clip(text))
		}
	}
	if o.sse {
		if n, ok := parseSequence(lastEventID); ok {
			o.after = n
		}
	}
	return o, nil
}

// parseSequence reads a sequence number. All negative ones mean the latest
// run's beginning, and none is too great to be past the end.
func parseSequence(text string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if errors.Is(err, strconv.ErrRange) && n > 0 {
		return math.MaxInt64, true
	}
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return max(n, host.StreamFromRun), true
}

// openStream is a reader's stream while it is open.
type openStream struct {
	ctx    context.Context
	cancel context.CancelFunc
	leave  func()
	events host.Stream
	w      *eventWriter // nil: there is nothing to come
}

func (o *openStream) close() {
	if o.events != nil {
		o.events.Close()
	}
	o.cancel()
	o.leave()
}

// streamEvents sends a handler's events as they become durable. Thousands of readers
// wait in it: what it has on its stack, and its callers have on theirs, is kept small,
// so that a collection takes the stack back to half of what the way here needed.
func (s *Server) streamEvents(c echo.Context) error {
	st, err := s.openStream(c)
	if st == nil {
		return err
	}
	defer st.close()
	if err != nil || st.w == nil {
		return err
	}
	return s.pump(st)
}

// openStream begins a stream and its answer. Who gets one closes it, also with an error.
func (s *Server) openStream(c echo.Context) (*openStream, error) {
	r := c.Request()
	o, err := parseStream(c.QueryParams(), r.Header.Get("Last-Event-ID"))
	if err != nil {
		return nil, err
	}
	leave, err := s.reader(tenantOf(c))
	if err != nil {
		return nil, err
	}
	st := &openStream{leave: leave}
	st.ctx, st.cancel = s.untilShutdown(r.Context())
	events, err := s.cfg.Runs.Events(st.ctx, tenantOf(c), param(c, "id"), o.after)
	if err != nil {
		return st, orNotFound(err, textHandlerNotFound)
	}
	st.events = events
	h := c.Response().Header()
	if events.Ended() {
		h.Set("Content-Type", echo.MIMEApplicationJSON)
		c.Response().WriteHeader(http.StatusNoContent)
		return st, nil
	}
	h.Set("Content-Type", "application/x-ndjson")
	if o.sse {
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // of proxies that would hold events back
	c.Response().WriteHeader(http.StatusOK)
	w := &eventWriter{c: c, o: o, rc: http.NewResponseController(c.Response())}
	if w.flush() != nil {
		return st, nil // the client has gone
	}
	_ = w.rc.SetReadDeadline(time.Time{}) // see boundAnswer: that time is over
	st.w = w
	return st, nil
}

// pump writes events until the stream ends. A client that has gone is no
// error, and neither is a handler that was purged meanwhile.
func (s *Server) pump(st *openStream) error {
	for w := st.w; ; {
		batch, err := st.events.Next(st.ctx, w.patience(s.cfg.Heartbeat))
		if len(batch) > 0 {
			if err := w.write(batch); err != nil {
				return err
			}
		}
		switch {
		case w.gone || errors.Is(err, io.EOF) || st.ctx.Err() != nil:
			return nil
		case host.CodeOf(err) == host.CodeNotFound:
			return nil
		case err != nil:
			return err
		}
		w.beat(s.cfg.Heartbeat)
		if w.gone {
			return nil
		}
	}
}

// eventWriter writes one stream. It keeps one buffer for all batches.
type eventWriter struct {
	c    echo.Context
	o    streamOptions
	rc   *http.ResponseController
	buf  []byte
	last time.Time // of the last flush
	gone bool      // writing failed: there is no client any more
}

// patience is how long to wait for events until a heartbeat is due.
func (w *eventWriter) patience(every time.Duration) time.Duration {
	if !w.o.sse {
		return every // NDJSON has no comments
	}
	return max(every-time.Since(w.last), time.Millisecond)
}

// beat writes a heartbeat if one is due. Hidden events are silence, too.
func (w *eventWriter) beat(every time.Duration) {
	if !w.o.sse || time.Since(w.last) < every {
		return
	}
	w.buf = append(w.buf[:0], heartbeat...)
	w.send()
}

// write writes a batch and flushes once. The error is about an event that
// cannot be shown.
func (w *eventWriter) write(batch []host.StreamEvent) error {
	w.buf = w.buf[:0]
	for i := range batch {
		if batch[i].Internal && !w.o.internal {
			continue
		}
		var err error
		if w.buf, err = w.append(w.buf, &batch[i]); err != nil {
			return err
		}
		if len(w.buf) >= flushSize {
			if w.send(); w.gone {
				return nil
			}
		}
	}
	if len(w.buf) > 0 {
		w.send()
	}
	if cap(w.buf) > flushSize {
		w.buf = nil
	}
	return nil
}

// append appends one event in the stream's framing.
func (w *eventWriter) append(dst []byte, e *host.StreamEvent) ([]byte, error) {
	if !w.o.sse {
		dst, err := appendEnvelope(dst, e, w.o.qualified)
		return append(dst, '\n'), err
	}
	dst = append(dst, "id: "...)
	dst = strconv.AppendUint(dst, e.Seq, 10)
	dst = append(dst, "\ndata: "...)
	dst, err := appendEnvelope(dst, e, w.o.qualified)
	return append(dst, '\n', '\n'), err
}

// send writes and flushes what the buffer holds, and empties it.
func (w *eventWriter) send() {
	extendDeadline(w.c)
	_, err := w.c.Response().Write(w.buf)
	w.buf = w.buf[:0]
	if err == nil {
		err = w.flush()
	}
	w.gone = err != nil
}

func (w *eventWriter) flush() error {
	w.last = time.Now()
	return w.rc.Flush()
}
