package wefttest_test

import (
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/internal/boundary"
	. "github.com/weftrun/weft/sdk-guest/go/weft"
	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

// define defines the test's workflow as the workflow of the process, and returns a
// session of it.
func define(t *testing.T, options ...Option) *wefttest.Session {
	t.Helper()
	t.Cleanup(boundary.Aside())
	Define("test", options...)
	return wefttest.NewSession()
}

type (
	start struct {
		Start
		N int `weft:",omitempty"`
	}
	first  struct{ I int }
	second struct{ I int }
	third  struct{ I int }
	tally  struct {
		Count int
		Log   []string
	}
	untypedContext = Context[Untyped]
	object         = map[string]any
)
