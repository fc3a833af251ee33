package abi

import (
	"fmt"
	"slices"
	"time"

	"github.com/weftrun/weft/abi/cbor"
)

// Retry policies. Their parts are maps with exactly one key, which determines the type of
// the value. Conditions and rules nest as deep as the message may.

var (
	retryFields = fieldSet{keys: []string{"when", "wait", "stop"}}

	conditionFields = fieldSet{keys: []string{"code", "message", "not", "any", "all"}}
	waitRuleFields  = fieldSet{keys: []string{
		"fixed", "incrementing", "exponential", "random", "exponential_jitter", "chain", "sum",
	}}
	stopFields = fieldSet{keys: []string{"attempts", "delay", "any", "all"}}
)

const (
	wordAlways = "always"
	wordNever  = "never"
)

func (d *decoder) retryPolicy(field string) RetryPolicy {
	var p RetryPolicy
	d.fields(field, retryFields, func(key string) {
		switch key {
		case "when":
			p.When = new(d.condition(key))
		case "wait":
			p.Wait = new(d.waitRule(key))
		case "stop":
			p.Stop = new(d.stopRule(key))
		}
	})
	return p
}

// choice reads a map with exactly one key of the set.
func (d *decoder) choice(field string, set fieldSet, read func(key string)) {
	if d.next(cbor.Map) {
		if n, _, err := d.head(d.off); err == nil && n != 1 {
			d.fail(field, fmt.Sprintf("must have exactly one key, not %d", n))
			return
		}
	}
	d.fields(field, set, read)
}

// word reads one of the words that name a rule.
func (d *decoder) word(field string, words ...string) string {
	at := d.off
	s := d.text(field)
	if slices.Contains(words, s) {
		return s
	}
	if !d.failed() {
		d.failAt(at, field, fmt.Sprintf("unknown word %q: needs a newer weft", clip(s)))
	}
	return ""
}

func readCondition(d *decoder) Condition { return d.condition("") }

func (d *decoder) condition(field string) Condition {
	var c Condition
	if d.next(cbor.Text) {
		word := d.word(field, wordAlways, wordNever)
		c.Always, c.Never = word == wordAlways, word == wordNever
		return c
	}
	d.choice(field, conditionFields, func(key string) {
		switch key {
		case "code":
			c.Codes = list(d, key, 1, func(d *decoder) string { return d.text("") })
		case "message":
			c.Message = new(d.text(key))
		case "not":
			c.Not = new(d.condition(key))
		case "any":
			c.Any = list(d, key, 1, readCondition)
		case "all":
			c.All = list(d, key, 1, readCondition)
		}
	})
	return c
}

func readWaitRule(d *decoder) WaitRule { return d.waitRule("") }

func (d *decoder) waitRule(field string) WaitRule {
	var w WaitRule
	d.choice(field, waitRuleFields, func(key string) {
		switch key {
		case "fixed":
			w.Fixed = new(d.duration(key))
		case "incrementing":
			w.Incrementing = d.incrementing(key)
		case "exponential":
			w.Exponential = d.exponential(key)
		case "random":
			w.Random = d.random(key)
		case "exponential_jitter":
			w.ExponentialJitter = d.jitter(key)
		case "chain":
			w.Chain = list(d, key, 1, readWaitRule)
		case "sum":
			w.Sum = list(d, key, 1, readWaitRule)
		}
	})
	return w
}

func (d *decoder) incrementing(field string) *[3]time.Duration {
	d.array(field, 3, 3)
	defer d.close()
	return &[3]time.Duration{d.duration("start"), d.duration("step"), d.duration("max")}
}

func (d *decoder) random(field string) *[2]time.Duration {
	at := d.off
	d.array(field, 2, 2)
	defer d.close()
	span := [2]time.Duration{d.duration("min"), d.duration("max")}
	if !d.failed() {
		d.check(at, "", spanFault(span[0], span[1]))
	}
	return &span
}

func (d *decoder) exponential(field string) *ExponentialRule {
	d.array(field, 3, 3)
	defer d.close()
	return &ExponentialRule{Multiplier: d.duration("multiplier"), Base: d.base(), Max: d.duration("max")}
}

func (d *decoder) jitter(field string) *JitterRule {
	d.array(field, 4, 4)
	defer d.close()
	return &JitterRule{
		Initial: d.duration("initial"), Base: d.base(), Max: d.duration("max"), Jitter: d.duration("jitter"),
	}
}

// base reads the base of an exponential rule.
func (d *decoder) base() float64 {
	at := d.off
	f := d.float("base")
	if !d.failed() {
		d.check(at, "base", baseFault(f))
	}
	return f
}

func readStopRule(d *decoder) StopRule { return d.stopRule("") }

func (d *decoder) stopRule(field string) StopRule {
	var s StopRule
	if d.next(cbor.Text) {
		s.Never = d.word(field, wordNever) == wordNever
		return s
	}
	d.choice(field, stopFields, func(key string) {
		switch key {
		case "attempts":
			s.Attempts = new(d.uint(key))
		case "delay":
			s.Delay = new(d.duration(key))
		case "any":
			s.Any = list(d, key, 1, readStopRule)
		case "all":
			s.All = list(d, key, 1, readStopRule)
		}
	})
	return s
}

