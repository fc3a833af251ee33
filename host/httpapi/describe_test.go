package httpapi

import (
	"net/http"
	"testing"

	"github.com/weftrun/weft/host/httpapi/openapi"
)

// TestEveryRouteIsDescribed compares the tables of the description with the routes.
func TestEveryRouteIsDescribed(t *testing.T) {
	for _, problem := range openapi.Unknown(New(Config{Metrics: http.NotFoundHandler()}).Routes()) {
		t.Error(problem)
	}
}
