// Package spectest holds the tests that a rewritten module does what the
// original does: over WebAssembly's own specification tests, over random modules
// of two generators, and over whatever a fuzzer finds. It has no code but tests.
//
// It knows host/sandbox/rewrite and the engine, and must not know the sandbox:
// what the sandbox adds to a rewritten module (budgets, images, imports) is
// tested there.
package spectest
