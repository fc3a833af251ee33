//go:build !tinygo

package weft

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// guard runs a step and turns a panic into an error, its stack into log lines.
func guard(run func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			println("panic: " + textOf(r) + "\n" + string(debug.Stack()))
			err = &Error{Code: CodePanic, Message: textOf(r) + panicPlace()}
		}
	}()
	return run()
}

// panicPlace says where the step was when it panicked: the first place on the stack,
// from the panic on, that is not the runtime's.
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
