package flow_test

import (
	"fmt"

	"github.com/weftrun/weft/abi"
	"github.com/weftrun/weft/host/flow"
)

func ExampleParse() {
	raw, err := abi.FromJSON([]byte(`{"steps": [
		{"name": "draft", "function": "writer.draft"},
		{"name": "good", "type": "condition", "evaluator": "previous_step_content.size() > 100",
		 "steps": [{"name": "publish", "function": "writer.publish"}]}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	doc, problems := flow.Parse(nil, raw)
	for _, n := range doc.Nodes() {
		fmt.Println(n.Path, n.Kind)
	}
	fmt.Println(len(problems), "problems")
	// Output:
	// draft step
	// good condition
	// good/publish step
	// 0 problems
}

// All problems of a flow are listed, each with its place.
func ExampleParse_problems() {
	raw, err := abi.FromJSON([]byte(`{"steps": [
		{"name": "draft", "function": "writer.draft", "retries": -1},
		{"name": "good", "type": "condition", "evaluator": "previous_content == 1", "steps": []}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, problems := flow.Parse(nil, raw)
	for _, p := range problems {
		fmt.Println(p.Code)
	}
	// Output:
	// wrong_value
	// invalid_expression
	// missing_field
}
