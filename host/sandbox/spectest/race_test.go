//go:build race

package spectest

// raced: fewer modules and scripts, as compiling them is slow beside the race
// detector. make test runs this package's tests without it too, whole.
const raced = true
