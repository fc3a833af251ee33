package rewrite

import "errors"

// Verify proves by structure that a module is metered.
func Verify(wasm []byte) error { return errors.New("not yet") }
