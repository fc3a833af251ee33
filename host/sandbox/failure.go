package sandbox

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/abi/cbor"
	"github.com/weftrun/weft/host"
)

// Codes of a guest's own failures.
const (
	codeTrap     = host.RunTrap
	codePanic    = host.RunPanic
	codeFuel     = host.RunFuelExhausted
	codeDeadline = host.RunDeadlineExceeded
	codeLimit    = host.RunLimitExceeded
	codeOutput   = host.RunInvalidOutput
	// codeForbidden is the code of a call that the phase does not allow. It never leaves
	// the sandbox, because weft_step may call everything.
	codeForbidden = "forbidden_call"
)

const (
	maxTailText = 1024 // bytes of last output in a message
	maxFuncText = 200  // bytes of a function's name in a message
)

// verdict interprets the end of a call into the guest. It returns nil and nil if the call
// returned, otherwise the guest's own failure or an error that is not the guest's.
func (g *guest) verdict(err error) (*abi.Error, error) {
	if err == nil {
		return nil, nil
	}
	if isUnwound(err) {
		if fail := g.panicked(nil); g.fail != nil && g.fail.Code == codeTrap && fail != nil {
			return fail, g.stop
		}
		return g.withTail(g.fail), g.stop
	}
	reason, ok := trapReason(err)
	if !ok {
		return nil, fmt.Errorf("run %s of module %s: %w", g.phase.entry(), g.module.digest, err)
	}
	refused := ""
	if g.linear.Refused() {
		refused = fmt.Sprintf(" (out of memory: memory.grow was refused at the limit of %d bytes: keep less at a time, split the work, or raise the limit memory_bytes)", g.limits.MemoryBytes)
	}
	if fail := g.panicked(err); fail != nil {
		fail.Message += refused
		return fail, nil
	}
	return g.withTail(&abi.Error{Code: codeTrap, Message: reason + g.module.trapPlace(err) + refused}), nil
}

// isTrap reports whether a call ended by a WebAssembly trap.
func isTrap(err error) bool {
	_, ok := trapReason(err)
	return ok
}

// entry returns the name of the running function for messages.
func (g *guest) entry() string {
	if g.phase == phaseStep {
		return "the invocation"
	}
	return g.phase.entry()
}

// withTail adds to a trap what the guest printed last, because TinyGo and Go print why
// they panic.
func (g *guest) withTail(fail *abi.Error) *abi.Error {
	if fail == nil || fail.Code != codeTrap {
		return fail
	}
	if text := g.tail.text(); text != "" {
		fail.Message += "; its last output: " + text
	}
	return fail
}

// trapReason finds the reason of a trap: the innermost error, if it is one of
// WebAssembly's own. The code checks its type, which is internal to the compiler's
// runtime. Matching texts would not be safe, because they contain the guest's function
// names.
func trapReason(err error) (reason string, ok bool) {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	if fmt.Sprintf("%T", err) != "*wasmruntime.Error" {
		return "", false
	}
	return err.Error(), true
}

// oneLine makes a guest's text safe for a one-line message on any terminal: it removes
// everything that moves the cursor or changes the direction of the writing.
func oneLine(text string) string {
	text = strings.Map(printable, strings.ToValidUTF8(text, "?"))
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' || r == 0 })
	kept := lines[:0]
	for _, line := range lines {
		if line = strings.TrimSpace(line); line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, " | ")
}

// printable keeps visible characters and line ends.
func printable(r rune) rune {
	switch {
	case unicode.IsPrint(r), r == '\n', r == '\r', r == 0:
		return r
	case unicode.IsSpace(r):
		return ' '
	}
	return '?'
}

// checkOutput checks the output of a guest that returned: it must be one step output
// whose first item is what weft_step returned.
func (g *guest) checkOutput(code uint32) *abi.Error {
	invalid := func(format string, args ...any) *abi.Error {
		return &abi.Error{Code: codeOutput, Message: fmt.Sprintf(format, args...)}
	}
	if g.outputs == 0 {
		return invalid("%s returned without calling output", abi.ExportStep)
	}
	kind, ok := outputKind(g.output)
	switch {
	case !ok:
		return invalid("the output is not a step output: it must be [0, events] or [1, error] in CBOR")
	case code > 1:
		return invalid("%s returned %d, it must return 0, or 1 with an error", abi.ExportStep, code)
	case uint64(code) != kind:
		return invalid("%s returned %d, but its output begins with %d", abi.ExportStep, code, kind)
	}
	return nil
}

// outputKind reads the first item of a step output: 0 or 1.
func outputKind(output []byte) (kind uint64, ok bool) {
	n, first, ok := cbor.Read(output, 0)
	if !ok || cbor.Major(output[0]) != cbor.Array || n < 2 {
		return 0, false
	}
	kind, _, ok = cbor.Read(output, first)
	return kind, ok && cbor.Major(output[first]) == cbor.Uint && kind <= 1
}
