//go:build plain

package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

func only(_ *Context, ev StartEvent) (weft.Stop, error) {
	echo := map[string]any{}
	for name, value := range ev.Extra {
		echo[name] = value
	}
	return weft.Result(map[string]any{"echo": echo}), nil
}

func init() { weft.Define("plain", weft.Step("only", only)) }
