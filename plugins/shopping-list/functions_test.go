package main

import (
	"testing"

	"github.com/weftrun/weft/sdk-guest/go/weft"
	"github.com/weftrun/weft/sdk-guest/go/wefttest"
)

// Functions are called one by one, as the flow would: they share the session's state.
func TestFunctionsShareTheList(t *testing.T) {
	session := wefttest.NewSession(wefttest.State(State{}))
	for _, call := range []struct {
		function, input string
		want            any
	}{
		{"choose", "add milk", "add"},
		{"is_empty", "list", true},
		{"add_item", "add milk and Bread", "Added 'milk' to the shopping list.\nAdded 'Bread' to the shopping list."},
		{"add_item", "add MILK", "'MILK' is already in the shopping list."},
		{"is_empty", "list", false},
		{"remove_item", "remove bread", "Removed 'Bread' from the shopping list."},
		{"list_items", "list", "Shopping list:\n- milk"},
		{"remove_all_items", "clear", "Removed all items from the shopping list."},
		{"remove_item", "remove milk", "Shopping list is empty. Cannot remove 'milk'."},
	} {
		run, err := session.Function(call.function, weft.StepInput{Input: call.input})
		if err != nil {
			t.Fatal(err)
		}
		if run.Result != call.want {
			t.Errorf("%s of %q gives %q, want %q", call.function, call.input, run.Result, call.want)
		}
	}
}
