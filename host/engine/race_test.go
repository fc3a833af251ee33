//go:build race

package engine

import "flag"

// raced: the engine starts no goroutines, so the race detector can find little here, and
// everything is ten times as slow. Tests play fewer rounds. make test also runs the whole
// tests of this package without it.
const raced = true

// Properties have fewer checks too, unless the command line sets their number.
func init() {
	if err := flag.Set("rapid.checks", "20"); err != nil {
		panic(err)
	}
}
