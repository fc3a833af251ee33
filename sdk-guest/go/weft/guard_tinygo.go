//go:build tinygo

package weft

// guard runs a step. There is no recover here: a panic ends in a trap, and its
// message is in the log.
func guard(run func() error) error { return run() }
