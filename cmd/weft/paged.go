package main

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/spf13/pflag"
)

// How many entries of a list are shown at first, and are asked for by one request.
const (
	defaultListed = 20
	maxPage       = 1000
)

// pageOptions are the flags of commands that show a list which the API gives page by
// page.
type pageOptions struct {
	limit int
	all   bool
}

func (o *pageOptions) flags(f *pflag.FlagSet) {
	f.IntVar(&o.limit, "limit", defaultListed, "at most `N`, 1 to "+strconv.Itoa(maxPage))
	f.BoolVar(&o.all, "all", false, "list all, regardless of --limit")
}

func (o *pageOptions) check() error {
	if o.limit < 1 || o.limit > maxPage {
		return usage("--limit %d: it is a number from 1 to %d; --all lists all there are", o.limit, maxPage)
	}
	return nil
}

// size is how many a request asks for.
func (o *pageOptions) size() int {
	if o.all {
		return maxPage
	}
	return o.limit
}

// gather asks for the first page of a list, or with --all for all of them. next is the
// cursor of what is left, "" if nothing is.
func gather[T any](o *pageOptions, ask func(cursor string) (page []T, next string, err error)) (list []T, next string, err error) {
	list, next, err = ask("")
	for o.all && next != "" && err == nil {
		var page []T
		page, next, err = ask(next)
		list = append(list, page...)
	}
	return list, next, err
}

// printList shows a list: as the API's answer, or as a table.
type printList[T any] struct {
	name string // of the list in the API's answer
	none string // what is said if there is nothing
	json func(*T) json.RawMessage
	rows func([]T) *table
}

func (p printList[T]) print(r *remote, o *pageOptions, list []T, next string) error {
	switch {
	case r.json && !o.all:
		return r.printAnswer()
	case r.json:
		return r.printJSON(p.joined(list))
	case len(list) == 0:
		r.note(p.none)
		return nil
	}
	if err := r.print(p.rows(list).render(r.screen)); err != nil {
		return err
	}
	if next != "" {
		r.note("there are more: --limit N or --all shows them")
	}
	return nil
}

// joined makes one answer of the API's form of the entries of several pages.
func (p printList[T]) joined(list []T) []byte {
	var b bytes.Buffer
	b.WriteString(`{"` + p.name + `":[`)
	for i := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(p.json(&list[i]))
	}
	b.WriteString(`],"next_cursor":null}`)
	return b.Bytes()
}
