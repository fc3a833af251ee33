//go:build race

package rewrite

// raced: rewriting a standard Go module takes seconds beside the race detector, and
// no goroutines. make test runs this package's tests without it too, whole.
const raced = true
