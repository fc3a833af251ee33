package weft_test

import (
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/internal/boundary"
)

// The examples that no test runs are at least definitions without a fault, of which
// Define would panic.
func TestExamplesAreDefinitions(t *testing.T) {
	for name, example := range map[string]func(){
		"edit": ExampleContext_Edit, "increment": ExampleContext_Increment, "get": ExampleContext_Get, "batch": ExampleContext_Batch,
		"wait": ExampleWait, "run": ExampleRun, "http": ExampleContext_HTTP, "collect": ExampleContext_Collect, "retry": ExampleRetry,
		"atomic": ExampleAtomic, "function": ExampleFunction, "workflow": Example,
	} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(boundary.Aside())
			example()
		})
	}
}
