package flow

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/state"
)

// codeRejected is the code of a flow that people have rejected.
const codeRejected = "review_rejected"

// The possible outcomes of a question.
type verdict uint8

const (
	approved verdict = iota
	rejected
	silent // nobody answered, and the node says "skip"
)

// answer is the result of a question.
type answer struct {
	verdict verdict
	fields  map[string]any
}

// maxAsked bounds how often a question is repeated after invalid answers.
const maxAsked = 10

// question asks people and waits for an answer. After an invalid answer, it asks again
// and says why. If nobody answers in time, the run continues as the node says.
func (d *driver) question(n *Node, kind string, q *Question, more map[string]any, timeout time.Duration, onTimeout OnTimeout) (answer, error) {
	for tried := 1; ; tried++ {
		a, fault, err := d.asks(n, kind, q, more, timeout, onTimeout)
		switch {
		case err != nil || fault == "":
			return a, err
		case tried == maxAsked:
			return a, failf(n.Path, "the answer to its review %s", fault)
		}
		more = overlaid(more, map[string]any{"fault": "the answer " + fault})
	}
}

// asks asks once. fault says why the answer is invalid.
func (d *driver) asks(n *Node, kind string, q *Question, more map[string]any, timeout time.Duration, onTimeout OnTimeout) (a answer, fault string, err error) {
	d.asked++
	id := d.id + "/" + strconv.Itoa(d.asked)
	ask := map[string]any{"node": n.Path, "kind": kind, "review": id, "prefix": q.Message}
	if q.Message == "" {
		ask["prefix"] = prompts[kind] + " " + n.Name + "? "
	}
	maps.Copy(ask, more)
	if q.Schema != nil {
		ask["schema"] = q.Schema
	}
	raw, err := body(ask)
	if err != nil {
		return a, "", failf(n.Path, "what people are to see: %s", err)
	}
	wanted, err := body(map[string]any{"review": id})
	if err != nil {
		return a, "", err
	}
	req, err := abi.WaitForEvent{
		Type: abi.TypeHumanResponse, Requirements: wanted, WaiterEvent: &abi.Event{Type: abi.TypeInputRequired, Body: raw},
		WaiterID: id, Timeout: timeout,
	}.Encode()
	resp, err := d.call(abi.ImportWait, req, err)
	var told *abi.Error
	if errors.As(err, &told) && told.Code == abi.StatusTimeout.Code() {
		a, err = d.silence(n, kind, timeout, onTimeout)
		return a, "", err
	}
	if err != nil {
		return a, "", refused(n.Path, "people could not be asked", err)
	}
	ev, err := abi.DecodeEvent(resp)
	if err != nil {
		return a, "", fmt.Errorf("read what people answered: %w", err)
	}
	v, err := abi.DecodeValue(ev.Body)
	if err != nil {
		return a, "", fmt.Errorf("read what people answered: %w", err)
	}
	a.fields, _ = v.(map[string]any)
	a.verdict, fault = verdictOf(kind, a.fields)
	return a, fault, nil
}

// verdictOf reads an answer. fault says why the answer is invalid.
func verdictOf(kind string, fields map[string]any) (v verdict, fault string) {
	_, input := given(fields, "input")
	cancel, _ := fields["cancel"].(bool)
	switch yes := fields["approved"].(type) {
	case bool:
		if !yes {
			return rejected, ""
		}
	case nil:
		switch {
		case kind == "error" && cancel:
			return rejected, ""
		case kind != "input" || !input:
			return rejected, "has no \"approved\", true or false"
		}
	default:
		return rejected, "has an \"approved\" that is neither true nor false"
	}
	return approved, ""
}

// prompts are the default texts of questions.
var prompts = map[string]string{
	"confirm": "Do", "input": "What is the input of", "output": "Take the output of", "iteration": "Go on with", "error": "Try again",
}

func (d *driver) silence(n *Node, kind string, timeout time.Duration, on OnTimeout) (answer, error) {
	switch on {
	case TimeoutApprove:
		return answer{}, nil
	case TimeoutSkip:
		return answer{verdict: silent}, nil
	}
	return answer{}, &failure{path: n.Path, code: host.RunTimeout, message: fmt.Sprintf("nobody answered its review (%s) within %s", kind, timeout), final: true}
}

// reviewed runs a node with its questions before and after it.
func (d *driver) reviewed(n *Node, sc *scope) (output, error) {
	r := n.Review
	if r == nil {
		return d.do(n, sc)
	}
	if r.Confirm != nil {
		o, goOn, err := d.confirm(n, sc)
		if err != nil || !goOn {
			return o, err
		}
	}
	if r.Input != nil {
		next, goOn, err := d.input(n, sc)
		if err != nil {
			return output{}, err
		}
		if !goOn {
			return skipped(n), nil
		}
		sc = next
	}
	for tried := 0; ; tried++ {
		o, err := d.do(n, sc)
		if err != nil || r.Output == nil {
			return o, err
		}
		a, err := d.question(n, "output", r.Output, map[string]any{"output": o.content}, r.Timeout, r.OnTimeout)
		if err != nil {
			return output{}, err
		}
		switch {
		case a.verdict == approved:
			if edited, given := given(a.fields, "output"); given {
				o.content, o.steps = edited, nil
			}
			return o, nil
		case a.verdict == silent:
			return skipped(n), nil
		case r.OnReject == RejectRetry && tried < r.Retries:
			sc = advised(sc, a.fields)
			continue
		case r.OnReject == RejectSkip:
			return skipped(n), nil
		}
		return output{}, said(n, "output", a.fields)
	}
}

