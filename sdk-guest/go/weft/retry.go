package weft

import (
	"time"

	"github.com/weftrun/weft/sdk-guest/go/internal/codec"
)

// RetryRule is a part of a retry policy: when to retry, how long to wait, or when to give
// up. It is a value: steps may share one.
type RetryRule struct {
	part  string // "when", "wait" or "stop"
	rule  codec.Raw
	fault string // an error in the rule
}

// The parts' keys in the manifest.
const (
	retryWhen = "when"
	retryWait = "wait"
	retryStop = "stop"
)

// rule makes a rule with one key.
func rule(part, key string, v any) RetryRule { return bareRule(part, object{key: v}) }

func bareRule(part string, v any) RetryRule {
	b, err := codec.Append(nil, v)
	if err != nil {
		return RetryRule{fault: err.Error()}
	}
	return RetryRule{part: part, rule: b}
}

// group combines several rules of the same part, which is a or b.
func group(name, key string, rules []RetryRule, a, b string) RetryRule {
	var list []any
	for _, r := range rules {
		switch {
		case r.fault != "":
			return r
		case r.part != rules[0].part || r.part != a && r.part != b:
			return RetryRule{fault: name + " cannot hold a rule for " + quote(r.part) + " here: give it rules of one kind"}
		}
		list = append(list, r.rule)
	}
	if len(list) == 0 {
		return RetryRule{fault: name + " is empty: give it rules"}
	}
	return rule(rules[0].part, key, list)
}

// Retry sets the step's retry policy. By default, a step with this option retries after
// every error, waits 5 s between attempts, and makes at most 3 attempts in all. If there
// are several conditions, all must hold. If there are several rules to give up, the first
// one that applies decides.
//
//	weft.Retry(
//		weft.OnCodes("busy", "timeout"), weft.Not(weft.OnMessage("quota")),
//		weft.Exponential(time.Second, 2, time.Minute),
//		weft.Attempts(5), weft.GiveUpAfter(time.Hour))
//
// An error marked by [Error.Final] is not retried whatever the conditions say.
func Retry(rules ...RetryRule) StepOption {
	return stepOption(func(s *step) error {
		policy := object{}
		for _, r := range rules {
			if known := policy[r.part]; known != nil && r.fault == "" {
				r = r.beside(known)
			}
			if r.fault != "" {
				return misuse("the retry policy: " + r.fault)
			}
			policy[r.part] = r.rule
		}
		b, err := codec.Append(nil, policy)
		s.retry = b
		return err
	})
}

// beside combines the rule with another rule of its part.
func (r RetryRule) beside(other any) RetryRule {
	both := []any{other, r.rule}
	switch r.part {
	case retryWhen:
		return rule(r.part, "all", both)
	case retryStop:
		return rule(r.part, "any", both)
	}
	return RetryRule{fault: "two rules for how long to wait: keep one, or join them by Sum or Chain"}
}

// Always retries after every error, as a policy without a condition does.
func Always() RetryRule { return bareRule(retryWhen, "always") }

// Never does not retry after any error.
func Never() RetryRule { return bareRule(retryWhen, "never") }

// OnCodes retries only after errors with one of the codes.
func OnCodes(codes ...string) RetryRule { return rule(retryWhen, "code", codes) }

// OnMessage retries only after errors whose message contains the text.
func OnMessage(text string) RetryRule { return rule(retryWhen, "message", text) }

// Not retries if the condition does not hold.
func Not(condition RetryRule) RetryRule {
	if condition.fault != "" {
		return condition
	}
	if condition.part != retryWhen {
		return RetryRule{fault: "Not takes a condition, such as OnCodes"}
	}
	return rule(retryWhen, "not", condition.rule)
}

// AnyOf combines conditions, of which at least one must hold, or rules to give up, of
// which at least one must apply.
func AnyOf(rules ...RetryRule) RetryRule { return group("AnyOf", "any", rules, retryWhen, retryStop) }

// AllOf combines conditions, which must all hold, or rules to give up, which must all
// apply.
func AllOf(rules ...RetryRule) RetryRule { return group("AllOf", "all", rules, retryWhen, retryStop) }

// Fixed waits the same time before each attempt.
func Fixed(d time.Duration) RetryRule { return rule(retryWait, "fixed", int64(d)) }

// Incrementing waits start, then step longer each time, at most limit.
func Incrementing(start, step, limit time.Duration) RetryRule {
	return rule(retryWait, "incrementing", []int64{int64(start), int64(step), int64(limit)})
}

// Exponential waits unit * base^(attempt-1), at most limit.
func Exponential(unit time.Duration, base float64, limit time.Duration) RetryRule {
	return rule(retryWait, "exponential", []any{int64(unit), base, int64(limit)})
}

// RandomWait waits a random time between min and max.
func RandomWait(min, max time.Duration) RetryRule {
	return rule(retryWait, "random", []int64{int64(min), int64(max)})
}

// ExponentialJitter waits unit * base^(attempt-1), at most limit, plus a random time of
// at most jitter.
func ExponentialJitter(unit time.Duration, base float64, limit, jitter time.Duration) RetryRule {
	return rule(retryWait, "exponential_jitter", []any{int64(unit), base, int64(limit), int64(jitter)})
}

// Chain waits by the first rule before the second attempt, by the second rule before the
// third, and so on; the last rule is used for all further attempts.
func Chain(waits ...RetryRule) RetryRule { return group("Chain", "chain", waits, retryWait, retryWait) }

// Sum waits as long as all the rules together.
func Sum(waits ...RetryRule) RetryRule { return group("Sum", "sum", waits, retryWait, retryWait) }

// Attempts gives up after n attempts in all.
func Attempts(n uint64) RetryRule { return rule(retryStop, "attempts", n) }

// GiveUpAfter gives up at a failure d or more after the first attempt started.
func GiveUpAfter(d time.Duration) RetryRule { return rule(retryStop, "delay", int64(d)) }

// Forever never gives up.
func Forever() RetryRule { return bareRule(retryStop, "never") }
