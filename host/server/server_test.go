package server_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/server"
)

// life records what a server does with its front and its hosts, in order.
type life struct {
	t      *testing.T
	events []string
	when   []time.Duration // of the events, since the beginning
	began  time.Time
	log    strings.Builder

	opens func(n int, failed *fake) (*fake, error) // the n-th open, from 0
	count int
}

func (l *life) note(what string) {
	l.events = append(l.events, what)
	l.when = append(l.when, time.Since(l.began))
}

// open starts a server whose hosts come from l.opens.
func (l *life) open(ctx context.Context, volatile bool) *server.Server[*fake] {
	l.t.Helper()
	l.began = time.Now()
	s, err := server.Open(ctx, server.Config[*fake]{
		Open: func(_ context.Context, failed *fake) (*fake, error) {
			if failed != nil && !failed.closed {
				l.t.Errorf("a host is opened in the place of %s, which is not closed", failed.name)
			}
			h, err := l.opens(l.count, failed)
			l.count++
			if err != nil {
				l.note("refused")
				return nil, err
			}
			l.note("open " + h.name)
			return h, nil
		},
		Put:   func(h *fake) { l.note("put " + h.name) },
		Front: l, Store: "the-data", Volatile: volatile, Grace: time.Second,
		Log: slog.New(slog.NewTextHandler(&l.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return s
}

// Take implements server.Front.
func (l *life) Take(_ context.Context, why *host.Error) error {
	if why.Code != host.CodeUnavailable || why.RetryAfter <= 0 {
		l.t.Errorf("requests are answered with %s, retry after %s", why.Code, why.RetryAfter)
	}
	l.note("take")
	return nil
}

// Shutdown implements server.Front.
func (l *life) Shutdown(context.Context) error {
	l.note("shutdown")
	return nil
}

// expect compares what happened.
func (l *life) expect(want ...string) {
	l.t.Helper()
	if !slices.Equal(l.events, want) {
		l.t.Errorf("happened: %q\nwant:     %q\nlog:\n%s", l.events, want, l.log.String())
	}
}

// fake is a host.
type fake struct {
	life    *life
	name    string
	dead    chan struct{}
	failure error
	closed  bool
	hangs   chan struct{} // Close waits for it; nil: it does not
}

func (l *life) host(name string) *fake { return &fake{life: l, name: name, dead: make(chan struct{})} }

// fail makes the host's store fail.
func (f *fake) fail(err error) {
	f.failure = err
	close(f.dead)
}

func (f *fake) Dead() <-chan struct{} { return f.dead }

func (f *fake) Failure() error {
	<-f.dead
	return f.failure
}

func (f *fake) Drain() { f.life.note("drain " + f.name) }

func (f *fake) Close(context.Context) error {
	if f.hangs != nil {
		<-f.hangs
	}
	f.closed = true
	f.life.note("close " + f.name)
	return nil
}

var errDisk = errors.New("the disk failed")

// A host whose store fails is taken away, closed, and then replaced. The delays between
// attempts increase; after a healthy minute they begin at the shortest again.
func TestStoreFailsAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &life{t: t}
		a, b, c := l.host("a"), l.host("b"), l.host("c")
		l.opens = func(n int, failed *fake) (*fake, error) {
			switch n {
			case 0:
				return a, nil
			case 1, 2, 3:
				if failed != a {
					t.Error("the failed host is not handed on")
				}
				return nil, errDisk
			case 4:
				return b, nil
			}
			return c, nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		s := l.open(ctx, false)
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx, nil) }()
		a.fail(errDisk)
		<-time.After(time.Hour)
		synctest.Wait()
		b.fail(errDisk)
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
		l.expect("open a", "put a", "take", "close a", "refused", "refused", "refused", "open b", "put b",
			"take", "close b", "open c", "put c", "drain c", "shutdown", "close c")
		want := []time.Duration{0, 100 * time.Millisecond, 300 * time.Millisecond, 700 * time.Millisecond}
		if !slices.Equal(l.when[4:8], want) {
			t.Errorf("attempts after %s, want %s", l.when[4:8], want)
		}
		if at := l.when[11]; at != time.Hour {
			t.Errorf("after an hour that went well the store is opened %s after its failure", at-time.Hour)
		}
	})
}

// A host that fails soon after it was opened is not replaced in a busy loop.
func TestStoreThatKeepsFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &life{t: t}
		l.opens = func(n int, _ *fake) (*fake, error) {
			h := l.host("h")
			h.fail(errDisk)
			return h, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		s := l.open(ctx, false)
		if err := s.Run(ctx, nil); err != nil {
			t.Error(err)
		}
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
		// 0, 0.1, 0.2, ... 6.4 s, then each 10 s.
		if l.count < 10 || l.count > 16 {
			t.Errorf("opened %d times in a minute", l.count)
		}
	})
}

