// Package spectest tests that a rewritten module behaves like the original: with
// WebAssembly's own specification tests, with random modules of two generators,
// and with the findings of a fuzzer. It contains only tests.
//
// It depends on host/sandbox/rewrite and the engine, and must not depend on the
// sandbox: the sandbox's own tests cover what it adds to a rewritten module
// (budgets, images, imports).
package spectest
