package main

import "strings"

// order is a request of the user.
type order struct {
	do    string // the name of a node of the flow
	items []string
}

// read understands "add X, Y and Z", "remove X", "list" and "clear", in any case and
// with any white space; anything else asks for help.
func read(text string) order {
	words := strings.Fields(text)
	if len(words) == 0 {
		return order{do: "help"}
	}
	verb, rest := strings.ToLower(words[0]), strings.Join(words[1:], " ")
	items := split(rest)
	switch {
	case verb == "add" && len(items) > 0:
		return order{"add", items}
	case verb == "remove" && len(items) > 0:
		return order{"remove", items}
	case verb == "list" && rest == "":
		return order{do: "show"}
	case verb == "clear" && rest == "":
		return order{do: "clear"}
	}
	return order{do: "help"}
}

// split splits a list at commas and at the word "and".
func split(text string) []string {
	var items []string
	for _, part := range strings.Split(text, ",") {
		var words []string
		end := func() {
			if len(words) > 0 {
				items = append(items, strings.Join(words, " "))
			}
			words = nil
		}
		for _, word := range strings.Fields(part) {
			if strings.EqualFold(word, "and") {
				end()
				continue
			}
			words = append(words, word)
		}
		end()
	}
	return items
}
