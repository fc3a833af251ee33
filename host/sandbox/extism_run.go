package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/extism"
	"github.com/weftrun/weft/host/sandbox/arena"
)

// What the host charges for those functions of Extism that are not host calls.
const (
	moveFuel  = 100 // copying 1 or 8 bytes into or out of the arena
	blockFuel = 300 // a function that looks up a block
)

// codePlugin is the code of an error set by a plugin.
const codePlugin = "error"

// maxErrorText bounds the text of an error set by a plugin, in bytes.
const maxErrorText = 64 << 10

// ask makes a host call on behalf of an Extism plugin. It may unwind the plugin.
func (g *guest) ask(im abi.Import, request []byte) ([]byte, abi.Status) {
	if g.counts.calls++; g.counts.calls > g.limits.HostCalls {
		g.giveUp(codeLimit, "more than %d host calls in one invocation (limit host_calls)", g.limits.HostCalls)
	}
	g.checkCallBytes(im, "request", int64(len(request)))
	return g.answer(im, request)
}

// must makes a host call. If the call fails, the plugin fails with the same code.
func (g *guest) must(im abi.Import, request []byte, err error) []byte {
	if err != nil {
		g.giveUp(host.RunInvalidOutput, "%s: %v", im, err)
	}
	response, status := g.ask(im, request)
	if status == abi.StatusOK {
		return response
	}
	fail, err := abi.DecodeError(response)
	if err != nil {
		g.unwind(fmt.Errorf("the error of %s: %w", im, err))
	}
	g.fail = &fail
	panic(unwound)
}

func (g *guest) varGet(at uint64) uint64 {
	g.onlyInStep("var_get")
	name := string(g.extismBytes(at))
	g.extism.arena.Drop(at)
	if value, ok := g.extism.staged[name]; ok {
		return g.give(value)
	}
	value, ok := g.variable(name, g.extism.plugin.VarPath(name))
	if old := g.extism.plugin.OldVarPath(name); !ok && old != "" {
		value, ok = g.variable(name, old)
	}
	if !ok {
		return 0
	}
	return g.give(value)
}

// variable reads a variable at a path.
func (g *guest) variable(name, path string) (value []byte, ok bool) {
	request, err := abi.StateGet{Path: path, Default: abi.Null}.Encode()
	value, ok, err = extism.Variable(g.must(abi.ImportStateGet, request, err))
	if err != nil {
		g.unwind(fmt.Errorf("the variable %q: %w", name, err))
	}
	return value, ok
}

// varSet stages a variable. It takes effect when the step has succeeded.
func (g *guest) varSet(at, valueAt uint64) {
	g.onlyInStep("var_set")
	e := g.extism
	name := string(g.extismBytes(at))
	e.arena.Drop(at)
	var value []byte // nil: the variable is removed
	if valueAt != 0 {
		value = g.extismBytes(valueAt)
		e.arena.Drop(valueAt)
		if value == nil {
			value = []byte{}
		}
	}
	old, there := e.staged[name]
	if !there {
		e.bytes += len(name) + arena.BlockCharge
		e.order = append(e.order, name)
	}
	if e.bytes += len(value) - len(old); e.bytes > g.limits.CallBytes {
		g.giveUp(codeLimit, "the variables that one call has set have more than %d bytes (limit call_bytes)", g.limits.CallBytes)
	}
	if e.staged == nil {
		e.staged = map[string][]byte{}
	}
	e.staged[name] = value
}

// commit sends the call's staged edits as one host call.
func (g *guest) commit() {
	e := g.extism
	if len(e.order) == 0 {
		return
	}
	edits := make([]abi.Edit, 0, len(e.order))
	for _, name := range e.order {
		edit := abi.Edit{Op: abi.OpDelete, Path: e.plugin.VarPath(name)}
		if value := e.staged[name]; value != nil {
			raw, err := abi.EncodeValue(value)
			if err != nil {
				g.giveUp(codeLimit, "the variable %q: %v", name, err)
			}
			edit.Op, edit.Value = abi.OpSet, raw
		}
		edits = append(edits, edit)
		if old := e.plugin.OldVarPath(name); old != "" {
			edits = append(edits, abi.Edit{Op: abi.OpDelete, Path: old})
		}
	}
	request, err := abi.EncodeEdits(edits)
	g.must(abi.ImportStateEdit, request, err)
}

func (g *guest) httpRequest(at, bodyAt uint64) uint64 {
	g.onlyInStep("http_request")
	e := g.extism
	e.status, e.header = 0, []byte("{}")
	text := g.extismBytes(at)
	e.arena.Drop(at)
	var body []byte
	if bodyAt != 0 {
		body = g.extismBytes(bodyAt)
		e.arena.Drop(bodyAt)
	}
	payload, err := extism.Request(text, body)
	if err != nil {
		g.giveUp(codePlugin, "%v", err)
	}
	request, err := abi.CallResource{Resource: e.plugin.Resource, Method: "request", Payload: payload}.Encode()
	status, header, body, err := extism.Answer(g.must(abi.ImportResource, request, err))
	if err != nil {
		g.unwind(fmt.Errorf("the answer of resource %s: %w", e.plugin.Resource, err))
	}
	e.status, e.header = status, header
	return g.give(body)
}

func (g *guest) httpHeaders() uint64 {
	g.onlyInStep("http_headers")
	if g.extism.header == nil {
		return g.give([]byte("{}"))
	}
	return g.give(g.extism.header)
}

