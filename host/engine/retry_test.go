package engine

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weftrun/weft/abi"
)

const ms = time.Millisecond

// TestRetryConditions covers each condition.
func TestRetryConditions(t *testing.T) {
	always, never := abi.Condition{Always: true}, abi.Condition{Never: true}
	codes := abi.Condition{Codes: []string{"busy", "flaky"}}
	message := abi.Condition{Message: new("try again")}
	tests := []struct {
		name string
		when *abi.Condition
		err  abi.Error
		want bool
	}{
		{"absent", nil, abi.Error{Code: "x"}, true},
		{"always", &always, abi.Error{Code: "x"}, true},
		{"never", &never, abi.Error{Code: "x"}, false},
		{"code", &codes, abi.Error{Code: "flaky"}, true},
		{"other code", &codes, abi.Error{Code: "flak"}, false},
		{"message", &message, abi.Error{Code: "x", Message: "please try again later"}, true},
		{"other message", &message, abi.Error{Code: "x", Message: "please Try again"}, false},
		{"not", &abi.Condition{Not: &codes}, abi.Error{Code: "flaky"}, false},
		{"any", &abi.Condition{Any: []abi.Condition{codes, message}}, abi.Error{Message: "try again"}, true},
		{"none of any", &abi.Condition{Any: []abi.Condition{codes, never}}, abi.Error{Message: "try again"}, false},
		{"all", &abi.Condition{All: []abi.Condition{codes, message}}, abi.Error{Code: "busy", Message: "try again"}, true},
		{"one of all", &abi.Condition{All: []abi.Condition{codes, message}}, abi.Error{Code: "busy"}, false},
		{"not retryable", &always, abi.Error{Code: "busy", Retryable: new(false)}, false},
		{"retryable does not overrule", &never, abi.Error{Code: "busy", Retryable: new(true)}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := retryAt(100, attemptFailure{policy: &abi.RetryPolicy{When: tt.when}, err: &tt.err, attempt: 1})
			if (got != nil) != tt.want {
				t.Errorf("retry %+v, want %t", got, tt.want)
			}
			if got != nil && got.Due != 100+int64(5*time.Second) {
				t.Errorf("due at %d", got.Due)
			}
		})
	}
	if got := retryAt(0, attemptFailure{err: &abi.Error{}, attempt: 1}); got != nil {
		t.Errorf("without a policy: %+v", got)
	}
}

// TestRetryStops covers each stop rule: the number of attempts if each takes a second.
func TestRetryStops(t *testing.T) {
	attempts := func(n uint64) abi.StopRule { return abi.StopRule{Attempts: &n} }
	delay := func(d time.Duration) abi.StopRule { return abi.StopRule{Delay: &d} }
	const many = 50
	tests := []struct {
		name string
		stop *abi.StopRule
		want int
	}{
		{"absent", nil, 3},
		{"attempts", new(attempts(4)), 4},
		{"no attempts", new(attempts(0)), 1},
		{"delay", new(delay(10 * time.Second)), 10},
		{"never", &abi.StopRule{Never: true}, many},
		{"any", &abi.StopRule{Any: []abi.StopRule{attempts(7), delay(5 * time.Second)}}, 5},
		{"all", &abi.StopRule{All: []abi.StopRule{attempts(7), delay(5 * time.Second)}}, 7},
		{"all with never", &abi.StopRule{All: []abi.StopRule{attempts(7), {Never: true}}}, many},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			made := 1
			for made < many && retryAt(0, attemptFailure{
				policy: &abi.RetryPolicy{Stop: tt.stop}, err: &abi.Error{}, attempt: uint64(made), elapsed: int64(made) * int64(time.Second),
			}) != nil {
				made++
			}
			if made != tt.want {
				t.Errorf("%d attempts, want %d", made, tt.want)
			}
		})
	}
}

