package engine

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/weftrun/weft/abi"
)

// The defaults for absent parts of a retry policy.
const (
	defaultRetryWait     = 5 * time.Second
	defaultRetryAttempts = 3
)

// attemptFailure is a failed attempt, as a retry policy sees it.
type attemptFailure struct {
	policy     *abi.RetryPolicy
	err        *abi.Error
	attempt    uint64
	elapsed    int64 // since the first attempt began
	seed       [32]byte
	invocation uint64
	draws      uint64 // random numbers drawn so far
}

// retryAt decides whether another attempt follows the failure. An error that says that it
// is not retryable is final under every policy.
func retryAt(now int64, f attemptFailure) *RetryPart {
	p := f.policy
	if p == nil || f.err.Retryable != nil && !*f.err.Retryable {
		return nil
	}
	if p.When != nil && !f.meets(p.When) {
		return nil
	}
	if p.Stop == nil && f.attempt >= defaultRetryAttempts || p.Stop != nil && f.stops(p.Stop) {
		return nil
	}
	delay := int64(defaultRetryWait)
	if p.Wait != nil {
		delay = f.wait(p.Wait)
	}
	return &RetryPart{Due: later(now, delay)}
}

// meets evaluates a condition. A message condition is met if the error's message contains
// the text.
func (f *attemptFailure) meets(c *abi.Condition) bool {
	meets := func(part abi.Condition) bool { return f.meets(&part) }
	switch {
	case c.Never:
		return false
	case len(c.Codes) > 0:
		return slices.Contains(c.Codes, f.err.Code)
	case c.Message != nil:
		return strings.Contains(f.err.Message, *c.Message)
	case c.Not != nil:
		return !f.meets(c.Not)
	case len(c.Any) > 0:
		return slices.ContainsFunc(c.Any, meets)
	case len(c.All) > 0:
		return !slices.ContainsFunc(c.All, func(part abi.Condition) bool { return !meets(part) })
	}
	return true
}

// stops evaluates a stop rule.
func (f *attemptFailure) stops(r *abi.StopRule) bool {
	stops := func(part abi.StopRule) bool { return f.stops(&part) }
	switch {
	case r.Attempts != nil:
		return f.attempt >= *r.Attempts
	case r.Delay != nil:
		return f.elapsed >= int64(*r.Delay)
	case len(r.Any) > 0:
		return slices.ContainsFunc(r.Any, stops)
	case len(r.All) > 0:
		return !slices.ContainsFunc(r.All, func(part abi.StopRule) bool { return !stops(part) })
	}
	return false
}

// wait evaluates a wait rule and returns nanoseconds.
func (f *attemptFailure) wait(w *abi.WaitRule) int64 {
	switch {
	case w.Fixed != nil:
		return int64(*w.Fixed)
	case w.Incrementing != nil:
		start, step, most := w.Incrementing[0], w.Incrementing[1], w.Incrementing[2]
		return capped(float64(start)+float64(step)*float64(f.attempt-1), most)
	case w.Exponential != nil:
		return f.grown(w.Exponential.Multiplier, w.Exponential.Base, w.Exponential.Max)
	case w.Random != nil:
		return int64(w.Random[0]) + f.draw(int64(w.Random[1]-w.Random[0]))
	case w.ExponentialJitter != nil:
		j := w.ExponentialJitter
		return later(f.grown(j.Initial, j.Base, j.Max), f.draw(int64(j.Jitter)))
	case len(w.Chain) > 0:
		// The last rule applies to all further attempts.
		i := min(f.attempt-1, uint64(len(w.Chain)-1))
		return f.wait(&w.Chain[i])
	}
	var sum int64
	for i := range w.Sum {
		sum = later(sum, f.wait(&w.Sum[i]))
	}
	return sum
}

// grown returns first * base^(attempt-1), but no more than most.
func (f *attemptFailure) grown(first time.Duration, base float64, most time.Duration) int64 {
	return capped(float64(first)*math.Pow(base, float64(f.attempt-1)), most)
}

func capped(d float64, most time.Duration) int64 {
	if !(d < float64(most)) { // too large, or not a number (0 * infinity)
		return int64(most)
	}
	return int64(d)
}

// draw returns a number from 0 to most. It depends only on the run's seed, the
// invocation, the attempt and the number of draws before.
func (f *attemptFailure) draw(most int64) int64 {
	var b [32 + 3*8]byte
	copy(b[:], f.seed[:])
	binary.BigEndian.PutUint64(b[32:], f.invocation)
	binary.BigEndian.PutUint64(b[40:], f.attempt)
	binary.BigEndian.PutUint64(b[48:], f.draws)
	f.draws++
	sum := sha256.Sum256(b[:])
	return int64(binary.BigEndian.Uint64(sum[:]) % (uint64(most) + 1))
}
