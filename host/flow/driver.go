package flow

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/work"
)

// Fuel of the driver's work, in units.
const (
	nodeFuel  = 2_000 // for beginning a node
	byteFuel  = 1     // for a byte read or written
	checkFuel = 50_000
)

// Run executes a flow's step from its start: an invocation of [StepDrive] or [StepCatch].
// It makes host calls and checkpoints as a guest does.
//
// Run calls stopped while it evaluates an expression and before each host call; an error
// of stopped, such as a context's, ends the run. If stopped is nil, nothing ends the run.
//
// # Errors
//
// An error of a Calls or Token method, or of stopped, is returned at once. Failures of
// the flow itself are in the result.
func Run(d *Document, inv host.Invocation, stopped func() error) (host.InvocationResult, error) {
	r := &driver{doc: d, calls: inv.Calls, token: inv.Token, clock: inv.Clock, limit: inv.Limits.Fuel, prices: inv.Prices, stopped: stopped}
	out, err := r.run(inv.Input)
	res := host.InvocationResult{Fuel: r.fuel}
	var failed *failure
	switch {
	case errors.As(err, &failed):
		if failed.code == host.RunFuelExhausted {
			res.Err = failed.abi()
			return res, nil
		}
		out, res.Code = abi.StepOutput{Err: failed.abi()}, 1
	case errors.Is(err, ErrOverdue):
		res.Err = &abi.Error{Code: host.RunDeadlineExceeded, Message: fmt.Sprintf("the flow held a core for more than %v (limit wall_time)", inv.Limits.WallTime)}
		return res, nil
	case err != nil:
		return res, err
	}
	if res.Output, err = out.Encode(); err != nil {
		res.Code = 0
		res.Err = &abi.Error{Code: host.RunInvalidOutput, Message: "the flow's result cannot be written: " + err.Error()}
		return res, nil
	}
	if most := inv.Limits.OutputBytes; len(res.Output) > most {
		res.Output, res.Code = nil, 0
		res.Err = &abi.Error{Code: host.RunLimitExceeded, Message: fmt.Sprintf("the flow's result has %d bytes, more than %d (limit output_bytes)", len(res.Output), most)}
	}
	return res, nil
}

// ErrOverdue is returned by [Run] if the run has held a core for too long.
var ErrOverdue = errors.New("the time on a core is up")

// failure is the failure of a node.
type failure struct {
	path    string // of the first node that failed
	code    string
	message string
	final   bool // no node may skip it: the run fails
}

// Error names the node.
func (f *failure) Error() string { return "node " + f.path + ": " + f.message }

func (f *failure) abi() *abi.Error {
	no := false
	message := f.message
	if f.path != "" {
		message = f.Error()
	}
	return &abi.Error{Code: f.code, Message: message, Retryable: &no}
}

// codeFlow is the code of failures without a code of their own.
const codeFlow = "flow_failed"

func failf(path, format string, args ...any) *failure {
	return &failure{path: path, code: codeFlow, message: fmt.Sprintf(format, args...)}
}

// driver walks a tree, within one invocation.
type driver struct {
	doc   *Document
	calls host.Calls
	token host.Token
	clock int64
	fuel  uint64 // burnt
	told  uint64 // part of fuel reported at the last checkpoint
	limit uint64

	prices  uint64 // version of the prices of the host's work: see host.Invocation
	stopped func() error

	id    string // of the invocation's attempt
	made  int    // calls made
	asked int    // questions asked
}

// burn counts work.
func (d *driver) burn(units uint64) error {
	d.fuel += units
	if d.fuel > d.limit {
		return &failure{code: host.RunFuelExhausted, message: fmt.Sprintf("the flow burnt more than %d units of fuel (limit fuel)", d.limit), final: true}
	}
	if d.fuel-d.told >= checkFuel {
		return d.check()
	}
	return nil
}

func (d *driver) check() error {
	since := d.fuel - d.told
	d.told = d.fuel
	if err := d.token.Checkpoint(since); err != nil {
		return &unwound{err}
	}
	return nil
}

// look is called while a host call or an expression works.
func (d *driver) look(units uint64) error {
	if d.stopped != nil {
		if err := d.stopped(); err != nil {
			return err
		}
	}
	if w, ok := d.token.(host.Worker); ok {
		return w.Work(units)
	}
	return nil
}

// meter returns the meter of one expression. It ends at [MaxUnits], or when the fuel is
// spent if that is earlier. pay burns what the meter has counted. An attempt older than
// the prices pays nothing, but its expressions have the same bound.
func (d *driver) meter() *work.Meter {
	most := uint64(MaxUnits)
	if d.prices != 0 {
		most = min(most, max(d.limit-min(d.limit, d.fuel), 1))
	}
	return work.New(most, d.look)
}

func (d *driver) pay(m *work.Meter) error {
	spent := m.Spent()
	if d.prices == 0 {
		spent = 0
	}
	if w, ok := d.token.(host.Worker); ok {
		w.Worked(spent)
	}
	over := (*work.Exceeded)(nil)
	switch err := m.Err(); {
	case errors.As(err, &over):
		return d.burn(spent + 1) // more than the budget, unless MaxUnits was the limit
	case err != nil:
		d.fuel += spent
		return &unwound{err}
	}
	return d.burn(spent)
}

// unwound is the error of a host call or a checkpoint that ends the invocation.
type unwound struct{ error }

