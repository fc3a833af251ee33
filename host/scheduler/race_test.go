//go:build race

package scheduler_test

// raced: the simulation, of which a seed takes a second beside the race detector,
// plays fewer of them. make test runs this package's tests without it too, whole.
const raced = true
