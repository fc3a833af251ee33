package hostcall_test

import (
	"errors"
	"testing"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/engine"
	"github.com/weftrun/weft/host/hostcall"
)

// A guest may handle an answer with limit_exceeded, for example from a service that sends
// too much, even if the answer says that a repetition is useless.
func TestLimitsOfAnswersAreTheGuests(t *testing.T) {
	no := false
	for _, retryable := range []*bool{nil, &no} {
		w := newWorldOf(t, asksOutside)
		a := w.attempt(engine.AttemptOpen{}, nil)
		req := value([]any{"crm", "add", 1})
		if _, _, _, err := a.Call(abi.ImportResource, req, 0); !errors.Is(err, hostcall.ErrSuspended) {
			t.Fatal(err)
		}
		long := &abi.Error{Code: host.RunLimitExceeded, Message: "the answer is too long", Retryable: retryable}
		if _, err := w.reduce(engine.ResourceAnswered{Invocation: w.invID, Attempt: 1, N: 1, Err: long}); err != nil {
			t.Fatal(err)
		}
		a.Restart()
		if _, status, _, err := a.Call(abi.ImportResource, req, 0); err != nil || status != abi.StatusLimitExceeded {
			t.Errorf("status %d, %v", status, err)
		}
	}
}

// A guest that has waited, slept and called as often as its invocation may is ended,
// because further calls could not succeed.
func TestTooManySuspensionsEndAnAttempt(t *testing.T) {
	w := newWorldOf(t, asksOutside)
	a := w.attempt(engine.AttemptOpen{}, nil)
	for n := uint64(1); n <= uint64(w.inv.Limits.Suspensions); n++ {
		a.Restart()
		for i := uint64(1); i <= n; i++ {
			_, _, _, err := a.Call(abi.ImportResource, value([]any{"crm", "add", i}), 0)
			if i == n && !errors.Is(err, hostcall.ErrSuspended) || i < n && err != nil {
				t.Fatalf("call %d of %d: %v", i, n, err)
			}
		}
		if _, err := w.reduce(engine.ResourceAnswered{Invocation: w.invID, Attempt: 1, N: n, Value: value(n)}); err != nil {
			t.Fatal(err)
		}
	}
	a.Restart()
	var err error
	for i := uint64(1); err == nil; i++ {
		_, _, _, err = a.Call(abi.ImportResource, value([]any{"crm", "add", i}), 0)
	}
	over := (*hostcall.LimitError)(nil)
	if !errors.As(err, &over) || over.Err.Retryable == nil || *over.Err.Retryable {
		t.Errorf("one call too many: %v", err)
	}
}
