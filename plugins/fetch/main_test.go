package main

import (
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/weft"
	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

// web replaces the resource.
func web(method string, r weft.HTTPRequest) (any, error) {
	if method != "request" || r.Path == "gone" {
		return nil, &wefttest.Failure{Code: "unavailable", Message: "nobody is there"}
	}
	return weft.HTTPResponse{Status: 201, Body: []byte(r.Method + " é " + string(r.Body))}, nil
}

func TestAPageIsCounted(t *testing.T) {
	session := wefttest.NewSession(wefttest.Resource("web", web))
	run, err := session.Run(map[string]any{"path": "pages/1", "method": "POST", "body": "tea"})
	if err != nil {
		t.Fatal(err)
	}
	var got Page
	if err := wefttest.Into(run.Result, &got); err != nil {
		t.Fatal(err)
	}
	if want := (Page{Status: 201, Length: len("POST e tea"), Asked: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestFailures(t *testing.T) {
	start := map[string]any{"path": "gone"}
	_, err := wefttest.NewSession(wefttest.Resource("web", web)).Run(start)
	if want := `unavailable: call "web": nobody is there`; err == nil || err.Error() != want {
		t.Errorf("fails with %v, want %s", err, want)
	}
	if _, err := wefttest.NewSession().Run(start); err == nil {
		t.Error("runs without the resource")
	}
}
