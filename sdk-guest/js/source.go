// Package js carries the engine for steps in JavaScript and TypeScript, so that a
// program can put a script into it.
//
// It must not know what a step is: sdk-guest/js/engine/README.md has the contract.
package js

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"sync"
)

//go:embed engine/engine.wasm.gz
var compressed []byte

// Engine returns the engine: a WebAssembly module without a script. The caller must not
// modify the bytes. Engine may be called from any goroutine.
//
// # Errors
//
// An error if the embedded file is damaged.
var Engine = sync.OnceValues(func() ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("unpack the engine for JavaScript: %w", err)
	}
	wasm, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("unpack the engine for JavaScript: %w", err)
	}
	return wasm, nil
})
