package bench

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/weftrun/weft/cmd/weft/remote"
	"github.com/weftrun/weft/cmd/weft/screen"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/client"
)

// The precision of latencies: microseconds up to an hour, to three digits.
const (
	longestLatency = int64(time.Hour / time.Microsecond)
	latencyDigits  = 3
)

// benchPause is how long a client waits after a run that could not be started, unless the
// server says how long. Without a pause, mostly refusals would be measured, because they
// take no time.
const benchPause = 20 * time.Millisecond

// load starts runs of one kind from several clients at a time.
type load struct {
	c     *client.Client
	start client.StartRequest
	now   atomic.Pointer[tally] // of the current load
}

func newLoad(c *client.Client, start client.StartRequest) *load { return &load{c: c, start: start} }

// try starts a run and waits for it. A run that fails is not an error, because it can be
// counted.
func (l *load) try(ctx context.Context) error {
	_, err := l.c.Start(ctx, l.start)
	return err
}

// run makes clients start runs until the number of runs has been started (0: any number),
// the time has passed (0: any time), or ctx ends. If both are 0, it returns at once. Runs
// that ctx interrupts are not counted.
func (l *load) run(ctx context.Context, clients int, runs int64, within time.Duration) *tally {
	t := newTally()
	l.now.Store(t)
	if runs == 0 && within == 0 {
		return t
	}
	over := make(<-chan time.Time)
	if within > 0 {
		timer := time.NewTimer(within)
		defer timer.Stop()
		over = timer.C
	}
	done := make(chan struct{})
	var began atomic.Int64
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for ctx.Err() == nil && (runs == 0 || began.Add(1) <= runs) {
				select {
				case <-done:
					return
				default:
				}
				l.one(ctx, t)
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		all.Wait()
		close(ended)
	}()
	select {
	case <-over:
	case <-ended:
	}
	close(done)
	<-ended
	t.took, t.interrupted = time.Since(t.began), ctx.Err() != nil
	return t
}

// one starts a run and waits for its end.
func (l *load) one(ctx context.Context, t *tally) {
	began := time.Now()
	rec, err := l.c.Start(ctx, l.start)
	took := time.Since(began)
	switch {
	case ctx.Err() != nil:
	case err == nil && rec.Status == host.StatusCompleted:
		t.add(took)
	default:
		t.fail(errorCode(rec, err))
	}
	if err != nil {
		pause := time.NewTimer(max(benchPause, remote.RetryAfter(err)))
		defer pause.Stop()
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
}

// tally is the result of a load. Its methods may be called from any goroutine. Its fields
// may be read when the load has ended.
type tally struct {
	began       time.Time
	took        time.Duration
	interrupted bool

	mu     sync.Mutex // guards the fields below
	hist   *hdrhistogram.Histogram
	errors map[string]int64 // by code
	bad    int64            // the sum of errors
}

func newTally() *tally {
	return &tally{began: time.Now(), hist: hdrhistogram.New(1, longestLatency, latencyDigits), errors: map[string]int64{}}
}

// add counts a run that completed.
func (t *tally) add(took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	// A value within the bounds causes no error.
	_ = t.hist.RecordValue(min(max(took.Microseconds(), 1), longestLatency))
}

// fail counts a run that did not complete.
func (t *tally) fail(code string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.errors[code]++
	t.bad++
}

func (t *tally) completed() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.hist.TotalCount()
}

func (t *tally) failed() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.bad
}

func (t *tally) ended() int64 { return t.completed() + t.failed() }

// rate returns the number of completed runs per second.
func (t *tally) rate() float64 {
	if t.took <= 0 {
		return 0
	}
	return float64(t.completed()) / t.took.Seconds()
}

// benchLatency has the latencies of completed runs, in milliseconds; zeros if no run
// completed.
type benchLatency struct {
	Min    float64 `json:"min"`
	Mean   float64 `json:"mean"`
	StdDev float64 `json:"stddev"`
	P50    float64 `json:"p50"`
	P90    float64 `json:"p90"`
	P99    float64 `json:"p99"`
	P999   float64 `json:"p999"`
	Max    float64 `json:"max"`
}

// milliseconds converts microseconds, the unit of the histogram.
func milliseconds[T int64 | float64](micros T) float64 { return float64(micros) / 1000 }

func (t *tally) latency() benchLatency {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hist.TotalCount() == 0 {
		return benchLatency{}
	}
	at := func(p float64) float64 { return milliseconds(t.hist.ValueAtPercentile(p)) }
	return benchLatency{
		Min: milliseconds(t.hist.Min()), Mean: milliseconds(t.hist.Mean()), StdDev: milliseconds(t.hist.StdDev()),
		P50: at(50), P90: at(90), P99: at(99), P999: at(99.9), Max: milliseconds(t.hist.Max()),
	}
}

// benchPercentile is a step of the cumulative histogram: this many runs took at most this
// long.
type benchPercentile struct {
	Percentile float64 `json:"percentile"`
	Within     float64 `json:"ms"`
	Runs       int64   `json:"runs"`
}

func (t *tally) percentiles() []benchPercentile {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := []benchPercentile{}
	if t.hist.TotalCount() == 0 {
		return list
	}
	for _, b := range t.hist.CumulativeDistribution() {
		list = append(list, benchPercentile{b.Quantile, milliseconds(b.ValueAt), b.Count})
	}
	return list
}

// watched runs the load that is counted, and shows its progress on a terminal.
func watched(ctx context.Context, r *remote.Conn, l *load, o benchOptions) *tally {
	if !screen.Of(r.Errs).Live {
		return l.run(ctx, o.clients, o.runs, o.duration)
	}
	ended := make(chan *tally, 1)
	go func() { ended <- l.run(ctx, o.clients, o.runs, o.duration) }()
	next := time.NewTicker(screen.FrameEvery)
	defer next.Stop()
	began := time.Now()
	for frame := 0; ; frame++ {
		select {
		case t := <-ended:
			_, _ = io.WriteString(r.Errs, screen.LineStart+screen.ClearBelow)
			return t
		case <-next.C:
			line := progressLine(l.now.Load(), time.Since(began))
			_, _ = fmt.Fprintf(r.Errs, "%s%s%c %s", screen.LineStart, screen.ClearBelow, screen.Spinner[frame%len(screen.Spinner)],
				screen.Cut(line, screen.Of(r.Errs).Cols-3))
		}
	}
}

// progressLine describes the progress of a load.
func progressLine(t *tally, since time.Duration) string {
	done := t.completed()
	line := fmt.Sprintf("%s, %.0f/s, %s", screen.Counted(uint64(done), "run"), float64(done)/since.Seconds(), screen.Elapsed(since))
	if bad := t.failed(); bad > 0 {
		line += fmt.Sprintf(", %d not completed", bad)
	}
	return line
}

func sortedKeys(m map[string]int64) []string { return slices.Sorted(maps.Keys(m)) }
