package remote

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/weftrun/weft/cmd/weft/cli"
	"github.com/weftrun/weft/cmd/weft/screen"
)

// How many entries of a list are shown by default, and how many one request asks for.
const (
	DefaultListed = 20
	MaxPage       = 1000
)

// PageOptions are the flags of commands that show a list, which the API returns in pages.
type PageOptions struct {
	Limit int
	All   bool
}

// Flags adds the flags to a command's flags.
func (o *PageOptions) Flags(f *pflag.FlagSet) {
	f.IntVar(&o.Limit, "limit", DefaultListed, "at most `N`, 1 to "+strconv.Itoa(MaxPage))
	f.BoolVar(&o.All, "all", false, "list all, regardless of --limit")
}

// Check refuses a page size that is out of range.
func (o *PageOptions) Check() error {
	if o.Limit < 1 || o.Limit > MaxPage {
		return cli.Usage("--limit %d: must be a number from 1 to %d; --all lists everything", o.Limit, MaxPage)
	}
	return nil
}

// Size is how many entries a request asks for.
func (o *PageOptions) Size() int {
	if o.All {
		return MaxPage
	}
	return o.Limit
}

// Gather requests the first page of a list, or all pages with --all. next is the cursor
// of the rest, "" if nothing is left.
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
	None string // the text for an empty list
	JSON func(*T) json.RawMessage
	Rows func([]T) *screen.Table
}

// Print shows the list; next is "" if the list is complete.
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

// Joined returns one answer in the API's form with the entries of several pages.
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
