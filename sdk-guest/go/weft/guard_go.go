//go:build !tinygo

package weft

import "runtime/debug"

// guard runs a step and turns a panic into an error, its stack into log lines.
func guard(run func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			println("panic: " + textOf(r) + "\n" + string(debug.Stack()))
			err = &Error{Code: "panic", Message: textOf(r)}
		}
	}()
	return run()
}
