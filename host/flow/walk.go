package flow

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/weftrun/weft/abi"
)

// sequence runs nodes one after the other. Each node sees the outputs of earlier nodes.
// The sequence ends early after an output with the stop flag.
func (d *driver) sequence(nodes []*Node, sc *scope) ([]output, error) {
	var outputs []output
	for _, n := range nodes {
		o, err := d.node(n, sc)
		if err != nil {
			return nil, err
		}
		outputs = append(outputs, o)
		if o.stop {
			break
		}
		sc = sc.after(&o)
	}
	return outputs, nil
}

// tell writes an event of a node to the run's stream.
func (d *driver) tell(typ string, n *Node, more map[string]any) error {
	v := map[string]any{"node": n.Path, "name": n.Name, "type": string(n.Kind)}
	maps.Copy(v, more)
	raw, err := body(v)
	if err != nil {
		raw, err = body(map[string]any{"node": n.Path, "name": n.Name, "type": string(n.Kind)})
	}
	req, err := writeStream(typ, raw, err)
	_, err = d.call(abi.ImportWriteStream, req, err)
	return refused(n.Path, "its events could not be written", err)
}

func writeStream(typ string, raw abi.Raw, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return abi.WriteStream{Event: abi.Event{Type: typ, Body: raw}}.Encode()
}

// node runs a node with the questions before and after it.
func (d *driver) node(n *Node, sc *scope) (output, error) {
	if err := d.burn(nodeFuel); err != nil {
		return output{}, err
	}
	if err := d.tell(TypeStarted, n, nil); err != nil {
		return output{}, err
	}
	o, err := d.reviewed(n, sc)
	var failed *failure
	if errors.As(err, &failed) {
		if failed.path == "" {
			failed.path = n.Path
		}
		if told := d.tell(TypeFailed, n, map[string]any{"error": failed.message, "code": failed.code, "failed_node": failed.path}); told != nil {
			return output{}, told
		}
		return output{}, err
	}
	if err != nil {
		return output{}, err
	}
	o.name = n.Name
	return o, d.tell(TypeCompleted, n, map[string]any{"content": o.content, "success": o.success, "stop": o.stop})
}

// do runs a node without its questions.
func (d *driver) do(n *Node, sc *scope) (output, error) {
	switch n.Kind {
	case KindStep:
		return d.step(n, sc)
	case KindSteps:
		outputs, err := d.sequence(n.Steps, sc)
		return container(outputs, "Steps %s completed with %d results", n.Name, len(outputs)), err
	case KindParallel:
		return d.parallel(n, sc)
	case KindCondition:
		return d.condition(n, sc)
	case KindRouter:
		return d.router(n, sc)
	default:
		return d.loop(n, sc)
	}
}

// container returns the output of a node with nested nodes.
func container(outputs []output, format string, args ...any) output {
	o := output{content: fmt.Sprintf(format, args...), success: true, steps: outputs}
	for i := range outputs {
		o.success = o.success && outputs[i].success
		o.stop = o.stop || outputs[i].stop
	}
	return o
}

// step calls a function or runs a workflow, and retries as often as the node allows.
func (d *driver) step(n *Node, sc *scope) (output, error) {
	for tried := 0; ; {
		o, err := d.once(n, sc)
		var failed *failure
		if err == nil || !errors.As(err, &failed) || failed.final {
			return o, err
		}
		if tried++; tried <= n.Retries {
			if err := d.pause(n, tried); err != nil {
				return output{}, err
			}
			continue
		}
		switch n.OnError {
		case OnErrorSkip:
			return output{content: nil, err: failed.message}, nil
		case OnErrorPause:
			again, err := d.repair(n, failed)
			if err != nil {
				return output{}, err
			}
			if again {
				tried = 0
				continue
			}
			return output{content: nil, err: failed.message}, nil
		}
		return output{}, err
	}
}

func (d *driver) once(n *Node, sc *scope) (output, error) {
	if n.Workflow != "" {
		return d.nested(n, sc)
	}
	answer, err := d.function(n, n.Function, sc.event(""), n.Timeout)
	if err != nil {
		return output{}, err
	}
	o, err := outputOf(answer)
	if err != nil {
		return o, failf(n.Path, "function %s answered in the wrong shape: %s", n.Function, err)
	}
	return o, nil
}

func (d *driver) condition(n *Node, sc *scope) (output, error) {
	met, err := d.holds(n, n.Test, sc)
	if err != nil {
		return output{}, err
	}
	return d.branchOf(n, met, sc)
}

// branchOf runs the steps of a condition's branch.
func (d *driver) branchOf(n *Node, met bool, sc *scope) (output, error) {
	nodes, branch := n.Steps, "if"
	if !met {
		nodes, branch = n.Else, "else"
	}
	if len(nodes) == 0 {
		return output{content: fmt.Sprintf("Condition %s not met - skipped %d steps", n.Name, len(n.Steps)), success: true}, nil
	}
	outputs, err := d.sequence(nodes, sc)
	return container(outputs, "Condition %s completed with %d results (%s branch)", n.Name, len(outputs), branch), err
}

