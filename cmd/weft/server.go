package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weftrun/weft/cmd/weft/wire"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/httpapi"
)

// stopWithin is how long a stopping server may take.
const stopWithin = 10 * time.Second

// Bounds of the time between two tries to open a store that failed. A host that
// served for reopenRest is one that works: the next failure begins at the least.
const (
	reopenLeast = 100 * time.Millisecond
	reopenMost  = 10 * time.Second
	reopenRest  = time.Minute
)

// errReopening answers requests while the store is opened again.
var errReopening = &host.Error{
	Code:       host.CodeUnavailable,
	Message:    "The store failed and is being opened again; acknowledged data is kept, and runs continue",
	RetryAfter: time.Second,
}

// server is a host behind a listener that outlives it: when the store fails in a
// way that leaves open what is in it, the host is closed with all that it has in
// memory, and another one is opened on the same directory.
type server struct {
	host wire.Config
	api  httpapi.Config // but for the services
	log  *slog.Logger

	counts *wire.Series
	front  *httpapi.Front
	now    *wire.Host // nil while another one is opened
	delay  time.Duration
}

// open opens the first host.
func (s *server) open(ctx context.Context) error {
	h, err := wire.Open(ctx, s.host)
	if err != nil {
		return err
	}
	s.front = httpapi.NewFront(s.api)
	s.put(h)
	return nil
}

// put makes a host answer.
func (s *server) put(h *wire.Host) {
	s.now = h
	h.Count(s.counts)
	api := s.api
	api.Runs, api.Sessions, api.Plugins, api.Health, api.Access, api.Quotas = h.Runs, h.Runs, h.Plugins, h, h.Access, h.Quotas
	api.Admission = h.Runs
	api.Resources, api.Secret, api.NoteWrongKey = h.Resources, h.Secret, h.Access.NoteWrongKey
	s.front.Put(httpapi.New(api))
}

// run serves until ctx ends (nil), the listener fails, or the store is another's.
func (s *server) run(ctx context.Context, served <-chan error) error {
	for {
		began := time.Now()
		select {
		case <-ctx.Done():
			s.log.Info("stopping: runs continue at the next start")
			return nil
		case err := <-served:
			return err
		case <-s.now.Dead():
		}
		if time.Since(began) > reopenRest {
			s.delay = 0
		}
		if err := s.mayReopen(s.now.Failure()); err != nil {
			return err
		}
		if err := s.reopen(ctx); err != nil {
			return err
		}
		if s.now == nil {
			return nil
		}
	}
}

// mayReopen says why the store is not to be opened again after a failure, or nil.
func (s *server) mayReopen(failure error) error {
	switch {
	case errors.Is(failure, host.ErrFenced):
		return fmt.Errorf("another server has taken over %s: this one may not write to it any more", s.host.Data)
	case s.host.Data == wire.InMemory:
		return fmt.Errorf("the store in memory failed: %w", failure)
	}
	return nil
}

// reopen closes the host and opens another one, as often as it takes. When ctx
// ends it gives up, which is no error; a disk that hangs is not waited for longer
// than stopWithin then.
func (s *server) reopen(ctx context.Context) error {
	failed := s.now
	s.now = nil
	next := make(chan *wire.Host, 1)
	go func() { next <- s.again(ctx, failed) }()
	var h *wire.Host
	select {
	case h = <-next:
	case <-ctx.Done():
		limit := time.NewTimer(stopWithin)
		defer limit.Stop()
		select {
		case h = <-next:
		case <-limit.C:
			return errors.New("the failed store does not close: runs continue at the next start")
		}
	}
	if h != nil {
		s.put(h)
	}
	return nil
}

// again closes the failed host and opens the next one; nil if ctx ended before.
func (s *server) again(ctx context.Context, failed *wire.Host) *wire.Host {
	s.log.Error("the store failed and leaves open what it wrote: it is opened again, and nothing is acknowledged meanwhile", "error", failed.Failure())
	began := time.Now()
	s.close(ctx, failed)
	cfg := s.host
	cfg.After = failed
	for s.pause(ctx) {
		h, err := wire.Open(ctx, cfg)
		if err == nil {
			s.log.Info("the store is open again: runs continue", "took", time.Since(began).Round(time.Millisecond))
			return h
		}
		s.log.Error("the store cannot be opened again yet", "error", err, "next_try_in", s.delay.String())
	}
	return nil
}

// close takes the host that failed away from the listener and closes it. Requests
// that do not end soon are left to their own errors.
func (s *server) close(ctx context.Context, failed *wire.Host) {
	within, cancel := context.WithTimeout(ctx, httpapi.DefaultGrace)
	defer cancel()
	if err := s.front.Take(within, errReopening); err != nil {
		s.log.Warn("some requests are still under way", "error", err)
	}
	if err := failed.Close(context.WithoutCancel(ctx)); err != nil {
		s.log.Debug("the failed store does not close cleanly", "error", err)
	}
}

// pause waits before the next try: not at all before the first one after a time in
// which all went well. It is false when ctx has ended.
func (s *server) pause(ctx context.Context) bool {
	timer := time.NewTimer(s.delay)
	defer timer.Stop()
	s.delay = min(max(2*s.delay, reopenLeast), reopenMost)
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// stop ends everything in order, within stopWithin. What does not end by then
// ends with the process: the next start goes on from the journal, as after a
// crash.
func (s *server) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	stopped := make(chan error, 1)
	go func() {
		if s.now == nil { // the store that failed is not open
			stopped <- s.front.Shutdown(ctx)
			return
		}
		s.now.Drain()
		stopped <- errors.Join(s.front.Shutdown(ctx), s.now.Close(ctx))
	}()
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
		return fmt.Errorf("not everything stopped within %s: runs continue at the next start", stopWithin)
	}
}
