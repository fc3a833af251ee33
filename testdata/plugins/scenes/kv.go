package main

import (
	"strings"

	"github.com/weftrun/weft/sdk-guest/go/weft"
)

// Note is what is kept.
type Note struct {
	N    int64
	Text string
}

// keep does all that there is to do with a resource of the kind kv.
func keep(ctx *context) (any, error) {
	shelf := ctx.KV("shelf")
	var seen []any
	see := func(v any, err error) {
		if err != nil {
			v = weft.CodeOf(err)
		}
		seen = append(seen, v)
	}
	var note Note
	version, err := shelf.Get("a/note", &note)
	see(version, err)
	first, err := shelf.Set("a/note", Note{1, "sa\u00ef"})
	see(first > 0, err)
	second, err := shelf.SetIf("a/note", first, Note{2, "again"})
	see(second > first, err)
	_, err = shelf.SetIf("a/note", first, Note{})
	see("not refused", err)
	_, err = shelf.SetIf("a/note", 0, Note{})
	see("not refused", err)
	version, err = shelf.Get("a/note", &note)
	see([]any{version == second, note.N, note.Text}, err)
	see(shelf.Increment("a/n", 5))
	see(shelf.Increment("a/n", -2))
	see(shelf.Increment("a/note", 1))
	see(weft.UpdateKey(shelf, "a/n", func(n *int64) error {
		*n += 10
		return nil
	}))
	_, err = shelf.Set("a/"+strings.Repeat("k", 511), 1)
	see("not refused", err)
	_, err = shelf.Set("", 1)
	see("not refused", err)
	page, err := shelf.List(weft.KVQuery{Prefix: "a/", Limit: 1, Values: true})
	for _, item := range page.Items {
		see([]any{item.Key, item.Value, page.Next}, err)
	}
	page, err = shelf.List(weft.KVQuery{Prefix: "a/", After: page.Next})
	for _, item := range page.Items {
		see([]any{item.Key, item.Version == second, page.Next}, err)
	}
	see("not refused", shelf.DeleteIf("a/note", first))
	see(nil, shelf.DeleteIf("a/note", second))
	see(shelf.Delete("a/n"))
	see(shelf.Delete("a/n"))
	return seen, nil
}

// tally counts twice under keys that all runs share.
func tally(ctx *context, name string) (any, error) {
	shelf := ctx.KV("shelf")
	own, err := weft.UpdateKey(shelf, "own/"+name, func(n *int64) error {
		*n++
		return nil
	})
	if err != nil {
		return nil, err
	}
	sum, err := shelf.Increment("sum", 1)
	if err != nil {
		return nil, err
	}
	_, err = weft.UpdateKey(shelf, "all", func(sums *[]int64) error {
		*sums = append(*sums, sum)
		return nil
	})
	return []any{own, sum}, err
}
