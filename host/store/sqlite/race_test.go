//go:build race

package sqlite

import "flag"

// raced: SQLite is ten times as slow beside the race detector, and what tests play
// histories for, a disk that fails and the store in memory, is no matter of
// goroutines: they play fewer. make test runs this package's tests without it too,
// whole.
const raced = true

// Properties likewise, unless the command line says how many.
func init() {
	if err := flag.Set("rapid.checks", "25"); err != nil {
		panic(err)
	}
}