// A server that is stopped while its store is being opened again ends, and leaves no
// host open.
func TestStopWhileReopening(t *testing.T) {
	tests := []struct {
		name string
		// reopened is the answer to an attempt that ends after the server was stopped.
		reopened bool
		want     []string
	}{
		{"in vain", false, []string{"open a", "put a", "take", "close a", "refused", "shutdown"}},
		{"it opens after all", true, []string{"open a", "put a", "take", "close a", "open b", "put b", "drain b", "shutdown", "close b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := &life{t: t}
				a, b, answer := l.host("a"), l.host("b"), make(chan struct{})
				l.opens = func(n int, _ *fake) (*fake, error) {
					if n == 0 {
						return a, nil
					}
					<-answer
					if tt.reopened {
						return b, nil
					}
					return nil, errDisk
				}
				ctx, cancel := context.WithCancel(t.Context())
				s := l.open(ctx, false)
				ended := make(chan error, 1)
				go func() { ended <- s.Run(ctx, nil) }()
				a.fail(errDisk)
				synctest.Wait()
				cancel()
				synctest.Wait()
				close(answer)
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if err := s.Stop(ctx); err != nil {
					t.Error(err)
				}
				l.expect(tt.want...)
			})
		})
	}
}

// A failed store that does not close holds up a stop for StopWithin only.
func TestStopWhileTheStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &life{t: t}
		a := l.host("a")
		a.hangs = make(chan struct{})
		l.opens = func(int, *fake) (*fake, error) { return a, nil }
		ctx, cancel := context.WithCancel(t.Context())
		s := l.open(ctx, false)
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx, nil) }()
		a.fail(errDisk)
		synctest.Wait()
		cancel()
		began := time.Now()
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "does not close") {
			t.Errorf("Run gives %v", err)
		}
		if took := time.Since(began); took != server.StopWithin {
			t.Errorf("it took %s", took)
		}
		if err := s.Stop(ctx); err != nil {
			t.Error(err)
		}
		l.expect("open a", "put a", "take", "shutdown")
		close(a.hangs)
		synctest.Wait()
	})
}

// A host that does not close holds up a stop for StopWithin only.
func TestStopOfAHostThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &life{t: t}
		a := l.host("a")
		a.hangs = make(chan struct{})
		l.opens = func(int, *fake) (*fake, error) { return a, nil }
		s := l.open(t.Context(), false)
		if err := s.Stop(t.Context()); err == nil || !strings.Contains(err.Error(), "not everything stopped") {
			t.Errorf("Stop gives %v", err)
		}
		close(a.hangs)
		synctest.Wait()
	})
}

// A store that another server has taken over is never opened again, nor is one that
// held everything in memory.
func TestStoreThatIsNotOpenedAgain(t *testing.T) {
	tests := []struct {
		name     string
		volatile bool
		failure  error
		want     string
	}{
		{"taken over", false, errors.Join(errDisk, host.ErrFenced), "another server has taken over the-data"},
		{"in memory", true, errDisk, "the store in memory failed"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := &life{t: t}
			a := l.host("a")
			l.opens = func(int, *fake) (*fake, error) { return a, nil }
			s := l.open(t.Context(), tt.volatile)
			a.fail(tt.failure)
			if err := s.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Run gives %v", err)
			}
			if err := s.Stop(t.Context()); err != nil {
				t.Error(err)
			}
			l.expect("open a", "put a", "drain a", "shutdown", "close a")
		})
	}
}

// A listener that fails ends the server, and a store that does not open at the start is
// an error at once.
func TestServerThatCannotServe(t *testing.T) {
	l := &life{t: t}
	a := l.host("a")
	l.opens = func(int, *fake) (*fake, error) { return a, nil }
	s := l.open(t.Context(), false)
	listener := make(chan error, 1)
	listener <- errDisk
	if err := s.Run(t.Context(), listener); !errors.Is(err, errDisk) {
		t.Errorf("Run gives %v", err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	tries := 0
	_, err := server.Open(t.Context(), server.Config[*fake]{Open: func(context.Context, *fake) (*fake, error) {
		tries++
		return nil, errDisk
	}})
	if !errors.Is(err, errDisk) || tries != 1 {
		t.Errorf("Open gives %v after %d attempts", err, tries)
	}
}
