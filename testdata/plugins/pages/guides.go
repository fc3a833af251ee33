package main

import (
	"strings"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// Of docs/guides.

func countVowels(_ *weft.Context[weft.Untyped], ev StartEvent) (weft.Stop, error) {
	count := 0
	for _, r := range ev.Text {
		if strings.ContainsRune("aeiouAEIOU", r) {
			count++
		}
	}
	return weft.Result(map[string]int{"count": count}), nil
}

// They are compiled, and not run.
var _ = []any{countVowels}
