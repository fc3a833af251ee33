package trace

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// Defaults of [Config], and how many spans are sent at a time.
const (
	defaultQueue = 8192
	defaultEvery = time.Second
	batch        = 512
	complain     = time.Minute // at most one log line in this time
)

// queue sends spans to the collector. It implements sdk.SpanProcessor. One goroutine
// sends; Shutdown ends it.
type queue struct {
	exporter sdk.SpanExporter
	every    time.Duration
	log      *slog.Logger

	spans   chan sdk.ReadOnlySpan
	closing chan struct{} // closed: send the rest and end
	once    sync.Once
	ended   sync.Once // the exporter is shut down, with err
	err     error
	done    chan struct{}
	ctx     context.Context // of sending; ends when Shutdown stops waiting
	cancel  context.CancelFunc

	sent, dropped, failed atomic.Uint64
}

func newQueue(exporter sdk.SpanExporter, cfg Config) *queue {
	if cfg.Queue <= 0 {
		cfg.Queue = defaultQueue
	}
	if cfg.Every <= 0 {
		cfg.Every = defaultEvery
	}
	q := &queue{
		exporter: exporter, every: cfg.Every, log: cfg.Log,
		spans: make(chan sdk.ReadOnlySpan, cfg.Queue), closing: make(chan struct{}), done: make(chan struct{}),
	}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	go q.run()
	return q
}

// OnStart implements sdk.SpanProcessor.
func (q *queue) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements sdk.SpanProcessor.
func (q *queue) OnEnd(s sdk.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	select {
	case <-q.closing:
		q.dropped.Add(1)
	default:
		select {
		case q.spans <- s:
		default:
			q.dropped.Add(1)
		}
	}
}

// run sends spans in batches.
func (q *queue) run() {
	defer close(q.done)
	tick := time.NewTicker(q.every)
	defer tick.Stop()
	var list []sdk.ReadOnlySpan
	var told time.Time
	send := func() {
		if len(list) == 0 {
			return
		}
		if err := q.exporter.ExportSpans(q.ctx, list); err != nil {
			q.failed.Add(uint64(len(list)))
			if now := time.Now(); now.Sub(told) >= complain {
				told = now
				q.log.Warn("the collector does not take spans, and they are dropped", "spans", len(list), "error", err)
			}
		} else {
			q.sent.Add(uint64(len(list)))
		}
		clear(list)
		list = list[:0]
	}
	for {
		select {
		case s := <-q.spans:
			if list = append(list, s); len(list) == batch {
				send()
			}
			continue
		case <-tick.C:
			send()
			continue
		case <-q.closing:
		}
		for {
			select {
			case s := <-q.spans:
				if list = append(list, s); len(list) == batch {
					send()
				}
				continue
			default:
			}
			send()
			return
		}
	}
}

// Shutdown implements sdk.SpanProcessor.
func (q *queue) Shutdown(ctx context.Context) error {
	q.once.Do(func() { close(q.closing) })
	select {
	case <-q.done:
	case <-ctx.Done():
		q.cancel()
		<-q.done
	}
	q.cancel()
	q.ended.Do(func() { q.err = q.exporter.Shutdown(context.WithoutCancel(ctx)) })
	return q.err
}

// ForceFlush implements sdk.SpanProcessor. It does nothing, because Shutdown sends
// everything.
func (q *queue) ForceFlush(context.Context) error { return nil }

func (q *queue) counts() Counts {
	return Counts{Sent: q.sent.Load(), Dropped: q.dropped.Load(), Failed: q.failed.Load(), Waiting: len(q.spans)}
}
