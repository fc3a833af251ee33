package engine

import (
	"slices"
	"strings"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
)

// Correlation lets steps answer calls without knowing the caller. An event that such a
// step emits, or the event of its failure, copies one field from the event that the step
// was invoked with. The caller waits for an event with the value of that field. When the
// wait times out, the invocations that were working on the answer end as if cancelled,
// because nobody waits for the answer.
type Correlation struct {
	Field string
	// Call is the type of the calling events, and Answer the type of the answering
	// events. Inner are further types for use between steps. Clients may not send events
	// of any of these types. A step that accepts calls and emits only answers must return
	// one; otherwise it fails.
	Call, Answer string
	Inner        []string
	// Steps maps the steps that correlate to the names that their own plugins use. Such a
	// name is a suffix of the step's name, after a dot. Steps of one plugin may address
	// each other by these names.
	Steps map[string]string
}

// Correlated compiles a workflow with a correlation. A nil c means no correlation.
func Correlated(m *abi.Manifest, c *Correlation) (*Graph, []host.Problem) {
	g, problems := Compile(m)
	if g != nil {
		g.correlation = c
	}
	return g, problems
}

// ownName returns the name that the step's plugin uses. correlates is false for a step
// that is not part of the graph's correlation.
func (g *Graph) ownName(step string) (name string, correlates bool) {
	if g.correlation == nil {
		return "", false
	}
	name, correlates = g.correlation.Steps[step]
	return name, correlates
}

// OwnName returns the name that a step's own plugin uses for it.
func (g *Graph) OwnName(step string) string {
	if name, ok := g.ownName(step); ok {
		return name
	}
	return step
}

// addressed returns the step that an event of the invocation's step is meant for. A step
// may use its own plugin's name for another step of the same plugin.
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

// inner reports whether only steps may make events of the type.
func (c *Correlation) inner(typ string) bool {
	if c == nil {
		return false
	}
	return slices.Contains(c.Inner, typ) || typ == c.Call || typ == c.Answer
}

// field returns the correlation's field of an event, nil if the event does not have it.
func (c *Correlation) field(ev *abi.Event) *state.Node {
	body, err := state.Decode(ev.Body)
	if err != nil {
		return nil
	}
	return body.Field(c.Field)
}

// correlated returns the events that the invocation emits, with the field of the event
// that invoked it. It does not change the given events.
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
			// The body is not a map, so there is no field to set. Later checks see it as
			// it is.
			return events
		}
		m[c.Field] = field.Encode()
		raw, err := abi.EncodeValue(m)
		if err != nil {
			return events // later checks refuse the event as it is
		}
		out[i] = ev
		out[i].Body = raw
	}
	return out
}

// correlatedOne is correlated for one event, in its stored form.
func (inv *invocation) correlatedOne(ev abi.Event) abi.Event {
	return sanitized(inv.correlated([]abi.Event{ev})[0])
}

// answers returns an error if a step that accepts calls has not answered.
func (inv *invocation) answers(out abi.StepOutput) *abi.Error {
	g, st := inv.run.graph, inv.step
	own, ok := g.ownName(st.name)
	if !ok || len(out.Events) > 0 || len(st.out) != 1 || !st.out[g.correlation.Answer] || !g.Accepts(st.name, g.correlation.Call) {
		return nil
	}
	return refusal(host.RunInvalidOutput, "function %s returned nothing: return a %s", own, g.correlation.Answer)
}

// failedField returns the key and the value that the event of the invocation's failure
// carries, nil if it carries none.
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

// called returns the value of the correlation's field that a wait wants, if the wait is
// for the answer to a call.
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
	var next *invocation
	for inv := r.oldest; inv != nil; inv = next {
		// Ending an invocation unlinks it, so take its successor first.
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
	// Its slot and its place in the collection are free, as after a result.
	s.refill(r, inv.step)
	s.release(r, inv.in)
}
