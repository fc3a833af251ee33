package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
)

// A start that is refused costs little: it is refused by its path, key and tenant, of
// its body no more than refusedBody is read, and while refusals take more than a tenth
// of the cores, each answer is held back for a while. So clients that come back at once,
// whatever Retry-After says, cannot take the cores from the runs that were accepted.

const (
	// refusedBody bounds what is read of the body of a refused start, in bytes.
	refusedBody = 64 << 10
	// mostParked bounds the refusals that are held back; beyond, connections are closed.
	mostParked = 4096
	// mostPark bounds for how long one is.
	mostPark = time.Second
	// refusalShare is the part of all cores that refusals may take before they are.
	refusalShare = 0.1
)

// askStart asks whether there is room for a start, before its body is read. release is
// to be called when the start is made, or not; it is nil if Runs is to ask.
func (s *Server) askStart(c echo.Context, workflow string, wait bool) (release func(), err error) {
	if s.cfg.Admission == nil {
		return nil, nil
	}
	began := time.Now()
	once, err := onceOf(c, nil)
	if err != nil {
		return nil, err
	}
	r := c.Request()
	release, err = s.cfg.Admission.AskStart(r.Context(), host.StartAsk{
		Tenant: tenantOf(c), Workflow: workflow, Wait: wait, Once: once, Bytes: r.ContentLength, RequestID: idOf(c),
	})
	var e *host.Error
	if errors.As(err, &e) && e.Code == host.CodeOverloaded {
		s.refuse(c, e, began)
	}
	return release, err
}

// idOf is the id of a request.
func idOf(c echo.Context) string {
	id, _ := c.Get(requestIDKey).(string)
	return id
}

// refuse prepares the answer to a start that was refused: it leaves the body alone, and
// holds the answer back while there are many.
func (s *Server) refuse(c echo.Context, e *host.Error, began time.Time) {
	r := c.Request()
	left := r.ContentLength > refusedBody
	if r.ContentLength < 0 {
		_ = http.NewResponseController(c.Response()).SetReadDeadline(time.Now().Add(drainTime))
		n, err := io.CopyN(io.Discard, r.Body, refusedBody+1)
		left = n > refusedBody || err != nil && !errors.Is(err, io.EOF)
	}
	if left || !s.refusals.hold(r.Context(), e.RetryAfter, time.Since(began)) {
		c.Response().Header().Set("Connection", "close")
	}
}

// refusals holds answers back.
type refusals struct {
	cores int
	now   func() time.Time
	wait  func(ctx context.Context, d time.Duration)

	mu     sync.Mutex // guards what follows
	second int64
	count  int     // in this second
	before int     // in the one before
	mean   float64 // seconds that a refusal takes
	parked int
}

func newRefusals(until context.Context) *refusals {
	return &refusals{cores: runtime.GOMAXPROCS(0), now: time.Now, wait: func(ctx context.Context, d time.Duration) {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		case <-until.Done():
		}
	}}
}

// hold counts a refusal that took so long, and holds it back if there are many: for half
// the time after which the client is to come back. false: too many are held back, and
// the connection is to be closed.
func (f *refusals) hold(ctx context.Context, after, took time.Duration) bool {
	f.mu.Lock()
	if now := f.now().Unix(); now != f.second {
		if f.before = 0; now == f.second+1 {
			f.before = f.count
		}
		f.second, f.count = now, 0
	}
	f.count++
	f.mean += (took.Seconds() - f.mean) / 8
	if float64(max(f.count, f.before))*f.mean <= refusalShare*float64(f.cores) {
		f.mu.Unlock()
		return true
	}
	if f.parked >= mostParked {
		f.mu.Unlock()
		return false
	}
	f.parked++
	f.mu.Unlock()
	f.wait(ctx, min(after/2, mostPark))
	f.mu.Lock()
	f.parked--
	f.mu.Unlock()
	return true
}
