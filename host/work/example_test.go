package work_test

import (
	"errors"
	"fmt"

	"github.com/weftrun/weft/host/work"
)

// Work is charged before it is done, so a meter without enough units stops the work in
// its middle.
func ExampleMeter() {
	m := work.New(250, nil)
	done := 0
	for range 10 {
		if err := m.Spend(100); err != nil { // what one round takes
			fmt.Println(err)
			break
		}
		done++
	}
	fmt.Println(done, "rounds")
	// Output:
	// the work takes more than 250 units
	// 2 rounds
}

// The hook is called while the work is done and may look at a context, for example. Its
// error ends the work.
func ExampleNew() {
	stopped := errors.New("the run was cancelled")
	m := work.New(0, func(units uint64) error {
		fmt.Println("after", units, "units")
		return stopped
	})
	for m.Spend(work.Look/2) == nil {
	}
	fmt.Println(m.Err())
	// Output:
	// after 300000 units
	// the run was cancelled
}
