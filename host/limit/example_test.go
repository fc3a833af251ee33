package limit_test

import (
	"errors"
	"fmt"

	"github.com/weftrun/weft/host/jsonfile"
	"github.com/weftrun/weft/host/limit"
)

// A tenant's settings go before those of a plugin's name, field by field.
func ExampleParse() {
	table, err := limit.Parse([]byte(`{
		"defaults": {"memory_bytes": "128MiB"},
		"plugins":  {"crunch": {"wall_time": "2m"}},
		"tenants":  {"acme": {"wall_time": "5s"}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tenant := range []string{"acme", "globex"} {
		l := table.Limits(tenant, "crunch")
		fmt.Println(tenant, l.WallTime, l.MemoryBytes>>20, "MiB")
	}
	// Output:
	// acme 5s 128 MiB
	// globex 2m0s 128 MiB
}

// The error lists all problems of a file.
func ExampleParse_problems() {
	_, err := limit.Parse([]byte(`{"defaults": {"wall_tim": "5s"}, "tenants": {"acme": {"fuel": -1}}}`))
	var all *jsonfile.Error
	if errors.As(err, &all) {
		fmt.Println(len(all.Problems), "problems")
	}
	// Output: 2 problems
}