func (d *driver) router(n *Node, sc *scope) (output, error) {
	names, err := d.selected(n, sc)
	if err != nil {
		return output{}, err
	}
	var chosen []*Node
	for _, name := range names {
		i := slices.IndexFunc(n.Steps, func(c *Node) bool { return c.Name == name })
		if i < 0 {
			return output{}, failf(n.Path, "its selector chose %q, which is not one of its choices (%s)", clip(name), some(choices(n)))
		}
		chosen = append(chosen, n.Steps[i])
	}
	outputs, err := d.sequence(chosen, sc)
	if err == nil && len(outputs) == 0 {
		return output{content: fmt.Sprintf("Router %s completed with 0 results (no steps selected)", n.Name), success: true}, nil
	}
	return container(outputs, "Router %s completed with %d results", n.Name, len(outputs)), err
}

// selected returns the choice of a router's selector.
func (d *driver) selected(n *Node, sc *scope) ([]string, error) {
	v, err := d.test(n, n.Test, sc, nil)
	if err != nil {
		return nil, err
	}
	var names []string
	switch v := v.(type) {
	case nil: // chose nothing
	case string:
		names = []string{v}
	case []any:
		for _, item := range v {
			name, ok := item.(string)
			if !ok {
				return nil, failf(n.Path, "its selector gave a list whose items are not all names")
			}
			names = append(names, name)
		}
	default:
		return nil, failf(n.Path, "its selector gave %s, which is neither a name nor a list of names", show(v))
	}
	if len(names) > 1 && !n.Multiple {
		return nil, failf(n.Path, "its selector chose %d of its choices: set \"multiple\" if it may", len(names))
	}
	if len(names) > MaxNodes {
		return nil, failf(n.Path, "its selector chose %d times: it may %d times", len(names), MaxNodes)
	}
	return names, nil
}

func choices(n *Node) []string {
	names := make([]string, len(n.Steps))
	for i, c := range n.Steps {
		names[i] = c.Name
	}
	return names
}

// some formats a list of names for a message.
func some(names []string) string {
	const most = 10
	text := ""
	for i, name := range names {
		if i == most {
			return text + ", ..."
		}
		if i > 0 {
			text += ", "
		}
		text += clip(name)
	}
	return text
}

// show formats a value for a message.
func show(v any) string {
	if v == nil {
		return "nothing"
	}
	return clip(plain(v))
}

// holds evaluates a condition.
func (d *driver) holds(n *Node, t *Test, sc *scope) (bool, error) {
	v, err := d.test(n, t, sc, nil)
	if err != nil {
		return false, err
	}
	met, ok := v.(bool)
	if !ok {
		return false, failf(n.Path, "its evaluator gave %s, which is neither true nor false", show(v))
	}
	return met, nil
}

// test calls a function, or evaluates an expression. more holds the names that only a
// loop's expressions may use.
func (d *driver) test(n *Node, t *Test, sc *scope, more map[string]any) (any, error) {
	switch {
	case t.Fixed != nil:
		return *t.Fixed, nil
	case t.Function != "":
		return d.ask(n, t.Function, sc, more)
	}
	state := map[string]any{}
	if t.expr.readsState {
		var err error
		if state, err = d.state(n); err != nil {
			return nil, err
		}
	}
	vars := map[string]any{
		varInput: orText(sc.input), varContent: orText(sc.content), varOutputs: within(contents(sc.outputs), sc.outputs, t.expr.paths),
		varAdditional: orMap(sc.additional), varState: state,
	}
	if n.Kind == KindRouter {
		vars[varChoices] = choices(n)
	}
	maps.Copy(vars, more)
	m := d.meter()
	v, err := t.expr.evaluate(m, vars)
	if ended := d.pay(m); ended != nil {
		return nil, ended
	}
	if err != nil {
		return nil, failf(n.Path, "%q: %s", clip(t.expr.text), err)
	}
	return v, nil
}

// ask calls a function that makes a decision.
func (d *driver) ask(n *Node, function string, sc *scope, more map[string]any) (any, error) {
	in := sc.event("")
	maps.Copy(in, more)
	if n.Kind == KindRouter {
		in[varChoices] = choices(n)
	}
	answer, err := d.function(n, function, in, 0)
	if err != nil {
		return nil, err
	}
	o, err := outputOf(answer)
	if err != nil {
		return nil, failf(n.Path, "function %s answered in the wrong shape: %s", function, err)
	}
	if !o.success {
		return nil, failf(n.Path, "function %s answered that it failed: %s", function, o.err)
	}
	return o.content, nil
}

// state reads the session's state, for an expression.
func (d *driver) state(n *Node) (map[string]any, error) {
	req, err := abi.StateGet{}.Encode()
	resp, err := d.call(abi.ImportStateGet, req, err)
	if err != nil {
		return nil, refused(n.Path, "the session's state could not be read", err)
	}
	v, err := abi.DecodeValue(resp)
	if err != nil {
		return nil, fmt.Errorf("read the session's state: %w", err)
	}
	m, _ := v.(map[string]any)
	if m == nil {
		m = map[string]any{}
	}
	return m, nil
}
