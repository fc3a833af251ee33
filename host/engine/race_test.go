//go:build race

package engine

import "flag"

// raced: the engine starts no goroutines, so that the race detector has little to
// find here, and all is ten times as slow beside it: tests play fewer rounds. make
// test runs this package's tests without it too, whole.
const raced = true

// Properties likewise, unless the command line says how many.
func init() {
	if err := flag.Set("rapid.checks", "20"); err != nil {
		panic(err)
	}
}
