// Parent runs another workflow twice from one step: a child is a call.
package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// StartEvent lists what to process.
type StartEvent struct {
	weft.Start
	Items []string
}

// Half is what a child starts with.
type Half struct{ Items []string }

// Result is the result of one item from the child, accumulator.
type Result struct {
	Index     int
	Original  string
	Processed string
}

// Summary is the result.
type Summary struct {
	Children int
	Results  []Result
}

type context = weft.Context[weft.Untyped] // only the children use the state

// split runs a child for each half of the items, one after the other, because the
// children share the session and its one list of results.
func split(ctx *context, ev StartEvent) (weft.Stop, error) {
	middle := len(ev.Items) / 2
	sum := Summary{Results: []Result{}}
	for _, items := range [][]string{ev.Items[:middle], ev.Items[middle:]} {
		results, err := weft.Run[[]Result](ctx, "accumulator", Half{items}, weft.SameSession())
		if err != nil {
			return weft.Stop{}, err
		}
		sum.Children++
		sum.Results = append(sum.Results, results...)
	}
	return weft.Result(sum), nil
}

func init() {
	weft.Define("parent", weft.Step("split", split))
}

func main() {}
