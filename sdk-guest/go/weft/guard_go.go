//go:build !tinygo

package weft

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// guard runs a step. It turns a panic into an error, and logs the stack.
func guard(run func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			println("panic: " + textOf(r) + "\n" + string(debug.Stack()))
			err = &Error{Code: CodePanic, Message: textOf(r) + panicPlace()}
		}
	}()
	return run()
}

// panicPlace returns where the step panicked: the first place on the stack, after the
// panic, outside the runtime.
func panicPlace() string {
	var stack [32]uintptr
	frames := runtime.CallersFrames(stack[:runtime.Callers(3, stack[:])])
	panicked := false
	for {
		f, more := frames.Next()
		switch {
		case strings.HasPrefix(f.Function, "runtime."):
			panicked = true
		case panicked && f.File != "":
			return " (" + f.File[strings.LastIndexByte(f.File, '/')+1:] + ":" + textOf(f.Line) + ")"
		}
		if !more {
			return ""
		}
	}
}
