package wefttest_test

import (
	"strings"
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/internal/boundary"
	"github.com/weftrun/weft/sdk-guest/go/weft"
	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

// A request that expects a success fails as on a server, by the status of the answer.
func TestExpectSuccess(t *testing.T) {
	for _, tt := range []struct {
		status int
		expect bool
		want   string // part of the error; "": the status is the result
	}{
		{200, true, ""}, {204, true, ""}, {404, false, ""}, {500, false, ""},
		{404, true, "not_found: the answer is 404 Not Found: nothing here"},
		{503, true, "unavailable: the answer is 503 Service Unavailable"},
		{409, true, "conflict: the answer is 409 Conflict"},
	} {
		t.Cleanup(boundary.Aside())
		weft.Define("fetch", weft.Resource{Name: "web", Kind: "http"},
			weft.Step("get", func(ctx *weft.Context[weft.Untyped], _ countEvent) (weft.Stop, error) {
				answer, err := ctx.HTTP("web").Do(weft.HTTPRequest{Path: "x", ExpectSuccess: tt.expect})
				return weft.Result(answer.Status), err
			}))
		run, err := wefttest.NewSession(wefttest.Resource("web", func(string, weft.HTTPRequest) (any, error) {
			return weft.HTTPResponse{Status: tt.status, Body: []byte("nothing here")}, nil
		})).Run(countEvent{Page: "home"})
		switch {
		case tt.want == "" && (err != nil || run.Result != int64(tt.status)):
			t.Errorf("%d: %v, %v", tt.status, run, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want[:strings.Index(tt.want, ":")]) || !strings.Contains(err.Error(), tt.want[strings.Index(tt.want, ":")+2:])): //nolint:gocritic // there is one
			t.Errorf("%d: %v, want %s", tt.status, err, tt.want)
		}
	}
}
