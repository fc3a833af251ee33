package engine

import (
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
)

// Correlation lets steps answer calls that they need not know of. An event that
// such a step emits takes over a field of the event that the step was invoked with,
// and so does the event of its failure: whoever made the one waits for the other by
// that field. When a wait for it ends by its timeout, nobody is there for the answer
// any more: the invocations that were to give it end, as if cancelled.
type Correlation struct {
	Field string
	// Call is the type of the events that call, Answer the type of the events that answer.
	// Clients may not make events of either; Inner are further types of that kind. A
	// step that takes calls, emits answers alone and returns nothing has failed.
	Call, Answer string
	Inner        []string
	// Steps are those that correlate, by name, with the name that the step's own
	// plugin knows it by: a suffix of it, behind a dot. Steps of one plugin may name
	// each other by those.
	Steps map[string]string
}

// Correlated compiles a workflow with a correlation. A nil c is none.
func Correlated(m *abi.Manifest, c *Correlation) (*Graph, []host.Problem) {
	g, problems := Compile(m)
	if g != nil {
		g.correlation = c
	}
	return g, problems
}

// ownName is what the step's plugin calls it; correlates is false for a step that is
// not part of the graph's correlation.
func (g *Graph) ownName(step string) (name string, correlates bool) {
	if g.correlation == nil {
		return "", false
	}
	name, correlates = g.correlation.Steps[step]
	return name, correlates
}

// OwnName is the name that a step's own plugin knows it by.
func (g *Graph) OwnName(step string) string {
	if name, ok := g.ownName(step); ok {
		return name
	}
	return step
}

// addressed is the step that an event of the invocation's step is meant for: one of
// the same plugin may be named as that knows it.
func (inv *invocation) addressed(step string) string {
	g := inv.run.graph
	own, ok := g.ownName(inv.step.name)
	if !ok || step == "" || g.HasStep(step) {
		return step
	}
	if sibling := strings.TrimSuffix(inv.step.name, own) + step; g.HasStep(sibling) {
		return sibling
	}
	return step
}

// inner reports whether events of the type are between steps alone.
func (c *Correlation) inner(typ string) bool {
	if c == nil {
		return false
	}
	for _, other := range c.Inner {
		if typ == other {
			return true
		}
	}
	return typ == c.Call || typ == c.Answer
}

// field gives the correlation's field of an event, nil if it has none.
func (c *Correlation) field(ev *abi.Event) *state.Node {
	body, err := state.Decode(ev.Body)
	if err != nil {
		return nil
	}
	return body.Field(c.Field)
}

// correlated gives the events that the invocation emits, with the field of the one
// that it was invoked with. The given ones are not changed.
func (inv *invocation) correlated(events []abi.Event) []abi.Event {
	g := inv.run.graph
	if _, ok := g.ownName(inv.step.name); !ok || len(events) == 0 || len(inv.trigger) == 0 {
		return events
	}
	c := g.correlation
	field := c.field(&inv.trigger[0])
	if field == nil {
		return events
	}
	out := make([]abi.Event, len(events))
	for i, ev := range events {
		v, err := abi.DecodeValue(sanitized(ev).Body)
		m, ok := v.(map[string]any)
		if err != nil || !ok {
			return events
		}
		m[c.Field] = field.Encode()
		raw, err := abi.EncodeValue(m)
		if err != nil {
			return events // it is refused as it is, where such are
		}
		out[i] = ev
		out[i].Body = raw
	}
	return out
}

// correlatedOne is correlated of one event, as it is kept.
func (inv *invocation) correlatedOne(ev abi.Event) abi.Event {
	return sanitized(inv.correlated([]abi.Event{ev})[0])
}

// answers says whether a step that takes calls has answered.
func (inv *invocation) answers(out abi.StepOutput) *abi.Error {
	g, st := inv.run.graph, inv.step
	own, ok := g.ownName(st.name)
	if !ok || len(out.Events) > 0 || len(st.out) != 1 || !st.out[g.correlation.Answer] || !g.Accepts(st.name, g.correlation.Call) {
		return nil
	}
	return refusal(host.RunInvalidOutput, "function %s returned nothing: return a %s", own, g.correlation.Answer)
}

// failedField is the field of the event of the invocation's failure: its key and
// value, nil if there is none.
func (inv *invocation) failedField() (key string, value abi.Raw) {
	g := inv.run.graph
	if _, ok := g.ownName(inv.step.name); !ok || len(inv.trigger) == 0 {
		return "", nil
	}
	if field := g.correlation.field(&inv.trigger[0]); field != nil {
		return g.correlation.Field, field.Encode()
	}
	return "", nil
}

// called is what a wait is for, if it is for the answer to a call: the wanted value
// of the correlation's field.
func (w *waiter) called() (value string, ok bool) {
	c := w.inv.run.graph.correlation
	if c == nil || w.typ != c.Answer || w.shape == nil || len(w.shape.fields) != 1 || w.shape.fields[0] != c.Field {
		return "", false
	}
	return w.values, true
}

// withdraw ends the invocations that were to answer a call.
func (s *Session) withdraw(r *run, value string) {
	c := r.graph.correlation
	for inv, next := r.oldest, (*invocation)(nil); inv != nil; inv = next {
		next = inv.newer
		s.visited++
		if len(inv.trigger) == 0 {
			continue
		}
		if field := c.field(&inv.trigger[0]); field != nil && string(appendText(nil, field.Identity())) == value {
			s.withdrawn(inv)
		}
	}
}

// withdrawn ends one invocation without an answer.
func (s *Session) withdrawn(inv *invocation) {
	r := inv.run
	if inv.phase == phaseWaiting {
		s.disarm(inv.timer)
		inv.timer = nil
		inv.moveOn()
	} else {
		s.unseat(inv, "")
	}
	s.emit(Abandon{Invocation: inv.id})
	s.remove(inv)
	s.changed(r)
	s.refill(r, inv.step)
	s.release(r, inv.in)
}
