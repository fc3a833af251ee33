package host_test

import (
	"errors"
	"fmt"

	"github.com/weftrun/weft/host"
)

// An error says for whom it is: the code for programs, the message for people, the cause
// for the log alone.
func ExampleError() {
	err := fmt.Errorf("load run: %w", host.Errorf(host.CodeNotFound, "There is no run %q: %w", "r1", errors.New("no rows")))
	fmt.Println(host.CodeOf(err))
	fmt.Println(host.CodeOf(errors.New("anything else")))
	var e *host.Error
	if errors.As(err, &e) {
		fmt.Println(e.HTTPStatus())
	}
	// Output:
	// not_found
	// internal
	// 404
}