// invokeExtism runs one step of an Extism plugin. A returned error is not the guest's
// fault.
func (g *guest) invokeExtism(ctx context.Context, inv *host.Invocation) (host.InvocationResult, error) {
	in, err := abi.DecodeStepInput(inv.Input)
	if err != nil {
		return host.InvocationResult{}, fmt.Errorf("decode the step input: %w", err)
	}
	e := g.extism
	step, ok := e.plugin.Steps[in.Step]
	if !ok {
		return failed(codeOutput, "the plugin has no step %s", in.Step), nil
	}
	g.begin(inv)
	e.begin()
	if e.config, err = extism.Config(in.Config); err != nil {
		return host.InvocationResult{}, fmt.Errorf("decode the step's configuration: %w", err)
	}
	input, err := step.Bytes(in.Trigger, in.List)
	if err != nil {
		return g.pluginError("%v", err)
	}
	var code uint32
	var output []byte
	err = g.enter(ctx, inv.Limits.Fuel, inv.Limits.WallTime, func(ctx *call) error {
		return g.within(func() (err error) {
			if code, err = g.callExport(ctx, step.Export, input); err == nil && code == 0 && e.errorText() == "" {
				output = g.outputOf(&step)
				g.commit()
			}
			return err
		})
	})
	fuel := g.meter.burnt()
	fail, err := g.verdict(err)
	if err != nil || fail != nil {
		return host.InvocationResult{Err: fail, Fuel: fuel}, err
	}
	if text := e.errorText(); text != "" || code != 0 {
		if text == "" {
			text = fmt.Sprintf("%s returned %d and set no error", step.Export, code)
		}
		res, err := g.pluginError("%s", text)
		res.Fuel = fuel
		return res, err
	}
	return host.InvocationResult{Output: output, Fuel: fuel}, nil
}

// within runs do, which may unwind the guest outside the guest's own code.
func (g *guest) within(do func() error) (err error) {
	defer func() {
		switch r := recover(); r {
		case nil:
		case unwound:
			err = unwound
		default:
			panic(r)
		}
	}()
	return do()
}

// callExport passes the input and runs an export. Its result counts as a 32-bit number;
// no result counts as 0.
func (g *guest) callExport(ctx *call, export string, input []byte) (code uint32, err error) {
	e := g.extism
	f := g.export(export)
	if f == nil {
		return 0, fmt.Errorf("module %s has no function %s any more", g.module.digest, export)
	}
	at := g.give(input)
	e.arena.Input = arena.Span{At: at, Length: uint64(len(input))}
	g.stack[0] = 0
	err = f.CallWithStack(ctx, g.stack[:])
	if err != nil && e.exited && isUnwound(err) && g.fail == nil && g.stop == nil {
		return 0, nil
	}
	if len(f.Definition().ResultTypes()) > 0 {
		code = api.DecodeU32(g.stack[0])
	}
	return code, err
}

// export looks a function up, once for each instance.
func (g *guest) export(name string) api.Function {
	if f, ok := g.exports[name]; ok {
		return f
	}
	f := g.instance.ExportedFunction(name)
	if g.exports == nil {
		g.exports = map[string]api.Function{}
	}
	if f != nil {
		g.exports[name] = f
	}
	return f
}

// errorText returns the error that the plugin set, or "".
func (e *extismCall) errorText() string {
	if e.arena.Err == 0 {
		return ""
	}
	text := e.arena.View(e.arena.Err, e.arena.Length(e.arena.Err))
	if len(text) > maxErrorText {
		text = text[:maxErrorText]
	}
	return strings.ToValidUTF8(string(text), "\ufffd")
}

// outputOf makes the step's output from the plugin's output.
func (g *guest) outputOf(step *extism.Step) []byte {
	a := &g.extism.arena
	if limit := g.limits.OutputBytes; a.Output.Length > uint64(limit) {
		g.giveUp(codeLimit, "the output has %d bytes, at most %d are allowed (limit output_bytes)", a.Output.Length, limit)
	}
	view := a.View(a.Output.At, a.Output.Length)
	g.charge(4 * bytesFuel(len(view))) // parsing JSON and writing the result
	out, err := step.Events(view)
	if err != nil {
		g.giveUp(codeOutput, "%v", err)
	}
	encoded, err := out.Encode()
	if err != nil {
		g.giveUp(codeOutput, "the output of %s: %v", step.Export, err)
	}
	if limit := g.limits.OutputBytes; len(encoded) > limit {
		g.giveUp(codeLimit, "the events of the output have %d bytes, at most %d are allowed (limit output_bytes)", len(encoded), limit)
	}
	return encoded
}

// pluginError is the result of a step whose plugin reported a failure.
func (g *guest) pluginError(format string, args ...any) (host.InvocationResult, error) {
	out, err := abi.StepOutput{Err: &abi.Error{Code: codePlugin, Message: fmt.Sprintf(format, args...)}}.Encode()
	if err != nil {
		return host.InvocationResult{}, errors.Join(errors.New("encode the plugin's error"), err)
	}
	return host.InvocationResult{Output: out, Code: 1}, nil
}

// startExtism calls the functions that Extism's hosts call before the first function.
func (g *making) startExtism() error {
	for _, name := range g.module.plan.Extism.Start {
		f := g.instance.ExportedFunction(name)
		if f == nil {
			continue
		}
		err := g.enterFor(phaseInitialize, func(ctx *call) error {
			var none [2]uint64 // hs_init has no arguments
			return f.CallWithStack(ctx, none[:])
		})
		if err != nil {
			return err
		}
	}
	return nil
}
