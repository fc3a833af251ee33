//go:build slow

package main

import (
	"time"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

func wait(ctx *Context, ev StartEvent) (weft.Stop, error) {
	if err := ctx.Stream(Progress{1}); err != nil {
		return weft.Stop{}, err
	}
	seconds := 30.0
	switch given := ev.Extra["seconds"].(type) {
	case int64:
		seconds = float64(given)
	case float64:
		seconds = given
	}
	return weft.Result("slept"), ctx.Sleep(time.Duration(seconds * float64(time.Second)))
}

func init() { weft.Define("slow", weft.Step("wait", wait, weft.Streams(Progress{}))) }
