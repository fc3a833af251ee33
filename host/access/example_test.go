package access_test

import (
	"fmt"

	"github.com/weftrun/weft/host/access"
)

func ExampleValidTenantName() {
	for _, name := range []string{"acme", "acme-2", "Acme Inc.", ""} {
		fmt.Printf("%q %t\n", name, access.ValidTenantName(name))
	}
	// Output:
	// "acme" true
	// "acme-2" true
	// "Acme Inc." false
	// "" false
}
