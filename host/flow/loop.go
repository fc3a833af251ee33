package flow

import (
	"strconv"
)

// A loop is walked in stretches. Each answer that an invocation waits for replays it
// from its beginning, which would make a loop cost the square of its iterations. So
// the first stretch is the invocation's own, and each of the others an invocation for
// itself, called as the branches of a parallel node are: the loop waits once for all
// that one does.

// A stretch ends with the iteration in which it has made so many calls, or at the
// latest with so many iterations.
const (
	stretchCalls      = 100
	stretchIterations = 100
)

// stretch is a part of a loop.
type stretch struct {
	outputs []output
	count   int  // of iterations, from the loop's first on
	over    bool // no other follows
}

// loop does its steps until its end condition holds: run, count, test, stop flag,
// review, in that order.
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

// iterate does a stretch, behind so many iterations.
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

// iteration does the steps of a loop once.
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

// fieldFrom is the field of a call for a stretch: how many iterations there were.
const fieldFrom = "from"

// further has a stretch done by an invocation of its own, and waits for it.
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
		return stretch{}, failf(n.Path, "an answer is that of no iterations")
	}
	return stretch{o.steps, int(count), over}, nil
}

// stretched does a stretch that another invocation waits for, and adds what came of it
// to the answer.
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
	v, err := d.test(n, n.Test, sc.afterAll(outputs), more) // a function sees them as those before it
	if err != nil {
		return false, err
	}
	over, ok := v.(bool)
	if !ok {
		return false, failf(n.Path, "its end condition gave %s, which is neither true nor false", show(v))
	}
	return over, nil
}
