package flow

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/state"
)

// fields holds the fields of one object. take removes them one by one; the fields left
// over are unknown.
type fields struct {
	p    *parser
	at   string // the node's path
	have map[string]any
}

// take removes and returns a field. A null field counts as absent.
func (f *fields) take(name string) (v any, given bool) {
	v = f.have[name]
	delete(f.have, name)
	return v, v != nil
}

// rest reports the fields that were not taken.
func (f *fields) rest() {
	for _, name := range slices.Sorted(maps.Keys(f.have)) {
		f.p.problem("unknown_field", f.at, "%q is not known here: leave it out", clip(name))
	}
}

func (f *fields) text(name string, most int) string {
	v, given := f.take(name)
	if !given {
		return ""
	}
	text, ok := v.(string)
	if !ok {
		f.p.problem("wrong_type", f.at, "%q must be a text", name)
		return ""
	}
	if len(text) > most {
		f.p.problem("limit_exceeded", f.at, "%q has %d bytes, at most %d are allowed", name, len(text), most)
		return ""
	}
	return text
}

func (f *fields) flag(name string) bool {
	v, given := f.take(name)
	set, ok := v.(bool)
	if given && !ok {
		f.p.problem("wrong_type", f.at, "%q must be true or false", name)
	}
	return set
}

func (f *fields) integer(name string, unset, least, most int) int {
	v, given := f.take(name)
	if !given {
		return unset
	}
	if whole, ok := v.(float64); ok && whole == math.Trunc(whole) && math.Abs(whole) < 1<<53 {
		v = int64(whole)
	}
	n, ok := v.(int64)
	if !ok || n < int64(least) || n > int64(most) {
		f.p.problem("wrong_value", f.at, "%q must be a whole number from %d to %d", name, least, most)
		return max(unset, least)
	}
	return int(n)
}

// maxDuration bounds a timeout: approximately a hundred years.
const maxDuration = 100 * 366 * 24 * time.Hour

// duration reads a time: a text such as "30s" or "24h", or a number of seconds.
func (f *fields) duration(name string) time.Duration {
	v, given := f.take(name)
	if !given {
		return 0
	}
	d := time.Duration(-1)
	switch v := v.(type) {
	case string:
		if parsed, err := time.ParseDuration(v); err == nil {
			d = parsed
		}
	case int64:
		if v <= int64(maxDuration/time.Second) {
			d = time.Duration(v) * time.Second
		}
	case float64:
		if v <= maxDuration.Seconds() {
			d = time.Duration(math.Round(v * 1e9))
		}
	}
	if d <= 0 || d > maxDuration {
		f.p.problem("bad_duration", f.at, "%q must be a time above 0, such as \"30s\" or \"24h\", or a number of seconds", name)
		return 0
	}
	return d
}

// review reads the review settings of a node.
func (p *parser) review(f *fields, n *Node) *Review {
	v, given := f.take("review")
	if !given {
		return nil
	}
	have, ok := v.(map[string]any)
	switch {
	case !ok:
		p.problem("wrong_type", n.Path, "\"review\" must be an object")
		return nil
	case n.Kind == KindParallel:
		p.problem("wrong_kind", n.Path, "a parallel node has no review: its branches may have one")
		return nil
	}
	g := &fields{p: p, at: f.at, have: maps.Clone(have)}
	r := &Review{OnReject: RejectSkip, OnTimeout: TimeoutCancel}
	r.Confirm = g.question("confirm", false)
	r.Input = g.question("input", true)
	r.Output = g.question("output", false)
	r.Iteration = g.question("iteration", false)
	r.Timeout = g.duration("timeout")
	r.Retries = g.integer("max_retries", 3, 0, MaxRetries)
	p.answers(g, n, r)
	g.rest()
	if r.Confirm == nil && r.Input == nil && r.Output == nil && r.Iteration == nil {
		p.problem("missing_field", n.Path, "\"review\" asks nothing: give it confirm, input, output or iteration")
	}
	asksInput := n.Kind == KindStep || n.Kind == KindRouter
	if (r.Input != nil || r.Output != nil) && !asksInput {
		p.problem("wrong_kind", n.Path, "only steps and routers may have \"input\" and \"output\" reviews")
	}
	if r.Iteration != nil && n.Kind != KindLoop {
		p.problem("wrong_kind", n.Path, "only loops may have an \"iteration\" review")
	}
	return r
}

// answers reads what follows a rejection and a timeout.
func (p *parser) answers(g *fields, n *Node, r *Review) {
	if text := g.text("on_reject", 16); text != "" {
		r.OnReject = OnReject(text)
	}
	switch r.OnReject {
	case RejectSkip, RejectCancel, RejectRetry:
	case RejectElse:
		if n.Kind != KindCondition {
			p.problem("wrong_kind", n.Path, "\"on_reject\": \"else\" is for conditions only")
		}
	default:
		p.problem("wrong_value", n.Path, "\"on_reject\" is %q: use skip, cancel, else or retry", clip(string(r.OnReject)))
	}
	if text := g.text("on_timeout", 16); text != "" {
		r.OnTimeout = OnTimeout(text)
	}
	switch r.OnTimeout {
	case TimeoutCancel, TimeoutSkip, TimeoutApprove:
	default:
		p.problem("wrong_value", n.Path, "\"on_timeout\" is %q: use cancel, skip or approve", clip(string(r.OnTimeout)))
	}
}

// schema reads a JSON Schema. It returns nil if there is no usable schema.
func (f *fields) schema(name string) map[string]any {
	s, _, _ := f.compiled(name, strconv.Quote(name))
	return s
}

// compiled reads a JSON Schema; problems call it what. All results are nil if there is no
// usable schema.
func (f *fields) compiled(name, what string) (map[string]any, abi.Raw, *state.Schema) {
	v, given := f.take(name)
	if !given {
		return nil, nil, nil
	}
	s, ok := v.(map[string]any)
	if !ok {
		f.p.problem("wrong_type", f.at, "%s must be an object", what)
		return nil, nil, nil
	}
	raw, err := abi.EncodeValue(s)
	if err == nil {
		var compiled *state.Schema
		if compiled, err = state.CompileSchema(raw); err == nil {
			return s, raw, compiled
		}
	}
	f.p.problem("wrong_value", f.at, "%s cannot be used: %s", what, err)
	return nil, nil, nil
}

// question reads true, a message, or an object with a message and a schema.
func (f *fields) question(name string, schema bool) *Question {
	v, given := f.take(name)
	if !given {
		return nil
	}
	switch v := v.(type) {
	case bool:
		if !v {
			return nil
		}
		return &Question{}
	case string:
		if len(v) <= maxMessage {
			return &Question{Message: v}
		}
	case map[string]any:
		if !schema {
			break
		}
		inner := &fields{p: f.p, at: f.at, have: maps.Clone(v)}
		q := &Question{Message: inner.text("message", maxMessage)}
		_, q.Schema, q.schema = inner.compiled("schema", fmt.Sprintf("the schema of %q", name))
		inner.rest()
		return q
	}
	f.p.problem("wrong_type", f.at, "%q must be true or the message that people are shown", name)
	return nil
}
