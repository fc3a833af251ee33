package forward

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/cluster"
)

// request is a request of a client, with what is needed to send it again.
type request struct {
	f     *Forwarder
	w     http.ResponseWriter
	r     *http.Request
	body  []byte // all of it, if whole
	whole bool
	held  int64 // bytes that count among those that are kept
	spent bool  // a body that is not kept has been read from
	again bool  // may be sent again after it may have been done
	doubt bool  // it changes something, and may have been done
	tries int
}

// keep reads the body into memory, if there is room for it.
func (q *request) keep() error {
	length := q.r.ContentLength
	if length == 0 || q.r.Body == nil || q.r.Body == http.NoBody {
		q.whole = true
		return nil
	}
	most := length
	if length < 0 {
		most = keepBody
	}
	if most > keepBody {
		return nil
	}
	if q.f.kept.Add(most) > keepBodies {
		q.f.kept.Add(-most)
		return nil
	}
	q.held = most
	rc := http.NewResponseController(q.w)
	_ = rc.SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err := io.ReadAll(io.LimitReader(q.r.Body, most+1))
	_ = rc.SetReadDeadline(time.Time{})
	if err != nil {
		return err
	}
	q.body, q.whole = body, int64(len(body)) <= most
	q.f.kept.Add(int64(len(body)) - most)
	q.held = int64(len(body))
	return nil
}

func (q *request) release() { q.f.kept.Add(-q.held) }

// replayable reports whether the body can be sent again.
func (q *request) replayable() bool { return q.whole || !q.spent }

// attempt is the body of a request in one attempt. What answers the request may read on in
// another goroutine after the attempt has ended, and then gets nothing.
type attempt struct {
	q    *request
	from io.Reader

	mu    sync.Mutex // guards ended, and the request's spent
	ended bool
}

// reader returns the body for an attempt, which must be ended.
func (q *request) reader() *attempt {
	a := &attempt{q: q, from: bytes.NewReader(q.body)}
	if !q.whole {
		a.from = io.MultiReader(a.from, q.r.Body)
	}
	return a
}

func (a *attempt) Read(p []byte) (int, error) {
	a.mu.Lock()
	if a.ended {
		a.mu.Unlock()
		return 0, errGone
	}
	a.q.spent = true
	a.mu.Unlock()
	return a.from.Read(p)
}

func (a *attempt) Close() error { return nil }

func (a *attempt) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
}

// outcome is how an attempt ended.
type outcome int

const (
	answered outcome = iota
	notDone          // nothing was done
	unknown          // something may have been done; no answer was written
	lapsed           // as unknown, and the owner is there but has no lease
	cut              // a part of an answer was written
)

// answer sends the request to the owner, as often as necessary.
func (q *request) answer() {
	var until time.Time // when to give up; zero: an owner has been found
	wait := retryLeast
	for {
		if until.IsZero() {
			until = time.Now().Add(q.f.cfg.Timeout)
		}
		within, cancel := context.WithDeadline(q.r.Context(), until)
		stop := context.AfterFunc(q.f.stopped, cancel)
		target, err := q.f.cfg.Nodes.Find(within, 0)
		stop()
		cancel()
		if q.f.stopped.Err() != nil {
			q.refuse(errStopped)
			return
		}
		if err == nil && time.Now().After(until) {
			err = context.DeadlineExceeded
		}
		if err != nil {
			q.refuse(errNoOwner)
			return
		}
		if q.tries++; q.tries > 1 {
			q.f.stats.repeated.Add(1)
		}
		began := time.Now()
		var out outcome
		if target.Here {
			out = q.local(target)
		} else {
			out = q.remote(target)
		}
		may := q.replayable() && (out == notDone || q.again)
		q.doubt = q.doubt || out != notDone && !isSafe(q.r)
		switch {
		case out == answered:
			return
		case out == cut || q.r.Context().Err() != nil:
			panic(http.ErrAbortHandler) // ends the connection, so that the client sees that something is missing
		case !may:
			q.refuse(errNoOwner)
			return
		}
		if out == unknown && time.Since(began) > q.f.cfg.Timeout/2 {
			until, wait = time.Time{}, retryLeast // it had waited for long: its owner was there
		}
		q.pause(target, wait)
		wait = min(2*wait, retryMost)
	}
}

// refuse ends the attempts. Whatever ended them, the client must know if the request may have
// been done.
func (q *request) refuse(why *host.Error) {
	if q.doubt {
		q.f.stats.unknown.Add(1)
		q.w.Header().Set(headerOutcome, "unknown")
		why = errUnknown
	} else {
		q.f.stats.refused.Add(1)
	}
	q.f.refuse(q.w, q.r, why)
}

// pause waits before the next attempt, at most until the owner has gone.
func (q *request) pause(target cluster.Target, wait time.Duration) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-target.Tenure.Done():
	case <-timer.C:
	case <-q.r.Context().Done():
	}
}

