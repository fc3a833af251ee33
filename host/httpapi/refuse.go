package httpapi

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/weftrun/weft/host"
)

// A start that is refused costs little: it is refused by its path, key and tenant, of
// its body no more than refusedBody is read, and refusals that would take more than a
// tenth of what the process gets of the cores are held back until their turn comes. So
// clients that come back at once, whatever Retry-After says, cannot take the cores from
// the runs that were accepted. What a client is held back is off its Retry-After.

const (
	// refusedBody bounds what is read of the body of a refused start, in bytes.
	refusedBody = 64 << 10
	// mostParked bounds the refusals that are held back; beyond, connections are closed.
	// Those that are may take a parkedPart of the memory limit, at parkedBytes each.
	mostParked  = 4096
	parkedPart  = 4
	parkedBytes = 24 << 10
	// mostPark bounds for how long one is.
	mostPark = 5 * time.Second
	// refusalShare is the part of the process's time on cores that refusals may take
	// before they are held back. refusalCost is what one refusal takes: mostly to read a
	// request of 23 KB, to write an answer, and to collect the garbage of both, as
	// BenchmarkOverload shows with GOMEMLIMIT=60MiB at twenty times the load.
	refusalShare = 0.1
	refusalCost  = 250 * time.Microsecond
	// refusalBurst is for how long refusals come as they like that were few before.
	refusalBurst = 200 * time.Millisecond
	// leastCores is the part of all cores that the process is taken to get at least.
	leastCores = 0.25
	leastRetry = time.Second
)

// askStart asks whether there is room for a start, before its body is read. release is
// to be called when the start is made, or not; it is nil if Runs is to ask.
func (s *Server) askStart(c echo.Context, workflow string, wait bool) (release func(), err error) {
	if s.cfg.Admission == nil {
		return nil, nil
	}
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
		s.refuse(c, e)
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
func (s *Server) refuse(c echo.Context, e *host.Error) {
	r := c.Request()
	left := r.ContentLength > refusedBody
	if r.ContentLength < 0 {
		_ = http.NewResponseController(c.Response()).SetReadDeadline(time.Now().Add(drainTime))
		n, err := io.CopyN(io.Discard, r.Body, refusedBody+1)
		left = n > refusedBody || err != nil && !errors.Is(err, io.EOF)
	}
	held, ok := time.Duration(0), false
	if !left {
		held, ok = s.refusals.hold(r.Context(), e.RetryAfter)
	}
	if !ok {
		c.Response().Header().Set("Connection", "close")
	}
	e.RetryAfter = max(e.RetryAfter-held, leastRetry)
}

// refusals holds answers back.
type refusals struct {
	cores int
	most  int                  // are held back at a time
	cpu   func() time.Duration // of the process; nil: not known
	now   func() time.Time
	wait  func(ctx context.Context, d time.Duration)

	mu     sync.Mutex // guards what follows
	read   time.Time  // when cpu was called last, what it said, and
	used   time.Duration
	had    float64   // how many cores the process had until then
	next   time.Time // when a refusal may be answered that comes now
	parked int
}

func newRefusals(until context.Context, cpu func() time.Duration) *refusals {
	most := int64(mostParked)
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		most = min(most, limit/parkedPart/parkedBytes)
	}
	return &refusals{cores: runtime.GOMAXPROCS(0), most: int(most), cpu: cpu, now: time.Now, wait: func(ctx context.Context, d time.Duration) {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		case <-until.Done():
		}
	}}
}

// hold holds a refusal back until its turn, but no longer than the client is to wait
// before it comes back, and says for how long it has. ok is false if too many are held
// back, and the connection is to be closed.
func (f *refusals) hold(ctx context.Context, after time.Duration) (held time.Duration, ok bool) {
	f.mu.Lock()
	now := f.now()
	each := time.Duration(float64(refusalCost) / (refusalShare * f.share(now)))
	if earliest := now.Add(-refusalBurst); f.next.Before(earliest) {
		f.next = earliest
	}
	if latest := now.Add(min(after, mostPark)); f.next.Add(each).After(latest) {
		f.next = latest
	} else {
		f.next = f.next.Add(each)
	}
	if held = f.next.Sub(now); held <= 0 {
		f.mu.Unlock()
		return 0, true
	}
	if f.parked >= f.most {
		f.mu.Unlock()
		return 0, false
	}
	f.parked++
	f.mu.Unlock()
	f.wait(ctx, held)
	f.mu.Lock()
	f.parked--
	f.mu.Unlock()
	return held, true
}

// share is how many cores the process gets, as measured over about a second. Called with
// mu held.
func (f *refusals) share(now time.Time) float64 {
	most, least := float64(f.cores), leastCores*float64(f.cores)
	if f.cpu == nil {
		return most
	}
	if passed := now.Sub(f.read); f.read.IsZero() || passed < 0 || passed >= time.Second {
		used := f.cpu()
		if f.had = most; !f.read.IsZero() && passed > 0 {
			f.had = (used - f.used).Seconds() / passed.Seconds()
		}
		f.read, f.used = now, used
	}
	return min(max(f.had, least), most)
}
