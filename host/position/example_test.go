package position_test

import (
	"fmt"

	"github.com/weftrun/weft/host/position"
)

func ExampleParse() {
	at, ok := position.Parse("7/order-1=2/parcel:order-1=0")
	fmt.Println(ok, at.After)
	for _, m := range at.Children {
		fmt.Println(m.Handler, m.Parent, m.After)
	}
	// Output:
	// true 7
	// order-1  2
	// parcel order-1 0
}
