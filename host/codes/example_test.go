package codes_test

import (
	"fmt"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/codes"
)

func ExampleExplain() {
	for _, e := range codes.Explain(host.RunDeadlineExceeded) {
		fmt.Println(e.What)
		fmt.Println(e.Do)
	}
	// Output:
	// An invocation was on a core for longer than `wall_time`.
	// Look for an endless loop, split the work into steps, or raise the limit.
}
