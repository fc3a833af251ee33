package flow

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
)

// nextCall names the next call of this invocation. The name is unique in the run, because
// it contains the numbers of the invocation and the attempt.
func (d *driver) nextCall() string {
	d.made++
	return d.id + "." + strconv.Itoa(d.made)
}

// send emits an event to one step.
func (d *driver) send(n *Node, typ, step string, v map[string]any) error {
	raw, err := body(v)
	if err != nil {
		return failf(n.Path, "its input: %s", err)
	}
	req, err := abi.SendEvent{Event: abi.Event{Type: typ, Body: raw}, Step: step}.Encode()
	_, err = d.call(abi.ImportSendEvent, req, err)
	return refused(n.Path, "it could not be started", err)
}

// await waits for the answer that has the given value in the given field. If the wait
// times out, the error is an [*abi.Error] with the status timeout.
func (d *driver) await(field, value, waiter string, timeout time.Duration) (map[string]any, error) {
	requirements, err := body(map[string]any{field: value})
	if err != nil {
		return nil, err
	}
	req, err := abi.WaitForEvent{Type: TypeOutput, Requirements: requirements, WaiterID: waiter, Timeout: timeout}.Encode()
	resp, err := d.call(abi.ImportWait, req, err)
	if err != nil {
		return nil, err
	}
	ev, err := abi.DecodeEvent(resp)
	if err != nil {
		return nil, fmt.Errorf("read the answer of a call: %w", err)
	}
	v, err := abi.DecodeValue(ev.Body)
	if err != nil {
		return nil, fmt.Errorf("read the answer of a call: %w", err)
	}
	m, _ := v.(map[string]any)
	return m, nil
}

// maxBackoff bounds a pause between two attempts, unless the first pause is longer.
const maxBackoff = time.Minute

// pause waits before a node's retry. The first retry is 1.
func (d *driver) pause(n *Node, retry int) error {
	if n.Backoff == 0 {
		return nil
	}
	wait := n.Backoff
	for ; retry > 1 && wait < maxBackoff; retry-- {
		wait = min(2*wait, maxBackoff)
	}
	req, err := abi.Sleep{Duration: wait}.Encode()
	_, err = d.call(abi.ImportSleep, req, err)
	return refused(n.Path, "its retry could not be waited for", err)
}

// function calls a function and waits for its answer.
func (d *driver) function(n *Node, function string, in map[string]any, timeout time.Duration) (map[string]any, error) {
	id := d.nextCall()
	in[FieldCall] = id
	if err := d.send(n, TypeInput, function, in); err != nil {
		return nil, err
	}
	answer, err := d.await(FieldCall, id, id, timeout)
	var told *abi.Error
	switch {
	case errors.As(err, &told) && told.Code == abi.StatusTimeout.Code():
		return nil, &failure{path: n.Path, code: host.RunTimeout, message: fmt.Sprintf("function %s did not answer within %s", function, timeout)}
	case err != nil:
		return nil, refused(n.Path, "the answer of function "+function+" could not be waited for", err)
	}
	if code, failed := answer["failed"].(string); failed {
		message, _ := answer["error"].(string)
		return nil, &failure{path: n.Path, code: code, message: message}
	}
	return answer, nil
}

// nested runs a workflow in the same session and returns its result.
func (d *driver) nested(n *Node, sc *scope) (output, error) {
	in := sc.input
	if sc.content != nil {
		in = sc.content
	}
	start := map[string]any{"input": in}
	if sc.additional != nil {
		start["additional_data"] = sc.additional
	}
	raw, err := body(start)
	if err != nil {
		return output{}, failf(n.Path, "its input: %s", err)
	}
	req, err := abi.RunWorkflow{
		Workflow: n.Workflow, Event: abi.Event{Type: abi.TypeStart, Body: raw}, ID: d.nextCall(),
		Session: &abi.ChildSession{Shared: true}, IncludeStream: true,
	}.Encode()
	resp, err := d.call(abi.ImportRunWorkflow, req, err)
	if err != nil {
		return output{}, refused(n.Path, "workflow "+n.Workflow, err)
	}
	stop, err := abi.DecodeEvent(resp)
	if err != nil {
		return output{}, fmt.Errorf("read the result of workflow %s: %w", n.Workflow, err)
	}
	v, err := abi.DecodeValue(stop.Body)
	if err != nil {
		return output{}, fmt.Errorf("read the result of workflow %s: %w", n.Workflow, err)
	}
	m, _ := v.(map[string]any)
	o := output{content: v, success: true}
	if stop.Type != abi.TypeStop {
		return o, nil
	}
	o.content = m["result"]
	if inner, err := outputOf(map[string]any{"steps": m["steps"]}); err == nil {
		o.steps = inner.steps
	}
	return o, nil
}

// parallel runs the branches concurrently, up to the limit. Each branch is an invocation
// of its own, and waits and is replayed independently. Answers come in any order; the
// outputs are in the order of the document.
func (d *driver) parallel(n *Node, sc *scope) (output, error) {
	group := d.nextCall()
	most := len(n.Steps)
	if n.MaxConcurrency > 0 {
		most = min(most, n.MaxConcurrency)
	}
	answers := make([]map[string]any, len(n.Steps))
	begun := 0
	for got := range n.Steps {
		for ; begun < len(n.Steps) && begun-got < most; begun++ {
			if err := d.begin(n, sc, group, begun); err != nil {
				return output{}, err
			}
		}
		answer, err := d.await("group", group, group+"/"+strconv.Itoa(got), 0)
		if err != nil {
			return output{}, refused(n.Path, "its branches could not be waited for", err)
		}
		i, ok := answer["branch"].(int64)
		if !ok || i < 0 || i >= int64(len(answers)) || answers[i] != nil {
			return output{}, failf(n.Path, "an answer belongs to no branch")
		}
		answers[i] = answer
	}
	return gather(n, answers)
}

// begin starts a branch.
func (d *driver) begin(n *Node, sc *scope, group string, i int) error {
	v := sc.event(group + "/" + strconv.Itoa(i))
	v["group"], v["branch"], v["node"] = group, i, n.Steps[i].Path
	return d.send(n, TypeBranch, StepDrive, v)
}

// branchOutput returns the output of an invocation of the driver that ran a branch.
func branchOutput(n *Node, answer map[string]any) (output, error) {
	if code, failed := answer["failed"].(string); failed {
		message, _ := answer["error"].(string)
		path, _ := answer["node"].(string)
		if path == "" {
			path = n.Path
		}
		final, _ := answer["final"].(bool)
		return output{}, &failure{path: path, code: code, message: message, final: final}
	}
	m, _ := answer["output"].(map[string]any)
	o, err := outputOf(m)
	if err != nil {
		return output{}, failf(n.Path, "its output cannot be read: %s", err)
	}
	return o, nil
}

// gather makes the output of a parallel node. If branches failed, the node fails with the
// error of the first failed branch in the order of the document.
func gather(n *Node, answers []map[string]any) (output, error) {
	outputs := make([]output, len(answers))
	for i, answer := range answers {
		o, err := branchOutput(n.Steps[i], answer)
		if err != nil {
			return output{}, err
		}
		outputs[i] = o
	}
	o := container(outputs, "")
	o.content = summary(outputs)
	return o, nil
}
