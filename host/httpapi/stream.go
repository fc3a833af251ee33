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
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/position"
)

// heartbeat is the comment that keeps a silent stream open.
const heartbeat = ": heartbeat\n\n"

// streamOptions are the parameters of GET /events/{id}.
type streamOptions struct {
	after     int64 // see host.Runs
	sse       bool  // else NDJSON
	internal  bool
	qualified bool
	children  bool // include the events of children; the stream then begins at from
	from      position.Family
}

// parseStream reads the options. lastEventID is the header that clients of server-sent
// events send when they reconnect. If it is a number, it takes precedence.
func parseStream(q url.Values, lastEventID string) (streamOptions, error) {
	o := streamOptions{
		after:     position.FromNow,
		sse:       isTrue(q, "sse", true),
		internal:  isTrue(q, "include_internal", false),
		qualified: isTrue(q, "include_qualified_name", true),
		children:  isTrue(q, "include_children", false),
	}
	if o.children {
		err := o.parsePosition(q, lastEventID)
		return o, err
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

// parsePosition reads the position at which a stream with children begins: a sequence
// number, as for any stream, or the position of an event.
func (o *streamOptions) parsePosition(q url.Values, lastEventID string) error {
	o.from.After = position.FromNow
	if text := q.Get("after_sequence"); q.Has("after_sequence") && !strings.EqualFold(text, "now") {
		var ok bool
		if o.from, ok = position.Parse(strings.TrimSpace(text)); !ok {
			return invalid("Invalid after_sequence: '%s'. It must be a number, now, or the position of an event", clip(text))
		}
	}
	if from, ok := position.Parse(lastEventID); ok && o.sse {
		o.from = from
	}
	return nil
}

// parseSequence reads a sequence number. Every negative number means the latest run's
// beginning. A number beyond the range of int64 becomes the largest one.
func parseSequence(text string) (int64, bool) {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	if errors.Is(err, strconv.ErrRange) && n > 0 {
		return math.MaxInt64, true
	}
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, false
	}
	return max(n, position.FromRun), true
}

// openStream is a reader's stream while it is open.
type openStream struct {
	ctx    context.Context
	cancel context.CancelFunc
	leave  func()
	events host.Stream
	family host.FamilyStream // instead of events: includes the events of children
	w      *eventWriter      // nil: no events will follow
}

func (o *openStream) close() {
	if o.events != nil {
		o.events.Close()
	}
	if o.family != nil {
		o.family.Close()
	}
	o.cancel()
	o.leave()
}

// streamEvents sends a handler's events as they become durable. Thousands of readers wait
// in it. Its stack, and the stacks of its callers, are kept small, so that a garbage
// collection halves the stack after openStream.
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

// openStream opens a stream and begins its answer. If it returns a stream, the caller
// closes the stream, even if there is an error.
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
	ended := false
	if o.children {
		if st.family, err = s.cfg.Runs.FamilyEvents(st.ctx, tenantOf(c), param(c, "id"), o.from); err == nil {
			ended = st.family.Ended()
		}
	} else if st.events, err = s.cfg.Runs.Events(st.ctx, tenantOf(c), param(c, "id"), o.after); err == nil {
		ended = st.events.Ended()
	}
	if err != nil {
		st.events, st.family = nil, nil
		return st, orNotFound(err, textHandlerNotFound)
	}
	h := c.Response().Header()
	if ended {
		h.Set("Content-Type", echo.MIMEApplicationJSON)
		c.Response().WriteHeader(http.StatusNoContent)
		return st, nil
	}
	h.Set("Content-Type", "application/x-ndjson")
	if o.sse {
		h.Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // for proxies that would delay events
	c.Response().WriteHeader(http.StatusOK)
	w := &eventWriter{c: c, o: o, rc: http.NewResponseController(c.Response())}
	if w.flush() != nil {
		return st, nil // the client has gone
	}
	_ = w.rc.SetReadDeadline(time.Time{}) // the deadline of boundAnswer no longer applies
	st.w = w
	return st, nil
}

// errCut ends a stream whose run continues: the connection is cut, so that the client
// sees that more events will follow, and reconnects.
var errCut = errors.New("the stream is cut: its run continues")

// pump writes events until the stream ends. It returns nil if the client has gone, or if
// the handler was purged.
//
// # Errors
//
// [errCut]: the server shuts down or was taken away, or the client's key was revoked.
func (s *Server) pump(st *openStream) error {
	for w := st.w; ; {
		err := st.relay(w.patience(s.cfg.Heartbeat))
		switch {
		case w.gone || errors.Is(err, io.EOF):
			return nil
		case st.ctx.Err() != nil || host.CodeOf(err) == host.CodeUnavailable:
			return errCut
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

// relay writes the events that arrive within wait.
func (o *openStream) relay(wait time.Duration) error {
	if o.family != nil {
		batch, err := o.family.Next(o.ctx, wait)
		if wrong := o.w.write(len(batch), func(i int) (*host.StreamEvent, *host.FamilyEvent) { return &batch[i].StreamEvent, &batch[i] }); wrong != nil {
			return wrong
		}
		return err
	}
	batch, err := o.events.Next(o.ctx, wait)
	if wrong := o.w.write(len(batch), func(i int) (*host.StreamEvent, *host.FamilyEvent) { return &batch[i], nil }); wrong != nil {
		return wrong
	}
	return err
}

// eventWriter writes one stream. It keeps one buffer for all batches.
type eventWriter struct {
	c    echo.Context
	o    streamOptions
	rc   *http.ResponseController
	buf  []byte
	last time.Time // of the last flush
	gone bool      // a write failed: the client has gone

	shown apiwire.Envelope // of the event that is being written
}

// patience is how long to wait for events until a heartbeat is due.
func (w *eventWriter) patience(every time.Duration) time.Duration {
	if !w.o.sse {
		return every // NDJSON has no comments
	}
	return max(every-time.Since(w.last), time.Millisecond)
}

// beat writes a heartbeat if one is due. Events that the client does not see count as
// silence.
func (w *eventWriter) beat(every time.Duration) {
	if !w.o.sse || time.Since(w.last) < every {
		return
	}
	w.buf = append(w.buf[:0], heartbeat...)
	w.send()
}

// write writes a batch of n events and flushes once; at returns each event. The error is
// about an event that cannot be shown.
func (w *eventWriter) write(n int, at func(i int) (*host.StreamEvent, *host.FamilyEvent)) error {
	w.buf = w.buf[:0]
	for i := range n {
		e, of := at(i)
		if e.Internal && !w.o.internal {
			continue
		}
		var err error
		if w.buf, err = w.append(w.buf, e, of); err != nil {
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

// append appends one event in the stream's framing. Events of children have no id,
// because clients take ids for sequence numbers of the run's own events.
func (w *eventWriter) append(dst []byte, e *host.StreamEvent, of *host.FamilyEvent) ([]byte, error) {
	if w.o.sse {
		if of == nil || of.ParentID == "" {
			dst = append(dst, "id: "...)
			dst = strconv.AppendUint(dst, e.Seq, 10)
			dst = append(dst, '\n')
		}
		dst = append(dst, "data: "...)
	}
	if w.shown.Family = nil; of != nil {
		w.shown.Family = &apiwire.Family{}
		apiwire.Fill(w.shown.Family, of)
	}
	w.shown.Show(e, w.o.qualified)
	dst, err := apiwire.AppendEnvelope(dst, &w.shown)
	if w.o.sse {
		dst = append(dst, '\n')
	}
	return append(dst, '\n'), err
}

// send writes and flushes the content of the buffer, and empties the buffer.
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
