package flow

import (
	"strconv"
)

// A loop runs in stretches. Each answer that an invocation waits for replays the
// invocation from its beginning, so a loop in one invocation would cost the square of its
// iterations. The first stretch runs in the invocation itself. Each further stretch is a
// separate invocation, called like a branch of a parallel node, and the loop waits once
// for the whole stretch.

// A stretch ends after the iteration in which it has made this many calls, and at the
// latest after this many iterations.
const (
	stretchCalls      = 100
	stretchIterations = 100
)

// stretch is a part of a loop.
type stretch struct {
	outputs []output
	count   int  // iterations since the start of the loop
	over    bool // no further stretch follows
}

// loop runs its steps until its end condition holds: run, count, test, stop flag, review,
// in that order.
func (d *driver) loop(n *Node, sc *scope) (output, error) {
	s, err := d.iterate(n, sc, 0)
	if err != nil {
		return output{}, err
	}
	all := s.outputs
	for !s.over {
		if n.Forward {
			sc = sc.afterAll(s.outputs)
		}
		if s, err = d.further(n, sc, s.count); err != nil {
			return output{}, err
		}
		all = append(all, s.outputs...)
	}
	return container(all, "Loop %s completed %d iterations with %d total steps", n.Name, s.count, len(all)), nil
}

// iterate runs a stretch that begins after from iterations.
func (d *driver) iterate(n *Node, sc *scope, from int) (stretch, error) {
	s, made := stretch{count: from}, d.made
	for s.count-from < stretchIterations && d.made-made < stretchCalls {
		outputs, err := d.iteration(n, sc, s.count+1)
		if err != nil {
			return s, err
		}
		s.outputs = append(s.outputs, outputs...)
		s.count++
		last := &outputs[len(outputs)-1]
		if s.over, err = d.ends(n, sc, outputs, s.count); err != nil {
			return s, err
		}
		s.over = s.over || last.stop || s.count == n.MaxIterations
		if s.over {
			break
		}
		goOn, err := d.reviewIteration(n, last, s.count)
		if err != nil {
			return s, err
		}
		if !goOn {
			s.over = true
			break
		}
		if n.Forward {
			sc = sc.afterAll(outputs)
		}
	}
	return s, nil
}

// iteration runs the steps of a loop once.
func (d *driver) iteration(n *Node, sc *scope, i int) ([]output, error) {
	about := map[string]any{"iteration": i, "max_iterations": n.MaxIterations}
	if err := d.tell(TypeIteration, n, about); err != nil {
		return nil, err
	}
	outputs, err := d.sequence(n.Steps, sc)
	if err != nil {
		return nil, err
	}
	return outputs, d.tell(TypeIterated, n, about)
}

// fieldFrom is the field of a stretch's call that counts the iterations before the
// stretch.
const fieldFrom = "from"

// further runs a stretch in a separate invocation, and waits for it.
func (d *driver) further(n *Node, sc *scope, from int) (stretch, error) {
	id := d.nextCall()
	v := sc.event(id)
	v["node"], v[fieldFrom] = n.Path, from
	if err := d.send(n, TypeBranch, StepDrive, v); err != nil {
		return stretch{}, err
	}
	answer, err := d.await(FieldCall, id, id, 0)
	if err != nil {
		return stretch{}, refused(n.Path, "its iterations from "+strconv.Itoa(from+1)+" on could not be waited for", err)
	}
	o, err := branchOutput(n, answer)
	if err != nil {
		return stretch{}, err
	}
	count, ok := answer["count"].(int64)
	over, said := answer["over"].(bool)
	if !ok || !said || count <= int64(from) || count > int64(n.MaxIterations) || len(o.steps) == 0 {
		return stretch{}, failf(n.Path, "an answer belongs to no iterations")
	}
	return stretch{o.steps, int(count), over}, nil
}

// stretched runs a stretch for another invocation, and adds its results to the answer.
func (d *driver) stretched(n *Node, sc *scope, from int64, answer map[string]any) error {
	if n.Kind != KindLoop || from < 0 || from >= int64(n.MaxIterations) {
		return failf(n.Path, "it has no iteration %d", from+1)
	}
	s, err := d.iterate(n, sc, int(from))
	if err != nil {
		return err
	}
	o := container(s.outputs, "")
	answer["output"], answer["count"], answer["over"] = o.value(), s.count, s.over
	return nil
}

// ends tests a loop's end condition on the outputs of its last iteration.
func (d *driver) ends(n *Node, sc *scope, outputs []output, count int) (bool, error) {
	if n.Test == nil {
		return false, nil
	}
	success, byName := true, map[string]any{}
	for i := range outputs {
		success = success && outputs[i].success
		byName[outputs[i].name] = orText(outputs[i].content)
	}
	last := &outputs[len(outputs)-1]
	more := map[string]any{
		varIteration: int64(count), varMost: int64(n.MaxIterations), varSuccess: success,
		varLast: orText(last.content), varResults: byName,
	}
	v, err := d.test(n, n.Test, sc.afterAll(outputs), more) // a function sees these outputs as the previous ones
	if err != nil {
		return false, err
	}
	over, ok := v.(bool)
	if !ok {
		return false, failf(n.Path, "its end condition gave %s, which is neither true nor false", show(v))
	}
	return over, nil
}
