//go:build race

package module

// raced: the race detector allocates, and makes checks slow. make test runs this
// package's tests without it too.
const raced = true
