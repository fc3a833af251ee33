package weft_test

import (
	"fmt"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// An error's code is what retry policies and callers go by.
func ExampleErrorf() {
	err := weft.Errorf("out_of_stock", "only %d of %q are left", 2, "milk").Final()
	fmt.Println(err)
	fmt.Println(weft.CodeOf(fmt.Errorf("order 7: %w", err)), *err.Retryable)
	// Output:
	// out_of_stock: only 2 of "milk" are left
	// out_of_stock false
}
