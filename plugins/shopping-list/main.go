// Shopping-list is a flow: flow.json defines the order of its nodes, and the functions
// here do the work. They share the session's state, the list, and their edits are as
// isolated as those of any step.
package main

import (
	"slices"
	"strings"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// State is the list. It outlives runs.
type State struct{ ShoppingList []string }

type ctx = weft.Context[State]

// has finds an item, whatever its case.
func (s *State) has(item string) int {
	return slices.IndexFunc(s.ShoppingList, func(other string) bool { return strings.EqualFold(other, item) })
}

// choose returns what to do: the name of a node.
func choose(_ *ctx, in weft.StepInput) (weft.StepOutput, error) {
	return weft.Content(read(in.Text()).do), nil
}

// isEmpty decides a condition.
func isEmpty(ctx *ctx, _ weft.StepInput) (weft.StepOutput, error) {
	s, err := ctx.State()
	return weft.Content(len(s.ShoppingList) == 0), err
}

func addItem(ctx *ctx, in weft.StepInput) (weft.StepOutput, error) {
	var said []string
	err := ctx.Edit(func(s *State) error {
		said = nil // an edit with a conflict is repeated
		for _, item := range read(in.Text()).items {
			if s.has(item) >= 0 {
				said = append(said, "'"+item+"' is already in the shopping list.")
				continue
			}
			s.ShoppingList = append(s.ShoppingList, item)
			said = append(said, "Added '"+item+"' to the shopping list.")
		}
		return nil
	})
	return lines(said), err
}

func removeItem(ctx *ctx, in weft.StepInput) (weft.StepOutput, error) {
	var said []string
	err := ctx.Edit(func(s *State) error {
		said = nil
		for _, item := range read(in.Text()).items {
			i := s.has(item)
			switch {
			case len(s.ShoppingList) == 0:
				said = append(said, "Shopping list is empty. Cannot remove '"+item+"'.")
			case i < 0:
				said = append(said, "'"+item+"' not found in the shopping list.")
			default:
				said = append(said, "Removed '"+s.ShoppingList[i]+"' from the shopping list.")
				s.ShoppingList = slices.Delete(s.ShoppingList, i, i+1)
			}
		}
		return nil
	})
	return lines(said), err
}

func listItems(ctx *ctx, _ weft.StepInput) (weft.StepOutput, error) {
	s, err := ctx.State()
	said := []string{"Shopping list:"}
	for _, item := range s.ShoppingList {
		said = append(said, "- "+item)
	}
	return lines(said), err
}

func sayEmpty(*ctx, weft.StepInput) (weft.StepOutput, error) {
	return weft.Content("Shopping list is empty."), nil
}

func removeAllItems(ctx *ctx, _ weft.StepInput) (weft.StepOutput, error) {
	return weft.Content("Removed all items from the shopping list."), ctx.Set("shopping_list", []string{})
}

func help(*ctx, weft.StepInput) (weft.StepOutput, error) {
	return weft.Content("I understand: add X, Y and Z; remove X; list; clear."), nil
}

func lines(said []string) weft.StepOutput { return weft.Content(strings.Join(said, "\n")) }

func init() {
	weft.Define("shopping-list-functions",
		weft.Function("choose", choose),
		weft.Function("is_empty", isEmpty),
		weft.Function("add_item", addItem),
		weft.Function("remove_item", removeItem),
		weft.Function("list_items", listItems),
		weft.Function("say_empty", sayEmpty),
		weft.Function("remove_all_items", removeAllItems),
		weft.Function("help", help))
}

func main() {}