// confirm asks whether to run the node at all. goOn is false if o is the node's output
// already.
func (d *driver) confirm(n *Node, sc *scope) (o output, goOn bool, err error) {
	r := n.Review
	for tried := 0; ; tried++ {
		a, err := d.question(n, "confirm", r.Confirm, nil, r.Timeout, r.OnTimeout)
		switch {
		case err != nil:
			return output{}, false, err
		case a.verdict == approved:
			return output{}, true, nil
		case a.verdict == silent || r.OnReject == RejectSkip:
			return skipped(n), false, nil
		case r.OnReject == RejectElse:
			o, err := d.branchOf(n, false, sc)
			return o, false, err
		case r.OnReject == RejectRetry && tried < r.Retries:
			continue // ask again
		}
		return output{}, false, said(n, "confirm", a.fields)
	}
}

// input asks for the node's input until the answer matches the schema.
func (d *driver) input(n *Node, sc *scope) (*scope, bool, error) {
	r := n.Review
	more := map[string]any{}
	for tried := 0; ; tried++ {
		a, err := d.question(n, "input", r.Input, more, r.Timeout, r.OnTimeout)
		switch {
		case err != nil:
			return nil, false, err
		case a.verdict == silent:
			return nil, false, nil
		case a.verdict == rejected && r.OnReject == RejectSkip:
			return nil, false, nil
		case a.verdict == rejected && r.OnReject == RejectCancel:
			return nil, false, said(n, "input", a.fields)
		}
		fault := r.Input.fits(a.fields["input"])
		if a.verdict == approved && fault == nil {
			next := *sc
			if v, given := given(a.fields, "input"); given {
				next.additional = overlaid(mapOf(sc.additional), map[string]any{"user_input": v})
			}
			return &next, true, nil
		}
		if tried >= r.Retries {
			if fault == nil {
				return nil, false, said(n, "input", a.fields)
			}
			return nil, false, failf(n.Path, "the input that people gave does not fit: %s", fault)
		}
		if fault != nil {
			more["fault"] = fault.Error()
		}
	}
}

// fits validates an input against the schema.
func (q *Question) fits(v any) error {
	if q.schema == nil || v == nil {
		return nil
	}
	raw, err := abi.EncodeValue(v)
	if err != nil {
		return err
	}
	root, err := state.Decode(raw)
	if err != nil {
		return err
	}
	return q.schema.Check(root, nil)
}

func mapOf(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

// advised returns a scope that contains what people said about a node's output.
func advised(sc *scope, fields map[string]any) *scope {
	next := *sc
	if feedback, given := given(fields, "feedback"); given {
		next.additional = overlaid(mapOf(sc.additional), map[string]any{"feedback": feedback})
	}
	return &next
}

func skipped(n *Node) output {
	return output{content: "Skipped " + n.Name, success: true}
}

// said is the failure of a flow that people have rejected.
func said(n *Node, kind string, fields map[string]any) error {
	message := "people said no to its review (" + kind + ")"
	if feedback, ok := fields["feedback"].(string); ok && feedback != "" {
		message += ": " + clip(feedback)
	}
	return &failure{path: n.Path, code: codeRejected, message: message, final: true}
}

// reviewIteration asks whether a loop should continue.
func (d *driver) reviewIteration(n *Node, last *output, count int) (bool, error) {
	if n.Review == nil || n.Review.Iteration == nil {
		return true, nil
	}
	r := n.Review
	a, err := d.question(n, "iteration", r.Iteration, map[string]any{"iteration": count, "output": last.content}, r.Timeout, r.OnTimeout)
	if err != nil {
		return false, err
	}
	switch {
	case a.verdict == approved:
		return true, nil
	case a.verdict == silent || r.OnReject == RejectSkip:
		return false, nil
	case r.OnReject == RejectRetry:
		return true, nil
	}
	return false, said(n, "iteration", a.fields)
}

// repair asks what to do about a step that has failed finally: retry or skip.
func (d *driver) repair(n *Node, failed *failure) (again bool, err error) {
	a, err := d.question(n, "error", &Question{}, map[string]any{"error": failed.message, "code": failed.code}, 0, TimeoutCancel)
	if err != nil {
		return false, err
	}
	if cancel, _ := a.fields["cancel"].(bool); cancel {
		return false, &failure{path: failed.path, code: failed.code, message: failed.message, final: true}
	}
	return a.verdict == approved, nil
}
