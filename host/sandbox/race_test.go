//go:build race

package sandbox

// raced: compiled guests are slow beside the race detector, compiling them is
// slower still. make test runs this package's tests without it too.
const raced = true
