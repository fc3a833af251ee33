//go:build tinygo

package weft

// guard runs a step. There is no recover here: a panic ends in a trap, and the host
// makes the error of what it printed.
func guard(run func() error) error { return run() }
