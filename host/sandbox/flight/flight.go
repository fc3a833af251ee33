// Package flight computes a value once for all who ask for it at a time.
//
// It must not depend on what is computed.
package flight

import (
	"context"
	"sync"
)

// Flight computes a value once for all callers. Concurrent callers share one attempt. A
// failed attempt is forgotten. All methods may be called from any goroutine.
type Flight[T any] struct {
	mu   sync.Mutex // guards last; held only briefly
	last *attempt[T]
}

type attempt[T any] struct {
	done  chan struct{} // closed when value and err are set
	value T
	err   error
}

// Get returns the value, and computes it if necessary. compute runs in a goroutine begun
// by start, so it does not end with the first caller.
func (f *Flight[T]) Get(ctx context.Context, start func(func()) error, compute func() (T, error)) (T, error) {
	f.mu.Lock()
	a := f.last
	if a == nil {
		a = &attempt[T]{done: make(chan struct{})}
		if err := start(func() { f.run(a, compute) }); err != nil {
			f.mu.Unlock()
			return a.value, err
		}
		f.last = a
	}
	f.mu.Unlock()
	select {
	case <-a.done:
		return a.value, a.err
	default:
	}
	select {
	case <-a.done:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (f *Flight[T]) run(a *attempt[T], compute func() (T, error)) {
	a.value, a.err = compute()
	if a.err != nil {
		f.mu.Lock()
		f.last = nil
		f.mu.Unlock()
	}
	close(a.done)
}
