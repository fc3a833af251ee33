//go:build timeout

package main

import (
	"time"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

func wait(ctx *Context, _ StartEvent) (weft.Stop, error) {
	return weft.Result("never"), ctx.Sleep(30 * time.Second)
}

func init() { weft.Define("timeout", weft.Timeout(time.Second), weft.Step("wait", wait)) }
