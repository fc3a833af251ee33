//go:build fail

package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

func boom(*Context, StartEvent) (weft.Stop, error) {
	return weft.Stop{}, weft.Errorf("boom", "boom: it failed")
}

func init() { weft.Define("fail", weft.Step("boom", boom)) }