// Unwrap returns the original error.
func (u *unwound) Unwrap() error { return u.error }

// call makes a host call. The flow handles an error of the call itself, an [*abi.Error];
// any other error ends the invocation.
func (d *driver) call(im abi.Import, req []byte, fault error) ([]byte, error) {
	if fault != nil {
		return nil, &abi.Error{Code: abi.StatusInvalidMessage.Code(), Message: fault.Error()}
	}
	if err := d.burn(uint64(len(req)) * byteFuel); err != nil {
		return nil, err
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	metered, _ := d.calls.(host.Metered)
	if metered != nil {
		metered.Afford(d.limit-min(d.limit, d.fuel), d.look)
	}
	resp, status, clock, err := d.calls.Call(im, req, d.clock)
	if metered != nil {
		d.fuel += metered.Charged()
		if w, ok := d.token.(host.Worker); ok {
			w.Worked(metered.Charged())
		}
	}
	if err != nil {
		return nil, &unwound{err}
	}
	d.clock = clock
	if err := d.burn(uint64(len(resp)) * byteFuel); err != nil {
		return nil, err
	}
	if status == abi.StatusOK {
		return resp, nil
	}
	told, err := abi.DecodeError(resp)
	if err != nil {
		return nil, fmt.Errorf("read the error of %s: %w", im, err)
	}
	return nil, &told
}

// refused turns the error of a host call into the failure of a node. It returns an error
// that ends the invocation unchanged.
func refused(path, what string, err error) error {
	var told *abi.Error
	if errors.As(err, &told) {
		return &failure{path: path, code: told.Code, message: what + ": " + told.Message}
	}
	return err
}

// run decodes the input and executes the step.
func (d *driver) run(input []byte) (abi.StepOutput, error) {
	var out abi.StepOutput
	if err := d.burn(nodeFuel + uint64(len(input))*byteFuel); err != nil {
		return out, err
	}
	in, err := abi.DecodeStepInput(input)
	if err != nil {
		return out, fmt.Errorf("read the input of a flow: %w", err)
	}
	if len(in.Trigger) != 1 {
		return out, failf("", "a flow is called with one event, not with %d", len(in.Trigger))
	}
	d.id = strconv.FormatUint(in.Run.Invocation, 10) + "." + strconv.FormatUint(in.Run.Attempt, 10)
	ev := in.Trigger[0]
	decoded, err := abi.DecodeValue(ev.Body)
	have, ok := decoded.(map[string]any)
	if err != nil || !ok {
		return out, failf("", "the event %s cannot be read", ev.Type)
	}
	switch {
	case in.Step == StepCatch:
		return d.caught(have)
	case ev.Type == TypeBranch:
		return d.branch(have)
	default:
		return d.whole(have)
	}
}

// result returns a step output with one event.
func result(typ string, v map[string]any) (abi.StepOutput, error) {
	raw, err := body(v)
	if err != nil {
		return abi.StepOutput{}, failf("", "the flow's result: %s", err)
	}
	return abi.StepOutput{Events: []abi.Event{{Type: typ, Body: raw}}}, nil
}

// whole drives the flow from its start to its end.
func (d *driver) whole(start map[string]any) (abi.StepOutput, error) {
	if err := d.prepare(start); err != nil {
		return abi.StepOutput{}, err
	}
	sc := &scope{input: start["input"], additional: start["additional_data"]}
	outputs, err := d.sequence(d.doc.Root.Steps, sc)
	if err != nil {
		return abi.StepOutput{}, err
	}
	last := &outputs[len(outputs)-1]
	return result(abi.TypeStop, map[string]any{
		"result": last.deepest().content, "steps": values(outputs), "stopped": last.stop,
	})
}

// caught answers in place of a function that has failed.
func (d *driver) caught(failed map[string]any) (abi.StepOutput, error) {
	exception, _ := failed["exception"].(map[string]any)
	message, _ := exception["exception_message"].(string)
	code, _ := exception["exception_type"].(string)
	return result(TypeOutput, map[string]any{
		FieldCall: failed[FieldCall], "success": false, "error": message, "content": nil, "failed": code,
	})
}

// branch drives one branch of a parallel node, or some iterations of a loop.
func (d *driver) branch(have map[string]any) (abi.StepOutput, error) {
	path, _ := have["node"].(string)
	n := d.doc.byPath[path]
	if n == nil {
		return abi.StepOutput{}, failf("", "the flow has no node %s", clip(path))
	}
	sc := &scope{input: have["input"], additional: have["additional_data"], content: have["previous_step_content"]}
	sc.outputs, _ = have["previous_step_outputs"].(map[string]any)
	answer := map[string]any{FieldCall: have[FieldCall], "group": have["group"], "branch": have["branch"]}
	var o output
	var err error
	from, isStretch := have[fieldFrom].(int64)
	if isStretch {
		err = d.stretched(n, sc, from, answer)
	} else {
		o, err = d.node(n, sc)
	}
	var failed *failure
	switch {
	case errors.As(err, &failed) && failed.code != host.RunFuelExhausted:
		answer["failed"], answer["error"], answer["node"] = failed.code, failed.message, failed.path
		answer["final"] = failed.final
	case err != nil:
		return abi.StepOutput{}, err
	case !isStretch:
		answer["output"] = o.value()
	}
	return result(TypeOutput, answer)
}
