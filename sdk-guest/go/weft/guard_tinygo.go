//go:build tinygo

package weft

// guard runs a step. TinyGo has no recover on this target: a panic ends in a trap, and
// the host makes the error from what the panic printed.
func guard(run func() error) error { return run() }
