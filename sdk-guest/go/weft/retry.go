package weft

import (
	"time"

	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// RetryRule is a part of a retry policy: when to try again, how long to wait,
// when to give up.
type RetryRule struct {
	part string // "when", "wait" or "stop"
	rule codec.Raw
}

// rule makes a rule of one key.
func rule(part, key string, v any) RetryRule {
	b, err := codec.Append(nil, object{key: v})
	if err != nil {
		panic("weft: retry rule " + key + ": " + err.Error())
	}
	return RetryRule{part, b}
}

// Retry lets a step that failed be tried again. Parts that are not given are:
// after every error, 5 s apart, at most 3 attempts in all.
//
//	weft.Retry(weft.Fixed(time.Second), weft.Attempts(5), weft.OnCodes("flaky"))
func Retry(rules ...RetryRule) StepOption {
	return stepOption(func(s *step) error {
		policy := object{}
		for _, r := range rules {
			if policy[r.part] != nil {
				return misuse("the retry policy has two rules for " + quote(r.part) + ": keep one")
			}
			policy[r.part] = r.rule
		}
		b, err := codec.Append(nil, policy)
		s.retry = b
		return err
	})
}

// OnCodes tries again after errors with one of the codes only.
func OnCodes(codes ...string) RetryRule { return rule("when", "code", codes) }

// OnMessage tries again after errors only whose message contains the text.
func OnMessage(text string) RetryRule { return rule("when", "message", text) }

// Fixed waits the same time before each attempt.
func Fixed(d time.Duration) RetryRule { return rule("wait", "fixed", int64(d)) }

// Incrementing waits start, then step longer each time, at most limit.
func Incrementing(start, step, limit time.Duration) RetryRule {
	return rule("wait", "incrementing", []int64{int64(start), int64(step), int64(limit)})
}

// Exponential waits unit * base^(attempt-1), at most limit.
func Exponential(unit time.Duration, base float64, limit time.Duration) RetryRule {
	return rule("wait", "exponential", []any{int64(unit), base, int64(limit)})
}

// RandomWait waits a random time of at least min and at most max.
func RandomWait(min, max time.Duration) RetryRule {
	return rule("wait", "random", []int64{int64(min), int64(max)})
}

// ExponentialJitter waits unit * base^(attempt-1), at most limit, and up to
// jitter on top.
func ExponentialJitter(unit time.Duration, base float64, limit, jitter time.Duration) RetryRule {
	return rule("wait", "exponential_jitter", []any{int64(unit), base, int64(limit), int64(jitter)})
}

// Attempts gives up after n attempts in all.
func Attempts(n uint64) RetryRule { return rule("stop", "attempts", n) }

// GiveUpAfter makes no attempt that would start later than d after the first.
func GiveUpAfter(d time.Duration) RetryRule { return rule("stop", "delay", int64(d)) }
