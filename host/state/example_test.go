package state_test

import (
	"errors"
	"fmt"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/state"
)

// tree makes a state of JSON, for examples.
func tree(text string) *state.Node {
	raw, err := abi.FromJSON([]byte(text))
	if err != nil {
		panic(err)
	}
	root, err := state.Decode(raw)
	if err != nil {
		panic(err)
	}
	return root
}

// show is a state in JSON, for examples.
func show(n *state.Node) string {
	text, err := abi.ToJSON(n.Encode())
	if err != nil {
		panic(err)
	}
	return string(text)
}

// A batch of edits is applied as a whole. What it comes to is given as changes, which
// say what is at each path and not what was asked.
func ExampleApply() {
	root := tree(`{"user": {"name": "Ada"}, "visits": 1}`)
	one, _ := abi.EncodeValue(1)
	next, _, changes, err := state.Apply(root, []abi.Edit{
		{Op: abi.OpIncrement, Path: "visits", Value: one},
		{Op: abi.OpDelete, Path: "user.name"},
	}, nil)
	fmt.Println(show(next), err)
	for _, c := range changes {
		fmt.Println(c.Op, c.At())
	}
	fmt.Println(show(root)) // a tree never changes
	// Output:
	// {"user":{},"visits":2} <nil>
	// set visits
	// delete user.name
	// {"user":{"name":"Ada"},"visits":1}
}

// An edit "test" refuses the whole batch if another value is there.
func ExampleApply_test() {
	root := tree(`{"owner": "ada", "free": 3}`)
	owner, _ := abi.EncodeValue("bob")
	free, _ := abi.EncodeValue(2)
	_, _, _, err := state.Apply(root, []abi.Edit{
		{Op: abi.OpTest, Path: "owner", Value: owner},
		{Op: abi.OpSet, Path: "free", Value: free},
	}, nil)
	var refused *state.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Code, "at", refused.Path)
	}
	// Output: conflict at owner
}

// Fold gives the tree that the journal's changes make.
func ExampleFold() {
	root := tree(`{"list": [1, 2]}`)
	three, _ := abi.EncodeValue(3)
	next, _, changes, _ := state.Apply(root, []abi.Edit{{Op: abi.OpAppend, Path: "list", Value: three}}, nil)
	folded, err := state.Fold(root, changes)
	fmt.Println(show(folded), state.Equal(next, folded), err)
	// Output: {"list":[1,2,3]} true <nil>
}

func ExampleGet() {
	root := tree(`{"orders": [{"id": "a"}, {"id": "b"}], "example.org": true}`)
	for _, text := range []string{"orders.1.id", `example\.org`, "orders.2"} {
		p, err := state.ParsePath(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		if n, ok := state.Get(root, p); ok {
			fmt.Println(text, show(n))
		} else {
			fmt.Println(text, "is not there")
		}
	}
	// Output:
	// orders.1.id "b"
	// example\.org true
	// orders.2 is not there
}

// MergePatch is RFC 7396: null deletes.
func ExampleMergePatch() {
	root := tree(`{"title": "Draft", "tags": ["a"], "author": {"name": "Ada", "mail": "ada@example.org"}}`)
	next, _, err := state.MergePatch(root, nil, tree(`{"title": "Final", "author": {"mail": null}}`))
	fmt.Println(show(next), err)
	// Output: {"tags":["a"],"title":"Final","author":{"name":"Ada"}} <nil>
}

// Two steps may edit at the same time if their paths do not overlap.
func ExampleOverlaps() {
	paths := []string{"user", "user.name", "visits"}
	for i, a := range paths {
		for _, b := range paths[i+1:] {
			p, _ := state.ParsePath(a)
			q, _ := state.ParsePath(b)
			fmt.Println(a, b, state.Overlaps(p, q))
		}
	}
	// Output:
	// user user.name true
	// user visits false
	// user.name visits false
}
