package httpapi

import (
	"net/http"
	"testing"

	"github.com/weftrun/weft/host/httpapi/openapi"
)

// TestEveryRouteIsDescribed holds the tables of the description to the routes.
func TestEveryRouteIsDescribed(t *testing.T) {
	for _, problem := range openapi.Unknown(New(Config{Metrics: http.NotFoundHandler()}).Routes()) {
		t.Error(problem)
	}
}