// TestRetryWaits covers each wait rule, for attempts 1 to 5.
func TestRetryWaits(t *testing.T) {
	fixed := func(d time.Duration) abi.WaitRule { return abi.WaitRule{Fixed: &d} }
	tests := []struct {
		name string
		wait abi.WaitRule
		want [5]time.Duration
	}{
		{"fixed", fixed(7 * ms), [5]time.Duration{7 * ms, 7 * ms, 7 * ms, 7 * ms, 7 * ms}},
		{"none", fixed(0), [5]time.Duration{}},
		{"incrementing", abi.WaitRule{Incrementing: &[3]time.Duration{ms, 2 * ms, 6 * ms}}, [5]time.Duration{ms, 3 * ms, 5 * ms, 6 * ms, 6 * ms}},
		{"exponential", abi.WaitRule{Exponential: &abi.ExponentialRule{Multiplier: ms, Base: 2, Max: 10 * ms}}, [5]time.Duration{ms, 2 * ms, 4 * ms, 8 * ms, 10 * ms}},
		{"shrinking", abi.WaitRule{Exponential: &abi.ExponentialRule{Multiplier: 8 * ms, Base: 0.5, Max: 10 * ms}}, [5]time.Duration{8 * ms, 4 * ms, 2 * ms, ms, ms / 2}},
		{"huge base", abi.WaitRule{Exponential: &abi.ExponentialRule{Multiplier: ms, Base: math.MaxFloat64, Max: 10 * ms}}, [5]time.Duration{ms, 10 * ms, 10 * ms, 10 * ms, 10 * ms}},
		{"nothing times infinity", abi.WaitRule{Exponential: &abi.ExponentialRule{Base: math.MaxFloat64, Max: ms}}, [5]time.Duration{0, 0, ms, ms, ms}},
		{"jitter without room", abi.WaitRule{ExponentialJitter: &abi.JitterRule{Initial: ms, Base: 3, Max: 5 * ms}}, [5]time.Duration{ms, 3 * ms, 5 * ms, 5 * ms, 5 * ms}},
		{"random without room", abi.WaitRule{Random: &[2]time.Duration{4 * ms, 4 * ms}}, [5]time.Duration{4 * ms, 4 * ms, 4 * ms, 4 * ms, 4 * ms}},
		{"chain", abi.WaitRule{Chain: []abi.WaitRule{fixed(ms), fixed(2 * ms), {Incrementing: &[3]time.Duration{ms, ms, time.Hour}}}}, [5]time.Duration{ms, 2 * ms, 3 * ms, 4 * ms, 5 * ms}},
		{"sum", abi.WaitRule{Sum: []abi.WaitRule{fixed(ms), {Exponential: &abi.ExponentialRule{Multiplier: ms, Base: 2, Max: time.Hour}}}}, [5]time.Duration{2 * ms, 3 * ms, 5 * ms, 9 * ms, 17 * ms}},
		{"sum that runs over", abi.WaitRule{Sum: []abi.WaitRule{fixed(math.MaxInt64), fixed(math.MaxInt64)}},
			[5]time.Duration{math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for i, want := range tt.want {
				f := attemptFailure{attempt: uint64(i + 1)}
				if got := time.Duration(f.wait(&tt.wait)); got != want {
					t.Errorf("after attempt %d: %v, want %v", i+1, got, want)
				}
			}
		})
	}
}

// TestRetryDueDoesNotRunOver: a delay saturates at the end of time.
func TestRetryDueDoesNotRunOver(t *testing.T) {
	wait := abi.WaitRule{Fixed: new(time.Duration(math.MaxInt64))}
	got := retryAt(1_000, attemptFailure{policy: &abi.RetryPolicy{Wait: &wait}, err: &abi.Error{}, attempt: 1})
	if got == nil || got.Due != math.MaxInt64 {
		t.Errorf("due %+v", got)
	}
}

// TestRandomWaits: random delays stay within their bounds, and depend only on seed,
// invocation, attempt and draw.
func TestRandomWaits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.Int64Range(0, math.MaxInt64).Draw(t, "least")
		most := rapid.Int64Range(least, math.MaxInt64).Draw(t, "most")
		rule := abi.WaitRule{Random: &[2]time.Duration{time.Duration(least), time.Duration(most)}}
		attempt := rapid.Uint64Range(1, 1000).Draw(t, "attempt")
		f := attemptFailure{attempt: attempt, invocation: rapid.Uint64().Draw(t, "invocation")}
		again := f
		got := f.wait(&rule)
		if got < least || got > most {
			t.Fatalf("%d is not from %d to %d", got, least, most)
		}
		if same := again.wait(&rule); same != got {
			t.Fatalf("%d, then %d", got, same)
		}
		jitter := abi.WaitRule{ExponentialJitter: &abi.JitterRule{Initial: ms, Base: 2, Max: time.Second, Jitter: time.Duration(most)}}
		if got := f.wait(&jitter); got < int64(ms) {
			t.Fatalf("jitter gives %d", got)
		}
	})
	rule := abi.WaitRule{Random: &[2]time.Duration{0, math.MaxInt64}}
	seen := make(map[int64]bool)
	for invocation := range uint64(10) {
		for attempt := range uint64(10) {
			f := attemptFailure{attempt: attempt, invocation: invocation}
			seen[f.wait(&rule)] = true
			seen[f.wait(&rule)] = true
		}
	}
	f := attemptFailure{seed: [32]byte{1}}
	seen[f.wait(&rule)] = true
	if len(seen) != 201 {
		t.Errorf("%d different delays of 201", len(seen))
	}
}
