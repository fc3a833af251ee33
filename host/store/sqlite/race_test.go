//go:build race

package sqlite

import "flag"

// raced: SQLite is ten times as slow under the race detector. The tests that play
// histories (a failing disk, the comparison with the store in memory) do not depend on
// goroutines, so they play fewer. make test also runs the whole tests of this package
// without it.
const raced = true

// Properties have fewer checks too, unless the command line sets their number.
func init() {
	if err := flag.Set("rapid.checks", "25"); err != nil {
		panic(err)
	}
}