// local has the request answered by the host of this node.
func (q *request) local(target cluster.Target) outcome {
	r := q.r.Clone(q.r.Context())
	body := q.reader()
	defer body.end()
	r.Body = body
	if q.whole {
		r.ContentLength = int64(len(q.body))
	}
	w := &guarded{ResponseWriter: q.w, r: r, nodes: q.f.cfg.Nodes, tenure: target.Tenure, failed: q.f.cfg.Failed, doubt: q.doubt}
	q.f.serve(w, r)
	if w.dubious {
		return unknownForGood(q)
	}
	return w.outcome()
}

// remote sends the request to another node.
func (q *request) remote(target cluster.Target) outcome {
	ctx, cancel := context.WithCancelCause(q.r.Context())
	defer cancel(nil)
	defer context.AfterFunc(target.Tenure, func() { cancel(errGone) })()
	defer context.AfterFunc(q.f.stopped, func() { cancel(errStopped) })()
	var sent atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// Before anything is written: the transport may give up a request that it is just
		// writing.
		WroteHeaderField: func(string, []string) { sent.Store(true) },
	})
	body := q.reader()
	defer body.end()
	out := q.outgoing(ctx, target, body)
	answer, err := q.f.peer(target).RoundTrip(out)
	if err != nil {
		q.f.cfg.Log.Debug("a request was not answered", "node", target.Name, "error", errors.Join(err, context.Cause(ctx)))
		if sent.Load() {
			return unknown
		}
		return notDone
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.Header.Get(headerMoved) != "" {
		if answer.StatusCode == http.StatusMisdirectedRequest {
			return notDone
		}
		if answer.Header.Get(headerMoved) == movedLapsed {
			return lapsed
		}
		return unknown // the host was closed while it worked on the request
	}
	if q.doubt && doubtful(q.r, answer.StatusCode) {
		return unknownForGood(q)
	}
	return q.copy(answer)
}

// unknownForGood ends the attempts of a request whose repetition was refused, perhaps
// because it had been done.
func unknownForGood(q *request) outcome {
	q.again = false
	return unknown
}

// outgoing makes the request for another node.
func (q *request) outgoing(ctx context.Context, target cluster.Target, body io.ReadCloser) *http.Request {
	out := q.r.Clone(ctx)
	out.RequestURI = ""
	out.URL.Scheme, out.URL.Host = "https", hostOf(target.URL)
	out.Host = q.r.Host
	removeHopHeaders(out.Header)
	out.Header.Set(headerClient, q.r.RemoteAddr)
	out.Header.Set(headerEpoch, strconv.FormatUint(target.Epoch, 10))
	if q.r.TLS != nil {
		out.Header.Set(headerSecure, "1")
	}
	if _, named := out.Header["User-Agent"]; !named {
		out.Header.Set("User-Agent", "") // else the transport names itself
	}
	out.Body, out.ContentLength, out.GetBody = body, q.r.ContentLength, nil
	if q.whole {
		out.ContentLength = int64(len(q.body))
		if len(q.body) == 0 {
			out.Body = http.NoBody
		}
	}
	return out
}

// isStream reports whether an answer comes in parts that the client waits for.
func isStream(answer *http.Response) bool {
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	return answer.ContentLength < 0 && (kind == "text/event-stream" || kind == "application/x-ndjson")
}

// copy writes the answer of another node. What is not a stream is first read, so that
// nothing is written of an answer whose end does not come. The parts of a stream are flushed.
func (q *request) copy(answer *http.Response) outcome {
	parts := isStream(answer)
	var first []byte
	whole := false
	if !parts {
		var err error
		first, err = io.ReadAll(io.LimitReader(answer.Body, readAnswer))
		if err != nil {
			return unknown
		}
		whole = len(first) < readAnswer
	}
	removeHopHeaders(answer.Header)
	answer.Header.Del(headerMoved)
	h := q.w.Header()
	maps.Copy(h, answer.Header)
	rc := http.NewResponseController(q.w)
	_ = rc.SetReadDeadline(time.Time{})
	_ = rc.SetWriteDeadline(time.Now().Add(answerTimeout))
	q.w.WriteHeader(answer.StatusCode)
	if _, err := q.w.Write(first); err != nil && len(first) > 0 {
		return cut
	}
	if whole {
		q.f.stats.forwarded.Add(1)
		return answered
	}
	if parts {
		_ = rc.Flush()
	}
	buffer := make([]byte, 32<<10)
	for {
		n, err := answer.Body.Read(buffer)
		if n > 0 {
			_ = rc.SetWriteDeadline(time.Now().Add(answerTimeout))
			if _, err := q.w.Write(buffer[:n]); err != nil {
				return cut
			}
			if parts {
				_ = rc.Flush()
			}
		}
		if err == io.EOF {
			q.f.stats.forwarded.Add(1)
			return answered
		}
		if err != nil {
			return cut
		}
	}
}

// hopHeaders belong to one connection.
var hopHeaders = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect"}

func removeHopHeaders(h http.Header) {
	for _, list := range h["Connection"] {
		for name := range splitList(list) {
			h.Del(name)
		}
	}
	for _, name := range hopHeaders {
		h.Del(name)
	}
}
