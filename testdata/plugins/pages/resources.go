package main

import "github.com/weftrun/weft/sdk-guest/go/weft"

// Of docs/resources.md.

func init() {
	weft.Define("sell", weft.Resource{Name: "crm", Kind: "http"}, weft.Step("look", look))
}

func look(ctx *weft.Context[weft.Untyped], ev Order) (weft.Stop, error) {
	customer, err := ctx.HTTP("crm").Get("customers/" + ev.Customer)
	if err != nil {
		return weft.Stop{}, err
	}
	return weft.Result(string(customer.Body)), nil
}

func ask(ctx *weft.Context[weft.Untyped], ev StartEvent) (weft.Stop, error) {
	answer, err := ctx.LLM("llm").Chat(weft.User("Why is the sky blue?"))
	return weft.Result(answer), err
}

// Ask asks for the rate of two currencies.
type Ask struct {
	weft.Start
	Pair string
}

func rate(ctx *weft.Context[weft.Untyped], ev Ask) (weft.Stop, error) {
	kv := ctx.KV("cache")
	var rate float64
	version, err := kv.Get("rates/"+ev.Pair, &rate)
	if err == nil && version == 0 { // nobody has put it there
		rate = 1.25
		_, err = kv.Set("rates/"+ev.Pair, rate)
	}
	return weft.Result(rate), err
}

// They are compiled, and not run.
var _ = []any{ask, rate}