func writeRetryPolicy(e *encoder, p *RetryPolicy) {
	e.push(segment{name: "retry", index: -1})
	mark := e.openMap()
	if p.Stop != nil {
		e.key(mark, "stop")
		e.nested("stop", func() { writeStopRule(e, p.Stop) })
	}
	if p.Wait != nil {
		e.key(mark, "wait")
		e.nested("wait", func() { writeWaitRule(e, p.Wait) })
	}
	if p.When != nil {
		e.key(mark, "when")
		e.nested("when", func() { writeCondition(e, p.When) })
	}
	e.pop()
}

// nested writes something below the named field. It bounds the depth, because a policy is
// a Go value that could contain itself.
func (e *encoder) nested(field string, write func()) {
	if len(e.path) > 2*MaxMessageDepth {
		e.fail("", "nested too deep")
		return
	}
	e.push(segment{name: field, index: -1})
	write()
	e.pop()
}

// writeChoice writes the one part of a rule that is set.
func writeChoice(e *encoder, parts ...rulePart) {
	var chosen *rulePart
	for i := range parts {
		if !parts[i].set {
			continue
		}
		if chosen != nil {
			e.fail("", fmt.Sprintf("must be one of %s and %s, not both", chosen.key, parts[i].key))
			return
		}
		chosen = &parts[i]
	}
	if chosen == nil {
		e.fail("", "must have exactly one part set")
		return
	}
	if chosen.write == nil {
		e.text("", chosen.key)
		return
	}
	mark := e.openMap()
	e.key(mark, chosen.key)
	chosen.write()
}

// rulePart is one of the forms of a rule. Without write, the key itself is the rule.
type rulePart struct {
	key   string
	set   bool
	write func()
}

func writeCondition(e *encoder, c *Condition) {
	writeChoice(e,
		rulePart{wordAlways, c.Always, nil},
		rulePart{wordNever, c.Never, nil},
		rulePart{"code", len(c.Codes) > 0, func() {
			writeAll(e, "code", c.Codes, func(e *encoder, s *string) { e.text("", *s) })
		}},
		rulePart{"message", c.Message != nil, func() { e.text("message", *c.Message) }},
		rulePart{"not", c.Not != nil, func() {
			e.nested("not", func() { writeCondition(e, c.Not) })
		}},
		rulePart{"any", len(c.Any) > 0, func() { writeRules(e, "any", c.Any, writeCondition) }},
		rulePart{"all", len(c.All) > 0, func() { writeRules(e, "all", c.All, writeCondition) }},
	)
}

// writeRules writes a list of rules below a field.
func writeRules[T any](e *encoder, field string, rules []T, write func(*encoder, *T)) {
	e.nested("", func() { writeAll(e, field, rules, write) })
}

func writeWaitRule(e *encoder, w *WaitRule) {
	writeChoice(e,
		rulePart{"fixed", w.Fixed != nil, func() { e.duration("fixed", *w.Fixed) }},
		rulePart{"incrementing", w.Incrementing != nil, func() {
			e.durations("incrementing", w.Incrementing[:])
		}},
		rulePart{"exponential", w.Exponential != nil, func() {
			x := w.Exponential
			e.array(3)
			e.duration("exponential.multiplier", x.Multiplier)
			e.base("exponential.base", x.Base)
			e.duration("exponential.max", x.Max)
		}},
		rulePart{"random", w.Random != nil, func() {
			e.check("random", spanFault(w.Random[0], w.Random[1]))
			e.durations("random", w.Random[:])
		}},
		rulePart{"exponential_jitter", w.ExponentialJitter != nil, func() {
			x := w.ExponentialJitter
			e.array(4)
			e.duration("exponential_jitter.initial", x.Initial)
			e.base("exponential_jitter.base", x.Base)
			e.duration("exponential_jitter.max", x.Max)
			e.duration("exponential_jitter.jitter", x.Jitter)
		}},
		rulePart{"chain", len(w.Chain) > 0, func() { writeRules(e, "chain", w.Chain, writeWaitRule) }},
		rulePart{"sum", len(w.Sum) > 0, func() { writeRules(e, "sum", w.Sum, writeWaitRule) }},
	)
}

func (e *encoder) durations(field string, list []time.Duration) {
	writeAll(e, field, list, func(e *encoder, d *time.Duration) { e.duration("", *d) })
}

func (e *encoder) base(field string, f float64) {
	e.check(field, baseFault(f))
	e.float(field, f)
}

func writeStopRule(e *encoder, s *StopRule) {
	writeChoice(e,
		rulePart{wordNever, s.Never, nil},
		rulePart{"attempts", s.Attempts != nil, func() { e.uint(*s.Attempts) }},
		rulePart{"delay", s.Delay != nil, func() { e.duration("delay", *s.Delay) }},
		rulePart{"any", len(s.Any) > 0, func() { writeRules(e, "any", s.Any, writeStopRule) }},
		rulePart{"all", len(s.All) > 0, func() { writeRules(e, "all", s.All, writeStopRule) }},
	)
}
