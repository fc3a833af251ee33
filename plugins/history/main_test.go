package main

import (
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

func TestRemembersTheSession(t *testing.T) {
	session := wefttest.NewSession()
	for i, query := range []string{"one", "two", "three"} {
		run, err := session.Run(map[string]any{"query": query})
		if err != nil {
			t.Fatal(err)
		}
		var got Response
		if err := wefttest.Into(run.Result, &got); err != nil {
			t.Fatal(err)
		}
		if want := (Response{"Processed: " + query, i + 1}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	var last Interaction
	if err := session.Read("history.-1", &last); err != nil {
		t.Fatal(err)
	}
	if want := (Interaction{"three", seconds(session.Clock)}); last != want {
		t.Errorf("remembers %+v, want %+v", last, want)
	}
}
