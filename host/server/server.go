// Package server runs a server: it keeps a host behind a front, and replaces the host
// when the store fails.
//
// A store can fail in a way that leaves its content unknown. Then the host has stopped
// and acknowledges nothing that waits for it. The server takes the host away from the
// front, closes it with all its memory, and opens another host on the same store, as
// often as necessary. Clients see errors that ask them to try again; everything
// acknowledged is kept.
//
// The package does not depend on the parts of a host, the kind of store, HTTP, or the
// settings of a command line.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/weftrun/weft/host"
)

// StopWithin is how long a stopping server may take.
const StopWithin = 10 * time.Second

// Bounds of the time between two attempts to open a store that failed. A host that has
// served for reopenRest counts as healthy: after its failure the first delay is the
// shortest again.
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

// Host answers requests for as long as its store works. Close may be called from any
// goroutine and more than once.
type Host interface {
	// Dead is closed when the host has stopped: by Close, or because its store failed.
	Dead() <-chan struct{}
	// Failure waits until Dead is closed and says why the host stopped; nil: by Close.
	Failure() error
	// Drain makes the host report that it is not ready for requests.
	Drain()
	// Close stops the host and releases its store. It returns when all goroutines of
	// the host have ended.
	Close(ctx context.Context) error
}

// Front takes the requests of clients and hands them to a host.
type Front interface {
	// Take takes the host away: requests that come, and those that wait, are answered
	// with why. It returns when the host's requests have ended, or ctx's error.
	Take(ctx context.Context, why *host.Error) error
	// Shutdown stops taking requests and ends those in progress.
	Shutdown(ctx context.Context) error
}

// Config has the parts of a [Server]. All fields except Volatile are required.
type Config[H Host] struct {
	// Open opens a host on the store. failed is the host that the new host replaces,
	// which is closed; for the first host it is the zero value. Open is called from one
	// goroutine at a time.
	Open func(ctx context.Context, failed H) (H, error)
	// Put makes the front hand requests to the host.
	Put   func(H)
	Front Front
	// Store names the store in messages.
	Store string
	// Volatile says that a failed store has lost its content, so it is not opened again.
	Volatile bool
	// Grace is how long requests in progress may take when the host is taken away.
	Grace time.Duration
	Log   *slog.Logger
}

// Server is a host that is replaced when its store fails. One goroutine uses it.
type Server[H Host] struct {
	cfg   Config[H]
	host  H
	open  bool // false while another host is being opened, and after the server has given up
	delay time.Duration
}

// Open opens the first host and puts it behind the front. Its error is that of
// [Config.Open]: a store that cannot be opened at the start is not tried again.
func Open[H Host](ctx context.Context, cfg Config[H]) (*Server[H], error) {
	var none H
	h, err := cfg.Open(ctx, none)
	if err != nil {
		return nil, err
	}
	s := &Server[H]{cfg: cfg}
	s.put(h)
	return s, nil
}

// Host returns the current host. Use it only before Run, because Run may replace the
// host.
func (s *Server[H]) Host() H { return s.host }

func (s *Server[H]) put(h H) {
	s.host, s.open = h, true
	s.cfg.Put(h)
}

// Run serves until ctx ends, and replaces the host whenever its store fails. listener
// delivers the error that ends the listener.
//
// # Errors
//
// nil if ctx has ended. Otherwise the error from listener, or why the store is not opened
// again: another server has taken it over, or it was volatile. The caller calls Stop in
// any case.
func (s *Server[H]) Run(ctx context.Context, listener <-chan error) error {
	for s.open {
		began := time.Now()
		select {
		case <-ctx.Done():
			s.cfg.Log.Info("stopping: runs continue at the next start")
			return nil
		case err := <-listener:
			return err
		case <-s.host.Dead():
		}
		if time.Since(began) > reopenRest {
			s.delay = 0
		}
		if err := s.final(s.host.Failure()); err != nil {
			return err
		}
		if err := s.replace(ctx); err != nil {
			return err
		}
	}
	return nil
}

// final says why the store is not opened again after a failure, or nil.
func (s *Server[H]) final(failure error) error {
	switch {
	case errors.Is(failure, host.ErrFenced):
		return fmt.Errorf("another server has taken over %s: this one may not write to it any more", s.cfg.Store)
	case s.cfg.Volatile:
		return fmt.Errorf("the store in memory failed: %w", failure)
	}
	return nil
}

// replace closes the host and opens another one, as often as necessary. When ctx ends it
// gives up, which is not an error. Then it waits at most StopWithin for a disk that does
// not respond.
func (s *Server[H]) replace(ctx context.Context) error {
	type opened struct {
		host H
		ok   bool
	}
	failed := s.host
	s.open = false
	next := make(chan opened, 1)
	go func() {
		h, ok := s.reopen(ctx, failed)
		next <- opened{h, ok}
	}()
	var n opened
	select {
	case n = <-next:
	case <-ctx.Done():
		limit := time.NewTimer(StopWithin)
		defer limit.Stop()
		select {
		case n = <-next:
		case <-limit.C:
			return errors.New("the failed store does not close: runs continue at the next start")
		}
	}
	if n.ok { // also if ctx has ended: Stop closes the host
		s.put(n.host)
	}
	return nil
}

// reopen closes the failed host and opens the next one; ok is false if ctx ended
// before.
func (s *Server[H]) reopen(ctx context.Context, failed H) (h H, ok bool) {
	s.cfg.Log.Error("the store failed and leaves open what it wrote: it is opened again, and nothing is acknowledged meanwhile", "error", failed.Failure())
	began := time.Now()
	s.retire(ctx, failed)
	for s.pause(ctx) {
		h, err := s.cfg.Open(ctx, failed)
		if err == nil {
			s.cfg.Log.Info("the store is open again: runs continue", "took", time.Since(began).Round(time.Millisecond))
			return h, true
		}
		s.cfg.Log.Error("the store cannot be opened again yet", "error", err, "next_try_in", s.delay.String())
	}
	return h, false
}

// retire takes the failed host away from the front and closes it. Requests that do not
// end soon fail with their own errors.
func (s *Server[H]) retire(ctx context.Context, failed H) {
	within, cancel := context.WithTimeout(ctx, s.cfg.Grace)
	defer cancel()
	if err := s.cfg.Front.Take(within, errReopening); err != nil {
		s.cfg.Log.Warn("some requests are still in progress", "error", err)
	}
	if err := failed.Close(context.WithoutCancel(ctx)); err != nil {
		s.cfg.Log.Debug("the failed store does not close cleanly", "error", err)
	}
}

// pause waits before the next attempt. It does not wait before the first attempt after
// the host was healthy. It returns false when ctx has ended.
func (s *Server[H]) pause(ctx context.Context) bool {
	timer := time.NewTimer(s.delay)
	defer timer.Stop()
	s.delay = min(max(2*s.delay, reopenLeast), reopenMost)
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// Stop ends everything in order, within StopWithin, although ctx may have ended. What
// does not end by then ends with the process: the next start continues from the
// journal, as after a crash.
func (s *Server[H]) Stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), StopWithin)
	defer cancel()
	stopped := make(chan error, 1)
	h, open := s.host, s.open
	go func() {
		if !open { // the store that failed is not open
			stopped <- s.cfg.Front.Shutdown(ctx)
			return
		}
		h.Drain()
		stopped <- errors.Join(s.cfg.Front.Shutdown(ctx), h.Close(ctx))
	}()
	select {
	case err := <-stopped:
		return err
	case <-ctx.Done():
		return fmt.Errorf("not everything stopped within %s: runs continue at the next start", StopWithin)
	}
}
