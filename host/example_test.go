package host_test

import (
	"errors"
	"fmt"

	"github.com/weftrun/weft/host"
	"github.com/weftrun/weft/host/codes"
	"github.com/weftrun/weft/host/jsonfile"
)

// A tenant's settings go before those of a plugin's name, field by field.
func ExampleParseLimits() {
	table, err := host.ParseLimits([]byte(`{
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
func ExampleParseLimits_problems() {
	_, err := host.ParseLimits([]byte(`{"defaults": {"wall_tim": "5s"}, "tenants": {"acme": {"fuel": -1}}}`))
	var all *jsonfile.Error
	if errors.As(err, &all) {
		fmt.Println(len(all.Problems), "problems")
	}
	// Output: 2 problems
}

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

func ExampleExplain() {
	for _, e := range codes.Explain(host.RunDeadlineExceeded) {
		fmt.Println(e.What)
		fmt.Println(e.Do)
	}
	// Output:
	// An invocation was on a core for longer than `wall_time`.
	// Look for an endless loop, split the work into steps, or raise the limit.
}

func ExampleValidTenantName() {
	for _, name := range []string{"acme", "acme-2", "Acme Inc.", ""} {
		fmt.Printf("%q %t\n", name, host.ValidTenantName(name))
	}
	// Output:
	// "acme" true
	// "acme-2" true
	// "Acme Inc." false
	// "" false
}
