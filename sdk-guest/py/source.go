// Package py carries the engine for steps in Python, so that a program can put an author's
// files into it.
//
// It must not know what a step is: sdk-guest/py/engine/README.md has the contract.
package py

import (
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
)

// built holds the engine if 'make engines' had built it when the program was compiled. The
// engine is not part of the repository.
//
//go:embed engine/built
var built embed.FS

// ErrNoEngine is returned by a program that was built without the engine.
var ErrNoEngine = errors.New("this weft was built without the engine for Python: run 'make engines build' in the sources of weft, or install a release")

// Engine returns the engine: a WebAssembly module without an author's files. The caller
// must not modify the bytes. Engine may be called from any goroutine.
//
// # Errors
//
// [ErrNoEngine]; an error if the embedded file is damaged.
var Engine = sync.OnceValues(func() ([]byte, error) {
	compressed, err := built.ReadFile("engine/built/engine.wasm.gz")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoEngine
	}
	if err != nil {
		return nil, err
	}
	r, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return nil, fmt.Errorf("unpack the engine for Python: %w", err)
	}
	wasm, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("unpack the engine for Python: %w", err)
	}
	return wasm, nil
})
