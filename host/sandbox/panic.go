package sandbox

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/weftrun/weft/abi"
)

// A language whose panics cannot be caught says why it panics just before it traps or
// exits. To people, and to retry policies, that is a panic as where it is caught.

// panicked is the failure of a step that has said that it panics; nil: it has not.
// place says where, for a text that does not.
func (g *guest) panicked(place string) *abi.Error {
	mark, text, ok := g.tail.lastPanic()
	if !ok || mark != panicMark || g.phase != phaseStep { // else what Go calls fatal
		return nil
	}
	if !knowsPlace.MatchString(text) {
		text += place
	}
	return &abi.Error{Code: codePanic, Message: text}
}

// knowsPlace matches a text that ends with a file and a line.
var knowsPlace = regexp.MustCompile(`\([^()]+:[0-9]+\)$`)

// panicMachinery begins the names of functions that a panic runs through.
var panicMachinery = []string{"runtime.", "core::", "std::", "alloc::", "rust_", "__rust", "_ZN4core", "_ZN3std", "_RN", "(runtime.", "abort", abi.ExportStep}

// panicPlace names the function that panicked, if the module has names: the first on
// the stack that is not the runtime's.
func (m *module) panicPlace(err error) string {
	for name := range m.traceNames(err) {
		own := true
		for _, prefix := range panicMachinery {
			own = own && !strings.HasPrefix(name, prefix)
		}
		if _, err := strconv.Atoi(name); own && err != nil {
			return " in function " + shortName(name)
		}
	}
	return ""
}

// trapFunction finds the name of the function that trapped, in the stack trace.
// "" when there is no trace.
func (m *module) trapFunction(err error) string {
	for name := range m.traceNames(err) {
		return shortName(name)
	}
	return ""
}

// traceNames goes through the functions of a stack trace, the innermost first:
// one line for each function, as MODULE.NAME(types) types, or MODULE.$INDEX when
// it has no name. Functions of the rewriter's are passed over: who called them is
// meant.
func (m *module) traceNames(err error) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		_, trace, _ := strings.Cut(err.Error(), "wasm stack trace:\n\t")
		for line := range strings.SplitSeq(trace, "\n\t") {
			name := traceName(line)
			if strings.HasPrefix(name, helperPrefix) {
				continue
			}
			if index, ok := strings.CutPrefix(name, "$"); ok {
				n, _ := strconv.ParseUint(index, 10, 32)
				name = m.plan.functionName(uint32(n))
			}
			if !yield(name) {
				return
			}
		}
	}
}

// shortName bounds a guest's name for a message.
func shortName(name string) string {
	if len(name) > maxFuncText {
		name = name[:maxFuncText] + "..."
	}
	return oneLine(name)
}

// traceName takes the name out of a line of a stack trace.
func traceName(line string) string {
	line, _, _ = strings.Cut(line, "\n")
	if before, ok := strings.CutSuffix(line, ")"); ok {
		if i := strings.LastIndex(before, ") ("); i >= 0 { // several results
			line = line[:i+1]
		}
	}
	if i := strings.LastIndexByte(line, '('); i >= 0 {
		line = line[:i]
	}
	return strings.TrimPrefix(line, ".")
}
