package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/apiwire"
	"github.com/weftrun/weft/host/position"
	"github.com/weftrun/weft/host/sse"
)

// Bounds of what a stream holds.
const (
	maxLine     = 64 << 20 // bytes of one line
	queued      = 64       // events to read ahead
	maxDelay    = 5 * time.Second
	maxBatch    = 256
	failureText = 64 << 10 // for the answer to a refused stream
)

// errIdle ends a connection that has been silent for too long.
var errIdle = errors.New("no heartbeat came")

// Stream is an open subscription to a handler's events; it implements [host.Stream]. A
// goroutine reads ahead. When the connection is lost, it reconnects after the last event
// that it received. It ends with the stream or with Close.
type Stream struct {
	c        *Client
	id       string
	after    int64
	internal bool

	ended  bool
	events chan host.StreamEvent // closed by the reading goroutine after it has set err
	err    error
	cancel context.CancelFunc
}

var _ host.Stream = (*Stream)(nil)

// Events opens a handler's stream after a sequence number, or at [position.FromRun] or
// [position.FromNow]. Internal events are included only if internal is true. The caller
// closes the stream; the stream also ends with ctx.
//
// Events over HTTP do not say which run they belong to. The terminal event is recognised
// by its type.
func (c *Client) Events(ctx context.Context, id string, after int64, internal bool) (*Stream, error) {
	ctx, cancel := context.WithCancel(ctx)
	s := &Stream{c: c, id: id, after: after, internal: internal, cancel: cancel, events: make(chan host.StreamEvent, queued)}
	conn, err := s.connect(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	if conn == nil {
		s.ended = true
		s.finish(io.EOF)
		cancel()
		return s, nil
	}
	go s.run(ctx, conn)
	return s, nil
}

// Next returns the next events, at least one. It waits for at most wait; if no event has
// arrived by then, it returns none and nil. After the terminal event of the latest run it
// returns io.EOF. After a lost connection that could not be restored it returns a
// [*host.Error].
func (s *Stream) Next(ctx context.Context, wait time.Duration) ([]host.StreamEvent, error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case e, ok := <-s.events:
		if !ok {
			return nil, s.err
		}
		return s.more([]host.StreamEvent{e}), nil
	case <-timer.C:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// more adds the events that have already arrived.
func (s *Stream) more(batch []host.StreamEvent) []host.StreamEvent {
	for len(batch) < maxBatch {
		select {
		case e, ok := <-s.events:
			if !ok {
				return batch
			}
			batch = append(batch, e)
		default:
			return batch
		}
	}
	return batch
}

// Ended reports whether the run had ended, and no events followed the starting point,
// when the stream was opened.
func (s *Stream) Ended() bool { return s.ended }

// Close ends the stream and returns when its goroutine has ended. It may be called twice.
func (s *Stream) Close() {
	s.cancel()
	for range s.events {
		// Wait until the goroutine has closed the channel.
	}
}

// finish sets the error with which the stream ended, for Next.
func (s *Stream) finish(err error) {
	s.err = err
	close(s.events)
}

// connection is one HTTP answer that events are read from. It counts as lost
// when it is silent for too long.
type connection struct {
	ctx      context.Context // its cause is errIdle after too long a silence
	cancel   context.CancelCauseFunc
	body     io.ReadCloser
	lines    *sse.Reader
	idle     *time.Timer
	patience time.Duration
}

func (c *connection) close() {
	c.idle.Stop()
	c.cancel(nil)
	_ = c.body.Close()
}

// reason returns the more specific reason for an error of the connection.
func (c *connection) reason(err error) error {
	if errors.Is(context.Cause(c.ctx), errIdle) {
		return errIdle
	}
	return err
}

// connect asks for the stream; nil means that no events are left.
func (s *Stream) connect(ctx context.Context) (*connection, error) {
	q := url.Values{"sse": {"true"}, "after_sequence": {"now"}, "include_internal": {strconv.FormatBool(s.internal)}}
	if s.after != position.FromNow {
		q.Set("after_sequence", strconv.FormatInt(s.after, 10))
	}
	header := map[string]string{"Accept": "text/event-stream"}
	if s.after >= 0 {
		header["Last-Event-ID"] = strconv.FormatInt(s.after, 10)
	}
	conn := &connection{patience: s.c.opts.Idle}
	conn.ctx, conn.cancel = context.WithCancelCause(ctx)
	conn.idle = time.AfterFunc(conn.patience, func() { conn.cancel(errIdle) })
	resp, err := s.c.send(conn.ctx, request{ //nolint:bodyclose // connection.close closes it
		method: http.MethodGet, path: "/events/" + url.PathEscape(s.id), query: q, header: header,
	})
	if err != nil {
		conn.idle.Stop()
		if errors.Is(conn.reason(err), errIdle) {
			err = s.c.unreachable(ctx, errIdle)
		}
		conn.cancel(nil)
		return nil, err
	}
	conn.body, conn.lines = resp.Body, sse.NewReader(resp.Body, maxLine)
	if resp.StatusCode == http.StatusOK {
		return conn, nil
	}
	defer conn.close()
	if resp.StatusCode == http.StatusNoContent {
		return nil, nil
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, failureText)) // if the connection breaks, the status is enough
	a := answer{resp.StatusCode, resp.Header, text}
	return nil, a.failure()
}

// run reads connections, one after the other, until the stream ends.
func (s *Stream) run(ctx context.Context, conn *connection) {
	defer s.cancel()
	for retries := 0; ; {
		got, over, err := s.read(ctx, conn)
		conn.close()
		switch {
		case ctx.Err() != nil:
			s.finish(ctx.Err())
			return
		case over:
			s.finish(io.EOF)
			return
		}
		if got {
			retries = 0
		}
		conn, err = s.reconnect(ctx, &retries, err)
		if err != nil {
			s.finish(err)
			return
		}
	}
}

// reconnect retries until it has a connection, the stream has ended (io.EOF), the server
// refuses, or no retries are left. cause is why the last connection ended.
func (s *Stream) reconnect(ctx context.Context, retries *int, cause error) (*connection, error) {
	for {
		if *retries >= s.c.opts.Retries {
			return nil, &host.Error{
				Code: host.CodeUnavailable, Cause: cause,
				Message: fmt.Sprintf("The event stream of %s was lost: %v", s.id, cause),
			}
		}
		if err := pause(ctx, min(s.c.opts.RetryDelay<<min(*retries, 10), maxDelay)); err != nil {
			return nil, err
		}
		*retries++
		conn, err := s.connect(ctx)
		switch {
		case err == nil && conn == nil:
			return nil, io.EOF
		case err == nil:
			return conn, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case host.CodeOf(err) != host.CodeUnavailable:
			return nil, err
		}
		cause = err
	}
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// read reads a connection to its end. got reports whether an event arrived. over reports
// whether the server ended the stream after a terminal event; otherwise err says why the
// connection ended.
func (s *Stream) read(ctx context.Context, conn *connection) (got, over bool, err error) {
	last := false // whether the last event was terminal
	for {
		seq, data, err := conn.next()
		switch {
		case errors.Is(err, io.EOF) && last:
			return got, true, nil
		case errors.Is(err, io.EOF):
			return got, false, errors.New("the server closed it")
		case err != nil:
			return got, false, conn.reason(err)
		}
		conn.idle.Stop() // while our reader is slow, the server does not count as silent
		var shown apiwire.Envelope
		if err := json.Unmarshal(data, &shown); err != nil {
			return got, false, fmt.Errorf("an event is not understood: %w", err)
		}
		e, err := shown.Event()
		if err != nil {
			return got, false, err
		}
		e.Seq = seq
		select {
		case s.events <- e:
			got, last, s.after = true, e.Terminal, int64(seq)
		case <-ctx.Done():
			return got, false, ctx.Err()
		}
	}
}

// next reads one server-sent event: its id and its data.
func (c *connection) next() (seq uint64, data []byte, err error) {
	for {
		c.idle.Reset(c.patience)
		field, content, err := c.lines.Field()
		switch {
		case errors.Is(err, sse.ErrTooLong):
			return 0, nil, errTooLong
		case err != nil:
			return 0, nil, err
		case field == nil && data != nil:
			return seq, data, nil
		case string(field) == "id":
			if n, err := strconv.ParseUint(string(content), 10, 63); err == nil {
				seq = n
			}
		case string(field) == "data":
			if data != nil {
				data = append(data, '\n')
			}
			if data = append(data, content...); len(data) > maxLine {
				return 0, nil, errTooLong
			}
		}
	}
}

var errTooLong = fmt.Errorf("an event is longer than %d bytes", maxLine)
