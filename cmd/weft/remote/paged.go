package remote

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/screen"
)

// How many entries of a list are shown at first, and are asked for by one request.
const (
	DefaultListed = 20
	MaxPage       = 1000
)

// PageOptions are the flags of commands that show a list which the API gives page by
// page.
type PageOptions struct {
	Limit int
	All   bool
}

// Flags adds the flags to a command's.
func (o *PageOptions) Flags(f *pflag.FlagSet) {
	f.IntVar(&o.Limit, "limit", DefaultListed, "at most `N`, 1 to "+strconv.Itoa(MaxPage))
	f.BoolVar(&o.All, "all", false, "list all, regardless of --limit")
}

// Check refuses a page of an impossible size.
func (o *PageOptions) Check() error {
	if o.Limit < 1 || o.Limit > MaxPage {
		return cli.Usage("--limit %d: it is a number from 1 to %d; --all lists all there are", o.Limit, MaxPage)
	}
	return nil
}

// Size is how many a request asks for.
func (o *PageOptions) Size() int {
	if o.All {
		return MaxPage
	}
	return o.Limit
}

// Gather asks for the first page of a list, or with --all for all of them. next is the
// cursor of what is left, "" if nothing is.
func Gather[T any](o *PageOptions, ask func(cursor string) (page []T, next string, err error)) (list []T, next string, err error) {
	list, next, err = ask("")
	for o.All && next != "" && err == nil {
		var page []T
		page, next, err = ask(next)
		list = append(list, page...)
	}
	return list, next, err
}

// List shows a list: as the API's answer, or as a table.
type List[T any] struct {
	Name string // of the list in the API's answer
	None string // what is said if there is nothing
	JSON func(*T) json.RawMessage
	Rows func([]T) *screen.Table
}

// Print shows the list; next is "" if nothing is left of it.
func (p List[T]) Print(r *Conn, o *PageOptions, list []T, next string) error {
	switch {
	case r.JSON && !o.All:
		return r.PrintAnswer()
	case r.JSON:
		return r.PrintJSON(p.Joined(list))
	case len(list) == 0:
		r.Note(p.None)
		return nil
	}
	if err := r.Print(p.Rows(list).Render(r.Screen)); err != nil {
		return err
	}
	if next != "" {
		r.Note("there are more: --limit N or --all shows them")
	}
	return nil
}

// Joined makes one answer of the API's form of the entries of several pages.
func (p List[T]) Joined(list []T) []byte {
	var b bytes.Buffer
	b.WriteString(`{"` + p.Name + `":[`)
	for i := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(p.JSON(&list[i]))
	}
	b.WriteString(`],"next_cursor":null}`)
	return b.Bytes()
}
