package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// Of docs/flows.md; all of it is in plugins/shopping-list.

type State struct{ ShoppingList []string }

func choose(_ *weft.Context[State], _ weft.StepInput) (weft.StepOutput, error) {
	return weft.Content("add"), nil
}

func isEmpty(ctx *weft.Context[State], _ weft.StepInput) (weft.StepOutput, error) {
	s, err := ctx.State()
	return weft.Content(len(s.ShoppingList) == 0), err
}

func listItems(ctx *weft.Context[State], _ weft.StepInput) (weft.StepOutput, error) {
	s, err := ctx.State()
	return weft.Content(s.ShoppingList), err
}

func addItem(ctx *weft.Context[State], in weft.StepInput) (weft.StepOutput, error) {
	err := ctx.Edit(func(s *State) error {
		s.ShoppingList = append(s.ShoppingList, in.Text())
		return nil
	})
	return weft.Content("Added '" + in.Text() + "' to the shopping list."), err
}

func init() {
	weft.Define("shopping-list-functions",
		weft.Function("choose", choose),    // a selector: its content is the name of a choice
		weft.Function("is_empty", isEmpty), // an evaluator: its content is true or false
		weft.Function("add_item", addItem),
		weft.Function("list_items", listItems))
}
